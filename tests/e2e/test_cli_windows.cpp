// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli as a program: what happens when a sequence outgrows its window.
#include <QTest>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/run_cli.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"

using namespace kvscope::test;
using nlohmann::json;

class TestCliWindows : public QObject {
    Q_OBJECT

    TempDir m_dir;
    QString m_model;

    QString chat(int turns) {
        json messages = json::array({{{"role", "system"}, {"content", "Be brief, and say what you know."}}});
        for (int turn = 1; turn <= turns; ++turn) {
            if (turn > 1)
                messages.push_back({{"role", "assistant"}, {"content", "Hello, world!"}});
            messages.push_back(
                {{"role", "user"}, {"content", "Question " + std::to_string(turn) + " of this long chat?"}});
        }
        const std::string path = m_dir.file("chat.json");
        std::ofstream(path) << messages.dump();
        return QString::fromStdString(path);
    }
    Outcome generate(const QStringList& options) {
        return run(QStringList{"generate", "--model", m_model, "--num-blocks", "64"} + options);
    }

private slots:
    void initTestCase() {
        QVERIFY(scriptedLlama({"Hel", "lo, ", "wor", "ld! ", " bye"}, 1024).write(m_dir.file("m.gguf")));
        m_model = QString::fromStdString(m_dir.file("m.gguf"));
    }

    void aTrimmedChatTellsWhatWasLeftOut() {
        const QStringList trim{"--window-policy", "trim", "--window", "512"};
        const Outcome fits = generate(QStringList{"--chat", chat(2), "--json"} + trim);
        QVERIFY2(fits.status == 0, fits.err.c_str());
        QVERIFY(!fits.lines()[0].contains("window_cut"));

        const Outcome cut = generate(QStringList{"--chat", chat(14), "--json"} + trim);
        QVERIFY2(cut.status == 0, cut.err.c_str());
        const json answer = cut.lines()[0];
        QVERIFY(answer["window_cut"]["messages"].get<int>() > 0);
        QVERIFY(answer["window_cut"]["messages"].get<int>() % 2 == 0);
        QVERIFY(answer["window_cut"]["tokens"].get<int>() > 0);
        QVERIFY(answer["prompt_token_ids"].size() + 128 <= 512);

        const Outcome readable = generate(QStringList{"--chat", chat(14)} + trim);
        QVERIFY2(readable.err.find("oldest messages") != std::string::npos, readable.err.c_str());

        const Outcome stop = generate({"--chat", chat(14), "--json", "--window", "512"});
        QCOMPARE(stop.status, 1);
        QVERIFY2(stop.err.find("at most 512 tokens") != std::string::npos, stop.err.c_str());
    }

    /// A prompt of 700 tokens through a pool of 14 blocks, twice; the log of it is replayed exactly.
    void aRunWithSinksIsReplayedExactly() {
        const std::string log = m_dir.file("blocks.jsonl"), lines = m_dir.file("lines.jsonl");
        json ids = json::array();
        for (int i = 0; i < 700; ++i)
            ids.push_back(3 + i % 200);
        std::ofstream out(lines);
        for (int i = 0; i < 4; ++i)
            out << json{{"id", i}, {"prompt_ids", ids}, {"max_tokens", 40}, {"ignore_eos", true}}.dump() << '\n';
        out.close();
        const Outcome ran = run({"generate", "--model", m_model, "--batch", QString::fromStdString(lines), "--json",
                                 "--num-blocks", "14", "--window-policy", "sinks", "--sinks", "4", "--window", "80",
                                 "--log-blocks", QString::fromStdString(log)});
        QVERIFY2(ran.status == 0, ran.err.c_str());
        QCOMPARE(ran.lines().size(), std::size_t(4));
        for (const json& answer : ran.lines()) {
            QVERIFY2(answer["token_ids"].size() == 40, answer.dump().c_str());
            QVERIFY(answer["token_ids"] == ran.lines()[0]["token_ids"]);
            QVERIFY(answer["cache"]["blocks_peak"].get<int>() <= 14);
        }
        const Outcome same = run({"trace", "replay", QString::fromStdString(log), "--json"});
        QVERIFY2(same.status == 0, same.err.c_str());
        QVERIFY(same.lines()[0]["exact"].get<bool>());
        QVERIFY(same.lines()[0]["recorded"] == same.lines()[0]["replayed"]);
        const Outcome roomy = run({"trace", "replay", QString::fromStdString(log), "--num-blocks", "60", "--json"});
        QVERIFY2(roomy.status == 0, roomy.err.c_str());
        QCOMPARE(roomy.lines()[0]["replayed"]["preemptions"].get<int>(), 0);
    }

    void whereAPolicyHasNoMeaningItIsRefusedByName() {
        const QString gemma = QStringLiteral(KVSCOPE_TEST_DATA "/models/gemma3-q8_0.gguf");
        for (const char* verb : {"generate", "logits"}) {
            const QStringList prompt{verb == QStringLiteral("generate") ? "--prompt" : "--prompt-ids", "1"};
            const Outcome o =
                run(QStringList{verb, "--model", gemma, "--window-policy", "sinks", "--window", "64"} + prompt);
            QCOMPARE(o.status, 2);
            QVERIFY2(o.err.find("--window-policy sinks") != std::string::npos, o.err.c_str());
        }
        for (const QStringList& option :
             {QStringList{"--window-policy", "trim"}, {"--sinks", "4"}, {"--window", "64"}}) {
            const Outcome o = run(QStringList{"bench", "--model", m_model, "--dry-run"} + option);
            QCOMPARE(o.status, 2);
            QVERIFY2(o.err.find(option[0].toStdString()) != std::string::npos, o.err.c_str());
        }
    }

    void logitsOfThePolicyAreThoseOfTheAnswer() {
        const QString model = QStringLiteral(KVSCOPE_TEST_DATA "/models/llama-f32.gguf");
        const QStringList sinks{"--window-policy", "sinks", "--sinks", "2", "--window", "16"};
        QStringList ids;
        for (int i = 0; i < 60; ++i)
            ids << QString::number(5 + i);
        const Outcome o =
            run(QStringList{"logits", "--model", model, "--prompt-ids", ids.join(','), "--top", "3", "--json"} + sinks);
        QVERIFY2(o.status == 0, o.err.c_str());
        const Outcome answer = run(QStringList{"generate", "--model", model, "--prompt-ids", ids.join(','),
                                               "--max-tokens", "1", "--logprobs", "3", "--json"} +
                                   sinks);
        QVERIFY2(answer.status == 0, answer.err.c_str());
        const json scored = o.lines()[0]["positions"][0]["top"], drawn = answer.lines()[0]["logprobs"][0]["top"];
        QCOMPARE(scored.size(), std::size_t(3));
        for (std::size_t i = 0; i < 3; ++i) {
            QCOMPARE(scored[i][0].get<int>(), drawn[i][0].get<int>());
            QVERIFY(std::fabs(scored[i][1].get<double>() - drawn[i][1].get<double>()) < 1e-5);
        }
    }
};

QTEST_GUILESS_MAIN(TestCliWindows)
#include "test_cli_windows.moc"
