// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <vector>

namespace kvscope::store {

/// One numbered step of the database's shape. `sql` leads from version `to - 1` to version `to`; it runs in one
/// transaction together with the change of PRAGMA user_version. A released migration is never edited.
struct Migration {
    int to = 0;
    const char* sql = nullptr;
};

/// All migrations in order, the last one leads to the version that this program writes.
const std::vector<Migration>& migrations();

/// The version that this program reads and writes.
int schemaVersion();

/// PRAGMA application_id of a KVScope database ("KVSC"), so that another program's file is not taken for ours.
inline constexpr int kApplicationId = 0x4B565343;

} // namespace kvscope::store
