// SPDX-License-Identifier: GPL-3.0-or-later
//
// Forced preemptions on the default model: what was estimated against what it took, and whether the cheaper of the two
// ways was taken. Each case runs on two engines, one with a host tier that can swap it and one whose tier is too small,
// so that both ways are measured. Three links to the host: this machine's memory, and two that are slowed down until
// moving costs about a third of computing, and three times as much. Then the same with a prefix cache, where a part of
// what was preempted is still there: what was expected for the rest against what that took.
//
//   bench_preemption [cases a link, 34]     prints a table; exit status 1 when a bar is missed
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/testing/forwarding_backend.h"
#include "tests/support/default_model.h"
#include "tests/support/engine_harness.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr std::int32_t kBlocks = 40, kBlockSize = 16;
constexpr std::int32_t kRoomToRead = 15; ///< tokens that the first one writes before it needs a block of the second
constexpr double kBar = 2;               ///< estimate within so many times of the measured
constexpr double kMostWrong = 0.1;

/// Moves take at least so long for each byte.
class SlowLink final : public kernels::testing::ForwardingBackend {
public:
    SlowLink(std::unique_ptr<kernels::Backend> inner, const double& nanosPerByte)
        : ForwardingBackend(std::move(inner))
        , m_nanosPerByte(nanosPerByte) {}
    void readKv(kernels::KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) override {
        const auto start = std::chrono::steady_clock::now();
        ForwardingBackend::readKv(part, index, offset, out);
        waitUntil(start, out.size());
    }
    void writeKv(kernels::KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) override {
        const auto start = std::chrono::steady_clock::now();
        ForwardingBackend::writeKv(part, index, offset, in);
        waitUntil(start, in.size());
    }

private:
    void waitUntil(std::chrono::steady_clock::time_point start, std::size_t bytes) const {
        const std::chrono::nanoseconds least(static_cast<std::int64_t>(m_nanosPerByte * static_cast<double>(bytes)));
        while (std::chrono::steady_clock::now() < start + least) {
        }
    }
    const double& m_nanosPerByte;
};

/// An engine; by default without a prefix cache, so that what is preempted is gone unless it was swapped.
class Machine {
public:
    Machine(const std::string& model, std::uint64_t hostBytes, const double& nanosPerByte, bool caching = false) {
        m_harness.makeBackend = [this, &nanosPerByte](const api::EngineConfig& config) {
            kernels::CpuOptions options;
            options.threads = config.threads;
            auto made = kernels::makeCpuBackend(options);
            auto link = std::make_unique<SlowLink>(std::move(*made.value), nanosPerByte);
            m_link = link.get();
            made.value = std::move(link);
            return made;
        };
        api::EngineConfig config = EngineHarness::config(model);
        config.threads = 0;
        config.numBlocks = kBlocks;
        config.blockSize = kBlockSize;
        config.maxModelLen = kBlocks * kBlockSize;
        config.prefixCaching = caching;
        config.watermark = 0;
        config.maxBatchedTokens = 128; // both engines plan the same steps, whatever these take
        config.hostCacheBytes = hostBytes;
        m_harness.load(config);
    }

    /// The first request's next block is the second one's, and `more` tokens' blocks after it.
    api::PreemptionEvent preempt(int number, std::int32_t victimTokens, std::int32_t more = 0) {
        m_harness.events.clear();
        const std::int32_t blocks = (victimTokens + kBlockSize - 1) / kBlockSize;
        const std::int32_t first = (kBlocks - blocks) * kBlockSize - kRoomToRead;
        submit(2 * number, first, kRoomToRead + 6 + more);
        submit(2 * number + 1, victimTokens, 2 * kRoomToRead); // it still writes when its block is needed
        m_harness.finish();
        const auto events = m_harness.eventsOf<api::PreemptionEvent>();
        if (events.empty())
            throw std::runtime_error("Nobody was preempted.");
        return events.front();
    }

    /// What moving so many blocks out and in takes, for cases that were not swapped. Between two cases.
    double moveMs(std::int32_t blocks) {
        std::vector<std::vector<std::byte>> slots(static_cast<std::size_t>(blocks));
        for (auto& slot : slots)
            slot.resize(bytesPerBlock()); // and so its pages are there
        const auto start = std::chrono::steady_clock::now();
        for (std::int32_t i = 0; i < blocks; ++i)
            m_link->readBlock(i, slots[static_cast<std::size_t>(i)]);
        for (std::int32_t i = 0; i < blocks; ++i)
            m_link->writeBlock(i, slots[static_cast<std::size_t>(i)]);
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }

    kv::CostRates rates() const { return m_harness.engine->stats().rates; }
    std::uint64_t bytesPerBlock() const { return m_harness.engine->model().bytesPerBlock; }

private:
    void submit(int id, std::int32_t tokens, std::int32_t answer) {
        std::vector<TokenId> prompt(static_cast<std::size_t>(tokens));
        for (TokenId& token : prompt)
            token = std::uniform_int_distribution<TokenId>(100, 40000)(m_random);
        api::Request request = EngineHarness::request(id, api::TokenPrompt{std::move(prompt)}, answer);
        request.sampling.ignoreEos = true;
        m_harness.submit(std::move(request));
    }

    EngineHarness m_harness;
    SlowLink* m_link = nullptr; ///< the engine's
    std::mt19937 m_random{11};
};

struct Case {
    api::PreemptionEvent free, readAgain; ///< the engine that had the choice, and the one that had to read again
    double swapMs = 0;                    ///< measured
    bool swapIsFaster() const { return swapMs < readAgain.tookMs; }
};

