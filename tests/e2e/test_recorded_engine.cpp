// SPDX-License-Identifier: GPL-3.0-or-later
//
// A real engine, recorded: the log rebuilds every counter that the engine reported, and the player shows the map that
// the engine had at the end.
#include <QTest>

#include <cstring>

#include "engine/api/engine_thread.h"
#include "engine/api/session_player.h"
#include "engine/api/session_recorder.h"
#include "engine/metrics/log_json.h"
#include "engine/metrics/session_folder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr int kRequests = 6;
constexpr std::chrono::seconds kPatience{60};

/// What the consumer of the engine saw, to be compared with what the log says.
struct Seen {
    std::vector<api::Answer> answers;
    metrics::StepSample last;
    metrics::BlockMapSnapshot map;
    bool loaded = false, unloaded = false;
    std::string failure;

    void drain(api::EngineThread& engine) {
        while (const auto event = engine.nextEvent()) {
            if (const auto* finished = std::get_if<api::FinishedEvent>(&*event))
                answers.push_back(finished->answer);
            else if (const auto* failed = std::get_if<api::LoadFailedEvent>(&*event))
                failure = failed->error.message;
            loaded |= std::holds_alternative<api::LoadedEvent>(*event);
            unloaded |= std::holds_alternative<api::UnloadedEvent>(*event);
        }
        metrics::StepSample sample;
        while (engine.nextSample(sample))
            last = sample;
        metrics::MemorySample memory;
        while (engine.nextMemorySample(memory)) {
        }
        if (const auto* newest = engine.takeBlockMap())
            map = *newest;
        (void)engine.takeSequences();
    }
    template <class Done> bool until(api::EngineThread& engine, Done done) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (!done() && failure.empty() && std::chrono::steady_clock::now() < end) {
            drain(engine);
            QTest::qSleep(1);
        }
        return done();
    }
};

api::Request request(std::int64_t id) {
    api::Request r;
    r.id = RequestId(id);
    r.owner = OwnerId(id % 3);
    std::vector<TokenId> ids(40);
    for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<TokenId>((i * 5 + static_cast<std::size_t>(i >= 24 ? id : 0)) % 250); // 24 in common
    r.prompt = api::TokenPrompt{ids};
    r.sampling.maxTokens = 60;
    r.sampling.temperature = 0.75;
    r.sampling.seed = static_cast<std::uint64_t>(id);
    r.sampling.ignoreEos = true;
    return r;
}

std::string textOf(const metrics::StepSample& sample) {
    std::string text;
    metrics::appendJsonRecord(text, sample);
    return text;
}

} // namespace

class TestRecordedEngine : public QObject {
    Q_OBJECT
private slots:
    void theLogRebuildsWhatTheEngineReported() {
        TempDir dir;
        TinyLlama shape; // slow enough that the recorder sees the sequences while they run
        shape.layers = 8;
        shape.hidden = 256;
        shape.heads = 4;
        shape.feedForward = 512;
        QVERIFY(tinyLlama(shape).write(dir.file("tiny.gguf")));
        MonotonicClock clock;
        metrics::RecorderOptions options;
        options.folder = dir.file("sessions");
        options.poll = std::chrono::milliseconds(1); // a tiny model is through before the usual second look
        options.tableInterval = 0;
        metrics::Recorder recorder(options);
        api::SessionRecorder observer(recorder, "KVScope test", [] { return std::int64_t(1'764'446'400'000); });
        Seen seen;
        {
            api::EngineThread engine(clock, &observer);
            api::EngineConfig config;
            config.modelPath = dir.file("tiny.gguf");
            config.threads = 1;
            config.numBlocks = 24; // small: sequences wait, are preempted, and cached blocks are evicted
            engine.load(config);
            QVERIFY2(seen.until(engine, [&] { return seen.loaded; }), seen.failure.c_str());
            for (std::int64_t id = 1; id <= kRequests; ++id)
                engine.submit(request(id));
            QVERIFY(seen.until(engine, [&] { return seen.answers.size() == kRequests; }));
            // the idle tick after the last step publishes the final sample and map
            const auto step = seen.last.time;
            QVERIFY(seen.until(engine, [&] { return seen.last.time > step + 300'000'000; }));
            engine.unload();
            QVERIFY(seen.until(engine, [&] { return seen.unloaded; }));
            seen.drain(engine);
        }
        const auto job = recorder.save({dir.file("a.jsonl"), metrics::LogFormat::JsonLines, true});
        std::optional<metrics::Recorder::SaveResult> saved;
        while (!saved || saved->job != job) {
            saved = recorder.nextResult();
            QTest::qSleep(1);
        }
        QVERIFY2(!saved->error, saved->error ? saved->error->message.c_str() : "");
        compare(dir.file("a.jsonl"), seen, clock);

        const auto onDisk = metrics::findSession(options.folder, "last");
        QVERIFY(onDisk);
        QCOMPARE(onDisk->segments.size(), std::size_t(1));
        QVERIFY(QTest::qWaitFor([&] { return metrics::readLog(onDisk->segments[0])->records.size() > 10; }, 5000));
        compare(onDisk->segments[0], seen, clock);
    }

private:
    static void compare(const std::string& path, const Seen& seen, const Clock& clock) {
        auto log = metrics::readLog(path);
        QVERIFY(log);
        QVERIFY(log->problems.empty());
        metrics::LogTotals totals;
        bool ended = false;
        for (const metrics::LogRecord& record : log->records) {
            totals.add(record);
            const auto* event = std::get_if<metrics::EventRecord>(&record);
            ended |= event && event->kind == metrics::EventKind::SessionEnded;
            if (const auto* submitted = std::get_if<metrics::RequestRecord>(&record)) {
                QCOMPARE(submitted->temperature, 0.75);
                QCOMPARE(submitted->seed, static_cast<std::uint64_t>(submitted->request.value()));
                QCOMPARE(submitted->maxTokens, 60);
            }
        }
        QVERIFY(ended);
        QCOMPARE(textOf(totals.last), textOf(seen.last)); // every counter of the engine
        QVERIFY(totals.mapByState == seen.last.blocksByState);
        QCOMPARE(totals.requests, std::uint64_t(kRequests));
        QCOMPARE(totals.finished, std::uint64_t(kRequests));
        std::int64_t reused = 0, computed = 0, drawn = 0, preemptions = 0;
        for (const api::Answer& answer : seen.answers) {
            reused += answer.cache.reusedTokens;
            computed += answer.cache.computedTokens;
            drawn += static_cast<std::int64_t>(answer.tokenIds.size());
            preemptions += answer.cache.preemptions;
        }
        QCOMPARE(totals.reusedTokens, reused);
        QCOMPARE(totals.computedTokens, computed);
        QCOMPARE(totals.answerTokens, drawn);
        QCOMPARE(totals.preemptions, preemptions);
        QVERIFY(drawn > 0 && preemptions > 0 && totals.last.totalEvictions > 0); // the pool was small enough to tell

        api::SessionPlayer player(std::move(*log), clock);
        player.seek(player.duration());
        const auto* shown = player.takeBlockMap();
        QVERIFY(shown);
        QCOMPARE(shown->epoch, seen.map.epoch);
        QCOMPARE(shown->cells.size(), seen.map.cells.size());
        QCOMPARE(
            std::memcmp(shown->cells.data(), seen.map.cells.data(), shown->cells.size() * sizeof(metrics::BlockCell)),
            0);
        QVERIFY(player.capabilities().sequences);
    }
};

QTEST_APPLESS_MAIN(TestRecordedEngine)
#include "test_recorded_engine.moc"
