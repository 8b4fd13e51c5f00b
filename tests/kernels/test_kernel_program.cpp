// SPDX-License-Identifier: GPL-3.0-or-later
// Whole programs on the CPU backend: against an exact float64 pass, and bit for bit against themselves under every
// freedom the engine has (chunks, batches, block size, block order, threads).
#include <QTest>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "tests/kernels/tiny_model.h"

using namespace kvscope;
using namespace kvscope::kernels;
using namespace kvscope::tests;

namespace {

constexpr std::int32_t kTokens = 600;

std::vector<std::int32_t> randomTokens(std::size_t count, std::int32_t vocab, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::int32_t> token(0, vocab - 1);
    std::vector<std::int32_t> out(count);
    for (auto& t : out)
        t = token(random);
    return out;
}

std::unique_ptr<Backend> makeBackend(Isa isa, int threads) {
    CpuOptions options;
    options.forceIsa = isa;
    options.threads = threads;
    auto made = makeCpuBackend(options);
    return made ? std::move(*made.value) : nullptr;
}

struct Setup {
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Driver> driver;
};

Setup setUp(TinyModel& model, Isa isa, int threads, std::int32_t blockSize) {
    Setup s;
    s.backend = makeBackend(isa, threads);
    const std::int32_t blocks = 2048 / blockSize;
    const auto kv = s.backend->createKvCache(model.kvLayout(blockSize, blocks));
    if (!kv)
        qFatal("%s", kv.error.message.c_str());
    if (const std::string wrong = model.load(*s.backend, kTokens, 16, kTokens, 2 * blocks); !wrong.empty())
        qFatal("%s", wrong.c_str());
    s.driver = std::make_unique<Driver>(*s.backend, model, blockSize, blocks);
    return s;
}

/// All logits of one sequence computed in chunks of the given size.
std::vector<float> runChunked(TinyModel& model, const std::vector<std::int32_t>& tokens, Isa isa, int threads,
                              std::int32_t blockSize, std::size_t chunk, bool shuffle = false) {
    Setup s = setUp(model, isa, threads, blockSize);
    if (shuffle) {
        std::mt19937 random(5);
        std::shuffle(s.driver->freeBlocks.begin(), s.driver->freeBlocks.end(), random);
    }
    Driver::Sequence sequence;
    std::vector<float> logits;
    for (std::size_t i = 0; i < tokens.size(); i += chunk) {
        const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(tokens.size(), i + chunk));
        const auto part = s.driver->step({{&sequence, {tokens.begin() + static_cast<std::ptrdiff_t>(i), end}}});
        if (s.driver->status != StepStatus::Done)
            qFatal("%s", s.backend->lastError().message.c_str());
        logits.insert(logits.end(), part.begin(), part.end());
    }
    return logits;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<Isa> isasHere() {
    std::vector<Isa> out;
    for (Isa isa : {Isa::Portable, Isa::Avx2, Isa::Avx512})
        if (cpuSupports(isa))
            out.push_back(isa);
    return out;
}

const char* typeLabel(DType type) {
    switch (type) {
    case DType::F32:
        return "F32";
    case DType::F16:
        return "F16";
    case DType::BF16:
        return "BF16";
    case DType::Q4_0:
        return "Q4_0";
    case DType::Q4_1:
        return "Q4_1";
    case DType::Q8_0:
        return "Q8_0";
    }
    return "?";
}

} // namespace

class TestKernelProgram : public QObject {
    Q_OBJECT
private slots:
    void agreesWithExactPass_data() {
        QTest::addColumn<int>("isa");
        QTest::addColumn<TinyShape>("shape");
        for (Isa isa : isasHere()) {
            for (DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1}) {
                TinyShape s;
                s.type = type;
                QTest::addRow("%s %s", isaName(isa), typeLabel(type)) << int(isa) << s;
            }
            TinyShape odd; // nothing is a multiple of 16
            odd = {44, 6, 2, 10, 22, 58, 75, 2, DType::F32, DType::F16, RopeStyle::Halves, Activation::GeluTanh, true};
            QTest::addRow("%s odd sizes, bias, halves, gelu", isaName(isa)) << int(isa) << odd;
            TinyShape mqa; // more query heads on a KV head than a register tile holds
            mqa = {64, 20, 1, 32, 24, 64, 90, 1, DType::Q8_0, DType::F32, RopeStyle::Halves, Activation::Silu, true};
            mqa.headDimV = 32;
            QTest::addRow("%s many heads on one", isaName(isa)) << int(isa) << mqa;
        }
    }
    void agreesWithExactPass() {
        QFETCH(int, isa);
        QFETCH(TinyShape, shape);
        TinyModel model(shape, 11);
        const auto tokens = randomTokens(330, shape.vocab, 3);
        const std::vector<double> exact = model.reference(tokens);
        const std::vector<float> got = runChunked(model, tokens, static_cast<Isa>(isa), 2, 16, 100);
        double squares = 0, scale = 0, worst = 0;
        for (std::size_t i = 0; i < exact.size(); ++i) {
            const double error = static_cast<double>(got[i]) - exact[i];
            squares += error * error;
            scale += exact[i] * exact[i];
            worst = std::max(worst, std::fabs(error));
        }
        const double relative = std::sqrt(squares / scale);
        const bool quantized = shape.type == DType::Q4_0 || shape.type == DType::Q4_1 || shape.type == DType::Q8_0;
        qInfo("relative error %.2e, largest %.2e", relative, worst);
        QVERIFY2(relative < (quantized                            ? 0.02
                             : shape.embeddingType == DType::Q8_0 ? 0.01
                                                                  : 2e-5),
                 qPrintable(QString::number(relative)));
    }

    void sameBitsHoweverItIsComputed_data() {
        QTest::addColumn<int>("isa");
        QTest::addColumn<int>("type");
        for (Isa isa : isasHere())
            for (DType type : {DType::Q4_1, DType::Q8_0, DType::F16})
                QTest::addRow("%s %s", isaName(isa), typeLabel(type)) << int(isa) << int(type);
    }
    void sameBitsHoweverItIsComputed() {
        QFETCH(int, isa);
        QFETCH(int, type);
        TinyShape shape;
        shape.type = static_cast<DType>(type);
        shape.heads = 6; // an odd share for two threads
        TinyModel model(shape, 12);
        const auto tokens = randomTokens(kTokens - 60, shape.vocab, 4);
        const auto which = static_cast<Isa>(isa);
        const std::vector<float> base = runChunked(model, tokens, which, 1, 16, tokens.size());
        for (std::size_t chunk : {1, 7, 48, 512})
            QVERIFY2(sameBits(base, runChunked(model, tokens, which, 2, 16, chunk)),
                     qPrintable(QStringLiteral("chunks of %1").arg(chunk)));
        for (std::int32_t block : {8, 32, 64}) {
            QVERIFY2(sameBits(base, runChunked(model, tokens, which, 2, block, 64)),
                     qPrintable(QStringLiteral("blocks of %1").arg(block)));
            QVERIFY2(sameBits(base, runChunked(model, tokens, which, 1, block, 1)),
                     qPrintable(QStringLiteral("blocks of %1, one token a step").arg(block)));
        }
        QVERIFY2(sameBits(base, runChunked(model, tokens, which, 3, 16, 30, true)), "three threads, shuffled blocks");
    }
};

QTEST_APPLESS_MAIN(TestKernelProgram)
#include "test_kernel_program.moc"
