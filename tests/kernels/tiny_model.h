// SPDX-License-Identifier: GPL-3.0-or-later
//
// A program of the shape of llama or gemma3 with random weights of any type and size, and its exact forward pass in
// float64 over the dequantized weights (activations never rounded). For tests of the kernels only: they know nothing of
// model files.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/backend.h"

namespace kvscope::tests {

/// One weight as it would stand in a file, and its values.
struct FileWeight {
    std::string name;
    kernels::DType type = kernels::DType::F32;
    std::int64_t rows = 0, cols = 0;
    std::vector<std::byte> bytes;
    std::vector<double> values; ///< rows * cols, dequantized

    kernels::WeightDesc desc() const { return {name, type, rows, cols, bytes.data(), bytes.size()}; }
};

float halfToFloat(std::uint16_t half);
std::uint16_t floatToHalf(float value); ///< nearest, ties to even

/// Random weight whose values have about the given standard deviation.
FileWeight randomWeight(std::mt19937& random, std::string name, kernels::DType type, std::int64_t rows,
                        std::int64_t cols, double deviation);

struct TinyShape {
    std::int32_t hidden = 64, heads = 4, kvHeads = 2, headDimK = 16, headDimV = 16, ff = 96, vocab = 96, layers = 2;
    kernels::DType type = kernels::DType::Q4_1;
    kernels::DType embeddingType = kernels::DType::Q8_0;
    kernels::RopeStyle rope = kernels::RopeStyle::Interleaved;
    kernels::Activation activation = kernels::Activation::Silu;
    bool bias = false;
    bool norms = false; ///< of every head of q and k, and behind attention and MLP; the embedding is scaled
    /// > 0: every other layer, beginning with the first, sees so many positions and rotates by a base of its own.
    std::int32_t window = 0;
    std::int32_t sinks = 0; ///< > 0: every layer has the window, and sees so many first positions too

    std::int32_t windowOf(std::int32_t layer) const { return sinks > 0 || layer % 2 == 0 ? window : 0; }
};

class TinyModel {
public:
    TinyModel(const TinyShape& shape, unsigned seed);

    /// Adds the weights and sets the program, with the given capacities. Fails the caller's way: returns the message.
    std::string load(kernels::Backend& backend, std::int32_t maxTokens, std::int32_t maxSequences,
                     std::int32_t maxLogitRows, std::int32_t maxTableEntries);
    /// With as many tail slots as `sequences` where the format needs them.
    kernels::KvLayout kvLayout(std::int32_t blockSize, std::int32_t numBlocks, const kernels::KvFormat& format = {},
                               std::int32_t sequences = 16) const;

    /// Logits of every position, (n, vocab), in float64. Keys and values are rounded
    /// to f16, as the cache does.
    std::vector<double> reference(const std::vector<std::int32_t>& tokens) const;

    const TinyShape shape;

private:
    const FileWeight& w(std::size_t i) const { return m_weights[i]; }
    std::size_t add(FileWeight weight);

    struct Layer {
        std::size_t norm, q, k, v, qBias, kBias, vBias, o, mlpNorm, gate, up, down;
        std::size_t qNorm, kNorm, postAttention, postMlp;
    };
    std::vector<FileWeight> m_weights;
    std::vector<Layer> m_layers;
    std::size_t m_embedding = 0, m_outputNorm = 0, m_output = 0;
    std::vector<float> m_inverseFreq, m_localFreq;
};

/// Runs sequences over a backend the way an engine would, one step at a time, with arbitrary block tables.
class Driver {
public:
    Driver(kernels::Backend& backend, const TinyModel& model, std::int32_t blockSize, std::int32_t numBlocks,
           std::int32_t tailSlots = 0);

    struct Sequence {
        std::vector<std::int32_t> table;
        std::int32_t length = 0;
        std::int32_t tailSlot = -1; ///< with a quantized format; taken from `freeTails` by the first step
    };
    struct Part {
        Sequence* sequence = nullptr;
        std::vector<std::int32_t> tokens;
    };
    /// One step; logits of every token, (T, vocab), zeros unless `status` is Done afterwards. Blocks are taken from
    /// `freeBlocks`, last first.
    std::vector<float> step(const std::vector<Part>& parts, std::vector<kernels::BlockCopy> copies = {});
    /// Of the last step.
    kernels::StepStatus status = kernels::StepStatus::Done;

    /// Computes the tokens in chunks of at most `chunk`, cut as tail slots want it; logits of every token.
    std::vector<float> run(Sequence& sequence, const std::vector<std::int32_t>& tokens, std::size_t chunk);

    /// With sinks a sequence's blocks come back when no token sees them any more; its table has a hole then.
    std::vector<std::int32_t> freeBlocks;
    std::vector<std::int32_t> freeTails; ///< empty: the format has none

private:
    void giveBackPassed(Sequence& sequence);

    kernels::Backend& m_backend;
    std::int32_t m_vocab, m_blockSize, m_window, m_sinks;
};

} // namespace kvscope::tests
