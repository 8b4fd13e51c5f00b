// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "engine/store/conversation_store.h"

namespace kvscope::store {

/// Named system prompts with sampling settings. Thread: that of the database.
/// Errors: NotFound, InvalidArgument (an empty name, or one that another preset has), and the storage's.
class PresetStore {
public:
    PresetStore(Database& database, WallClock clock) : m_db(database), m_clock(std::move(clock)) {}

    Result<std::vector<Preset>> list(); ///< by name, upper and lower case alike
    /// Adds one without a valid id, changes the one of this id otherwise; its id.
    Result<PresetId> save(const Preset& preset);
    Result<void> remove(PresetId id);

private:
    Database& m_db;
    WallClock m_clock;
};

} // namespace kvscope::store
