// SPDX-License-Identifier: GPL-3.0-or-later
//
// Model files whose greedy answer to every prompt is a given list of tokens, whatever the kernels: for tests of
// everything behind the sampler (streaming, cut positions, stop strings), the real programs included.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tiny_llama.h"

namespace kvscope::test {

/// Cuts a text into different byte strings, across characters wherever it can: 1, 2, 3, 1, ... bytes, one more where
/// the piece was there already. No piece is a single ASCII byte that prompts could end with.
inline std::vector<std::string> awkwardPieces(std::string_view text) {
    std::vector<std::string> pieces;
    std::set<std::string> used;
    std::size_t length = 1;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t n = length;
        const auto piece = [&] { return std::string(text.substr(at, n)); };
        while (at + n < text.size() &&
               (used.count(piece()) != 0 || (n == 1 && static_cast<unsigned char>(text[at]) < 0x80)))
            ++n;
        used.insert(piece());
        pieces.push_back(piece());
        at += pieces.back().size();
        length = length % 3 + 1;
    }
    return pieces;
}

/// After any token that is not in `script` comes script[0], after script[k] comes script[k + 1], after the last one
/// <|im_end|>. Pieces must differ from one another and from what prompts end with.
///
/// How: no layer adds anything (their output matrices are zero), so the state after a token is its embedding, a unit
/// vector; the output matrix maps unit vector k to the token that comes next.
///
/// What another test of the same kind may want to change: the template, the id that the file calls its end token, and
/// the text of the token that ends the script (<|im_end|>).
struct ScriptedShape {
    std::uint32_t context = 512;
    std::string chatTemplate =
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    std::uint32_t endToken = 257;
    std::string endText = "<|im_end|>";
    std::vector<std::string> afterEnd; ///< what the model would say if nobody stopped it there
};

inline GgufWriter scriptedLlama(const std::vector<std::string>& script, const ScriptedShape& shape) {
    const auto steps = static_cast<std::int64_t>(script.size() + 1 + shape.afterEnd.size());
    const std::int64_t hidden = (steps + 1 + 63) / 64 * 64;
    GgufWriter out;
    out.text("general.architecture", "llama").text("general.name", "Scripted llama");
    out.u32("llama.context_length", shape.context).u32("llama.embedding_length", static_cast<std::uint32_t>(hidden));
    out.u32("llama.block_count", 1).u32("llama.feed_forward_length", 64);
    out.u32("llama.attention.head_count", static_cast<std::uint32_t>(hidden / 64));
    out.u32("llama.attention.head_count_kv", 1);
    out.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);

    std::vector<std::string> tokens;
    std::vector<std::int32_t> types;
    for (int byte = 0; byte < 256; ++byte)
        tokens.push_back(detail::byteToken(byte));
    types.assign(256, 1);
    for (const std::string& control : {std::string("<|im_start|>"), shape.endText}) {
        tokens.push_back(control);
        types.push_back(3);
    }
    constexpr std::int64_t kEnd = 257;
    std::vector<std::int64_t> ids; ///< of the script
    std::vector<std::string> said = script;
    said.push_back(shape.endText);
    said.insert(said.end(), shape.afterEnd.begin(), shape.afterEnd.end());
    for (const std::string& piece : said) {
        if (piece == shape.endText) {
            ids.push_back(kEnd);
            continue;
        }
        if (piece.size() == 1) {
            ids.push_back(static_cast<unsigned char>(piece[0]));
            continue;
        }
        std::string token;
        for (const char c : piece)
            token += detail::byteToken(static_cast<unsigned char>(c));
        ids.push_back(static_cast<std::int64_t>(tokens.size()));
        tokens.push_back(token);
        types.push_back(1);
    }
    out.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
    out.texts("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
    out.texts("tokenizer.ggml.merges", {"t h"});
    out.u32("tokenizer.ggml.bos_token_id", 256).u32("tokenizer.ggml.eos_token_id", shape.endToken);
    out.boolean("tokenizer.ggml.add_bos_token", false);
    if (!shape.chatTemplate.empty())
        out.text("tokenizer.chat_template", shape.chatTemplate);

    const auto vocab = static_cast<std::int64_t>(tokens.size());
    const auto at = [hidden](std::int64_t row, std::int64_t col) {
        return static_cast<std::size_t>(row * hidden + col);
    };
    std::vector<float> embedding(static_cast<std::size_t>(vocab * hidden), 0.0f);
    std::vector<float> head(embedding.size(), 0.0f);
    for (std::int64_t token = 0; token < vocab; ++token) {
        // A token of the template that the script says too means nothing where the template says it.
        const auto step =
            token == kEnd && shape.afterEnd.empty() ? ids.end() : std::find(ids.begin(), ids.end(), token);
        embedding[at(token, step == ids.end() ? 0 : step - ids.begin() + 1)] = 1.0f;
    }
    for (std::int64_t step = 0; step < steps; ++step)
        head[at(ids[static_cast<std::size_t>(step)], step)] = 1.0f;

    const auto floats = [&](const std::string& name, std::vector<std::int64_t> dims, const std::vector<float>& values) {
        out.tensor({name, std::move(dims), TensorType::F32, detail::encode(values, TensorType::F32), {}, {}, {}});
    };
    const auto constant = [&](const std::string& name, std::int64_t cols, std::int64_t rows, float value) {
        floats(name, rows == 1 ? std::vector{cols} : std::vector{cols, rows},
               std::vector<float>(static_cast<std::size_t>(cols * rows), value));
    };
    floats("token_embd.weight", {hidden, vocab}, embedding);
    constant("blk.0.attn_norm.weight", hidden, 1, 1.0f);
    constant("blk.0.attn_q.weight", hidden, hidden, 0.01f);
    constant("blk.0.attn_k.weight", hidden, 64, 0.01f);
    constant("blk.0.attn_v.weight", hidden, 64, 0.01f);
    constant("blk.0.attn_output.weight", hidden, hidden, 0.0f);
    constant("blk.0.ffn_norm.weight", hidden, 1, 1.0f);
    constant("blk.0.ffn_gate.weight", hidden, 64, 0.01f);
    constant("blk.0.ffn_up.weight", hidden, 64, 0.01f);
    constant("blk.0.ffn_down.weight", 64, hidden, 0.0f);
    constant("output_norm.weight", hidden, 1, 1.0f);
    floats("output.weight", {hidden, vocab}, head);
    return out;
}

inline GgufWriter scriptedLlama(const std::vector<std::string>& script, std::uint32_t context = 512) {
    ScriptedShape shape;
    shape.context = context;
    return scriptedLlama(script, shape);
}

} // namespace kvscope::test
