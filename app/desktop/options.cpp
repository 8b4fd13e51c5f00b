// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/options.h"

#include <sstream>

#include "app/cli/command.h"
#include "app/cli/engine_options.h"

namespace kvscope::desktop {

std::shared_ptr<cli::EngineOptions> addOptions(CLI::App& app, Options& options) {
    app.name("kvscope");
    app.description("KVScope: chat with a model on your own machine and watch what its KV cache does.");
    app.set_version_flag("--version", std::string("kvscope ") + KVSCOPE_VERSION);
    app.add_option("--data-dir", options.dataDir,
                   "Folder of database, models and sessions (default: $XDG_DATA_HOME/kvscope)");
    app.add_option(
        "--demo", options.demoFolder,
        "Run a scripted chat of two turns, print answers and cache receipts, leave a screenshot in this folder");
    auto engine = cli::addEngineOptions(app);
    app.get_option("--model")->required(false);
    app.remove_option(app.get_option("--stats")); // the window records sessions instead
    return engine;
}

std::optional<EarlyEnd> parseOptions(int argc, char** argv, Options& options) {
    constexpr int kWrongUsage = 2;
    CLI::App app;
    const auto engine = addOptions(app, options);
    try {
        app.parse(argc, argv);
        options.engine = engine->config();
    } catch (const CLI::ParseError& error) {
        std::ostringstream out, err;
        const int status = app.exit(error, out, err);
        return EarlyEnd{status == 0 ? 0 : kWrongUsage, status == 0 ? out.str() : error.what() + std::string("\n")};
    } catch (const cli::UsageError& error) {
        return EarlyEnd{kWrongUsage, error.what() + std::string("\n")};
    }
    return std::nullopt;
}

} // namespace kvscope::desktop
