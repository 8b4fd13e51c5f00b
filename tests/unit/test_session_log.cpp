// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/metrics/block_history.h"
#include "engine/metrics/log_csv.h"
#include "engine/metrics/log_fields.h"
#include "engine/metrics/log_file.h"
#include "engine/metrics/log_json.h"
#include "tests/support/temp_dir.h"
#include "tests/support/trace.h"

using namespace kvscope;
using namespace kvscope::metrics;
using kvscope::test::TempDir;

namespace {

/// Every field of a record as JSON: two records are equal when these are.
std::string textOf(const LogRecord& record) {
    std::string text;
    appendJsonRecord(text, record);
    return text;
}

void writeLog(const std::string& path, const SessionLog& log) {
    auto writer = LogWriter::create(path, logFormatOf(path), log.header);
    if (!writer)
        qFatal("%s", writer.error().message.c_str());
    for (const LogRecord& record : log.records)
        if (auto written = (*writer)->write(record); !written)
            qFatal("%s", written.error().message.c_str());
    if (auto finished = (*writer)->finish(); !finished)
        qFatal("%s", finished.error().message.c_str());
}

std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
void spill(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// Lines of a log, with ' for " so that they can be read.
std::string lines(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts)
        all += (all.empty() ? "" : "\n") + text;
    std::replace(all.begin(), all.end(), '\'', '"');
    return all;
}

bool tabular(const LogRecord& record) {
    return !std::holds_alternative<BlockRecord>(record) && !std::holds_alternative<SequencesRecord>(record) &&
           !std::holds_alternative<TextRecord>(record);
}

/// Fills every field with a random value that its type can hold.
class RandomFields {
public:
    explicit RandomFields(std::uint32_t seed) : m_engine(seed) {}
    template <class T> void operator()(const char*, T& value) { fill(value); }

private:
    template <class T> std::enable_if_t<std::is_integral_v<T>> fill(T& value) {
        const std::uint64_t choice = m_engine() % 4;
        value = choice == 0   ? T(0)
                : choice == 1 ? std::numeric_limits<T>::max()
                : choice == 2 ? std::numeric_limits<T>::min()
                              : static_cast<T>(m_engine());
    }
    void fill(bool& value) { value = m_engine() % 2; }
    void fill(double& value) {
        value = std::ldexp(static_cast<double>(m_engine()) - 2e9, static_cast<int>(m_engine() % 60) - 30);
    }
    void fill(std::string& value) {
        static const char* kPieces[] = {"a", ",", "\"", "\n", "\xC3\xA4", "\xE4\xB8\xAD", "\\", "'", "\t", " "};
        value.clear();
        for (std::uint64_t i = m_engine() % 12; i > 0; --i)
            value += kPieces[m_engine() % 10];
    }
    void fill(JsonText& value) { value.text = "{\"n\":" + std::to_string(m_engine()) + "}"; }
    void fill(EventKind& value) { value = static_cast<EventKind>(m_engine() % kEventKindCount); }
    template <class Tag, class Rep> void fill(StrongId<Tag, Rep>& id) {
        id = StrongId<Tag, Rep>(m_engine() % 3 == 0 ? Rep(-1) : static_cast<Rep>(m_engine()));
    }
    template <class A, class B> void fill(std::pair<A, B>& pair) {
        fill(pair.first);
        fill(pair.second);
    }
    void fill(CellRun& run) {
        fill(run.first);
        fill(run.count);
        run.cell.state = static_cast<kv::BlockState>(m_engine() % kv::kBlockStateCount);
        fill(run.cell.fill);
        fill(run.cell.owner);
        fill(run.cell.references);
        fill(run.cell.lastRead);
    }
    void fill(SequenceEntry& row) { visitFields(*this, row); }
    template <class T> void fill(std::vector<T>& values) {
        values.resize(m_engine() % 4);
        for (T& value : values)
            fill(value);
    }
    std::mt19937 m_engine;
};

template <class Record> LogRecord randomRecord(std::uint32_t seed) {
    Record record;
    visitFields(RandomFields(seed), record);
    return record;
}

LogRecord anyRecord(std::uint32_t seed) {
    switch (seed % 8) {
    case 0:
        return randomRecord<StepSample>(seed);
    case 1:
        return randomRecord<MemorySample>(seed);
    case 2:
        return randomRecord<RequestRecord>(seed);
    case 3:
        return randomRecord<EventRecord>(seed);
    case 4:
        return randomRecord<ReceiptRecord>(seed);
    case 5:
        return randomRecord<BlockRecord>(seed);
    case 6:
        return randomRecord<SequencesRecord>(seed);
    default:
        return randomRecord<TextRecord>(seed);
    }
}

} // namespace

