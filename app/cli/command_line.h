// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/command.h"

namespace kvscope::cli {

/// The whole command line of kvscope-cli: what it parses, and what man page and shell completion are made from.
struct CommandLine {
    CLI::App app;
    std::vector<Verb> verbs;
};
std::unique_ptr<CommandLine> makeCommandLine();

/// Runs kvscope-cli with these arguments; what it prints goes to stdout and stderr. 0 = done, 1 = the work failed, 2 =
/// wrong usage. No exception leaves it. Thread: one at a time.
int runCommandLine(int argc, const char* const* argv);

} // namespace kvscope::cli
