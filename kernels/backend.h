// SPDX-License-Identifier: GPL-3.0-or-later
//
// The one interface between the engine and whatever computes. It knows nothing of sequences, requests or policies:
// only weights, a KV cache of numbered blocks, a program of fused operations and the flattened inputs of one step.
//
// Thread: every call comes from the engine thread. A backend may run its work elsewhere; `await` is the meeting point.
// Memory: what the engine holds are handles. Weights, KV cache and step inputs live in backend memory and are never
// touched by the engine directly (a test backend protects them outside its own calls).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/kv_layout.h"

namespace kvscope::kernels {

/// Element types as in GGUF (values are ggml type ids, so a file's number maps one to one).
enum class DType : std::uint32_t { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q8_0 = 8, BF16 = 30 };

enum class Isa { Portable, Avx2, Avx512 };
const char* isaName(Isa isa);

struct WeightId {
    std::int32_t index = -1;
    bool valid() const { return index >= 0; }
};

/// A weight matrix as it stands in the file: `rows` x `cols`, row-major, each row in the block layout of `type`.
/// A vector (norm, bias) has rows = 1 and type F32. The bytes are only read during the call.
struct WeightDesc {
    std::string name; ///< for error messages and the first-difference report
    DType type = DType::F32;
    std::int64_t rows = 0; ///< out features (ne1)
    std::int64_t cols = 0; ///< in features (ne0), contiguous
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
};

enum class RopeStyle {
    Interleaved, ///< "NORM": pairs (2i, 2i+1), llama
    Halves,      ///< "NEOX": pairs (i, i + d/2), qwen and gemma
};

struct RopeSpec {
    RopeStyle style = RopeStyle::Interleaved;
    std::int32_t dims = 0;          ///< rotated dimensions of each head (even, <= headDim)
    std::vector<float> inverseFreq; ///< (dims / 2) already divided by per-pair factors and by linear scaling
    float magnitude = 1.0f;         ///< multiplies cos and sin (YaRN)
};

enum class Activation { Silu, GeluTanh };

// ---- the program: a model as a short list of fused operations, built once by engine/exec, one file per architecture
// ---- x is the residual stream, (T, hidden) float32; T = tokens of the step.

/// x[t] = table[tokenIds[t]] * scale
struct EmbedOp {
    WeightId table; ///< (vocab, hidden)
    float scale = 1.0f;
};

/// h = rmsnorm(x, norm); q,k,v = W·h (+ bias); each head of q and k = rmsnorm(head, qNorm or kNorm), where there is
/// one; rope(q), rope(k); K and V go to their slots of `layer`, q stays.
struct QkvOp {
    std::int32_t layer = 0;
    WeightId norm; ///< (hidden)
    float eps = 1e-5f;
    WeightId q, k, v;             ///< (heads*headDimK, hidden), (kvHeads*headDimK, hidden), (kvHeads*headDimV, hidden)
    WeightId qBias, kBias, vBias; ///< may be invalid
    std::int32_t heads = 0;
    std::int32_t kvHeads = 0;
    std::int32_t headDimK = 0;
    std::int32_t headDimV = 0;
    std::int32_t rope = 0; ///< index into Program::ropes
    WeightId qNorm, kNorm; ///< (headDimK), with the same eps; may be invalid
};

/// o = paged causal attention of q over the K/V of `layer`; x += Wo·o, or rmsnorm(Wo·o, postNorm) where there is one.
struct AttentionOp {
    std::int32_t layer = 0;
    float scale = 1.0f; ///< of q·k
    WeightId output;    ///< (hidden, heads*headDimV)
    std::int32_t heads = 0;
    std::int32_t kvHeads = 0;
    std::int32_t headDimK = 0;
    std::int32_t headDimV = 0;
    /// > 0: the token at position p attends to positions p - window + 1..p only; what other slots hold never matters.
    std::int32_t window = 0;
    std::int32_t sinks = 0; ///< with a window: it attends to positions 0..sinks - 1 too
    WeightId postNorm;      ///< (hidden); may be invalid
    float postEps = 1e-5f;
};

/// h = rmsnorm(x, norm); y = Wdown·(act(Wgate·h) ⊙ (Wup·h)); x += y, or rmsnorm(y, postNorm) where there is one.
struct MlpOp {
    WeightId norm;
    float eps = 1e-5f;
    WeightId gate, up; ///< (ff, hidden)
    WeightId down;     ///< (hidden, ff)
    Activation activation = Activation::Silu;
    WeightId postNorm; ///< (hidden), with the same eps; may be invalid
};

/// logits = W·rmsnorm(x, norm), for the rows in StepInputs::logitRows only. (L, vocab) float32
struct LogitsOp {
    WeightId norm;
    float eps = 1e-5f;
    WeightId output; ///< (vocab, hidden)
};

using Op = std::variant<EmbedOp, QkvOp, AttentionOp, MlpOp, LogitsOp>;

struct Program {
    std::int32_t hidden = 0;
    std::int32_t vocab = 0;
    std::vector<RopeSpec> ropes;
    std::vector<Op> ops;
    /// Most tokens, sequences and logit rows of one step: persistent input buffers get these capacities.
    std::int32_t maxTokens = 0;
    std::int32_t maxSequences = 0;
    std::int32_t maxLogitRows = 0;
    std::int32_t maxTableEntries = 0; ///< block table entries over all sequences of a step
};

struct BlockCopy {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int32_t slotCount = 0; ///< the first so many slots of the block (`slots` is a keyword to Qt)
};

/// One step, flattened. T tokens, S sequences, L logit rows. Spans are read during `submit` only.
/// Token i of sequence s (i counted from 0, n = its tokens in this step) stands at position sequenceLengths[s] - n + i
/// and is written to the slot that its table gives for that position; a backend may refuse anything else. Tokens attend
/// to positions 0..their own; what slots behind hold, written or not, NaN included, never matters.
struct StepInputs {
    std::span<const std::int32_t> tokenIds;        ///< (T)
    std::span<const std::int32_t> positions;       ///< (T) absolute
    std::span<const std::int32_t> slotMapping;     ///< (T) block * blockSize + slot in block
    std::span<const std::int32_t> cuQueryLens;     ///< (S+1) prefix sums of each sequence's tokens in this step
    std::span<const std::int32_t> sequenceLengths; ///< (S) tokens in the cache after this step
    /// All tables one after another. -1 where every layer that reads them has a window, and neither it nor the sinks
    /// reach the block.
    std::span<const std::int32_t> blockTables;
    std::span<const std::int32_t> tableStarts; ///< (S+1) prefix sums into blockTables
    /// With a window group, else empty: the blocks of that group, entry for entry as blockTables. -1 where the layers'
    /// windows have passed the block. Its slots are those that the entries give for the positions.
    std::span<const std::int32_t> windowTables;
    std::span<const std::int32_t> logitRows; ///< (L) rows 0..T-1 whose logits are wanted
    std::span<const BlockCopy> copies; ///< copy-on-write, done before anything is written; none with a window group
    /// (S) with a quantized format, else empty. The tail slot of each sequence, all different: it holds the sequence's
    /// block that has some but not all of its tokens, before the step, after it, or both. It can hold one: a sequence
    /// whose first token of the step stands inside a block must not end inside a later one. Blocks that are full after
    /// the step are quantized in it. Aborted: what the slot held before the step is still there.
    std::span<const std::int32_t> tailSlots;
};

// ---- sampling: the pipeline's order is bias, penalties, mask, temperature, top-k, top-p, min-p ----

struct LogitBias {
    std::int32_t token = 0;
    float bias = 0;
};

struct SampleParams {
    /// 0 (or so small that its inverse is not finite) = greedy: the largest logit after bias, penalties and mask, the
    /// lowest id on ties.
    float temperature = 0;
    std::int32_t topK = 0;       ///< exactly the k most likely tokens, lower ids first on ties; 0 = off
    float topP = 1;              ///< the smallest set of the most likely that sums to p, at least one token; 1 = off
    float minP = 0;              ///< tokens at least p times as likely as the most likely one; 0 = off
    float presencePenalty = 0;   ///< subtracted once from the logit of each token of the answer
    float frequencyPenalty = 0;  ///< subtracted per occurrence in the answer
    float repetitionPenalty = 1; ///< 1 = off; divides positive, multiplies negative logits of seen tokens, once each
    std::uint64_t seed = 0;
    std::uint64_t tokenIndex = 0; ///< index of the token to be drawn in the answer: Philox(seed, tokenIndex)
    std::int32_t logprobs = 0;    ///< how many of the most likely tokens to report (of the raw logits); 0 = none
};

struct SampleRow {
    std::int32_t logitRow = 0; ///< 0..L-1, index into the step's logitRows
    SampleParams params;
    std::span<const LogitBias> bias;
    /// Tokens that the penalties count: prompt and answer so far for repetition, answer only for the other two.
    std::span<const std::int32_t> promptTokens;
    std::span<const std::int32_t> answerTokens;
    /// One bit a token (vocab bits, word 0 bit 0 = token 0), 1 = allowed; empty = all allowed. For grammars.
    std::span<const std::uint32_t> mask;
};

struct SampledToken {
    std::int32_t token = -1; ///< -1: the mask allows no token, or no logit is a number (NaN counts as impossible)
    float logprob = 0;       ///< natural log of its probability under the raw logits
    std::vector<std::pair<std::int32_t, float>> top;
};

struct Ticket {
    std::uint64_t id = 0;
};

enum class StepStatus { Done, Aborted, Failed };

struct BackendError {
    std::string message;
    bool outOfMemory = false;
};
template <class T> struct BackendResult {
    std::optional<T> value;
    BackendError error;
    explicit operator bool() const { return value.has_value(); }
};

/// Bytes the backend holds, for the memory panel. Measured by its own allocators.
struct BackendMemory {
    std::size_t weights = 0;
    std::size_t kvPool = 0;
    std::size_t activationsPeak = 0;
};

/// Time the last step spent in each phase, nanoseconds; for `--stats` and the step sample.
struct PhaseTimes {
    std::int64_t embed = 0, qkv = 0, attention = 0, mlp = 0, logits = 0, sample = 0;
};

class Backend {
public:
    virtual ~Backend() = default;

