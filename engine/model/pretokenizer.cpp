// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/pretokenizer.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/model/gguf_types.h"

namespace kvscope::model {

namespace {

constexpr split::Rule kGpt2Rules[] = {split::gpt2};
constexpr split::Rule kSmolLmRules[] = {split::singleNumbers, split::gpt2};
constexpr split::Rule kQwen2Rules[] = {split::qwen2};
constexpr split::Rule kQwen35Rules[] = {split::qwen35};
constexpr split::Rule kLlama3Rules[] = {split::llama3};
constexpr split::Rule kSeedCoderRules[] = {split::seedCoder};
constexpr split::Rule kTekkenRules[] = {split::tekken};
constexpr split::Rule kGpt4oRules[] = {split::gpt4o};
constexpr split::Rule kDeepseekLlmRules[] = {split::lineEnds,      split::casedWords,    split::listedPunctuation,
                                             split::trailingSpace, split::eastAsianRuns, split::numberRuns};
constexpr split::Rule kDeepseekCoderRules[] = {split::lineEnds, split::words, split::punctuation, split::eastAsianRuns,
                                               split::singleNumbers};
constexpr split::Rule kDeepseekV3Rules[] = {split::numbersUpToThree, split::hanAndKanaRuns, split::deepseekV3};

constexpr PreTokenizer kGpt2 = {"gpt-2", kGpt2Rules, false, false};
constexpr PreTokenizer kSmolLm = {"smollm", kSmolLmRules, false, false};
constexpr PreTokenizer kQwen2 = {"qwen2", kQwen2Rules, false, false};
constexpr PreTokenizer kQwen35 = {"qwen35", kQwen35Rules, false, false};
constexpr PreTokenizer kLlama3 = {"llama-bpe", kLlama3Rules, true, true};
/// The rule of llama-bpe with a vocabulary that is merged as usual.
constexpr PreTokenizer kDbrx = {"dbrx", kLlama3Rules, false, false};
constexpr PreTokenizer kSeedCoder = {"seed-coder", kSeedCoderRules, false, false};
constexpr PreTokenizer kTekken = {"tekken", kTekkenRules, true, true};
constexpr PreTokenizer kGpt4o = {"gpt-4o", kGpt4oRules, false, false};
constexpr PreTokenizer kDeepseekLlm = {"deepseek-llm", kDeepseekLlmRules, false, false};
constexpr PreTokenizer kDeepseekCoder = {"deepseek-coder", kDeepseekCoderRules, false, false};
constexpr PreTokenizer kDeepseekV3 = {"deepseek-v3", kDeepseekV3Rules, false, false};

struct Names {
    const PreTokenizer* kind;
    std::array<std::string_view, 16> names;
};

constexpr std::array kNames = {
    Names{&kGpt2,
          {"gpt-2", "mpt", "olmo", "jais", "trillion", "phi-2", "gigachat", "a.x-4.0", "mellum", "modern-bert",
           "exaone4", "granite-docling"}},
    Names{&kSmolLm, {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}},
    Names{&kQwen2,
          {"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open", "kormo", "grok-2", "bailingmoe",
           "bailingmoe2", "llada-moe"}},
    Names{&kQwen35, {"qwen35"}},
    Names{&kLlama3,
          {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"}},
    Names{&kDbrx, {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}},
    Names{&kSeedCoder, {"seed-coder"}},
    Names{&kTekken, {"tekken"}},
    Names{&kGpt4o, {"gpt-4o", "llama4", "kanana2", "minimax-m2"}},
    Names{&kDeepseekLlm, {"deepseek-llm"}},
    Names{&kDeepseekCoder, {"deepseek-coder"}},
    Names{&kDeepseekV3, {"deepseek-v3", "hunyuan-dense", "joyai-llm"}},
};

} // namespace

Result<const PreTokenizer*> findPreTokenizer(std::string_view name) {
    for (const Names& known : kNames)
        if (!name.empty() && std::find(known.names.begin(), known.names.end(), name) != known.names.end())
            return known.kind;
    if (name == "default" || name.empty())
        return fail(ErrorCode::Unsupported, "The file does not name its pre-tokenizer (tokenizer.ggml.pre), and a "
                                            "guess would give wrong tokens; use a file converted by a newer program, "
                                            "or give token ids instead of text.");
    return fail(ErrorCode::Unsupported, "The pre-tokenizer \"" + forSentence(name) +
                                            "\" (tokenizer.ggml.pre) is not supported; use a model with another one, "
                                            "or give token ids instead of text.");
}

std::vector<std::size_t> splitPieces(const PreTokenizer& kind, const CodePoints& text) {
    std::vector<std::size_t> ends;
    if (text.size() == 0)
        return ends;
    ends.push_back(text.size());
    std::vector<std::size_t> next;
    for (const split::Rule rule : kind.rules) {
        next.clear();
        next.reserve(ends.size());
        std::size_t begin = 0;
        for (const std::size_t end : ends) {
            rule(text, begin, end, next);
            begin = end;
        }
        ends.swap(next);
    }
    return ends;
}

} // namespace kvscope::model
