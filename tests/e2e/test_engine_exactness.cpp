// SPDX-License-Identifier: GPL-3.0-or-later
//
// Answers do not depend on how they were computed: bit for bit, on tiny models of float and of quantized weights, and
// of layers with windows.
#include <QTest>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/exactness.h"

using namespace kvscope;
using namespace kvscope::test;

class TestEngineExactness : public QObject {
    Q_OBJECT
private slots:
    void everyWayGivesTheSameBits_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("isa");
        QTest::addColumn<bool>("floats");
        for (const char* file : {"llama-f32", "llama-f16", "llama-q8_0", "llama-q4_1"})
            for (const auto isa : {kernels::Isa::Portable, kernels::Isa::Avx2, kernels::Isa::Avx512})
                if (kernels::cpuSupports(isa))
                    QTest::addRow("%s %s", file, kernels::isaName(isa)) << file << static_cast<int>(isa) << false;
        for (const auto isa : {kernels::Isa::Portable, kernels::Isa::Avx2, kernels::Isa::Avx512})
            if (kernels::cpuSupports(isa))
                QTest::addRow("gemma3-f32 %s", kernels::isaName(isa)) << "gemma3-f32" << static_cast<int>(isa) << false;
        QTest::newRow("gemma3-q8_0") << "gemma3-q8_0" << static_cast<int>(kernels::bestIsa()) << false;
        QTest::newRow("llama-q4_1, float activations") << "llama-q4_1" << static_cast<int>(kernels::bestIsa()) << true;
    }
    void everyWayGivesTheSameBits() {
        QFETCH(QString, file);
        QFETCH(int, isa);
        QFETCH(bool, floats);
        api::EngineConfig base =
            EngineHarness::config(std::string(KVSCOPE_TEST_DATA) + "/models/" + file.toStdString() + ".gguf");
        base.isa = static_cast<kernels::Isa>(isa);
        base.floatActivations = floats;
        const auto requests = exactnessRequests(exactnessPrompts(320, 300), 20);
        const std::string difference = compareWays(allWays(base, 21), requests);
        QVERIFY2(difference.empty(), difference.c_str());
    }
};

QTEST_APPLESS_MAIN(TestEngineExactness)
#include "test_engine_exactness.moc"
