// SPDX-License-Identifier: GPL-3.0-or-later
//
// The engine on its own thread, as the window drives it. Also the ThreadSanitizer test of all its channels.
#include <QTest>
#include <chrono>
#include <map>
#include <set>

#include "engine/api/engine_thread.h"
#include "engine/api/session_observer.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

/// A window without a window: drains every channel once per frame.
class Frames {
public:
    explicit Frames(api::EngineThread& engine) : m_engine(engine) {}

    /// Until `done` holds; false after a minute.
    template <class Done> bool until(Done&& done) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!done()) {
            if (std::chrono::steady_clock::now() > end)
                return false;
            frame();
            QTest::qSleep(2);
        }
        return true;
    }

    void frame() {
        while (std::optional<api::Event> event = m_engine.nextEvent())
            take(*event);
        metrics::StepSample sample;
        while (m_engine.nextSample(sample)) {
            QVERIFY(sample.time >= last.time);
            last = sample;
            ++samples;
        }
        metrics::MemorySample memory;
        while (m_engine.nextMemorySample(memory))
            ++memorySamples;
        if (const metrics::BlockMapSnapshot* map = m_engine.takeBlockMap()) {
            ++maps;
            used = static_cast<int>(std::count_if(map->cells.begin(), map->cells.end(), [](const auto& cell) {
                return cell.state != kv::BlockState::Empty;
            }));
        }
        if (const auto* rows = m_engine.takeSequences())
            mostSequences = std::max(mostSequences, rows->size());
    }

    bool ended(std::int64_t id) const { return answers.count(RequestId(id)) != 0; }

    std::map<RequestId, api::Answer> answers;
    std::map<RequestId, std::string> streamed;
    std::set<RequestId> reading;
    bool loaded = false, unloaded = false;
    int loadFailures = 0, ownerAnswers = 0;
    int samples = 0, memorySamples = 0, maps = 0, used = 0;
    std::size_t mostSequences = 0;
    metrics::StepSample last;

private:
    void take(const api::Event& event) {
        if (const auto* e = std::get_if<api::FinishedEvent>(&event)) {
            QVERIFY(answers.emplace(e->answer.id, e->answer).second); // exactly once
        } else if (const auto* e = std::get_if<api::TokensEvent>(&event)) {
            QVERIFY(answers.count(e->id) == 0); // nothing comes after the end
            streamed[e->id] += e->text;
        } else if (const auto* e = std::get_if<api::PrefillEvent>(&event)) {
            reading.insert(e->id);
        } else if (std::holds_alternative<api::LoadedEvent>(event)) {
            loaded = true;
        } else if (std::holds_alternative<api::LoadFailedEvent>(event)) {
            ++loadFailures;
        } else if (std::holds_alternative<api::UnloadedEvent>(event)) {
            unloaded = true;
        } else if (std::holds_alternative<api::OwnerBlocksEvent>(event)) {
            ++ownerAnswers;
        }
    }

    api::EngineThread& m_engine;
};

api::Request request(std::int64_t id, std::size_t promptTokens, std::int32_t maxTokens) {
    api::Request r;
    r.id = RequestId(id);
    r.owner = OwnerId(id);
    std::vector<TokenId> ids(promptTokens);
    for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<TokenId>((i * 7 + static_cast<std::size_t>(id)) % 250);
    r.prompt = api::TokenPrompt{ids};
    r.sampling.maxTokens = maxTokens;
    r.sampling.ignoreEos = true;
    return r;
}

} // namespace

