// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/command.h"

namespace kvscope::cli {

/// `export`: chats; `export log`: a recorded session as JSON lines, CSV or `.kvscope`.
Verb addExport(CLI::App& app);
/// Adds the options for chats to `export` itself; what runs when no other was chosen. In chat_commands.cpp, as is
/// import.
std::function<int()> addChatExport(CLI::App& app);
Verb addImport(CLI::App& app);

} // namespace kvscope::cli
