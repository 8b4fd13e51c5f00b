// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes what is installed beside the programs, from the definitions of their options: make_manual kvscope-cli.1 |
// kvscope-cli.bash | kvscope.1
#include <cstdio>
#include <string>

#include "app/cli/command_line.h"
#include "app/manual/manual.h"
#if defined(KVSCOPE_MANUAL_OF_WINDOW)
#include "app/desktop/options.h"
#endif

using namespace kvscope;

namespace {

std::string cliPage() {
    manual::Page page;
    page.name = "kvscope-cli";
    page.summary = "run language models from the command line and measure their KV cache";
    page.version = KVSCOPE_VERSION;
    page.sections = {
        {"OUTPUT", "With --json there is JSON on standard output and nothing else. Without it, generate writes the "
                   "answer as it grows and its figures to standard error.\n\nA line of generate --batch is a JSON "
                   "object with one of prompt, prompt_ids and messages, and any of id, the sampling options with _ "
                   "for -, after, fork_of, fork_at, cancel_after, pin and repeat. Answers come in the order of the "
                   "lines; a line that fails answers an error and the others go on.\n\nThe first SIGINT or SIGTERM "
                   "ends the run with what it has so far, counters included; the second one ends it at once."},
        {"BENCHMARKS",
         "A workload is a list of requests that follows from its name, scale and seed: short (500 tokens of prompt, "
         "100 of answer), long-form (2,000 and 1,000), long-doc (7,500 and 500), mix (60, 25 and 15 percent of them; "
         "4 system prompts and 4 documents are shared), multi-turn (16 users of 8 turns) and stampede (4 turns of "
         "these users, 64 unrelated prompts, one more turn). bench keeps as many requests in flight as --concurrency "
         "says and sends the next one when one ends; recorded requests with arrival times are sent at these times.\n\n"
         "Every stage runs in the same bytes of KV cache: unless given, those that 4 of the longest requests take at "
         "the baseline. The first token counts from sending a request, the gaps between tokens leave it out, and "
         "percentiles are linear between ranks; --token-times has all that is needed to compute them again. held "
         "counts requests whose whole prompt is resident, waste the allocated slots that no known token will fill.\n\n"
         "With --clock virtual no model is needed: scheduler and cache are the real ones, and a step takes "
         "max(weights / bandwidth, operations / speed) for its matrices, the same for the attention of each sequence, "
         "and the launches of its kernels. The figures of a device are what good kernels reach, and are printed."},
        {"EXIT STATUS", "0: done. 1: the work failed. 2: wrong usage, or an option that is not supported. The reason "
                        "is one sentence on standard error."},
    };
    page.examples = {"kvscope-cli generate --model model.gguf --prompt 'Once upon a time' --max-tokens 40",
                     "kvscope-cli generate --model model.gguf --batch requests.jsonl --json --stats stats.json",
                     "kvscope-cli logits --model model.gguf --prompt-ids 1,2,3 --top 5 --activations f32",
                     "kvscope-cli bench --model model.gguf --scale 0.25 --stages paged,paged+prefix --html bench.html",
                     "kvscope-cli bench --clock virtual --preset r1-distill-qwen-7b --requests 300 --concurrency 16",
                     "kvscope-cli inspect model.gguf"};
    page.seeAlso = "kvscope(1)";
    return manual::manualPage(cli::makeCommandLine()->app, page);
}

#if defined(KVSCOPE_MANUAL_OF_WINDOW)
std::string windowPage() {
    manual::Page page;
    page.name = "kvscope";
    page.summary = "chat with a local language model and watch its KV cache";
    page.version = KVSCOPE_VERSION;
    page.sections = {{"FILES",
                      "Chats, models and recorded sessions are kept in $XDG_DATA_HOME/kvscope, which is "
                      "~/.local/share/kvscope unless the variable says otherwise. Models (GGUF) stand in its folder "
                      "models."},
                     {"EXIT STATUS", "0: closed. 2: wrong usage; the reason is one sentence on standard error."}};
    page.examples = {"kvscope --model ~/models/model.gguf --block-size 32"};
    page.seeAlso = "kvscope-cli(1)";
    desktop::Options options;
    CLI::App app;
    const auto engine = desktop::addOptions(app, options);
    return manual::manualPage(app, page);
}
#endif

} // namespace

int main(int argc, char** argv) {
    const std::string what = argc == 2 ? argv[1] : "";
    std::string text;
    if (what == "kvscope-cli.1")
        text = cliPage();
    else if (what == "kvscope-cli.bash")
        text = manual::bashCompletion(cli::makeCommandLine()->app, "kvscope-cli");
#if defined(KVSCOPE_MANUAL_OF_WINDOW)
    else if (what == "kvscope.1")
        text = windowPage();
#endif
    if (text.empty()) {
        std::fprintf(stderr, "There is no '%s' to write.\n", what.c_str());
        return 2;
    }
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
