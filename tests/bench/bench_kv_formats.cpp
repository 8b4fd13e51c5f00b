// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the forms of keys and values cost and what they give, on a real model:
//
//   bench_kv_formats quality [--text F] [--block N] [FORM...]   KL against f16 with float activations, perplexity ratio
//   bench_kv_formats speed [--depth N] [--rounds N] [--block N] [FORM...]   decoding, in pairs with f16
//
// FORM: KEYS/VALUES[/rotated][/skipN] or a preset, as "fp8", "int8/int4/rotated". Without: all that are of interest.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>

#include "engine/model/model_file.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"
#include "tests/support/default_model.h"
#include "tests/support/engine_harness.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr std::size_t kWindow = 512;
constexpr int kSpeedTokens = 32;

struct Options {
    std::string text = std::string(KVSCOPE_TEST_DATA) + "/real/smollm2_ppl.txt";
    std::int32_t blockSize = 32;
    std::int64_t depth = 4000;
    int rounds = 15;
    std::vector<std::string> forms;
};

kernels::KvFormat parseForm(const std::string& form) {
    kernels::KvFormat format;
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= form.size();) {
        const std::size_t end = std::min(form.find('/', at), form.size());
        parts.push_back(form.substr(at, end - at));
        at = end + 1;
    }
    bool keysKnown = false;
    for (const std::string& part : parts) {
        if (part == "rotated")
            format.rotation = true;
        else if (part.starts_with("skip"))
            format.skipLayers = std::stoi(part.substr(4));
        else if (const auto type = kernels::kvDTypeByName(part); type && keysKnown)
            format.values = *type;
        else if (const auto both = kernels::kvFormatByName(part)) {
            format.keys = both->keys;
            format.values = both->values;
            keysKnown = true;
        } else {
            std::fprintf(stderr, "There is no form '%s'.\n", form.c_str());
            std::exit(2);
        }
    }
    return format;
}

api::EngineConfig configOf(const std::string& model, const Options& options, const std::string& form) {
    api::EngineConfig config = EngineHarness::config(model);
    config.threads = 0;
    config.blockSize = options.blockSize;
    config.kvFormat = parseForm(form);
    return config;
}

std::vector<double> logSoftmax(const std::vector<float>& logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float v : logits)
        sum += std::exp(static_cast<double>(v) - largest);
    std::vector<double> out(logits.size());
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<double>(logits[i]) - largest - std::log(sum);
    return out;
}

std::vector<TokenId> tokensOf(const std::string& model, const std::string& path) {
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    auto file = model::ModelFile::open(model);
    auto tokenizer = model::Tokenizer::create(*model::vocabularyFromGguf(file->metadata()));
    return (*tokenizer)->encode(text, {})->ids;
}

struct Quality {
    double kl = 0, loss = 0;
    std::size_t positions = 0, agree = 0;
};

