// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>

#include "app/cli/export_commands.h"
#include "app/cli/output_guard.h"

namespace kvscope::cli {

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int complain(const char* sentence, int status) {
    std::fprintf(stderr, "%s\n", sentence);
    return status;
}

/// Verbs of the contract that this version does not have.
constexpr const char* kUnbuiltVerbs[] = {"plan", "snapshots", "serve"};

bool isUnbuiltVerb(const char* word) {
    for (const char* verb : kUnbuiltVerbs)
        if (std::string_view(word) == verb)
            return true;
    return false;
}

void checkOutputs(const CLI::App& app) {
    for (const CLI::App* verb : app.get_subcommands()) {
        refuseOverwriting(*verb);
        checkOutputs(*verb);
    }
}

int runChosen(const std::vector<Verb>& verbs) {
    for (const Verb& verb : verbs)
        if (verb.app->parsed())
            return verb.run();
    return complain("Name a verb; --help lists them.", kWrongUsage);
}

} // namespace

std::unique_ptr<CommandLine> makeCommandLine() {
    auto line = std::make_unique<CommandLine>();
    CLI::App& app = line->app;
    app.description("KVScope without a window: run models, measure their KV cache.");
    app.name("kvscope-cli");
    app.set_version_flag("--version", std::string("kvscope-cli ") + KVSCOPE_VERSION);
    app.require_subcommand(0, 1);
    line->verbs = {
        addGenerate(app), addLogits(app), addEval(app),   addInspect(app), addTokenize(app), addDetokenize(app),
        addRender(app),   addExport(app), addImport(app), addBench(app),   addTrace(app),
    };
    return line;
}

int runCommandLine(int argc, const char* const* argv) {
    if (argc > 1 && isUnbuiltVerb(argv[1]))
        return complain((std::string(argv[1]) + " is not supported yet.").c_str(), kWrongUsage);
    std::unique_ptr<CommandLine> line;
    int status = 0;
    try {
        line = makeCommandLine();
        line->app.parse(argc, argv);
        checkOutputs(line->app);
        status = runChosen(line->verbs);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0)
            return complain((std::string(error.what()) + "; --help lists what there is.").c_str(), kWrongUsage);
        status = line->app.exit(error); // --help, --version
    } catch (const UsageError& error) {
        return complain(error.what(), kWrongUsage);
    } catch (const std::bad_alloc&) {
        return complain("There is not enough memory for this; close other programs or ask for less.", kFailed);
    } catch (const std::exception& error) {
        return complain(error.what(), kFailed);
    }
    if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return complain(outputFailed().c_str(), kFailed);
    return status;
}

} // namespace kvscope::cli
