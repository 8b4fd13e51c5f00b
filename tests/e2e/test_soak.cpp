// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hours of work in a minute: a tiny model, more requests in flight than the pool holds, so that nearly every block is
// in use all the time, also at the ends of steps, when some have just left. Every request ends once and as it should,
// nobody is preempted again and again, no block and no memory is lost. 1,000 requests; with KVSCOPE_LONG=1 100,000.
#include <QTest>
#include <algorithm>
#include <map>
#include <random>

#include <malloc.h>

#include "engine/api/engine.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr std::int32_t kBlocks = 3072;
constexpr int kInFlight = 480;
constexpr int kCancelledOf = 97;                   ///< one of so many is cancelled while it runs
constexpr std::size_t kMostHeapGrowth = 512 << 10; ///< what vectors may still grow; 5 bytes a request would be more

bool isLong() {
    return qEnvironmentVariableIntValue("KVSCOPE_LONG") != 0;
}

/// Bytes that the program holds of the heap, large pieces included.
std::size_t heapInUse() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/// Keeps so many requests in flight and looks at each end.
class Soak final : public api::EngineListener {
public:
    Soak(const std::string& model, int requests) : m_ends(static_cast<std::size_t>(requests)) {
        api::EngineConfig config;
        config.modelPath = model;
        config.threads = 1;
        config.blockSize = 8;
        config.numBlocks = kBlocks;
        config.maxSequences = kInFlight;
        config.maxBatchedTokens = 512;
        config.watermark = 0;
        if (auto ok = m_engine.load(config); !ok)
            qFatal("%s", ok.error().message.c_str());
    }

    /// Until request number `until` has been sent; then nothing new comes, and all that runs ends.
    void run(int until) {
        const std::uint64_t preemptionsBefore = m_engine.sample().totalPreemptions;
        while (m_sent < until || m_inFlight > 0) {
            while (m_sent < until && m_inFlight < kInFlight)
                send();
            if (m_engine.step() != api::Engine::StepResult::Ran)
                break;
            const metrics::StepSample sample = m_engine.sample();
            if (m_sent < until && sample.totalPreemptions > preemptionsBefore) // full since somebody had to give way
                count(sample);
        }
    }

    const api::Engine& engine() const { return m_engine; }
    int sent() const { return m_sent; }
    int inFlight() const { return m_inFlight; }
    double meanUse() const { return m_used / static_cast<double>(m_steps); }
    int mostPreemptions() const { return m_mostPreemptions; }
    int preemptions() const { return m_preemptions; }
    int cancelled() const { return m_cancelled; }
    const std::vector<std::string>& problems() const { return m_problems; }
    std::ptrdiff_t endedOnce() const { return std::count(m_ends.begin(), m_ends.end(), 1); }

private:
    /// 4 to 43 tokens, some of which others have too, and 2 to 33 new ones.
    void send() {
        api::Request request;
        request.id = RequestId(m_sent);
        request.owner = OwnerId(m_sent);
        std::vector<TokenId> prompt;
        for (unsigned i = 0, shared = m_random() % 3 * 8; i < shared; ++i)
            prompt.push_back(static_cast<TokenId>(i));
        for (unsigned i = 0, own = 4 + m_random() % 24; i < own; ++i)
            prompt.push_back(static_cast<TokenId>(m_random() % 256));
        request.prompt = api::TokenPrompt{std::move(prompt)};
        request.sampling.maxTokens = static_cast<std::int32_t>(70 + m_random() % 140);
        request.sampling.ignoreEos = true;
        m_wanted[m_sent] = request.sampling.maxTokens;
        ++m_sent;
        ++m_inFlight;
        m_engine.submit(std::move(request), m_clock.now());
        if (m_sent % kCancelledOf == 0)
            m_engine.cancel(RequestId(m_sent - kInFlight / 2));
    }

    void count(const metrics::StepSample& sample) {
        m_used += static_cast<double>(sample.referencedBlocks) / kBlocks;
        ++m_steps;
    }

    void onEvent(const api::Event& event) override {
        const auto* finished = std::get_if<api::FinishedEvent>(&event);
        if (!finished)
            return;
        const api::Answer& answer = finished->answer;
        const auto id = static_cast<int>(answer.id.value());
        ++m_ends[static_cast<std::size_t>(id)];
        --m_inFlight;
        m_preemptions += answer.cache.preemptions;
        m_mostPreemptions = std::max(m_mostPreemptions, answer.cache.preemptions);
        m_cancelled += answer.reason == api::FinishReason::Cancelled ? 1 : 0;
        const bool whole = answer.reason == api::FinishReason::Length &&
                           static_cast<std::int32_t>(answer.tokenIds.size()) == m_wanted[id];
        if (!whole && answer.reason != api::FinishReason::Cancelled)
            m_problems.push_back("request " + std::to_string(id) + ": " +
                                 (answer.error ? answer.error->message : "it ended too early"));
        m_wanted.erase(id);
    }

    MonotonicClock m_clock;
    std::mt19937 m_random{1};
    int m_sent = 0, m_inFlight = 0, m_mostPreemptions = 0, m_preemptions = 0, m_cancelled = 0;
    std::vector<int> m_ends;
    std::map<int, std::int32_t> m_wanted; ///< of those in flight
    std::vector<std::string> m_problems;
    double m_used = 0;
    std::uint64_t m_steps = 0;
    api::Engine m_engine{{m_clock, *this, nullptr, nullptr, {}, {}}};
};

} // namespace

class TestSoak : public QObject {
    Q_OBJECT
private slots:
    void aFullPoolLosesNothingAndStarvesNobody() {
        TempDir dir;
        QVERIFY(tinyLlama({1, 32, 1, 1, 32, 256}).write(dir.file("m.gguf")));
        const int requests = isLong() ? 100'000 : 1'000;
        Soak soak(dir.file("m.gguf"), requests);
        soak.run(requests / 4); // what grows once has grown by then
        QCOMPARE(soak.inFlight(), 0);
        const std::size_t heapBefore = heapInUse();
        soak.run(requests);
        const std::size_t heapAfter = heapInUse();
        qInfo("%d requests: %.2f %% of the blocks in use, %d preemptions, at most %d each, %d cancelled, heap %+lld "
              "bytes",
              soak.sent(), soak.meanUse() * 100, soak.preemptions(), soak.mostPreemptions(), soak.cancelled(),
              static_cast<long long>(heapAfter) - static_cast<long long>(heapBefore));
        QVERIFY(!soak.engine().faulted());
        QVERIFY2(soak.problems().empty(), soak.problems().empty() ? "" : soak.problems().front().c_str());
        QCOMPARE(soak.endedOnce(), static_cast<std::ptrdiff_t>(requests));
        QVERIFY2(soak.meanUse() >= (isLong() ? 0.98 : 0.95), qPrintable(QString::number(soak.meanUse())));
        QVERIFY(soak.preemptions() > requests / 100 && soak.cancelled() > 0);
        QVERIFY2(soak.mostPreemptions() <= 4, qPrintable(QString::number(soak.mostPreemptions())));
        const metrics::StepSample end = soak.engine().sample();
        QCOMPARE(end.referencedBlocks, 0u);
        QCOMPARE(end.usedSlots, std::uint64_t(0));
        QVERIFY(heapAfter <= heapBefore + kMostHeapGrowth);
    }
};

QTEST_APPLESS_MAIN(TestSoak)
#include "test_soak.moc"