    /// "CPU, 2 threads, AVX-512 (VNNI)": what it is, for the status bar.
    virtual std::string describe() const = 0;

    /// Repacks one weight into own memory. All weights before `setProgram`.
    virtual BackendResult<WeightId> addWeight(const WeightDesc& weight) = 0;
    /// Allocates the pool (all blocks, once). Calling it again replaces the pool; every block's content is lost.
    virtual BackendResult<bool> createKvCache(const KvLayout& layout) = 0;
    virtual std::uint32_t kvLayoutVersion() const = 0;
    /// Allocates activations and persistent inputs for the capacities of the program.
    virtual BackendResult<bool> setProgram(const Program& program) = 0;

    /// Starts a step. At most one is in flight.
    virtual Ticket submit(const StepInputs& inputs) = 0;
    /// Waits for it. Failed: `lastError()` says why.
    virtual StepStatus await(Ticket ticket) = 0;
    /// From any thread: ask the step in flight to stop between two layers. What it had written to slots is undefined.
    virtual void requestAbort() = 0;
    virtual BackendError lastError() const = 0;

    /// After await(Done): draw one token per row. The result does not depend on which rows share the call.
    virtual void sample(Ticket ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) = 0;
    /// After await(Done): copy the raw logits of one logit row to `out` (vocab).
    virtual void readLogits(Ticket ticket, std::int32_t logitRow, std::span<float> out) = 0;

    /// Whether the next two work: without them there is no tier below the pool.
    virtual bool movesKv() const { return true; }
    /// Copies bytes of one part of the KV cache, those behind `offset`, as many as there are, out or in. In order with
    /// the steps: after those that were submitted before, ahead of those that come later.
    virtual void readKv(KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) = 0;
    virtual void writeKv(KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) = 0;
    void readBlock(std::int32_t block, std::span<std::byte> out) { readKv(KvPart::Block, block, 0, out); }
    void writeBlock(std::int32_t block, std::span<const std::byte> in) { writeKv(KvPart::Block, block, 0, in); }

    virtual BackendMemory memory() const = 0;
    virtual PhaseTimes phaseTimes() const = 0;
};

} // namespace kvscope::kernels
