// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <cstring>
#include <fstream>

#include "engine/api/session_player.h"
#include "engine/api/session_recorder.h"
#include "engine/metrics/log_json.h"
#include "engine/metrics/session_folder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/trace.h"

using namespace kvscope;
using namespace kvscope::metrics;
using kvscope::test::TempDir;

namespace {

constexpr Nanos kSecond = 1'000'000'000;

Recorder::SaveResult save(Recorder& recorder, const std::string& path, bool withText = false) {
    const auto job = recorder.save({path, logFormatOf(path), withText});
    for (;;) {
        if (auto result = recorder.nextResult(); result && result->job == job)
            return *result;
        QTest::qSleep(1);
    }
}

LogTotals totalsOf(const SessionLog& log) {
    LogTotals totals;
    for (const LogRecord& record : log.records)
        totals.add(record);
    return totals;
}

std::string textOf(const LogRecord& record) {
    std::string text;
    appendJsonRecord(text, record);
    return text;
}

/// Equality of every counter; the samples field by field through their text.
bool sameTotals(const LogTotals& a, const LogTotals& b) {
    return textOf(a.last) == textOf(b.last) && textOf(a.lastMemory) == textOf(b.lastMemory) &&
           a.requests == b.requests && a.finished == b.finished && a.cancelled == b.cancelled && a.failed == b.failed &&
           a.faults == b.faults && a.promptTokens == b.promptTokens && a.reusedTokens == b.reusedTokens &&
           a.computedTokens == b.computedTokens && a.answerTokens == b.answerTokens && a.preemptions == b.preemptions &&
           a.mapByState == b.mapByState;
}

void feed(Recorder& recorder, const SessionLog& log) {
    LogHeader header = log.header;
    header.session.clear(); // as the engine leaves it
    recorder.begin(header);
    for (const LogRecord& record : log.records)
        recorder.add(record);
}

std::map<std::string, int> countTypes(const SessionLog& log) {
    static const char* kNames[] = {"step", "memory", "request", "event", "receipt", "block", "sequences", "text"};
    std::map<std::string, int> counts;
    for (const LogRecord& record : log.records)
        ++counts[kNames[record.index()]];
    return counts;
}

} // namespace

