// SPDX-License-Identifier: GPL-3.0-or-later
//
// Small random `llama` models with a byte-level vocabulary: complete files that the program can load and run.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace kvscope::test {

struct TinyLlama {
    std::uint32_t layers = 2;
    std::uint32_t hidden = 64;
    std::uint32_t heads = 2;
    std::uint32_t kvHeads = 1;
    std::uint32_t feedForward = 96;
    std::uint32_t context = 512;
    bool tied = true;
    TensorType type = TensorType::F32; ///< of the matrices: F32, F16, BF16, Q8_0, Q4_0, Q4_1
    std::uint32_t seed = 1;
};

namespace detail {

/// Round to nearest, ties to even; finite input of moderate size (weights), subnormals flushed to zero.
inline std::uint16_t halfBits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
    const int exponent = static_cast<int>((bits >> 23) & 0xFF) - 127 + 15;
    if (exponent <= 0)
        return sign;
    std::uint32_t rounded = (static_cast<std::uint32_t>(exponent) << 10) | ((bits >> 13) & 0x3FF);
    const std::uint32_t rest = bits & 0x1FFF;
    if (rest > 0x1000 || (rest == 0x1000 && (rounded & 1)))
        ++rounded;
    return static_cast<std::uint16_t>(sign | rounded);
}

inline std::uint16_t bfloatBits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline void appendBlock(ByteWriter& out, const float* x, TensorType type) {
    constexpr int kValues = 32;
    const float* const low = std::min_element(x, x + kValues);
    const float* const high = std::max_element(x, x + kValues);
    const auto quantum = [](float v, int most) { return std::clamp(static_cast<int>(v), 0, most); };
    if (type == TensorType::Q8_0) {
        const float d = std::max(std::fabs(*low), std::fabs(*high)) / 127.0f;
        out.number(halfBits(d));
        for (int i = 0; i < kValues; ++i)
            out.number(static_cast<std::int8_t>(d > 0 ? std::lround(x[i] / d) : 0));
        return;
    }
    const bool withMinimum = type == TensorType::Q4_1;
    const float extreme = std::fabs(*low) >= std::fabs(*high) ? *low : *high;
    const float d = withMinimum ? (*high - *low) / 15.0f : extreme / -8.0f;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    out.number(halfBits(d));
    if (withMinimum)
        out.number(halfBits(*low));
    for (int i = 0; i < kValues / 2; ++i) {
        const auto q = [&](float v) {
            return withMinimum ? quantum((v - *low) * inverse + 0.5f, 15) : quantum(v * inverse + 8.5f, 15);
        };
        out.number(static_cast<std::uint8_t>(q(x[i]) | (q(x[i + kValues / 2]) << 4)));
    }
}

/// `values` floats in the block layout of `type`.
inline std::string encode(const std::vector<float>& values, TensorType type) {
    ByteWriter out;
    if (type == TensorType::Q8_0 || type == TensorType::Q4_0 || type == TensorType::Q4_1) {
        for (std::size_t i = 0; i + 32 <= values.size(); i += 32)
            appendBlock(out, values.data() + i, type);
        return out.bytes();
    }
    for (float value : values) {
        if (type == TensorType::F16)
            out.number(halfBits(value));
        else if (type == TensorType::BF16)
            out.number(bfloatBits(value));
        else
            out.number(value);
    }
    return out.bytes();
}

/// UTF-8 text of the token that stands for one byte in byte-level vocabularies.
inline std::string byteToken(int byte) {
    const auto plain = [](int b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE); };
    int code = byte;
    if (!plain(byte)) {
        code = 0x100;
        for (int b = 0; b < byte; ++b)
            code += !plain(b);
    }
    if (code < 0x80)
        return std::string(1, static_cast<char>(code));
    return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

} // namespace detail

/// Vocabulary: 256 byte tokens (id = byte), then <|endoftext|>, <|im_start|>, <|im_end|>, padded with unused tokens to
/// 288; no merges but one ("t h"), so that the merge list is there.
inline void addTinyVocabulary(GgufWriter& out) {
    constexpr int kTokens = 288;
    std::vector<std::string> tokens;
    std::vector<std::int32_t> types;
    for (int byte = 0; byte < 256; ++byte)
        tokens.push_back(detail::byteToken(byte));
    types.assign(256, 1);
    tokens.push_back("th");
    types.push_back(1);
    for (const char* control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
        tokens.push_back(control);
        types.push_back(3);
    }
    while (tokens.size() < kTokens) {
        tokens.push_back("<unused" + std::to_string(tokens.size()) + ">");
        types.push_back(5);
    }
    out.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
    out.texts("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
    out.texts("tokenizer.ggml.merges", {"t h"});
    out.u32("tokenizer.ggml.bos_token_id", 257).u32("tokenizer.ggml.eos_token_id", 259);
    out.boolean("tokenizer.ggml.add_bos_token", false);
    out.text(
        "tokenizer.chat_template",
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}");
}

/// The whole model, ready to be written or to be spoilt.
inline GgufWriter tinyLlama(const TinyLlama& size = {}) {
    GgufWriter out;
    out.text("general.architecture", "llama").text("general.name", "Tiny random llama");
    out.u32("llama.context_length", size.context).u32("llama.embedding_length", size.hidden);
    out.u32("llama.block_count", size.layers).u32("llama.feed_forward_length", size.feedForward);
    out.u32("llama.attention.head_count", size.heads).u32("llama.attention.head_count_kv", size.kvHeads);
    out.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).f32("llama.rope.freq_base", 10000.0f);
    out.u32("llama.rope.dimension_count", size.hidden / size.heads);
    addTinyVocabulary(out);

    std::mt19937 random(size.seed);
    const auto matrix = [&](const std::string& name, std::int64_t cols, std::int64_t rows) {
        std::normal_distribution<float> weight(0.0f, 1.5f / std::sqrt(static_cast<float>(cols)));
        std::vector<float> values(static_cast<std::size_t>(cols * rows));
        std::generate(values.begin(), values.end(), [&] { return weight(random); });
        out.tensor({name, {cols, rows}, size.type, detail::encode(values, size.type), {}, {}, {}});
    };
    const auto norm = [&](const std::string& name) {
        std::uniform_real_distribution<float> scale(0.8f, 1.2f);
        std::vector<float> values(size.hidden);
        std::generate(values.begin(), values.end(), [&] { return scale(random); });
        out.tensor({name, {size.hidden}, TensorType::F32, detail::encode(values, TensorType::F32), {}, {}, {}});
    };
    const std::int64_t hidden = size.hidden;
    const std::int64_t kv = hidden / size.heads * size.kvHeads;
    constexpr std::int64_t kTokens = 288;
    matrix("token_embd.weight", hidden, kTokens);
    for (std::uint32_t layer = 0; layer < size.layers; ++layer) {
        const std::string block = "blk." + std::to_string(layer) + ".";
        norm(block + "attn_norm.weight");
        matrix(block + "attn_q.weight", hidden, hidden);
        matrix(block + "attn_k.weight", hidden, kv);
        matrix(block + "attn_v.weight", hidden, kv);
        matrix(block + "attn_output.weight", hidden, hidden);
        norm(block + "ffn_norm.weight");
        matrix(block + "ffn_gate.weight", hidden, size.feedForward);
        matrix(block + "ffn_up.weight", hidden, size.feedForward);
        matrix(block + "ffn_down.weight", size.feedForward, hidden);
    }
    norm("output_norm.weight");
    if (!size.tied)
        matrix("output.weight", hidden, kTokens);
    return out;
}

} // namespace kvscope::test
