// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes the seeds of fuzz_gguf into a folder: small good files that the fuzzer starts from.
#include <cstdio>
#include <string>

#include "tests/support/tiny_llama.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: fuzz_gguf_seeds FOLDER\n");
        return 2;
    }
    using namespace kvscope::test;
    const std::string folder = argv[1];
    GgufWriter vocabulary;
    vocabulary.text("general.architecture", "llama");
    addTinyVocabulary(vocabulary);
    GgufWriter mixed;
    mixed.text("general.architecture", "llama").u32("llama.block_count", 2).f32("llama.rope.freq_base", 1e4f);
    mixed.u32s("llama.attention.head_count", {2, 4}).texts("tokenizer.ggml.tokens", {"a", "b"}).boolean("b", true);
    mixed.tensor({"a", {3}, TensorType::F32, {}, {}, {}, {}}).tensor({"b", {32, 2}, TensorType::Q8_0, {}, {}, {}, {}});
    GgufWriter shard;
    shard.u16("split.no", 0).u16("split.count", 2).i32("split.tensors.count", 1);
    const bool ok = tinyLlama({.layers = 1, .hidden = 32, .heads = 2, .kvHeads = 1, .feedForward = 32})
                        .without("tokenizer.ggml.tokens")
                        .u32("llama.vocab_size", 288)
                        .write(folder + "/model") &&
                    vocabulary.write(folder + "/vocabulary") && mixed.write(folder + "/mixed") &&
                    shard.write(folder + "/shard");
    if (!ok)
        std::fprintf(stderr, "cannot write into %s; create the folder first\n", folder.c_str());
    return ok ? 0 : 1;
}