bool choosesSwap(const api::PreemptionEvent& event) {
    return event.estimatedSwapMs < event.estimatedRecomputeMs;
}

/// How estimates stand to what was measured.
struct Ratios {
    std::vector<double> all; ///< estimate / measured
    double estimated = 0, took = 0;
    void add(double estimate, double measured) {
        all.push_back(estimate / measured);
        estimated += estimate;
        took += measured;
    }
    double median() {
        std::sort(all.begin(), all.end());
        return all[all.size() / 2];
    }
    double within() const {
        return static_cast<double>(
                   std::count_if(all.begin(), all.end(), [](double r) { return r >= 1 / kBar && r <= kBar; })) /
               static_cast<double>(all.size());
    }
};

bool estimatesHold(Ratios& swaps, Ratios& reads) {
    bool good = true;
    for (auto& [name, r] : {std::pair<const char*, Ratios&>("swap", swaps), {"recompute", reads}}) {
        if (r.all.empty())
            continue;
        const double sum = r.estimated / r.took;
        std::printf("    estimate / measured: %-9s median %.2f, sum %.2f, within %g x: %3.0f %%\n", name, r.median(),
                    sum, kBar, 100 * r.within());
        good = good && sum >= 1 / kBar && sum <= kBar && r.within() >= 0.9;
    }
    return good;
}

bool report(const char* link, const std::vector<Case>& cases, int& wrong, int& preemptions) {
    Ratios swaps, reads;
    int here = 0;
    double lost = 0, best = 0;
    for (const Case& c : cases) {
        swaps.add(c.free.estimatedSwapMs, c.swapMs);
        reads.add(c.readAgain.estimatedRecomputeMs, c.readAgain.tookMs);
        best += std::min(c.swapMs, c.readAgain.tookMs);
        for (const api::PreemptionEvent* event : {&c.free, &c.readAgain}) {
            ++preemptions;
            if (choosesSwap(*event) != c.swapIsFaster()) {
                ++here;
                lost += std::abs(c.swapMs - c.readAgain.tookMs);
            }
        }
    }
    wrong += here;
    std::printf("%-22s %4zu preemptions: swaps take %9.2f ms, reading again %9.2f ms (means)\n", link, 2 * cases.size(),
                swaps.took / static_cast<double>(cases.size()), reads.took / static_cast<double>(cases.size()));
    const bool good = estimatesHold(swaps, reads);
    std::printf("    wrong choices: %d of %zu, which cost %.1f %% of what the best ones take\n", here, 2 * cases.size(),
                100 * lost / (2 * best));
    return good;
}

template <class SomeTokens> bool withAPrefixCache(const std::string& model, int cases, SomeTokens&& someTokens) {
    const double noDelay = 0;
    Ratios swaps, reads;
    Machine swapping(model, std::uint64_t(256) << 20, noDelay, true);
    Machine reading(model, swapping.bytesPerBlock(), noDelay, true); // one slot
    for (int i = 0; i < cases + 2; ++i) {
        const std::int32_t tokens = someTokens();
        for (Machine* machine : {&swapping, &reading})
            if (const api::PreemptionEvent event = machine->preempt(i, tokens, 2 * tokens / 3);
                i >= 2 && event.restored > 0)
                (event.swapped ? swaps : reads).add(event.expectedMs, event.tookMs);
    }
    std::printf("with a prefix cache    %4zu swaps, %zu read again\n", swaps.all.size(), reads.all.size());
    const auto enough = static_cast<std::size_t>(cases) / 2;
    return estimatesHold(swaps, reads) && swaps.all.size() >= enough && reads.all.size() >= enough;
}

int runAll(const std::string& model, int cases) {
    double nanosPerByte = 0;
    std::mt19937 random(7);
    const auto someTokens = [&] { return std::uniform_int_distribution<std::int32_t>(40, 400)(random); };
    double tie = 0; // ns a byte at which moving to and fro costs what computing does
    {
        Machine warm(model, std::uint64_t(256) << 20, nanosPerByte);
        for (int i = 0; i < 3; ++i)
            warm.preempt(i, someTokens());
        tie = warm.rates().toRead(0, kBlockSize) / (2 * static_cast<double>(warm.bytesPerBlock()));
    }
    int wrong = 0, preemptions = 0;
    bool good = true;
    for (const auto& [link, part] :
         {std::pair("memory of this machine", 0.0), {"slow link", 1.0 / 3}, {"very slow link", 3.0}}) {
        nanosPerByte = part * tie;
        Machine swapping(model, std::uint64_t(256) << 20, nanosPerByte);
        Machine reading(model, swapping.bytesPerBlock(), nanosPerByte); // one slot
        std::vector<Case> list;
        for (int i = 0; i < cases + 2; ++i) {
            const std::int32_t tokens = someTokens();
            Case c{swapping.preempt(i, tokens), reading.preempt(i, tokens)};
            c.swapMs = c.free.swapped ? c.free.tookMs : swapping.moveMs(c.free.blocks);
            if (i >= 2) // the first two teach the rates
                list.push_back(c);
        }
        good = report(link, list, wrong, preemptions) && good;
        std::fflush(stdout);
    }
    good = withAPrefixCache(model, cases, someTokens) && good;
    const double share = static_cast<double>(wrong) / preemptions;
    std::printf("%d forced preemptions, %d wrong choices (%.1f %%; at most %g %%)\n", preemptions, wrong, 100 * share,
                100 * kMostWrong);
    return good && share <= kMostWrong ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    const auto model = defaultModel();
    if (!model) {
        std::printf("%s\n", kNoDefaultModel);
        return 0;
    }
    try {
        return runAll(*model, argc > 1 ? std::max(1, std::atoi(argv[1])) : 34);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
