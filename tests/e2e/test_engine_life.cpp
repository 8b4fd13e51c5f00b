// SPDX-License-Identifier: GPL-3.0-or-later
//
// The engine's life: loading, switching, failing, faulting, and what the session log is told of it.
#include <QTest>
#include <filesystem>
#include <limits>

#include "engine/api/model_probe.h"
#include "engine/api/session_observer.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/engine_harness.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

/// Forwards to the CPU backend and breaks one thing on demand.
class BreakableBackend final : public kernels::Backend {
public:
    struct Faults {
        bool drawNonsense = false;
        bool failStep = false;
        int abortSteps = 0; ///< as if somebody had cancelled everybody in them
    };
    BreakableBackend(std::unique_ptr<kernels::Backend> inner, std::shared_ptr<Faults> faults)
        : m_inner(std::move(inner))
        , m_faults(std::move(faults)) {}

    std::string describe() const override { return m_inner->describe(); }
    kernels::BackendResult<kernels::WeightId> addWeight(const kernels::WeightDesc& w) override {
        return m_inner->addWeight(w);
    }
    kernels::BackendResult<bool> createKvCache(const kernels::KvLayout& l) override {
        return m_inner->createKvCache(l);
    }
    std::uint32_t kvLayoutVersion() const override { return m_inner->kvLayoutVersion(); }
    kernels::BackendResult<bool> setProgram(const kernels::Program& p) override { return m_inner->setProgram(p); }
    kernels::Ticket submit(const kernels::StepInputs& inputs) override { return m_inner->submit(inputs); }
    kernels::StepStatus await(kernels::Ticket ticket) override {
        const kernels::StepStatus status = m_inner->await(ticket);
        if (m_faults->abortSteps > 0) {
            --m_faults->abortSteps;
            return kernels::StepStatus::Aborted;
        }
        return m_faults->failStep ? kernels::StepStatus::Failed : status;
    }
    void requestAbort() override { m_inner->requestAbort(); }
    kernels::BackendError lastError() const override { return {"The device went away.", false}; }
    void sample(kernels::Ticket ticket, std::span<const kernels::SampleRow> rows,
                std::span<kernels::SampledToken> out) override {
        m_inner->sample(ticket, rows, out);
        if (m_faults->drawNonsense)
            out[0].token = std::numeric_limits<TokenId>::max(); // beyond every vocabulary
    }
    void readLogits(kernels::Ticket t, std::int32_t row, std::span<float> out) override {
        m_inner->readLogits(t, row, out);
    }
    void readKv(kernels::KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) override {
        m_inner->readKv(part, index, offset, out);
    }
    void writeKv(kernels::KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) override {
        m_inner->writeKv(part, index, offset, in);
    }
    kernels::BackendMemory memory() const override { return m_inner->memory(); }
    kernels::PhaseTimes phaseTimes() const override { return m_inner->phaseTimes(); }

private:
    std::unique_ptr<kernels::Backend> m_inner;
    std::shared_ptr<Faults> m_faults;
};

auto breakable(const std::shared_ptr<BreakableBackend::Faults>& faults) {
    return [faults](const api::EngineConfig& config) {
        auto inner = kernels::makeCpuBackend({config.threads, config.isa});
        return kernels::BackendResult<std::unique_ptr<kernels::Backend>>{
            std::make_unique<BreakableBackend>(std::move(*inner.value), faults), {}};
    };
}

/// Writes down the order of what it is told.
class Diary final : public api::SessionObserver {
public:
    void sessionStarted(const api::SessionStart& start) override {
        lines.push_back("started " + start.model.name);
        blockSize = start.config.blockSize;
    }
    void requestSubmitted(Nanos, const api::Request& request) override {
        lines.push_back("request " + std::to_string(request.id.value()));
    }
    void event(Nanos, const api::Event& event) override {
        if (const auto* finished = std::get_if<api::FinishedEvent>(&event))
            lines.push_back("finished " + std::to_string(finished->answer.id.value()));
        if (std::holds_alternative<api::QueuedEvent>(event))
            lines.push_back("queued");
    }
    void stepSample(const metrics::StepSample& sample) override { samples.push_back(sample); }
    void blockMap(const metrics::BlockMapSnapshot& map) override { maps.push_back(map); }
    void memorySample(const metrics::MemorySample&) override {}
    void sessionEnded(Nanos) override { lines.push_back("ended"); }

