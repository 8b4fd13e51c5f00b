// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random workloads for the exactness matrix: lines as in `generate --batch`, and random ways to run them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "app/cli/generate_line.h"
#include "engine/api/engine_config.h"
#include "kernels/cpu/cpu_backend.h"

namespace kvscope::test {

/// A model of the matrix, and how much of it a run may use.
struct MatrixModel {
    std::string path;
    std::int32_t vocab = 0;
    std::int64_t longest = 1500;                      ///< tokens of the longest sequence
    std::int64_t tokens = 4000;                       ///< of all prompts of a run together, roughly
    std::uint64_t hostBytes = std::uint64_t(1) << 20; ///< of a host tier, in runs that have one
};

/// A way to run a workload. None of it may change a bit of any answer.
struct MatrixWay {
    api::EngineConfig config;
    std::string name;
    bool tight = false; ///< the pool holds little more than the longest sequence
};

class RandomWorkload {
public:
    /// `pins`: lines may pin their blocks (which a tight pool has no room for).
    RandomWorkload(const MatrixModel& model, unsigned seed, bool pins) : m_model(model), m_random(seed), m_pins(pins) {
        for (std::vector<TokenId>& beginning : m_beginnings)
            for (std::int64_t i = 0; i < model.longest; ++i)
                beginning.push_back(token());
    }

    std::vector<cli::GenerateLine> lines() {
        std::vector<cli::GenerateLine> out;
        std::int64_t left = m_model.tokens;
        const int count = between(5, 9);
        for (int i = 0; i < count && left > 0; ++i) {
            const auto number = static_cast<int>(out.size());
            out.push_back(number > 1 && oneIn(4) ? fork(number) : line(number, left));
            if (i == 0) // a repetition, a fork and a cancellation in every workload
                out.back().repeat = 2;
        }
        out.push_back(fork(static_cast<int>(out.size())));
        out.push_back(line(static_cast<int>(out.size()), left));
        out.back().cancelAfter = between(0, 8);
        return out;
    }

    /// Tokens that the longest sequence of the lines may have.
    std::int64_t longest() const { return *std::max_element(m_lengths.begin(), m_lengths.end()); }

private:
    int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(m_random); }
    bool oneIn(int n) { return between(1, n) == 1; }
    TokenId token() { return between(0, m_model.vocab - 1); }

    /// Mostly well below the longest, sometimes up to it.
    std::int64_t someLength(std::int64_t most) {
        const double exponent = std::uniform_real_distribution<double>(0.6, 1)(m_random);
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::pow(static_cast<double>(most), exponent)));
    }

    cli::GenerateLine line(int number, std::int64_t& left) {
        cli::GenerateLine out;
        out.id = number;
        const std::int64_t most = std::max<std::int64_t>(8, std::min(left, m_model.longest - kMostNew - 8));
        const auto& beginning = m_beginnings[static_cast<std::size_t>(between(0, 1))];
        std::vector<TokenId> ids(beginning.begin(), beginning.begin() + someLength(most));
        for (int i = between(0, 6); i > 0; --i)
            ids.push_back(token());
        const auto length = static_cast<std::int64_t>(ids.size());
        left -= length;
        out.prompt = api::TokenPrompt{std::move(ids)};
        decorate(out, number);
        m_lengths.push_back(length + kMostNew);
        return out;
    }

    cli::GenerateLine fork(int number) {
        cli::GenerateLine out;
        out.id = number;
        const int parent = between(0, number - 1);
        out.forkOf = parent;
        std::vector<TokenId> ids;
        for (int i = between(1, 20); i > 0; --i)
            ids.push_back(token());
        const std::int64_t parentLength = m_lengths[static_cast<std::size_t>(parent)];
        std::int64_t length = parentLength + static_cast<std::int64_t>(ids.size()) + kMostNew;
        if (oneIn(3) || length > m_model.longest) {
            out.forkAt = 1; // always there, however soon the parent ended
            length += 1 - parentLength;
        }
        out.prompt = api::TokenPrompt{std::move(ids)};
        decorate(out, number);
        m_lengths.push_back(length);
        return out;
    }

    void decorate(cli::GenerateLine& out, int number) {
        api::SamplingParams& s = out.sampling;
        s.maxTokens = between(1, kMostNew);
        s.ignoreEos = !oneIn(4);
        s.logprobs = between(1, 5); // compared as bits, so that a difference shows before it changes a token
        if (!oneIn(3)) {
            s.temperature = 0.1 * between(1, 20);
            s.seed = static_cast<std::uint64_t>(between(0, 1 << 30));
            s.topK = oneIn(3) ? between(1, 50) : 0;
            s.topP = oneIn(3) ? 0.05 * between(1, 20) : 1.0;
            s.minP = oneIn(3) ? 0.01 * between(0, 30) : 0.0;
            if (oneIn(4))
                out.samples = between(2, 3);
        }
        if (oneIn(3)) {
            s.repeatPenalty = 0.1 * between(8, 14);
            s.presencePenalty = 0.1 * between(-5, 5);
            s.frequencyPenalty = 0.1 * between(-5, 5);
        }
        if (oneIn(4))
            for (int i = between(1, 4); i > 0; --i)
                s.logitBias.emplace_back(token(), 0.5 * between(-10, 10));
        if (oneIn(2))
            for (const char* stop : {"e", "th", " a", "."})
                if (oneIn(2))
                    s.stop.emplace_back(stop);
        if (number > 0 && oneIn(3))
            out.after = between(0, number - 1);
        if (oneIn(6))
            out.cancelAfter = between(0, kMostNew);
        if (oneIn(5))
            out.repeat = between(2, 3);
        out.pin = m_pins && oneIn(8);
    }

    static constexpr int kMostNew = 24;

    MatrixModel m_model;
    std::mt19937 m_random;
    bool m_pins;
    std::vector<TokenId> m_beginnings[2];
    std::vector<std::int64_t> m_lengths; ///< the longest that each line so far may become
};

