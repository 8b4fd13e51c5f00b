// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <CLI/CLI.hpp>

namespace kvscope::cli {

/// Before a verb runs: UsageError when a file that it is to write is one that it reads (the model and its shards
/// included), or that another option is to write. Files are compared as such, so links do not hide them.
void refuseOverwriting(const CLI::App& verb);

} // namespace kvscope::cli