class TestRecorder : public QObject {
    Q_OBJECT
private slots:
    void savedSessionRebuildsEveryCounter_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("jsonl") << "a.jsonl";
        QTest::newRow("csv") << "a.csv";
        QTest::newRow("kvscope") << "a.kvscope";
    }
    void savedSessionRebuildsEveryCounter() {
        QFETCH(QString, name);
        TempDir dir;
        const SessionLog trace = test::makeTrace();
        Recorder recorder({});
        feed(recorder, trace);
        const std::string path = dir.file(name.toStdString());
        const auto saved = save(recorder, path);
        QVERIFY2(!saved.error, saved.error ? saved.error->message.c_str() : "");
        QVERIFY(sameTotals(saved.totals, totalsOf(trace)));
        const auto back = readLog(path);
        QVERIFY(back);
        QCOMPARE(back->header.session, sessionName(trace.header.wallOrigin));
        LogTotals rebuilt = totalsOf(*back);
        if (logFormatOf(path) == LogFormat::Csv)
            rebuilt.mapByState = saved.totals.mapByState; // a table holds no maps
        QVERIFY(sameTotals(rebuilt, saved.totals));
        QVERIFY(rebuilt.requests > 10 && rebuilt.finished > 10);
        QVERIFY(rebuilt.last.totalEvictions > 0);
    }

    void nothingToSaveIsSaidAndLeavesNoFile() {
        TempDir dir;
        Recorder recorder({});
        const auto saved = save(recorder, dir.file("a.jsonl"));
        QVERIFY(saved.error);
        QCOMPARE(saved.error->code, ErrorCode::NotFound);
        QVERIFY(std::filesystem::is_empty(dir.path()));
        feed(recorder, test::makeTrace({64, 16, 50, 1}));
        const auto refused = save(recorder, dir.file("no/such/a.jsonl"));
        QVERIFY(refused.error);
        QCOMPARE(refused.error->code, ErrorCode::Io);
    }

    void memoryKeepsTheWholeWindowAndOneSampleASecondBefore() {
        HistoryLimits limits;
        limits.whole = 10 * kSecond;
        limits.thin = 20 * kSecond;
        SessionHistory history(limits);
        history.clear();
        const SessionLog trace = test::makeTrace(); // 30 s, 50 samples a second
        for (const LogRecord& record : trace.records)
            history.add(record);
        int whole = 0, thin = 0;
        Nanos lastThin = 0, firstWhole = 0, newest = trace.header.clockOrigin + 30 * kSecond;
        history.visitWhole(
            [&](const LogRecord& r) {
                if (!firstWhole)
                    firstWhole = timeOf(r);
                whole += std::holds_alternative<StepSample>(r);
            },
            true);
        history.visitThin(0, history.wholeFrom(), [&](const LogRecord& r) {
            if (!std::holds_alternative<StepSample>(r))
                return;
            ++thin;
            QVERIFY(timeOf(r) - lastThin >= kSecond);
            lastThin = timeOf(r);
        });
        QCOMPARE(whole, 501);
        QVERIFY(firstWhole >= newest - 10 * kSecond);
        QVERIFY(thin >= 9 && thin <= 11); // 20 s ago to 10 s ago
        QVERIFY(lastThin < firstWhole);
        QVERIFY(firstWhole - lastThin <= kSecond + 20'000'000); // no hole between them
    }

    void memoryIsBoundedInBytesHoweverFastRecordsCome() {
        HistoryLimits limits;
        limits.wholeBytes = 1 << 20;
        limits.textBytes = 10'000;
        SessionHistory history(limits);
        history.clear();
        for (int i = 0; i < 200'000; ++i) {
            StepSample sample;
            sample.time = i * Nanos(100'000);
            history.add(sample);
            if (i % 100 == 0)
                history.add(TextRecord{sample.time, RequestId(i), "answer", std::string(500, 'x'), {}});
        }
        QVERIFY(history.wholeCount() * sizeof(LogRecord) <= (1u << 20));
        QVERIFY(history.bytes() < (1u << 20) + 10'000 + 100 * sizeof(LogRecord));
        QCOMPARE(history.nextSerial(), std::uint64_t(200'000));
    }

    void whatMemoryHasThinnedComesFromTheDisk() {
        TempDir dir;
        RecorderOptions options;
        options.folder = dir.file("sessions");
        options.memory.whole = 3 * kSecond;
        const SessionLog trace = test::makeTrace();
        Recorder recorder(options);
        feed(recorder, trace);
        const auto saved = save(recorder, dir.file("a.jsonl"));
        QVERIFY(!saved.error);
        const auto back = readLog(dir.file("a.jsonl"));
        QVERIFY(sameTotals(totalsOf(*back), saved.totals));
        // the recorder adds key frames of its own; everything else comes back exactly once
        auto expected = countTypes(trace), found = countTypes(*back);
        QVERIFY(found["block"] >= expected["block"]);
        for (const char* type : {"step", "memory", "request", "event", "receipt"})
            QCOMPARE(found[type], expected[type]);
        QCOMPARE(std::uint64_t(back->records.size()), saved.records);
    }

    void withoutADiskTheThinnedPartIsSavedThin() {
        TempDir dir;
        RecorderOptions options;
        options.memory.whole = 12 * kSecond;
        const SessionLog trace = test::makeTrace();
        Recorder recorder(options);
        feed(recorder, trace);
        const auto saved = save(recorder, dir.file("a.jsonl"));
        const auto back = readLog(dir.file("a.jsonl"));
        QVERIFY(sameTotals(totalsOf(*back), saved.totals)); // counters are cumulative: thinning costs no total
        const int steps = countTypes(*back)["step"];
        QVERIFY2(steps > 601 + 15 && steps < 601 + 30, qPrintable(QString::number(steps)));
    }

    void theDiskKeepsASessionWithoutTextAndWithinItsCap() {
        TempDir dir;
        RecorderOptions options;
        options.folder = dir.file("sessions");
        options.diskCap = 240'000;
        {
            Recorder recorder(options);
            for (int i = 0; i < 6; ++i) {
                test::TraceOptions shape;
                shape.seed = static_cast<std::uint32_t>(i + 1);
                SessionLog trace = test::makeTrace(shape);
                trace.header.wallOrigin += i * 60'000;
                trace.records.push_back(TextRecord{1, RequestId(1), "user", "a secret", {4, 5}});
                feed(recorder, trace);
            }
        } // ends the last session
        const auto sessions = listSessions(options.folder);
        QVERIFY(!sessions.empty());
        std::uint64_t total = 0;
        for (const auto& session : sessions)
            total += session.bytes;
        QVERIFY2(total <= options.diskCap + options.diskCap / 4, qPrintable(QString::number(total)));
        QVERIFY(total > options.diskCap / 4);
        const auto last = findSession(options.folder, "last");
        QVERIFY(last);
        QCOMPARE(last->id, sessionName(1'764'446'400'000 + 5 * 60'000));
        LogTotals totals;
        bool ended = false;
        for (const std::string& path : last->segments) {
            const auto log = readLog(path);
            QVERIFY(log);
            QVERIFY(log->problems.empty());
            for (const LogRecord& record : log->records) {
                QVERIFY(!std::holds_alternative<TextRecord>(record));
                totals.add(record);
                const auto* event = std::get_if<EventRecord>(&record);
                ended |= event && event->kind == EventKind::SessionEnded;
            }
        }
        QVERIFY(ended);
        QCOMPARE(totals.last.step, std::uint64_t(1500));
        const auto absent = findSession(options.folder, "20000101-000000-000");
        QCOMPARE(absent.error().code, ErrorCode::NotFound);
        QVERIFY(absent.error().message.find(last->id) != std::string::npos);
    }

    void textIsSavedOnlyWhenAsked() {
        TempDir dir;
        Recorder recorder({});
        SessionLog trace = test::makeTrace({64, 16, 50, 1});
        trace.records.push_back(TextRecord{1, RequestId(1), "user", "a secret", {4, 5}});
        feed(recorder, trace);
        save(recorder, dir.file("a.jsonl"));
        save(recorder, dir.file("b.jsonl"), true);
        const auto without = readLog(dir.file("a.jsonl")), with = readLog(dir.file("b.jsonl"));
        QCOMPARE(countTypes(*without)["text"], 0);
        QCOMPARE(countTypes(*with)["text"], 1);
        QVERIFY(std::get<TextRecord>(with->records.back()).text == "a secret");
    }

    void aFolderThatCannotBeWrittenIsToldOnceAndMemoryGoesOn() {
        TempDir dir;
        std::ofstream(dir.file("sessions")) << "a file where the folder should be";
        RecorderOptions options;
        options.folder = dir.file("sessions");
        Recorder recorder(options);
        feed(recorder, test::makeTrace({64, 16, 100, 1}));
        const auto saved = save(recorder, dir.file("a.jsonl"));
        QVERIFY(!saved.error);
        QCOMPARE(totalsOf(*readLog(dir.file("a.jsonl"))).last.step, std::uint64_t(100));
    }

    void theEnginesReportsBecomeRecordsAndMapsLoseNothingThatStays() {
        TempDir dir;
        Recorder recorder({});
        api::SessionRecorder observer(recorder, "KVScope test", [] { return std::int64_t(1'764'446'400'000); });
        api::SessionStart start;
        start.time = 100;
        start.config.modelPath = "/home/somebody/secret-folder/m.gguf";
        start.model.name = "Tiny";
        start.model.fingerprint = "ff";
        observer.sessionStarted(start);
        api::Request request;
        request.id = RequestId(3);
        request.owner = OwnerId(9);
        request.sampling.temperature = 0.5;
        request.sampling.stop = {"END"};
        request.sampling.logitBias = {{5, -1.5}};
        api::DialogPrompt dialog;
        dialog.messages = {{"system", "s", {}}, {"user", "hello", {}}};
        request.prompt = dialog;
        observer.requestSubmitted(110, request);
        observer.event(111, api::QueuedEvent{RequestId(3), 40, {}});
        BlockMapSnapshot map;
        map.blockSize = 16;
        map.cells.resize(100);
        map.owners = {OwnerId(9)};
        for (std::uint64_t epoch = 1; epoch <= 50; ++epoch) {
            map.time = 200 + static_cast<Nanos>(epoch);
            map.epoch = epoch;
            map.cells[epoch].state = kv::BlockState::Active;
            map.cells[epoch].owner = 1;
            observer.blockMap(map);
        }
        StepSample sample;
        sample.time = 300;
        sample.totalDecodeTokens = 7;
        observer.stepSample(sample);
        api::SequenceRow row;
        row.request = RequestId(3);
        row.tokens = 47;
        observer.sequences(301, {row});
        api::FinishedEvent finished;
        finished.answer.id = RequestId(3);
        finished.answer.owner = OwnerId(9);
        finished.answer.reason = api::FinishReason::Stop;
        finished.answer.text = "hi";
        finished.answer.tokenIds = {1, 2};
        finished.answer.cache.promptTokens = 40;
        finished.answer.cache.missReason = api::MissReason::ColdStart;
        observer.event(400, finished);
        observer.sessionEnded(500);

        QVERIFY(!save(recorder, dir.file("a.jsonl"), true).error);
        const auto log = readLog(dir.file("a.jsonl"));
        QVERIFY(log);
        QCOMPARE(log->header.program, std::string("KVScope test"));
        QCOMPARE(log->header.modelName, std::string("Tiny"));
        QVERIFY(log->header.configuration.text.find("m.gguf") != std::string::npos);
        QVERIFY(log->header.configuration.text.find("secret-folder") == std::string::npos);
        auto counts = countTypes(*log);
        QCOMPARE(counts["request"], 1);
        QCOMPARE(counts["receipt"], 1);
        QCOMPARE(counts["text"], 2);
        QVERIFY(counts["block"] >= 1);
        for (const LogRecord& record : log->records)
            if (const auto* r = std::get_if<RequestRecord>(&record)) {
                QCOMPARE(r->temperature, 0.5);
                QCOMPARE(r->messages, 2);
                QVERIFY(r->stop == request.sampling.stop);
                QVERIFY(r->logitBias == request.sampling.logitBias);
            }
        ManualClock clock;
        api::SessionPlayer player(*log, clock);
        player.seek(player.duration());
        const auto* shown = player.takeBlockMap();
        QVERIFY(shown); // the newest map is there, whichever of the fifty the recorder has seen
        QCOMPARE(shown->epoch, std::uint64_t(50));
        QCOMPARE(std::memcmp(shown->cells.data(), map.cells.data(), map.cells.size() * sizeof(BlockCell)), 0);
        const auto* rows = player.takeSequences();
        QVERIFY(rows && rows->size() == 1);
        QCOMPARE(rows->front().tokens, std::int64_t(47));
    }

    void producerAndRecorderThreadsLoseNothing() {
        TempDir dir;
        RecorderOptions options;
        options.folder = dir.file("sessions");
        options.poll = std::chrono::milliseconds(1);
        Recorder recorder(options);
        constexpr int kSamples = 10'000;
        std::thread engine([&] {
            LogHeader header;
            header.wallOrigin = 1'764'446'400'000;
            recorder.begin(header);
            BlockMapSnapshot map;
            map.cells.resize(64);
            for (int i = 1; i <= kSamples; ++i) {
                StepSample sample;
                sample.time = i * Nanos(1'000'000);
                sample.step = static_cast<std::uint64_t>(i);
                recorder.add(sample);
                map.time = sample.time;
                map.epoch = sample.step;
                map.cells[static_cast<std::size_t>(i) % 64].lastRead = static_cast<std::uint16_t>(i);
                recorder.map(map);
                recorder.table({sample.time, {SequenceEntry{}}});
            }
            recorder.end(kSamples * 1'000'000LL);
        });
        save(recorder, dir.file("during.jsonl")); // while the producer runs
        engine.join();
        const auto log = [&] {
            for (;;) {
                recorder.end(0); // ends nothing any more, but moves on what was spilled
                if (const auto found = findSession(options.folder, sessionName(1'764'446'400'000)))
                    for (const std::string& path : found->segments)
                        if (auto read = readLog(path); read && !read->records.empty())
                            if (std::holds_alternative<EventRecord>(read->records.back()))
                                return *read;
                QTest::qSleep(5);
            }
        }();
        std::uint64_t next = 1;
        for (const LogRecord& record : log.records)
            if (const auto* sample = std::get_if<StepSample>(&record))
                QCOMPARE(sample->step, next++);
        QCOMPARE(next, std::uint64_t(kSamples + 1));
    }
};

QTEST_APPLESS_MAIN(TestRecorder)
#include "test_recorder.moc"