    std::vector<std::string> lines;
    std::vector<metrics::StepSample> samples;
    std::vector<metrics::BlockMapSnapshot> maps;
    int blockSize = 0;
};

const std::vector<TokenId> kPrompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

} // namespace

class TestEngineLife : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        TinyLlama other;
        other.seed = 2;
        QVERIFY(tinyLlama().write(m_dir.file("a.gguf")));
        QVERIFY(tinyLlama(other).write(m_dir.file("b.gguf")));
        m_config = EngineHarness::config(m_dir.file("a.gguf"));
    }

    void aBrokenInvariantEndsEveryRequestAndRestartWorks() {
        const auto faults = std::make_shared<BreakableBackend::Faults>();
        EngineHarness harness;
        harness.makeBackend = breakable(faults);
        harness.load(m_config);
        const std::vector<TokenId> expected =
            harness.run(EngineHarness::request(0, api::TokenPrompt{kPrompt})).tokenIds;
        for (int i = 1; i <= 3; ++i)
            harness.submit(EngineHarness::request(i, api::TokenPrompt{kPrompt}));
        harness.engine->step();
        faults->drawNonsense = true;
        QCOMPARE(harness.engine->step(), api::Engine::StepResult::Faulted);
        QVERIFY(harness.engine->faulted());
        QVERIFY(!harness.engine->hasWork());
        for (int i = 1; i <= 3; ++i) {
            QCOMPARE(harness.answers.at(RequestId(i)).reason, api::FinishReason::Error);
            QCOMPARE(harness.answers.at(RequestId(i)).error->code, ErrorCode::Internal);
        }
        QCOMPARE(harness.eventsOf<api::FaultedEvent>().size(), std::size_t(1));
        harness.submit(EngineHarness::request(4, api::TokenPrompt{kPrompt}));
        QCOMPARE(harness.answers.at(RequestId(4)).error->code, ErrorCode::Internal);

        faults->drawNonsense = false;
        QVERIFY(harness.engine->restart().has_value());
        QVERIFY(!harness.engine->faulted());
        QCOMPARE(harness.run(EngineHarness::request(5, api::TokenPrompt{kPrompt})).tokenIds, expected);
    }

    void aStepThatFailsEndsItsRequestsAndTheEngineGoesOn() {
        const auto faults = std::make_shared<BreakableBackend::Faults>();
        EngineHarness harness;
        harness.makeBackend = breakable(faults);
        harness.load(m_config);
        faults->failStep = true;
        const api::Answer failed = harness.run(EngineHarness::request(1, api::TokenPrompt{kPrompt}));
        QCOMPARE(failed.reason, api::FinishReason::Error);
        QCOMPARE(failed.error->message, std::string("The device went away."));
        faults->failStep = false;
        QCOMPARE(harness.run(EngineHarness::request(2, api::TokenPrompt{kPrompt})).reason, api::FinishReason::Length);
        QCOMPARE(harness.engine->sample().referencedBlocks, 0u);
    }

    void anAbortedStepIsRunAgainForThoseWhoStay() {
        const auto faults = std::make_shared<BreakableBackend::Faults>();
        EngineHarness harness;
        harness.makeBackend = breakable(faults);
        harness.load(m_config);
        const std::vector<TokenId> expected =
            harness.run(EngineHarness::request(0, api::TokenPrompt{kPrompt})).tokenIds;
        for (int aborts = 1; aborts < 6; ++aborts) {
            harness.submit(EngineHarness::request(aborts, api::TokenPrompt{kPrompt}));
            for (int i = 0; i < aborts; ++i)
                harness.engine->step();
            faults->abortSteps = aborts;
            harness.finish();
            QCOMPARE(harness.answers.at(RequestId(aborts)).tokenIds, expected);
        }
    }

    void aFailedSwitchKeepsTheOldModelAndItsAnswers() {
        EngineHarness harness;
        harness.load(m_config);
        const std::vector<TokenId> expected =
            harness.run(EngineHarness::request(0, api::TokenPrompt{kPrompt})).tokenIds;
        harness.submit(EngineHarness::request(1, api::TokenPrompt{kPrompt}));
        harness.engine->step();
        const auto failed = harness.engine->load(EngineHarness::config(m_dir.file("none.gguf")));
        QCOMPARE(failed.error().code, ErrorCode::NotFound);
        QCOMPARE(harness.eventsOf<api::LoadFailedEvent>().size(), std::size_t(1));
        harness.finish();
        QCOMPARE(harness.answers.at(RequestId(1)).tokenIds, expected);
    }

    void aSwitchEndsWhatStillRanAndSaysWhy() {
        EngineHarness harness;
        harness.load(m_config);
        harness.submit(EngineHarness::request(1, api::TokenPrompt{kPrompt}));
        harness.engine->step();
        QVERIFY(harness.engine->load(EngineHarness::config(m_dir.file("b.gguf"))).has_value());
        QCOMPARE(harness.answers.at(RequestId(1)).error->code, ErrorCode::Cancelled);
        QCOMPARE(harness.engine->model().path, m_dir.file("b.gguf"));
        QCOMPARE(harness.run(EngineHarness::request(2, api::TokenPrompt{kPrompt})).reason, api::FinishReason::Length);
    }

    void cancellingALoadLeavesNothingBehind() {
        EngineHarness harness;
        harness.engine =
            std::make_unique<api::Engine>(api::EngineParts{harness.clock, harness, nullptr, nullptr, {}, {}});
        const std::atomic<bool> cancel{true};
        QCOMPARE(harness.engine->load(m_config, &cancel).error().code, ErrorCode::Cancelled);
        QVERIFY(!harness.engine->loaded());
        harness.submit(EngineHarness::request(1, api::TokenPrompt{kPrompt}));
        QCOMPARE(harness.answers.at(RequestId(1)).error->code, ErrorCode::NotFound);
    }

    void tooLittleMemoryIsSaidBeforeTheWeightsAreRead() {
        EngineHarness harness;
        harness.available = 100'000;
        api::EngineConfig config = m_config;
        config.numBlocks = 0;
        try {
            harness.load(config);
            QFAIL("it loaded");
        } catch (const std::runtime_error& error) {
            QVERIFY(std::string(error.what()).find("available") != std::string::npos);
        }
        QVERIFY(harness.eventsOf<api::LoadFailedEvent>().size() == 1);
    }

    void theProbeShowsThePoolThatLoadingMakes() {
        for (const std::uint64_t available : {std::uint64_t(1) << 30, std::uint64_t(1'500'000)}) {
            EngineHarness harness;
            harness.available = available;
            api::EngineConfig config = m_config;
            config.numBlocks = 0;
            harness.load(config);
            const auto probe = api::probeModel(config.modelPath, config, available);
            QVERIFY(probe.has_value());
            QVERIFY(probe->problem.empty());
            const std::int64_t made = std::int64_t(harness.engine->model().numBlocks) * config.blockSize;
            QVERIFY(std::abs(probe->tokensThatFit - made) <= config.blockSize);
            QCOMPARE(probe->kvBytesPerToken, harness.engine->model().kvBytesPerToken);
        }
        const auto lacking = api::probeModel(m_config.modelPath, api::EngineConfig{}, 50'000);
        QVERIFY(lacking->missingBytes > 0);
        QCOMPARE(lacking->tokensThatFit, 0);
        const auto enough = api::probeModel(m_config.modelPath, api::EngineConfig{}, 50'000 + lacking->missingBytes);
        QVERIFY(enough->tokensThatFit > 0);
    }

    void aChangedFileIsNoticedOnceAndDoesNotHurt() {
        const std::string path = m_dir.file("changing.gguf");
        std::filesystem::copy_file(m_dir.file("a.gguf"), path);
        EngineHarness harness;
        harness.load(EngineHarness::config(path));
        const std::vector<TokenId> expected =
            harness.run(EngineHarness::request(0, api::TokenPrompt{kPrompt})).tokenIds;
        QCOMPARE(harness.eventsOf<api::FileChangedEvent>().size(), std::size_t(0));
        std::filesystem::resize_file(path, 100);
        for (int i = 0; i < 300 && harness.eventsOf<api::FileChangedEvent>().empty(); ++i) {
            harness.engine->tick();
            QTest::qSleep(10);
        }
        QCOMPARE(harness.eventsOf<api::FileChangedEvent>().size(), std::size_t(1));
        QCOMPARE(harness.run(EngineHarness::request(1, api::TokenPrompt{kPrompt})).tokenIds, expected);
    }

    void theSessionLogIsToldEverythingInOrder() {
        Diary diary;
        {
            EngineHarness harness(&diary);
            api::EngineConfig config = m_config;
            config.blockSize = 8;
            harness.load(config);
            harness.run(EngineHarness::request(1, api::TokenPrompt{kPrompt}));
            for (int i = 0; i < 3; ++i) { // nothing moves any more: one more map at most
                QTest::qSleep(20);
                harness.engine->tick();
            }
            harness.engine->unload();
        }
        const std::vector<std::string> expected = {"started Tiny random llama", "request 1", "queued", "finished 1",
                                                   "ended"};
        QCOMPARE(diary.lines, expected);
        QCOMPARE(diary.blockSize, 8);
        QVERIFY(!diary.maps.empty());
        QVERIFY(!diary.samples.empty());
        const metrics::StepSample& last = diary.samples.back();
        QCOMPARE(last.totalFinished, std::uint64_t(1));
        QCOMPARE(last.totalPrefillTokens, std::uint64_t(20));
        QCOMPARE(last.totalDecodeTokens, std::uint64_t(15)); // the last token drawn is never computed
        for (std::size_t i = 1; i < diary.samples.size(); ++i) {
            QVERIFY(diary.samples[i].totalStep >= diary.samples[i - 1].totalStep);
            QVERIFY(diary.samples[i].time >= diary.samples[i - 1].time);
        }
        for (std::size_t i = 1; i < diary.maps.size(); ++i) {
            QVERIFY(diary.maps[i].time - diary.maps[i - 1].time >= 16'000'000);
            QVERIFY(diary.maps[i].epoch > diary.maps[i - 1].epoch);
        }
    }

    void detailsOfBlocksAndOwners() {
        EngineHarness harness;
        harness.load(m_config);
        api::Request request = EngineHarness::request(1, api::TokenPrompt{kPrompt}, 4);
        request.owner = OwnerId(42);
        harness.run(std::move(request));
        harness.engine->queryOwner(OwnerId(42));
        const auto owners = harness.eventsOf<api::OwnerBlocksEvent>();
        QCOMPARE(owners.size(), std::size_t(1));
        QVERIFY(owners[0].blocks.at(0).valid());
        harness.engine->queryBlock(owners[0].blocks[0]);
        harness.engine->queryBlock(BlockId(100000)); // answers nothing, harms nothing
        const auto details = harness.eventsOf<api::BlockDetailEvent>();
        QCOMPARE(details.size(), std::size_t(1));
        QCOMPARE(details[0].state, kv::BlockState::Cached);
        QCOMPARE(details[0].tokens, std::vector<TokenId>(kPrompt.begin(), kPrompt.begin() + 16));
        QCOMPARE(details[0].owners, std::vector<OwnerId>{OwnerId(42)});
        QCOMPARE(details[0].key.size(), std::size_t(32));
    }

private:
    TempDir m_dir;
    api::EngineConfig m_config;
};

QTEST_APPLESS_MAIN(TestEngineLife)
#include "test_engine_life.moc"