class TestSessionLog : public QObject {
    Q_OBJECT
private slots:
    void anyRecordSurvivesJson() {
        for (std::uint32_t seed = 0; seed < 4000; ++seed) {
            const LogRecord record = anyRecord(seed);
            const std::string line = textOf(record);
            QCOMPARE(std::count(line.begin(), line.end(), '\n'), std::ptrdiff_t(1));
            const auto back = parseJsonRecord(std::string_view(line).substr(0, line.size() - 1));
            QVERIFY2(back && *back, line.c_str());
            QCOMPARE(back->value().index(), record.index());
            QCOMPARE(textOf(**back), line);
        }
    }

    void anyTabularRecordSurvivesCsv() {
        CsvReader reader;
        std::string head;
        appendCsvHeader(head, LogHeader());
        QVERIFY(reader.readColumns(head.substr(0, head.find('\n'))));
        for (std::uint32_t seed = 0; seed < 4000; ++seed) {
            const LogRecord record = anyRecord(seed);
            std::string row;
            appendCsvRecord(row, record);
            QCOMPARE(row.empty(), !tabular(record));
            if (row.empty())
                continue;
            const auto back = reader.readRecord(std::string_view(row).substr(0, row.size() - 1));
            QVERIFY2(back && *back, row.c_str());
            QCOMPARE(textOf(**back), textOf(record));
        }
    }

