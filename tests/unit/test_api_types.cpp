// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <limits>

#include "engine/api/engine_config.h"
#include "engine/api/request.h"

using namespace kvscope;
using namespace kvscope::api;

class TestApiTypes : public QObject {
    Q_OBJECT
private slots:
    void defaultsAreValid() {
        QVERIFY(validate(SamplingParams{}).has_value());
        QVERIFY(validate(EngineConfig{}).has_value());
    }

    void impossibleSamplingValuesAreNamedWithTheirRange_data() {
        QTest::addColumn<QString>("field");
        QTest::addColumn<double>("value");
        QTest::addColumn<QString>("name");
        const double nan = std::numeric_limits<double>::quiet_NaN();
        QTest::newRow("temperature below") << "temperature" << -0.1 << "temperature";
        QTest::newRow("temperature nan") << "temperature" << nan << "temperature";
        QTest::newRow("temperature above") << "temperature" << 2.01 << "temperature";
        QTest::newRow("top-p zero") << "topP" << 0.0 << "top-p";
        QTest::newRow("min-p one") << "minP" << 1.0 << "min-p";
        QTest::newRow("repeat") << "repeat" << 0.0 << "repeat penalty";
        QTest::newRow("presence") << "presence" << 2.5 << "presence penalty";
        QTest::newRow("frequency inf") << "frequency" << std::numeric_limits<double>::infinity() << "frequency penalty";
    }
    void impossibleSamplingValuesAreNamedWithTheirRange() {
        QFETCH(QString, field);
        QFETCH(double, value);
        QFETCH(QString, name);
        SamplingParams p;
        (field == "temperature" ? p.temperature
         : field == "topP"      ? p.topP
         : field == "minP"      ? p.minP
         : field == "repeat"    ? p.repeatPenalty
         : field == "presence"  ? p.presencePenalty
                                : p.frequencyPenalty) = value;
        const auto result = validate(p);
        QVERIFY(!result.has_value());
        QVERIFY2(result.error().message.rfind(name.toStdString(), 0) == 0, result.error().message.c_str());
    }

    void countsAndStringsAreChecked() {
        SamplingParams p;
        p.topK = -1;
        QVERIFY(!validate(p));
        p = {};
        p.maxTokens = 0;
        QVERIFY(!validate(p));
        p = {};
        p.stop = {"ok", ""};
        QVERIFY(!validate(p));
        p = {};
        p.logprobs = 21;
        QVERIFY(!validate(p));
        p = {};
        p.logitBias = {{-3, 1.0}};
        QVERIFY(!validate(p));
        p.logitBias = {{3, -100.0}};
        QVERIFY(validate(p).has_value());
    }

    void engineOptionsAreNamed() {
        EngineConfig c;
        c.blockSize = 24;
        QVERIFY(validate(c).error().message.find("--block-size") != std::string::npos);
        c = {};
        c.maxSequences = 0;
        QVERIFY(validate(c).error().message.find("--max-num-seqs") != std::string::npos);
        c = {};
        c.watermark = 1;
        QVERIFY(validate(c).error().message.find("--watermark") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestApiTypes)
#include "test_api_types.moc"
