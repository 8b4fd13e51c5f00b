// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/api/engine_config.h"

namespace CLI {
class App;
}
namespace kvscope::cli {
struct EngineOptions;
}

namespace kvscope::desktop {

/// The command line of `kvscope`.
struct Options {
    std::string dataDir;      ///< "" = the default folder
    std::string demoFolder;   ///< "" = no demo
    api::EngineConfig engine; ///< modelPath "" = the model used last, or the only one there is
};

/// Adds the options to `app`, which names itself; for parsing, and for the manual page. `options` outlives it.
std::shared_ptr<cli::EngineOptions> addOptions(CLI::App& app, Options& options);

/// What to do instead of starting: print something and end with a status.
struct EarlyEnd {
    int status = 0;
    std::string text;
};

/// The options, or why the program ends here (--help, --version, wrong usage).
std::optional<EarlyEnd> parseOptions(int argc, char** argv, Options& options);

} // namespace kvscope::desktop