    void aWholeSessionSurvivesEveryFormat_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("jsonl") << "log.jsonl";
        QTest::newRow("csv") << "log.csv";
        QTest::newRow("kvscope") << "log.kvscope";
    }
    void aWholeSessionSurvivesEveryFormat() {
        QFETCH(QString, name);
        TempDir dir;
        SessionLog log = test::makeTrace();
        const std::string path = dir.file(name.toStdString());
        writeLog(path, log);
        const auto back = readLog(path);
        QVERIFY2(back, back ? "" : back.error().message.c_str());
        QVERIFY(back->problems.empty());
        QVERIFY(back->header == log.header);
        if (logFormatOf(path) == LogFormat::Csv)
            std::erase_if(log.records, [](const LogRecord& r) { return !tabular(r); });
        QCOMPARE(back->records.size(), log.records.size());
        for (std::size_t i = 0; i < log.records.size(); ++i)
            QCOMPARE(textOf(back->records[i]), textOf(log.records[i]));
    }

    void unknownFieldsAndTypesAreIgnored() {
        TempDir dir;
        spill(dir.file("a.jsonl"),
              lines({"{'format':'kvscope-log','version':'1.7','program':'later','mood':'good'}",
                     "{'type':'step','time':5,'step':3,'colour':'red'}", "{'type':'weather','time':6}", "",
                     "{'type':'memory','time':7,'total_bytes':9}"}));
        const auto log = readLog(dir.file("a.jsonl"));
        QVERIFY(log);
        QVERIFY(log->problems.empty());
        QCOMPARE(log->header.versionMinor, 7);
        QCOMPARE(log->records.size(), std::size_t(2));
        QCOMPARE(std::get<StepSample>(log->records[0]).step, std::uint64_t(3));
        QCOMPARE(std::get<MemorySample>(log->records[1]).totalBytes, std::uint64_t(9));
    }

    void newerMajorVersionIsRefusedByName() {
        TempDir dir;
        spill(dir.file("a.jsonl"), lines({"{'format':'kvscope-log','version':'2.0'}", ""}));
        const auto log = readLog(dir.file("a.jsonl"));
        QVERIFY(!log);
        QCOMPARE(log.error().code, ErrorCode::Unsupported);
        QVERIFY(log.error().message.find("2.0") != std::string::npos);
    }

    void damagedLinesAreNamedAndTheRestIsKept() {
        TempDir dir;
        spill(dir.file("a.jsonl"), lines({"{'format':'kvscope-log','version':'1.0'}", "{'type':'step','step':1}",
                                          "garbage", "{'type':'step','step':'many'}", "{'type':'step','step':-2}",
                                          "{'type':'step','step':2}", "{'type':'step','st"}));
        const auto log = readLog(dir.file("a.jsonl"));
        QVERIFY(log);
        QCOMPARE(log->records.size(), std::size_t(2));
        QCOMPARE(log->problems.size(), std::size_t(4));
        QCOMPARE(log->problems[0].line, std::size_t(3));
        QCOMPARE(log->problems[1].line, std::size_t(4));
        QVERIFY(log->problems[1].message.find("\"step\"") != std::string::npos);
        QCOMPARE(log->problems[2].line, std::size_t(5));
        QCOMPARE(log->problems[3].line, std::size_t(7));
    }

    void foreignFilesAreRefused() {
        TempDir dir;
        for (const char* bytes :
             {"", "hello\n", "{}\n", "type,time\n", "\x28\xB5\x2F\xFDgarbage", "{\"format\":7}\n",
              "{\"format\":\"kvscope-log\"}\n", "{\"format\":\"kvscope-log\",\"version\":\"x\"}\n"}) {
            spill(dir.file("a"), bytes);
            const auto log = readLog(dir.file("a"));
            QVERIFY2(!log, bytes);
            QCOMPARE(log.error().code, ErrorCode::Corrupt);
        }
        QCOMPARE(readLog(dir.file("absent")).error().code, ErrorCode::NotFound);
    }

    void truncatedKvscopeKeepsItsWholeFrames() {
        TempDir dir;
        const SessionLog log = test::makeTrace();
        writeLog(dir.file("a.kvscope"), log);
        const std::string bytes = slurp(dir.file("a.kvscope"));
        spill(dir.file("cut.kvscope"), bytes.substr(0, bytes.size() - 100));
        const auto back = readLog(dir.file("cut.kvscope"));
        QVERIFY(back);
        QVERIFY(back->problemCount >= 1);
        QVERIFY(back->records.size() >= log.records.size() * 6 / 10); // two of three frames are whole
        for (std::size_t i = 0; i < back->records.size(); ++i)
            QCOMPARE(textOf(back->records[i]), textOf(log.records[i]));
    }

    void damagedFrameCostsOnlyItself() {
        TempDir dir;
        const SessionLog log = test::makeTrace();
        writeLog(dir.file("a.kvscope"), log);
        std::string bytes = slurp(dir.file("a.kvscope"));
        const std::size_t second = bytes.find("\x28\xB5\x2F\xFD", bytes.find("\x28\xB5\x2F\xFD", 1) + 1);
        QVERIFY(second != std::string::npos);
        for (std::size_t i = second + 40; i < second + 400; ++i)
            bytes[i] = static_cast<char>(bytes[i] ^ 0x5A);
        spill(dir.file("b.kvscope"), bytes);
        const auto back = readLog(dir.file("b.kvscope"));
        QVERIFY(back);
        QVERIFY(back->problemCount >= 1);
        QVERIFY(!back->records.empty());
        QCOMPARE(textOf(back->records.back()), textOf(log.records.back())); // the last frame is whole
        QVERIFY(back->records.size() < log.records.size());
    }

    void nestingWithoutEndIsRefused() {
        const std::string deep = std::string(200000, '[') + std::string(200000, ']');
        QVERIFY(!parseJsonHeader(R"({"format":"kvscope-log","version":"1.0","configuration":)" + deep + "}"));
        QVERIFY(!parseJsonRecord(R"({"type":)" + deep + "}"));
        QVERIFY(!parseJsonRecord(R"({"type":"request","sampling":)" + deep + "}"));
    }

    void devicesAreWrittenToAndNotReplaced() {
        TempDir dir;
        const std::string path = dir.file("pipe");
        QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
        const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
        QVERIFY(reader >= 0);
        auto writer = LogWriter::create(path, LogFormat::JsonLines, LogHeader{});
        QVERIFY(writer && (*writer)->finish());
        QVERIFY(std::filesystem::is_fifo(path));
        char first = 0;
        QCOMPARE(::read(reader, &first, 1), ssize_t(1));
        QCOMPARE(first, '{');
        ::close(reader);
    }

    void unfinishedFileDoesNotAppear() {
        TempDir dir;
        {
            auto writer = LogWriter::create(dir.file("a.jsonl"), LogFormat::JsonLines, LogHeader());
            QVERIFY((*writer)->write(StepSample()));
        }
        QVERIFY(std::filesystem::is_empty(dir.path()));
        QVERIFY(!LogWriter::create(dir.file("no/such/folder.csv"), LogFormat::Csv, LogHeader()));
    }

    void changesOfAMapRebuildEveryMap() {
        std::mt19937 random(3);
        BlockMapEncoder encoder;
        BlockMapSnapshot map, rebuilt;
        map.blockSize = 16;
        map.cells.resize(300);
        for (int i = 0; i < 500; ++i) {
            map.time = i;
            map.epoch = static_cast<std::uint64_t>(i);
            for (std::uint32_t change = random() % 20; change > 0; --change) {
                BlockCell& cell = map.cells[random() % map.cells.size()];
                cell.state = static_cast<kv::BlockState>(random() % kv::kBlockStateCount);
                cell.fill = static_cast<std::uint8_t>(random() % 17);
                cell.lastRead = static_cast<std::uint16_t>(random());
            }
            if (i % 50 == 49)
                map.owners.push_back(OwnerId(i));
            if (i == 333)
                map.cells.resize(200);
            const auto record = encoder.encode(map, i % 100 == 0);
            if (record) {
                QCOMPARE(record->key, i % 100 == 0 || i == 333);
                QVERIFY(applyBlockRecord(*record, rebuilt));
            }
            QVERIFY(rebuilt.owners == map.owners);
            QCOMPARE(rebuilt.cells.size(), map.cells.size());
            QCOMPARE(std::memcmp(rebuilt.cells.data(), map.cells.data(), map.cells.size() * sizeof(BlockCell)), 0);
        }
        QVERIFY(!encoder.encode(map)); // nothing changed
    }

    void damagedBlockRecordsAreRefused() {
        BlockMapSnapshot map;
        BlockRecord change;
        change.numBlocks = 10;
        QVERIFY(!applyBlockRecord(change, map)); // no map to change
        BlockRecord key;
        key.key = true;
        key.numBlocks = 10;
        key.runs = {{0, 9, {}}};
        QVERIFY(!applyBlockRecord(key, map)); // does not cover the pool
        key.runs = {{0, 10, {}}};
        QVERIFY(applyBlockRecord(key, map));
        change.runs = {{9, 2, {}}};
        QVERIFY(!applyBlockRecord(change, map)); // leaves the pool
        change.runs = {{4294967295u, 2, {}}};
        QVERIFY(!applyBlockRecord(change, map)); // wraps around
        key.numBlocks = 4'000'000'000u;
        key.runs = {{0, 4'000'000'000u, {}}};
        QVERIFY(!applyBlockRecord(key, map)); // no such pool; it would take 32 GB
        QCOMPARE(map.cells.size(), std::size_t(10));
    }
};

QTEST_APPLESS_MAIN(TestSessionLog)
#include "test_session_log.moc"
