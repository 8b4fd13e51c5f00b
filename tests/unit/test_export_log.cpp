// SPDX-License-Identifier: GPL-3.0-or-later
//
// `kvscope-cli export log` as a user runs it.
#include <QProcess>
#include <QTest>

#include <fstream>

#include "engine/metrics/log_json.h"
#include "engine/metrics/recorder.h"
#include "engine/metrics/session_folder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/trace.h"

using namespace kvscope;
using namespace kvscope::metrics;

namespace {

struct Ran {
    int status = -1;
    QByteArray out, err;
};

Ran exportLog(const QStringList& arguments) {
    QProcess process;
    process.start(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope-cli"), QStringList{"export", "log"} + arguments);
    Ran ran;
    if (!process.waitForFinished(60'000))
        return ran;
    ran.status = process.exitCode();
    ran.out = process.readAllStandardOutput();
    ran.err = process.readAllStandardError();
    return ran;
}

/// Two recorded sessions in a data folder, in several segments each.
void record(const std::string& folder) {
    RecorderOptions options;
    options.folder = folder;
    options.diskCap = 800'000;
    Recorder recorder(options);
    for (int i = 0; i < 2; ++i) {
        test::TraceOptions shape;
        shape.seed = static_cast<std::uint32_t>(i + 1);
        SessionLog trace = test::makeTrace(shape);
        trace.header.session.clear();
        trace.header.wallOrigin += i * 60'000;
        recorder.begin(trace.header);
        for (const LogRecord& record : trace.records)
            recorder.add(record);
    }
}

QString q(const std::string& text) {
    return QString::fromStdString(text);
}

LogTotals totalsOf(const std::string& path) {
    LogTotals totals;
    const auto log = readLog(path);
    if (log)
        for (const LogRecord& record : log->records)
            totals.add(record);
    return totals;
}

} // namespace

class TestExportLog : public QObject {
    Q_OBJECT
private slots:
    void theLastSessionGoesToStandardOutputAndEveryFormatAgrees() {
        test::TempDir dir;
        record(dir.file("sessions"));
        const QStringList data{"--data-dir", q(dir.path())};
        const Ran printed = exportLog(data);
        QCOMPARE(printed.err, QByteArray());
        QCOMPARE(printed.status, 0);
        std::ofstream(dir.file("printed.jsonl"), std::ios::binary) << printed.out.toStdString();
        const LogTotals expected = totalsOf(dir.file("printed.jsonl"));
        QCOMPARE(expected.last.step, std::uint64_t(1500));
        QVERIFY(expected.finished > 10);
        for (const char* name : {"a.jsonl", "a.csv", "a.kvscope"}) {
            const Ran ran = exportLog(data + QStringList{"--session", "last", "--output", q(dir.file(name)), "--json"});
            QCOMPARE(ran.status, 0);
            QVERIFY(ran.out.contains("\"problems\":0"));
            const LogTotals totals = totalsOf(dir.file(name));
            QCOMPARE(totals.last.totalDecodeTokens, expected.last.totalDecodeTokens);
            QCOMPARE(totals.answerTokens, expected.answerTokens);
            QCOMPARE(totals.requests, expected.requests);
        }
        // there and back: .kvscope to JSON lines gives the same bytes
        QCOMPARE(exportLog({q(dir.file("a.kvscope"))}).out, printed.out);
        QCOMPARE(exportLog({q(dir.file("a.csv")), "--format", "csv"}).out,
                 exportLog({q(dir.file("a.jsonl")), "--format", "csv"}).out);
    }

    void sessionsAreListedAndChosenByName() {
        test::TempDir dir;
        record(dir.file("sessions"));
        const QStringList data{"--data-dir", q(dir.path())};
        const Ran list = exportLog(data + QStringList{"--list"});
        const QString first = q(sessionName(1'764'446'400'000));
        QVERIFY(list.out.startsWith(first.toUtf8()));
        QCOMPARE(list.out.count('\n'), 2);
        const Ran one = exportLog(data + QStringList{"--session", first});
        QCOMPARE(one.status, 0);
        QVERIFY(one.out.left(400).contains(first.toUtf8()));
        const Ran absent = exportLog(data + QStringList{"--session", "yesterday"});
        QCOMPARE(absent.status, 1);
        QVERIFY(absent.err.contains(first.toUtf8()));
        QCOMPARE(absent.err.count('\n'), 1);
        QCOMPARE(exportLog({"--data-dir", q(dir.file("nothing"))}).status, 1);
    }

    void damageIsNamedByLineAndTheRestIsWritten() {
        test::TempDir dir;
        std::string text;
        appendJsonHeader(text, LogHeader());
        appendJsonRecord(text, StepSample());
        text += "garbage\n";
        appendJsonRecord(text, StepSample());
        std::ofstream(dir.file("a.jsonl")) << text;
        const Ran ran = exportLog({q(dir.file("a.jsonl"))});
        QCOMPARE(ran.status, 1);
        QVERIFY2(ran.err.contains("Line 3"), ran.err.constData());
        QCOMPARE(ran.out.count("\"type\":\"step\""), 2);
    }

    void wrongUsageAndWrongFilesAreSaid() {
        test::TempDir dir;
        QCOMPARE(exportLog({"--format", "xml"}).status, 2);
        QCOMPARE(exportLog({"--json", "--data-dir", q(dir.path())}).status, 2);
        QCOMPARE(exportLog({q(dir.file("absent"))}).status, 1);
        std::ofstream(dir.file("newer")) << "{\"format\":\"kvscope-log\",\"version\":\"2.0\"}\n";
        const Ran newer = exportLog({q(dir.file("newer")), "--output", q(dir.file("out.csv"))});
        QCOMPARE(newer.status, 1);
        QVERIFY(newer.err.contains("2.0"));
        QVERIFY(!std::filesystem::exists(dir.file("out.csv")));
    }
};

QTEST_APPLESS_MAIN(TestExportLog)
#include "test_export_log.moc"
