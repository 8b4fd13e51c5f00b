// SPDX-License-Identifier: GPL-3.0-or-later
//
// eval as a program: what stands in its rows, and what it refuses.
#include <QTest>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/run_cli.h"
#include "tests/support/temp_dir.h"

using namespace kvscope::test;
using nlohmann::json;

class TestCliEval : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        std::ofstream text(m_dir.file("text.txt"));
        for (int i = 0; i < 200; ++i)
            text << "Line " << i << " of a text that nobody has to like, with a number " << i * i % 97 << ".\n";
        m_text = QString::fromStdString(m_dir.file("text.txt"));
    }

    void everyFormIsMeasuredAgainstF16InTheGivenOrder() {
        const json answer = eval({"--kv-cache-dtype", "int8,f16,k8v4,bf16", "--max-tokens", "700", "--window", "128"});
        QCOMPARE(answer["tokens"].get<int>(), 700);
        QCOMPARE(answer["activations"].get<std::string>(), std::string("native"));
        QVERIFY(!answer["recommendation"].get<std::string>().empty());
        const json& rows = answer["rows"];
        QCOMPARE(rows.size(), std::size_t(4));
        const char* keys[] = {"int8", "f16", "fp8_e4m3", "bf16"};
        const char* values[] = {"int8", "f16", "int4", "bf16"};
        for (std::size_t i = 0; i < 4; ++i) {
            QCOMPARE(rows[i]["k_dtype"].get<std::string>(), std::string(keys[i]));
            QCOMPARE(rows[i]["v_dtype"].get<std::string>(), std::string(values[i]));
            QVERIFY(rows[i]["perplexity"].get<double>() > 1);
            QVERIFY(rows[i]["bytes_per_token"].get<double>() > 0);
        }
        QCOMPARE(rows[1]["kl_mean"].get<double>(), 0.0); // f16 against itself
        QCOMPARE(rows[1]["perplexity_ratio"].get<double>(), 1.0);
        QCOMPARE(rows[1]["ratio_standard_error"].get<double>(), 0.0);
        QCOMPARE(rows[1]["top1_agreement"].get<double>(), 1.0);
        for (const std::size_t i : {0, 2, 3}) {
            const double ratio = rows[i]["perplexity"].get<double>() / rows[1]["perplexity"].get<double>();
            QVERIFY(std::abs(rows[i]["perplexity_ratio"].get<double>() / ratio - 1) < 1e-9);
            QVERIFY(rows[i]["kl_mean"].get<double>() > 0); // something was quantized
            QVERIFY(rows[i]["kl_mean"].get<double>() < 0.5);
            QVERIFY(rows[i]["bytes_per_token"].get<double>() <= rows[1]["bytes_per_token"].get<double>());
        }
        QVERIFY(rows[2]["bytes_per_token"].get<double>() < rows[0]["bytes_per_token"].get<double>());
    }

    void keysAndValuesCanBeNamedApart() {
        const json answer = eval({"--k-dtype", "fp8", "--v-dtype", "int4", "--max-tokens", "300"});
        QCOMPARE(answer["rows"].size(), std::size_t(1));
        QCOMPARE(answer["rows"][0]["k_dtype"].get<std::string>(), std::string("fp8_e4m3"));
        QCOMPARE(answer["rows"][0]["v_dtype"].get<std::string>(), std::string("int4"));
    }

    void theSameTwiceIsTheSame() {
        const QStringList arguments{"--kv-cache-dtype", "int4", "--max-tokens", "300", "--block-size", "32"};
        const json one = eval(arguments + QStringList{"--threads", "1"});
        const json two = eval(arguments + QStringList{"--threads", "2", "--max-num-batched-tokens", "37"});
        QCOMPARE(one["rows"].dump(), two["rows"].dump());
    }

    void floatActivationsAreSaid() {
        const json answer = eval({"--activations", "f32", "--kv-cache-dtype", "fp8", "--max-tokens", "100"});
        QCOMPARE(answer["activations"].get<std::string>(), std::string("f32"));
    }

    void theTextThatComesWithItIsLongEnough() {
        // Every token of this model is a byte or a few: at least as many as any other model finds.
        const Outcome o = run({"eval", "--model", m_model, "--kv-cache-dtype", "f16", "--max-tokens", "30000",
                               "--window", "64", "--json"});
        QCOMPARE(o.status, 0);
        QCOMPARE(o.lines().at(0)["tokens"].get<int>(), 30000);
    }

    void whatIsWrongIsOneSentence_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("named");
        QTest::newRow("window") << QStringList{"--window", "1"} << 2 << "--window";
        QTest::newRow("tokens") << QStringList{"--max-tokens", "-1"} << 2 << "--max-tokens";
        QTest::newRow("policy") << QStringList{"--window-policy", "stop"} << 2 << "--window-policy";
        QTest::newRow("sinks") << QStringList{"--sinks", "4"} << 2 << "--sinks";
        QTest::newRow("stats") << QStringList{"--stats", "stats.json"} << 2 << "--stats";
        QTest::newRow("blocks") << QStringList{"--num-blocks", "32"} << 2 << "--num-blocks must be at least 33";
        QTest::newRow("length") << QStringList{"--max-model-len", "100"} << 2 << "--max-model-len";
        QTest::newRow("form") << QStringList{"--kv-cache-dtype", "f16,int5"} << 2 << "--kv-cache-dtype";
        QTest::newRow("nothing") << QStringList{"--kv-cache-dtype", "f16,,int8"} << 2 << "--kv-cache-dtype";
        QTest::newRow("file") << QStringList{"--text", "/nonexistent"} << 1 << "/nonexistent";
        QTest::newRow("too short") << QStringList{"--max-tokens", "1"} << 1 << "two tokens";
    }
    void whatIsWrongIsOneSentence() {
        QFETCH(QStringList, arguments);
        QFETCH(int, status);
        QFETCH(QString, named);
        const Outcome o = run(QStringList{"eval", "--model", m_model, "--json"} + arguments);
        QCOMPARE(o.status, status);
        QVERIFY2(o.err.find(named.toStdString()) != std::string::npos, o.err.c_str());
        QVERIFY(o.out.empty());
    }

private:
    json eval(const QStringList& arguments) {
        const Outcome o = run(QStringList{"eval", "--model", m_model, "--text", m_text, "--json"} + arguments);
        if (o.status != 0 || o.lines().size() != 1) {
            qWarning("%s", o.err.c_str());
            return json::object();
        }
        return o.lines()[0];
    }

    TempDir m_dir;
    QString m_text;
    QString m_model = QStringLiteral(KVSCOPE_TEST_DATA "/models/llama-q8_0.gguf");
};

QTEST_APPLESS_MAIN(TestCliEval)
#include "test_cli_eval.moc"
