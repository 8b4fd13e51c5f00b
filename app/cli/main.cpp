// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli: the engine without a window. Exit status: 0 = done, 1 = the work failed, 2 = wrong usage.
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

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

/// Verbs of the contract that this version does not have.
constexpr const char* kUnbuiltVerbs[] = {"bench", "eval", "trace", "plan", "snapshots", "serve"};

bool isUnbuiltVerb(const char* word) {
    for (const char* verb : kUnbuiltVerbs)
        if (std::string_view(word) == verb)
            return true;
    return false;
}

/// A standard stream that is closed would give its number to the next file opened, and what is printed would go there.
void occupyStandardStreams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            (void)::open("/dev/null", O_RDONLY); // takes the lowest free number; writing to it still fails
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
        cli::addImport(app),
    };
    occupyStandardStreams();
    if (argc > 1 && isUnbuiltVerb(argv[1]))
        return complain((std::string(argv[1]) + " is not supported yet.").c_str(), kWrongUsage);
    int status = 0;
    try {
        app.parse(argc, argv);
        status = runChosen(verbs);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0)
            return complain((std::string(error.what()) + "; --help lists what there is.").c_str(), kWrongUsage);
        status = app.exit(error); // --help, --version
    } catch (const cli::UsageError& error) {
        return complain(error.what(), kWrongUsage);
    } catch (const std::bad_alloc&) {
        return complain("There is not enough memory for this; close other programs or ask for less.", kFailed);
    } catch (const std::exception& error) {
        return complain(error.what(), kFailed);
    }
    if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return complain(cli::outputFailed().c_str(), kFailed);
    return status;
}
