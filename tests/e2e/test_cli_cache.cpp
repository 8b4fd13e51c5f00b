// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli as a program: allocators, eviction policies, block logs and their replay.
#include <QTest>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "tests/support/run_cli.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"

using namespace kvscope::test;
using nlohmann::json;

class TestCliCache : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        QVERIFY(scriptedLlama({"Hel", "lo, ", "wor", "ld! ", " bye"}).write(m_dir.file("m.gguf")));
        m_model = QString::fromStdString(m_dir.file("m.gguf"));
    }

    void extentsAnswerTheSameAndTellTheirHoles() {
        const QString stats = QString::fromStdString(m_dir.file("extents.json"));
        const QString path = QString::fromStdString(m_dir.file("extents.jsonl"));
        std::ofstream(path.toStdString()) << R"({"id": "a", "prompt": "Say:"})"
                                             "\n"
                                             R"({"id": "b", "fork_of": "a", "prompt_ids": [70, 71]})"
                                             "\n"
                                          << R"({"id": "c", "prompt": "Say:", "after": "a"})"
                                             "\n";
        const auto answersOf = [&](const QStringList& options) {
            const Outcome o = run(QStringList{"generate", "--model", m_model, "--batch", path, "--num-blocks", "64",
                                              "--max-model-len", "200", "--json", "--stats", stats} +
                                  options);
            std::vector<json> tokens;
            for (const json& line : o.lines())
                tokens.push_back(line["token_ids"]);
            return tokens;
        };
        const auto paged = answersOf({});
        QCOMPARE(paged.size(), std::size_t(3));
        for (const char* reserve : {"model", "request"}) {
            const auto extents = answersOf({"--allocator", "contiguous", "--contiguous-reserve", reserve});
            QVERIFY(extents == paged);
            const json written = json::parse(std::ifstream(stats.toStdString()));
            QCOMPARE(written["allocator"]["name"].get<std::string>(), std::string("contiguous"));
            QVERIFY(written["allocator"].contains("external_fragmentation"));
            QVERIFY(written["allocator"]["largest_free_extent"].get<int>() > 0);
            QCOMPARE(written["allocator"]["refused"].get<int>(), 0);
            QCOMPARE(written["prefix"]["hit_tokens"].get<int>() > 0, true); // the fork, copied
            QVERIFY(written["copies"].get<int>() > 0);
            // 200 tokens are 13 blocks, whatever a request needs.
            QVERIFY(std::string(reserve) == "request" || written["blocks"]["peak_referenced"].get<int>() % 13 == 0);
        }
        const Outcome readable = run({"generate", "--model", m_model, "--prompt", "Say:", "--allocator", "contiguous"});
        QVERIFY2(readable.err.find("no prefix cache") != std::string::npos, readable.err.c_str());
    }

    /// The log of a run says what hit and what went; its replay says the same, and what more room would have brought.
    void aRecordedRunIsReplayedExactly() {
        const std::string log = m_dir.file("blocks.jsonl");
        std::string lines;
        for (int i = 0; i < 12; ++i)
            lines += R"({"id": )" + std::to_string(i) + R"(, "prompt_ids": [)" +
                     QStringList(40, QString::number(i % 5 + 3)).join(", ").toStdString() +
                     R"(], "max_tokens": 3, "ignore_eos": true)" +
                     (i > 0 ? R"(, "after": )" + std::to_string(i - 1) : "") + "}\n";
        std::ofstream(m_dir.file("replay.jsonl")) << lines;
        const Outcome ran =
            run({"generate", "--model", m_model, "--batch", QString::fromStdString(m_dir.file("replay.jsonl")),
                 "--num-blocks", "14", "--block-size", "8", "--eviction", "lfu", "--log-blocks",
                 QString::fromStdString(log), "--json"});
        QVERIFY2(ran.status == 0, ran.err.c_str());
        const Outcome same = run({"trace", "replay", QString::fromStdString(log), "--json"});
        QVERIFY2(same.status == 0, same.err.c_str());
        const json exact = same.lines()[0];
        QVERIFY(exact["exact"].get<bool>());
        QVERIFY(exact["recorded"] == exact["replayed"]);
        QCOMPARE(exact["recorded"]["options"]["eviction"].get<std::string>(), std::string("lfu"));
        QVERIFY(exact["recorded"]["evictions"]["admission"].get<int>() > 0);
        std::int64_t reused = 0;
        for (const json& answer : ran.lines())
            reused += answer["cache"]["reused_tokens"].get<std::int64_t>();
        QCOMPARE(exact["recorded"]["hit_tokens"].get<std::int64_t>(), reused);
        const Outcome larger = run({"trace", "replay", QString::fromStdString(log), "--num-blocks", "100", "--json"});
        const json roomy = larger.lines()[0]["replayed"];
        QCOMPARE(roomy["evictions"]["admission"].get<int>(), 0);
        QCOMPARE(roomy["hit_tokens"].get<std::int64_t>(), std::int64_t(7 * 32)); // every second visit: 4 of 5 blocks
        QVERIFY(larger.lines()[0]["exact"].is_null());
        QCOMPARE(exact["recorded"]["ended"]["max_tokens"].get<int>(), 12);
        const Outcome small = run({"trace", "replay", QString::fromStdString(log), "--num-blocks", "4", "--json"});
        QCOMPARE(small.lines()[0]["replayed"]["ended"]["too_long"].get<int>(), 12); // a prompt takes five
        QCOMPARE(run({"trace", "replay", m_model}).status, 1);
        const Outcome endless = run({"trace", "replay", "/dev/zero"}), folder = run({"trace", "replay", "/tmp"});
        QCOMPARE(endless.status, 1);
        QVERIFY2(endless.err.find("it has no end") != std::string::npos, endless.err.c_str());
        QVERIFY2(folder.err.find("check that it is a file") != std::string::npos, folder.err.c_str());
    }

    /// What is kept to fork from goes back when the last fork has ended.
    void nothingIsHeldAtTheEnd() {
        std::ofstream(m_dir.file("forks.jsonl"))
            << R"({"id": "a", "prompt_ids": [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18], "max_tokens": 20})"
            << "\n"
            << R"({"id": "f", "fork_of": "a", "fork_at": 16, "max_tokens": 4})"
            << "\n"
            << R"({"id": "b", "prompt_ids": [7], "after": "f", "max_tokens": 2})"
            << "\n";
        const QString stats = QString::fromStdString(m_dir.file("forks.json"));
        const Outcome ran = run({"generate", "--model", m_model, "--batch",
                                 QString::fromStdString(m_dir.file("forks.jsonl")), "--stats", stats, "--json"});
        QVERIFY2(ran.status == 0, ran.err.c_str());
        const json end = json::parse(std::ifstream(stats.toStdString()))["blocks"]["at_end"];
        QVERIFY2(end["active"] == 0 && end["filling"] == 0 && end["shared"] == 0, end.dump().c_str());
        QVERIFY(end["cached"].get<int>() > 0);
    }

    /// Twelve requests at once on a pool of a few blocks: they take turns through the host tier.
    void aHostTierSwapsAndIsReplayedExactly() {
        const QString log = QString::fromStdString(m_dir.file("host.jsonl"));
        const QString stats = QString::fromStdString(m_dir.file("host.json"));
        std::ofstream lines(m_dir.file("swap.jsonl"));
        for (int i = 0; i < 6; ++i)
            lines << R"({"id": )" << i << R"(, "prompt_ids": [)"
                  << QStringList(40, QString::number(i + 3)).join(", ").toStdString()
                  << R"(], "max_tokens": 50, "ignore_eos": true})"
                  << "\n";
        lines.close();
        const QStringList command{"generate",
                                  "--model",
                                  m_model,
                                  "--batch",
                                  QString::fromStdString(m_dir.file("swap.jsonl")),
                                  "--num-blocks",
                                  "20",
                                  "--block-size",
                                  "8",
                                  "--watermark",
                                  "0",
                                  "--json"};
        const Outcome alone = run(command), tiered = run(command + QStringList{"--host-cache-bytes", "2000000",
                                                                               "--stats", stats, "--log-blocks", log});
        QVERIFY2(tiered.status == 0, tiered.err.c_str());
        QVERIFY(alone.lines().size() == 6 && tiered.lines().size() == 6);
        std::int64_t swapped = 0, loaded = 0;
        for (std::size_t i = 0; i < 6; ++i) {
            const json without = alone.lines()[i], with = tiered.lines()[i];
            QCOMPARE(without["cache"]["swapped_blocks"].get<int>(), 0);
            swapped += with["cache"]["swapped_blocks"].get<std::int64_t>();
            loaded += with["cache"]["loaded_blocks"].get<std::int64_t>();
        }
        const auto tokens = [](const Outcome& outcome) {
            std::map<int, json> byId; // they end in another order
            for (const json& line : outcome.lines())
                byId[line["id"].get<int>()] = line["token_ids"];
            return byId;
        };
        QVERIFY(tokens(alone) == tokens(tiered));
        const json written = json::parse(std::ifstream(stats.toStdString()));
        const json& host = written["host"];
        QVERIFY(swapped > 0);
        QCOMPARE(host["swapped_blocks"].get<std::int64_t>(), swapped);
        QCOMPARE(host["hit_blocks"].get<std::int64_t>(), loaded);
        QCOMPARE(host["swaps_out"].get<int>(), written["swaps"].get<int>());
        QCOMPARE(host["preempted_by_swap"]["count"].get<int>(), host["swaps_in"].get<int>());
        QVERIFY(host["preempted_by_swap"]["took_ms"].get<double>() > 0);
        QVERIFY(host["bytes"].get<std::int64_t>() <= 2000000);
        QVERIFY(written["memory"]["host_bytes"] == host["bytes"]);
        const json exact = run({"trace", "replay", log, "--json"}).lines()[0];
        QVERIFY(exact["exact"].get<bool>());
        QCOMPARE(exact["recorded"]["swaps"].get<int>(), host["swaps_out"].get<int>());
        const json without = run({"trace", "replay", log, "--host-cache-bytes", "0", "--json"}).lines()[0];
        QCOMPARE(without["replayed"]["swaps"].get<int>(), 0);
        QVERIFY(without["replayed"]["preemptions"].get<int>() > 0);
    }

    void aHostTierThatCannotBeIsRefusedByName() {
        const auto refused = [this](const QStringList& options, int status) {
            const Outcome o = run(QStringList{"generate", "--model", m_model, "--prompt", "Say:"} + options);
            return o.status == status && o.err.find("--host-cache-bytes") != std::string::npos;
        };
        QVERIFY(refused({"--host-cache-bytes", "100000", "--allocator", "contiguous"}, 2));
        QVERIFY(refused({"--host-cache-bytes", "-1"}, 2));
        QVERIFY(refused({"--host-cache-bytes", "1"}, 1));
        QVERIFY(refused({"--host-cache-bytes", "1000000000000000"}, 1));
        const Outcome bench = run(
            {"bench", "--clock", "virtual", "--preset", "smollm2-135m", "--dry-run", "--host-cache-bytes", "1000000"});
        QCOMPARE(bench.status, 2);
        QVERIFY2(bench.err.find("--host-cache-bytes") != std::string::npos, bench.err.c_str());
    }

private:
    TempDir m_dir;
    QString m_model;
};

QTEST_GUILESS_MAIN(TestCliCache)
#include "test_cli_cache.moc"
