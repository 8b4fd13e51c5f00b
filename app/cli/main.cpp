// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli: the engine without a window. Exit status: 0 = done, 1 = the work failed, 2 = wrong usage.
#include <cstdio>
#include <exception>

#include "app/cli/command.h"
#include "app/cli/export_commands.h"

using namespace kvscope;

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int complain(const char* sentence, int status) {
    std::fprintf(stderr, "%s\n", sentence);
    return status;
}

int runChosen(const std::vector<cli::Verb>& verbs) {
    for (const cli::Verb& verb : verbs)
        if (verb.app->parsed())
            return verb.run();
    return complain("Name a verb; --help lists them.", kWrongUsage);
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("KVScope without a window: run models, measure their KV cache.", "kvscope-cli");
    app.set_version_flag("--version", std::string("kvscope-cli ") + KVSCOPE_VERSION);
    app.require_subcommand(0, 1);
    const std::vector<cli::Verb> verbs = {
        cli::addGenerate(app),   cli::addLogits(app), cli::addInspect(app), cli::addTokenize(app),
        cli::addDetokenize(app), cli::addRender(app), cli::addExport(app),
    };
    try {
        app.parse(argc, argv);
        return runChosen(verbs);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) // --help, --version
            return app.exit(error);
        return complain(error.what(), kWrongUsage);
    } catch (const cli::UsageError& error) {
        return complain(error.what(), kWrongUsage);
    } catch (const std::exception& error) {
        return complain(error.what(), kFailed);
    }
}
