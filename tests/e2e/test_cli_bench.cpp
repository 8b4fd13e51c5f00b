// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli bench as a program: on a tiny model with the real clock, and on the virtual clock without any model.
#include <QElapsedTimer>
#include <QFileInfo>
#include <QProcess>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>

#include "tests/support/run_cli.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope::test;
using nlohmann::json;

namespace {

std::string contentOf(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

/// Linear between ranks, as numpy's default.
double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const auto high = std::min(low + 1, values.size() - 1);
    return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

bool near(double a, double b) {
    return std::fabs(a - b) <= 1e-6 * std::max(1.0, std::fabs(b));
}

} // namespace

class TestCliBench : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        QVERIFY(tinyLlama().write(m_dir.file("m.gguf")));
        m_model = QString::fromStdString(m_dir.file("m.gguf"));
    }

    void realRunsGiveRowsWhoseFiguresTheTokenTimesReproduce() {
        const std::string times = m_dir.file("times.jsonl");
        const Outcome o = bench({"--model", m_model, "--threads", "1", "--workload", "long-doc", "--scale", "0.05",
                                 "--requests", "8", "--stages", "paged,paged+prefix", "--concurrency", "1,3",
                                 "--token-times", QString::fromStdString(times), "--json"});
        QVERIFY2(o.status == 0, o.err.c_str());
        QVERIFY2(o.err.empty(), o.err.c_str());
        const json report = o.lines().at(0);
        QCOMPARE(report["clock"].get<std::string>(), std::string("real"));
        QVERIFY(report["complete"].get<bool>());
        QCOMPARE(report["rows"].size(), std::size_t(4));
        std::vector<json> lines;
        std::istringstream in(contentOf(times));
        for (std::string line; std::getline(in, line);)
            lines.push_back(json::parse(line));
        QCOMPARE(lines.size(), std::size_t(4 * 8));
        for (const json& row : report["rows"]) {
            std::vector<double> first, gaps;
            for (const json& line : lines) {
                if (line["stage"] != row["stage"] || line["concurrency"] != row["concurrency"])
                    continue;
                const auto tokens = line["token_ms"].get<std::vector<double>>();
                first.push_back(tokens.front() - line["sent_ms"].get<double>());
                QVERIFY(first.back() > 0);
                for (std::size_t i = 1; i < tokens.size(); ++i)
                    gaps.push_back(tokens[i] - tokens[i - 1]);
            }
            QCOMPARE(first.size(), std::size_t(8));
            QVERIFY(near(row["ttft_p50_ms"].get<double>(), percentile(first, 0.5)));
            QVERIFY(near(row["ttft_p95_ms"].get<double>(), percentile(first, 0.95)));
            QVERIFY(near(row["itl_p50_ms"].get<double>(), percentile(gaps, 0.5)));
            QVERIFY(near(row["itl_p95_ms"].get<double>(), percentile(gaps, 0.95)));
            QCOMPARE(row["finished"].get<int>(), 8);
            QVERIFY(row["kv_peak_bytes"].get<double>() > 0 && row["kv_mean_bytes"].get<double>() > 0);
            QVERIFY(row["held_requests_peak"].get<double>() <= row["concurrency"].get<double>());
            const bool prefix = row["stage"] == "paged+prefix";
            QCOMPARE(row["hit_rate"].get<double>() > 0, prefix);
        }
        // Of the same prompts the prefix stage computes less.
        QVERIFY(report["rows"][2]["computed_tokens"].get<int>() < report["rows"][0]["computed_tokens"].get<int>());
    }

    /// The staged test on this machine, in the same bytes: each stage runs, in turns, and is set beside the one before.
    void theFourStagesRunInTurnsOnTheRealClock() {
        const std::string times = m_dir.file("stages.jsonl");
        const Outcome o =
            bench({"--model", m_model, "--threads", "1", "--workload", "mix", "--scale", "0.05", "--requests", "8",
                   "--concurrency", "8", "--repeat", "3", "--token-times", QString::fromStdString(times), "--json"});
        QVERIFY2(o.status == 0, o.err.c_str());
        const json report = o.lines().at(0);
        QCOMPARE(report["rows"].size(), std::size_t(4));
        const std::int64_t bytes = report["kv_bytes"].get<std::int64_t>();
        for (const json& stage : report["stages"]) {
            const std::int64_t used = stage["num_blocks"].get<std::int64_t>() * stage["bytes_per_block"].get<int>() +
                                      stage["tail_bytes"].get<int>();
            QVERIFY(used <= bytes && used + stage["bytes_per_block"].get<int>() > bytes);
        }
        for (const json& row : report["rows"]) {
            QCOMPARE(row["finished"].get<int>(), 8);
            QVERIFY(row["kv_peak_bytes"].get<double>() <= static_cast<double>(bytes));
            QCOMPARE(row["external_fragmentation"].is_null(), row["stage"] != "baseline");
        }
        QVERIFY(report["rows"][1]["held_requests_peak"].get<double>() >
                report["rows"][0]["held_requests_peak"].get<double>());
        QCOMPARE(report["ratios"].size(), std::size_t(3));
        for (const json& ratio : report["ratios"]) {
            QCOMPARE(ratio["pairs"].get<int>(), 3);
            QVERIFY(ratio["low"] <= ratio["median"] && ratio["median"] <= ratio["high"]);
        }
        std::vector<std::string> order;
        std::istringstream in(contentOf(times));
        for (std::string line; std::getline(in, line);) {
            const json each = json::parse(line);
            if (each["request"] == 0)
                order.push_back(each["stage"]);
        }
        QCOMPARE(order.size(), std::size_t(12));
        for (std::size_t i = 4; i < order.size(); ++i)
            QCOMPARE(order[i], order[i - 4]);
        QVERIFY(order[0] != order[1]);
    }

    void turnsOfARealConversationFindWhatTheModelWrote() {
        const Outcome o =
            bench({"--model", m_model, "--threads", "1", "--workload", "multi-turn", "--scale", "0.2", "--stages",
                   "paged+prefix", "--concurrency", "4", "--kv-cache-memory-bytes", "8000000", "--json"});
        QVERIFY2(o.status == 0, o.err.c_str());
        const json row = o.lines().at(0)["rows"][0];
        QCOMPARE(row["finished"].get<int>(), 128);
        for (const json& kind : row["by_kind"])
            if (kind["turn"].get<int>() > 1) // 12 of the user, 20 of the answer, and at most a block
                QVERIFY(kind["computed_tokens"].get<int>() <= 16 * (12 + 1 + 16));
    }

    void theVirtualClockNeedsNoModelAndIsDeterministic() {
        const QStringList arguments{"--clock",       "virtual",
                                    "--device",      "A100-80GB",
                                    "--preset",      "r1-distill-qwen-7b",
                                    "--weights",     "15200000000",
                                    "--stages",      "paged,paged+fp8+block32+prefix",
                                    "--concurrency", "4,16",
                                    "--requests",    "40",
                                    "--json"};
        const Outcome first = bench(arguments), second = bench(arguments);
        QVERIFY2(first.status == 0, first.err.c_str());
        QCOMPARE(first.out, second.out);
        const json report = first.lines().at(0);
        QCOMPARE(report["kv_bytes"].get<std::int64_t>(), std::int64_t(4) * 8000 * 57344);
        const std::string device = report["setting"]["device"].get<std::string>();
        QVERIFY2(device.find("1.6 TB/s") != std::string::npos && device.find("170 TFLOPS") != std::string::npos,
                 device.c_str());
        QVERIFY(report["rows"][0]["steps_cost"]["weight_bytes"].get<double>() > 0);
    }

    void filesAreWrittenBesideTheTable() {
        const std::string csv = m_dir.file("r.csv"), html = m_dir.file("r.html");
        const Outcome o =
            bench({"--clock", "virtual", "--preset", "qwen3-8b", "--requests", "20", "--concurrency", "1,4", "--stages",
                   "paged,paged+fp8", "--csv", QString::fromStdString(csv), "--html", QString::fromStdString(html)});
        QVERIFY2(o.status == 0, o.err.c_str());
        QVERIFY(o.out.find("paged+fp8") != std::string::npos);
        QCOMPARE(QString::fromStdString(contentOf(csv)).count('\n'), 5);
        const std::string page = contentOf(html);
        QVERIFY(page.starts_with("<!DOCTYPE html>") && page.find("</html>") != std::string::npos);
        QVERIFY(page.find("http") == std::string::npos);
    }

    void recordedRequestsAreReplayed() {
        std::ofstream(m_dir.file("log.jsonl")) << R"({"prompt": "Hello there", "max_tokens": 4, "arrival": 0})"
                                               << "\n"
                                               << R"({"prompt_tokens": 30, "max_tokens": 6, "arrival": 0.01})"
                                               << "\n";
        const Outcome o = bench({"--model", m_model, "--requests-file", QString::fromStdString(m_dir.file("log.jsonl")),
                                 "--stages", "paged", "--concurrency", "2", "--json"});
        QVERIFY2(o.status == 0, o.err.c_str());
        QCOMPARE(o.lines().at(0)["rows"][0]["finished"].get<int>(), 2);
    }

    void aDryRunSaysHowLongItTakes() {
        const Outcome o =
            bench({"--clock", "virtual", "--preset", "qwen3-8b", "--stages", "paged,paged+fp8", "--dry-run", "--json"});
        QVERIFY2(o.status == 0, o.err.c_str());
        const json answer = o.lines().at(0);
        QVERIFY(answer["estimated_seconds"].get<double>() > 0);
        QVERIFY(!answer.contains("rows"));
        const Outcome real = bench({"--model", m_model, "--scale", "0.05", "--requests", "4", "--stages", "paged",
                                    "--concurrency", "2", "--dry-run"});
        QVERIFY2(real.status == 0, real.err.c_str());
        QVERIFY2(real.out.find("1 runs of 4 requests: about") != std::string::npos, real.out.c_str());
    }

    void rooflineShowsWhatLimitsAStep() {
        const Outcome o = bench({"--roofline", "--preset", "r1-distill-qwen-7b", "--weights", "15200000000", "--json"});
        QVERIFY2(o.status == 0, o.err.c_str());
        const json answer = o.lines().at(0);
        QVERIFY(near(answer["device"]["ridge_ops_per_byte"].get<double>(), 170e12 / 1.6e12));
        const json one = answer["rows"][0];
        QCOMPARE(one["bound"].get<std::string>(), std::string("memory"));
        QVERIFY(near(one["matrix_ms"].get<double>(), 9.5));
        QCOMPARE(answer["rows"].back()["step"].get<std::string>(), std::string("prefill"));
        QCOMPARE(answer["rows"].back()["bound"].get<std::string>(), std::string("compute"));
    }

    void whatIsWrongIsOneSentence_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("named");
        const QStringList virtualClock{"--clock", "virtual", "--preset", "qwen3-8b"};
        QTest::newRow("no model") << QStringList{} << "--model";
        QTest::newRow("two models") << virtualClock + QStringList{"--config", "c.json"} << "exactly one";
        QTest::newRow("preset") << QStringList{"--clock", "virtual", "--preset", "gpt"} << "'gpt'";
        QTest::newRow("device") << virtualClock + QStringList{"--device", "TPU"} << "'TPU'";
        QTest::newRow("this") << virtualClock + QStringList{"--device", "this"} << "--device this";
        QTest::newRow("clock") << QStringList{"--clock", "slow"} << "--clock";
        QTest::newRow("preset, real") << QStringList{"--preset", "qwen3-8b"} << "--preset";
        QTest::newRow("workload") << virtualClock + QStringList{"--workload", "x"} << "'x'";
        QTest::newRow("stage") << virtualClock + QStringList{"--stages", "paged+fp9"} << "'fp9'";
        QTest::newRow("concurrency") << virtualClock + QStringList{"--concurrency", "0"} << "--concurrency";
        QTest::newRow("of stages") << virtualClock + QStringList{"--block-size", "32"} << "--block-size";
        QTest::newRow("dtype") << virtualClock + QStringList{"--kv-cache-dtype", "fp8"} << "--kv-cache-dtype";
        QTest::newRow("blocks") << virtualClock + QStringList{"--num-blocks", "9"} << "--num-blocks";
        QTest::newRow("repeat") << virtualClock + QStringList{"--repeat", "3"} << "--repeat";
        QTest::newRow("too long") << QStringList{"--clock", "virtual", "--preset", "tinyllama-1.1b"} << "--scale 0.256";
        QTest::newRow("scale of a file") << virtualClock + QStringList{"--requests-file", "f", "--scale", "2"}
                                         << "--scale";
    }
    void whatIsWrongIsOneSentence() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, named);
        const Outcome o = bench(arguments);
        QCOMPARE(o.status, 2);
        QVERIFY2(QString::fromStdString(o.err).contains(named), o.err.c_str());
        QCOMPARE(std::count(o.err.begin(), o.err.end(), '\n'), std::ptrdiff_t(1));
        QVERIFY(o.out.empty());
    }

    void aFileThatCannotBeWrittenIsFoundBeforeTheRun() {
        const Outcome o =
            bench({"--clock", "virtual", "--preset", "qwen3-8b", "--stages", "paged", "--html", "/nowhere/r.html"});
        QCOMPARE(o.status, 1);
        QVERIFY2(o.err.find("/nowhere/r.html") != std::string::npos, o.err.c_str());
    }

    void aFullDiskTakesTheFileAndNotTheMeasurement() {
        const Outcome o =
            bench({"--clock", "virtual", "--preset", "qwen3-8b", "--stages", "paged", "--html", "/dev/full"});
        QCOMPARE(o.status, 1);
        QVERIFY2(o.err.find("/dev/full") != std::string::npos, o.err.c_str());
        QVERIFY(o.out.find("paged") != std::string::npos);
    }

    void rotationAndSkippedLayersApplyToTheStagesThatHaveThem() {
        const auto bytes = [&](const QStringList& more) {
            const Outcome o = bench(QStringList{"--clock", "virtual", "--preset", "qwen3-8b", "--requests", "8",
                                                "--stages", "paged,paged+int4+block32", "--json"} +
                                    more);
            if (o.status != 0)
                qWarning("%s", o.err.c_str());
            std::vector<double> out;
            const json report = o.lines().at(0);
            for (const json& stage : report["stages"])
                out.push_back(stage["bytes_per_token"].get<double>());
            return out;
        };
        const auto plain = bytes({}), skipped = bytes({"--kv-skip-layers", "2"});
        QCOMPARE(skipped[0], plain[0]);
        QVERIFY(skipped[1] > plain[1] && skipped[1] < plain[0]);
        QCOMPARE(bytes({"--kv-rotation", "on"}).size(), std::size_t(2));
    }

    void interruptedItStillReports() {
        const std::string times = m_dir.file("cut.jsonl"), html = m_dir.file("cut.html");
        QProcess process;
        process.start(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope-cli"), {"bench",
                                                                       "--model",
                                                                       m_model,
                                                                       "--threads",
                                                                       "1",
                                                                       "--scale",
                                                                       "0.05",
                                                                       "--requests",
                                                                       "8",
                                                                       "--stages",
                                                                       "paged",
                                                                       "--concurrency",
                                                                       "2",
                                                                       "--repeat",
                                                                       "1000",
                                                                       "--token-times",
                                                                       QString::fromStdString(times),
                                                                       "--html",
                                                                       QString::fromStdString(html),
                                                                       "--json"});
        QTRY_VERIFY_WITH_TIMEOUT(QFileInfo(QString::fromStdString(times)).size() > 0, 60000);
        QCOMPARE(::kill(static_cast<pid_t>(process.processId()), SIGINT), 0);
        QVERIFY(process.waitForFinished(60000));
        QCOMPARE(process.exitStatus(), QProcess::CrashExit); // as the signal would have ended it
        const json report = json::parse(process.readAllStandardOutput().toStdString());
        QVERIFY(!report["complete"].get<bool>());
        QCOMPARE(report["rows"].size(), std::size_t(1));
        QVERIFY(contentOf(html).find("interrupted") != std::string::npos);
    }

private:
    Outcome bench(QStringList arguments) const { return run(QStringList{"bench"} + arguments); }

    TempDir m_dir;
    QString m_model;
};

QTEST_GUILESS_MAIN(TestCliBench)
#include "test_cli_bench.moc"