int quality(const std::string& model, Options options) {
    if (options.forms.empty())
        options.forms = {"bf16",
                         "int8",
                         "fp8",
                         "k8v4",
                         "k8v4/rotated",
                         "f16/int4",
                         "f16/int4/rotated",
                         "int8/rotated",
                         "int4",
                         "int4/rotated",
                         "int4/rotated/skip2"};
    options.forms.insert(options.forms.begin(), "f16");
    const std::vector<TokenId> ids = tokensOf(model, options.text);
    std::map<std::string, Quality> results;
    std::map<std::string, std::uint64_t> bytes;
    for (std::size_t first = 0; first < ids.size(); first += kWindow) {
        const std::vector<TokenId> piece(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                         ids.begin() +
                                             static_cast<std::ptrdiff_t>(std::min(first + kWindow, ids.size())));
        std::vector<std::int64_t> positions(piece.size() - 1);
        std::iota(positions.begin(), positions.end(), 0);
        Logits exact;
        for (const std::string& form : options.forms) {
            api::EngineConfig config = configOf(model, options, form);
            config.floatActivations = true;
            config.numBlocks = 64;
            EngineHarness harness;
            harness.load(config);
            bytes[form] = harness.engine->model().kvBytesPerToken;
            const Logits logits = harness.logits(piece, positions);
            if (exact.empty())
                exact = logits;
            Quality& result = results[form];
            for (std::size_t i = 0; i + 1 < piece.size(); ++i) {
                const std::vector<double> p = logSoftmax(exact[i]), q = logSoftmax(logits[i]);
                for (std::size_t v = 0; v < p.size(); ++v)
                    result.kl += std::exp(p[v]) * (p[v] - q[v]);
                result.loss -= q[static_cast<std::size_t>(piece[i + 1])];
                result.agree +=
                    std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin()
                        ? 1
                        : 0;
                ++result.positions;
            }
        }
    }
    std::printf("%-24s %12s %10s %10s %12s\n", "form", "bytes/token", "KL", "top-1", "ppl ratio");
    const Quality& f16 = results["f16"];
    for (const std::string& form : options.forms) {
        const Quality& r = results[form];
        const auto n = static_cast<double>(r.positions);
        std::printf("%-24s %12llu %10.5f %9.2f%% %12.4f\n", form.c_str(), static_cast<unsigned long long>(bytes[form]),
                    r.kl / n, 100 * static_cast<double>(r.agree) / n, std::exp((r.loss - f16.loss) / n));
    }
    return 0;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

int speed(const std::string& model, Options options) {
    if (options.forms.empty())
        options.forms = {"bf16", "fp8", "int8", "k8v4", "k8v4/rotated", "int4", "int4/rotated"};
    const std::vector<TokenId> ids = tokensOf(model, options.text);
    std::vector<TokenId> prompt;
    while (static_cast<std::int64_t>(prompt.size()) < options.depth)
        prompt.push_back(ids[prompt.size() % ids.size()]);
    const auto make = [&](const std::string& form) {
        auto harness = std::make_unique<EngineHarness>();
        api::EngineConfig config = configOf(model, options, form);
        config.numBlocks = 2 * (options.depth + 200) / options.blockSize;
        harness->load(config);
        return harness;
    };
    std::int64_t number = 0;
    const auto decode = [&](EngineHarness& harness) {
        api::Request request = EngineHarness::request(number++, api::TokenPrompt{prompt}, kSpeedTokens + 1);
        request.sampling.ignoreEos = true;
        return kSpeedTokens * 1000.0 / harness.run(request).timings.decodeMs;
    };
    std::printf("decoding at depth %lld, tokens/s (medians of %d pairs)\n", static_cast<long long>(options.depth),
                options.rounds);
    std::printf("%-24s %10s %10s %8s   %s\n", "form", "f16", "form", "ratio", "quartiles");
    const auto f16 = make("f16");
    decode(*f16); // reads the prompt; later ones find it
    for (const std::string& form : options.forms) {
        const auto other = make(form);
        decode(*other);
        std::vector<double> a, b, ratios;
        for (int i = 0; i < options.rounds; ++i) {
            const bool firstF16 = i % 2 == 0;
            const double x = decode(firstF16 ? *f16 : *other), y = decode(firstF16 ? *other : *f16);
            a.push_back(firstF16 ? x : y);
            b.push_back(firstF16 ? y : x);
            ratios.push_back(b.back() / a.back());
        }
        std::sort(ratios.begin(), ratios.end());
        std::printf("%-24s %10.1f %10.1f %8.3f   %.3f..%.3f\n", form.c_str(), median(a), median(b), median(ratios),
                    ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4]);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::optional<std::string> model = defaultModel();
    if (!model) {
        std::fprintf(stderr, "%s\n", kNoDefaultModel);
        return 1;
    }
    Options options;
    const std::string what = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; ++i) {
        const std::string argument = argv[i];
        const auto next = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string("0"); };
        if (argument == "--text")
            options.text = next();
        else if (argument == "--block")
            options.blockSize = std::stoi(next());
        else if (argument == "--depth")
            options.depth = std::stoll(next());
        else if (argument == "--rounds")
            options.rounds = std::stoi(next());
        else
            options.forms.push_back(argument);
    }
    if (what == "quality")
        return quality(*model, options);
    if (what == "speed")
        return speed(*model, options);
    std::fprintf(stderr, "Say 'quality' or 'speed'.\n");
    return 2;
}