class TestEngineThread : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        TinyLlama large; // slow enough that Stop arrives while a step runs
        large.layers = 4;
        large.hidden = 256;
        large.heads = 4;
        large.feedForward = 512;
        large.context = 4096;
        QVERIFY(tinyLlama().write(m_dir.file("small.gguf")));
        QVERIFY(tinyLlama(large).write(m_dir.file("large.gguf")));
    }

    void severalChatsAtOnce() {
        api::EngineThread engine(m_clock);
        Frames frames(engine);
        engine.load(config("small.gguf"));
        for (int i = 0; i < 6; ++i)
            engine.submit(request(i, 30 + 10 * static_cast<std::size_t>(i), 20));
        engine.queryOwner(OwnerId(3));
        QVERIFY(frames.until([&] { return frames.answers.size() == 6; }));
        QVERIFY(frames.loaded);
        for (int i = 0; i < 6; ++i) {
            const api::Answer& answer = frames.answers.at(RequestId(i));
            QCOMPARE(answer.reason, api::FinishReason::Length);
            QCOMPARE(answer.tokenIds.size(), std::size_t(20));
            QCOMPARE(frames.streamed[RequestId(i)], answer.text);
        }
        QCOMPARE(frames.ownerAnswers, 1);
        QVERIFY(frames.mostSequences > 1);
        QVERIFY(frames.until([&] { return frames.used > 0 && frames.memorySamples > 0; }));
    }

    void samplesTickWhileIdle() {
        api::EngineThread engine(m_clock);
        Frames frames(engine);
        engine.load(config("small.gguf"));
        QVERIFY(frames.until([&] { return frames.loaded; }));
        const int before = frames.samples;
        QTest::qSleep(1000);
        frames.frame();
        const int ticks = frames.samples - before;
        QVERIFY2(ticks >= 5 && ticks <= 13, qPrintable(QString::number(ticks)));
        QCOMPARE(frames.last.step, std::uint64_t(0));
        engine.unload();
        QVERIFY(frames.until([&] { return frames.unloaded; }));
    }

    void stopDuringAnythingEndsExactlyOnce() {
        api::EngineThread engine(m_clock);
        Frames frames(engine);
        api::EngineConfig slow = config("large.gguf");
        slow.maxBatchedTokens = 2048;
        engine.load(slow);
        QVERIFY(frames.until([&] { return frames.loaded; }));
        for (std::int64_t id = 0; id < 9; ++id) {
            engine.submit(request(id, 1500, 400));
            engine.submit(request(100 + id, 20, 5));
            if (id % 3 == 1)
                QVERIFY(frames.until([&] { return frames.reading.count(RequestId(id)) != 0; }));
            if (id % 3 == 2)
                QTest::qSleep(static_cast<int>(id) * 3);
            engine.cancel(RequestId(id));
            engine.cancel(RequestId(id));
            engine.cancel(RequestId(9999));
        }
        QVERIFY(frames.until([&] { return frames.answers.size() == 18; }));
        for (std::int64_t id = 0; id < 9; ++id) {
            QCOMPARE(frames.answers.at(RequestId(id)).reason, api::FinishReason::Cancelled);
            QCOMPARE(frames.answers.at(RequestId(100 + id)).tokenIds.size(), std::size_t(5));
        }
        QVERIFY(frames.until([&] { return frames.last.totalFinished == 18; }));
        QCOMPARE(frames.last.referencedBlocks, 0u);
    }

    void goingDownInTheMiddleOfEverything() {
        for (int delay = 0; delay < 60; delay += 10) {
            api::EngineThread engine(m_clock);
            engine.load(config("large.gguf"));
            for (std::int64_t id = 0; id < 4; ++id)
                engine.submit(request(id, 1000, 100));
            QTest::qSleep(delay);
        }
    }

    void loadingAnotherModelAndOneThatIsNotThere() {
        api::EngineThread engine(m_clock);
        Frames frames(engine);
        engine.load(config("small.gguf"));
        engine.load(config("none.gguf"));
        engine.submit(request(1, 20, 5));
        QVERIFY(frames.until([&] { return frames.ended(1); }));
        QCOMPARE(frames.loadFailures, 1);
        QCOMPARE(frames.answers.at(RequestId(1)).reason, api::FinishReason::Length);
        frames.loaded = false;
        engine.load(config("large.gguf"));
        engine.submit(request(2, 20, 5));
        QVERIFY(frames.until([&] { return frames.ended(2); }));
        QVERIFY(frames.loaded);
        engine.restart();
        engine.submit(request(3, 20, 5));
        QVERIFY(frames.until([&] { return frames.ended(3); }));
        QCOMPARE(frames.answers.at(RequestId(3)).reason, api::FinishReason::Length);
    }

private:
    api::EngineConfig config(const std::string& file) const {
        api::EngineConfig c;
        c.modelPath = m_dir.file(file);
        c.threads = 2;
        c.numBlocks = 1024;
        return c;
    }

    MonotonicClock m_clock;
    TempDir m_dir;
};

QTEST_APPLESS_MAIN(TestEngineThread)
#include "test_engine_thread.moc"
