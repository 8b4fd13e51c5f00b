// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace kvscope::manual {

/// What a manual page says beside its options, which come from the definitions that the program itself parses with.
struct Page {
    std::string name;    ///< "kvscope-cli"
    std::string summary; ///< one line, for `apropos`
    std::string version;
    /// Further sections, plain text each: paragraphs are separated by an empty line.
    std::vector<std::pair<std::string, std::string>> sections;
    std::vector<std::string> examples; ///< command lines
    std::string seeAlso;               ///< "kvscope(1)"
};

/// The page in troff's man format. Every verb and every option that --help shows is in it, with its default; options of
/// the group "Engine" that several verbs share are described once.
std::string manualPage(const CLI::App& app, const Page& page);

/// A completion script for bash: verbs, their options, files.
std::string bashCompletion(const CLI::App& app, const std::string& name);

} // namespace kvscope::manual