/// The instruction sets of this machine, the plainest first.
inline std::vector<kernels::Isa> supportedIsas() {
    std::vector<kernels::Isa> sets;
    for (const auto isa : {kernels::Isa::Portable, kernels::Isa::Avx2, kernels::Isa::Avx512})
        if (kernels::cpuSupports(isa))
            sets.push_back(isa);
    return sets;
}

/// Run `number` of a matrix: every value of every choice comes up evenly, every pair of values often. `isa`: instead of
/// one after the other.
inline MatrixWay matrixWay(const MatrixModel& model, unsigned number, std::optional<kernels::Isa> isa = {}) {
    std::mt19937 random(number * 7919u + 1);
    const auto pick = [&](auto... values) {
        const int list[] = {values...};
        return list[std::uniform_int_distribution<std::size_t>(0, sizeof...(values) - 1)(random)];
    };
    MatrixWay way;
    api::EngineConfig& c = way.config;
    c.modelPath = model.path;
    const std::vector<kernels::Isa> sets = supportedIsas();
    c.isa = isa.value_or(sets[number % sets.size()]);
    c.floatActivations = pick(0, 0, 1) == 1;
    c.threads = pick(1, 1, 2); // more than there are cores would mostly wait
    c.blockSize = pick(8, 16, 32, 64);
    c.maxBatchedTokens = pick(0, 1, 7, 16, 48, 64, 512);
    c.prefixCaching = pick(0, 1, 1) == 1;
    c.maxSequences = pick(1, 3, 16);
    c.watermark = pick(0, 1) * 0.01;
    c.schedulingPolicy = std::array{sched::SchedulingPolicy::Fcfs, sched::SchedulingPolicy::ShortFirst,
                                    sched::SchedulingPolicy::PrefixFirst}[static_cast<std::size_t>(pick(0, 1, 2))];
    c.longPrefillThreshold = pick(0, 0, 32);
    c.maxModelLen = model.longest + 100;
    way.tight = pick(0, 1, 1) == 1;
    c.eviction = static_cast<kv::EvictionKind>(pick(0, 1, 2, 3));
    if (pick(0, 0, 0, 1) == 1)
        c.allocator = kv::AllocatorKind::Contiguous;
    c.contiguousReserve = static_cast<kv::ContiguousReserve>(pick(0, 1));
    if (c.allocator == kv::AllocatorKind::Paged && pick(0, 1) == 1)
        c.hostCacheBytes = model.hostBytes;
    c.numBlocks = ((c.maxModelLen + c.blockSize - 1) / c.blockSize + 1) * 8;
    way.name = std::string(kernels::isaName(*c.isa)) + (c.floatActivations ? ", float activations" : "") + ", " +
               std::to_string(c.threads) + " threads, blocks of " + std::to_string(c.blockSize) + ", chunks of " +
               std::to_string(c.maxBatchedTokens) + ", cache " + (c.prefixCaching ? "on" : "off") + ", at most " +
               std::to_string(c.maxSequences) + " at once, " + sched::schedulingPolicyName(c.schedulingPolicy) +
               (c.longPrefillThreshold > 0 ? ", long prompts in pieces, " : ", ") + (way.tight ? "tight" : "roomy") +
               " pool, " + kv::allocatorName(c.allocator) + ", " + kv::evictionKindName(c.eviction) +
               (c.hostCacheBytes > 0 ? ", host tier" : "");
    return way;
}

/// The lines of a run. A tight pool is cut to them: the longest sequence fits and little else, so that company means
/// giving way.
inline std::vector<cli::GenerateLine> linesFor(MatrixWay& way, const MatrixModel& model, unsigned seed) {
    RandomWorkload workload(model, seed, !way.tight);
    std::vector<cli::GenerateLine> lines = workload.lines();
    if (way.tight)
        way.config.numBlocks = (workload.longest() + way.config.blockSize - 1) / way.config.blockSize + 1;
    return lines;
}

} // namespace kvscope::test
