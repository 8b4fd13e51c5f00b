// SPDX-License-Identifier: GPL-3.0-or-later
// Whole programs on the CPU backend: against an exact float64 pass, and bit for bit against themselves under every
// freedom the engine has (chunks, batches, block size, block order, threads).
#include <QTest>
#include <cmath>
#include <cstring>
#include <thread>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/testing/late_backend.h"
#include "kernels/testing/protected_backend.h"
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
            for (std::int32_t window : {1, 20, 64, 270}) { // inside a tile, over its border, over a partition
                TinyShape local = odd;
                local.bias = false;
                local.norms = true;
                local.window = window;
                QTest::addRow("%s norms, window %d", isaName(isa), window) << int(isa) << local;
                local.sinks = window == 64 ? 70 : 4;
                QTest::addRow("%s window %d, sinks %d", isaName(isa), window, local.sinks) << int(isa) << local;
            }
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
        QTest::addColumn<int>("window");
        QTest::addColumn<int>("sinks");
        for (Isa isa : isasHere()) {
            for (DType type : {DType::Q4_1, DType::Q8_0, DType::F16})
                QTest::addRow("%s %s", isaName(isa), typeLabel(type)) << int(isa) << int(type) << 0 << 0;
            for (int window : {20, 257})
                QTest::addRow("%s F16, window %d", isaName(isa), window) << int(isa) << int(DType::F16) << window << 0;
            QTest::addRow("%s Q8_0, window 20, sinks 70", isaName(isa)) << int(isa) << int(DType::Q8_0) << 20 << 70;
            QTest::addRow("%s F16, window 100, sinks 4", isaName(isa)) << int(isa) << int(DType::F16) << 100 << 4;
        }
    }
    void sameBitsHoweverItIsComputed() {
        QFETCH(int, isa);
        QFETCH(int, type);
        QFETCH(int, window);
        QFETCH(int, sinks);
        TinyShape shape;
        shape.type = static_cast<DType>(type);
        shape.window = window;
        shape.sinks = sinks;
        shape.norms = window > 0;
        shape.heads = 6; // an odd share for two threads
        TinyModel model(shape, 12);
        const auto tokens = randomTokens(kTokens - 60, shape.vocab, 4);
        const auto which = static_cast<Isa>(isa);
        const std::vector<float> base = runChunked(model, tokens, which, 1, 16, tokens.size());
        // One token a step is the slowest way by far: the first 270, just over a partition, whose logits are the same.
        const std::vector<std::int32_t> few(tokens.begin(), tokens.begin() + 270);
        const std::vector<float> fewBase(base.begin(), base.begin() + 270 * shape.vocab);
        for (std::size_t chunk : {7, 48, 512})
            QVERIFY2(sameBits(base, runChunked(model, tokens, which, 2, 16, chunk)),
                     qPrintable(QStringLiteral("chunks of %1").arg(chunk)));
        QVERIFY2(sameBits(fewBase, runChunked(model, few, which, 2, 16, 1)), "one token a step");
        for (std::int32_t block : {8, 32, 64}) {
            QVERIFY2(sameBits(base, runChunked(model, tokens, which, 2, block, 64)),
                     qPrintable(QStringLiteral("blocks of %1").arg(block)));
            QVERIFY2(sameBits(fewBase, runChunked(model, few, which, 1, block, 1)),
                     qPrintable(QStringLiteral("blocks of %1, one token a step").arg(block)));
        }
        QVERIFY2(sameBits(base, runChunked(model, tokens, which, 3, 16, 30, true)), "three threads, shuffled blocks");
    }

    void sameBitsAloneOrInABatch() {
        for (Isa isa : isasHere()) {
            TinyShape shape;
            TinyModel model(shape, 13);
            std::vector<std::vector<std::int32_t>> prompts;
            std::vector<std::vector<float>> alone;
            for (unsigned i = 0; i < 8; ++i) {
                prompts.push_back(randomTokens(5 + i * 37, shape.vocab, 20 + i));
                alone.push_back(runChunked(model, prompts.back(), isa, 1, 16, prompts.back().size()));
            }
            // Together: each step takes another number of tokens of each, one of them alone (decode) now and then.
            Setup s = setUp(model, isa, 2, 16);
            std::mt19937 random(1);
            std::vector<Driver::Sequence> sequences(8);
            std::vector<std::vector<float>> got(8);
            for (bool left = true; left;) {
                left = false;
                std::vector<Driver::Part> parts;
                std::vector<std::size_t> who;
                for (std::size_t i = 0; i < 8; ++i) {
                    const std::size_t done = got[i].size() / static_cast<std::size_t>(shape.vocab);
                    const std::size_t count =
                        std::min<std::size_t>(prompts[i].size() - done, random() % 3 == 0 ? 1 : random() % 40);
                    left |= done + count < prompts[i].size();
                    if (count == 0)
                        continue;
                    const auto from = prompts[i].begin() + static_cast<std::ptrdiff_t>(done);
                    parts.push_back({&sequences[i], {from, from + static_cast<std::ptrdiff_t>(count)}});
                    who.push_back(i);
                }
                if (parts.empty())
                    continue;
                const std::vector<float> logits = s.driver->step(parts);
                QVERIFY2(s.driver->status == StepStatus::Done, s.backend->lastError().message.c_str());
                std::size_t at = 0;
                for (std::size_t p = 0; p < parts.size(); ++p) {
                    const std::size_t n = parts[p].tokens.size() * static_cast<std::size_t>(shape.vocab);
                    got[who[p]].insert(got[who[p]].end(), logits.begin() + static_cast<std::ptrdiff_t>(at),
                                       logits.begin() + static_cast<std::ptrdiff_t>(at + n));
                    at += n;
                }
            }
            for (std::size_t i = 0; i < 8; ++i)
                QVERIFY2(sameBits(alone[i], got[i]), isaName(isa));
        }
    }

    void whatUnwrittenSlotsHoldIsNeverSeen() {
        TinyShape shape;
        TinyModel model(shape, 14);
        const auto tokens = randomTokens(90, shape.vocab, 5);
        for (Isa isa : isasHere()) {
            const auto clean = runChunked(model, tokens, isa, 1, 32, 13);
            Setup s = setUp(model, isa, 2, 32);
            const std::size_t bytes = model.kvLayout(32, 1).bytesPerBlock();
            const std::vector<std::byte> poison(bytes, std::byte(0xff)); // every f16 is NaN
            for (std::int32_t b = 0; b < 2048 / 32; ++b)
                s.backend->writeBlock(b, poison);
            Driver::Sequence sequence;
            std::vector<float> got;
            for (std::size_t i = 0; i < tokens.size(); i += 13) {
                const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(tokens.size(), i + 13));
                const auto part = s.driver->step({{&sequence, {tokens.begin() + static_cast<std::ptrdiff_t>(i), end}}});
                got.insert(got.end(), part.begin(), part.end());
            }
            QVERIFY2(sameBits(clean, got), isaName(isa));
        }
    }

    void copyOnWriteAndBlocksMovedByHand() {
        TinyShape shape;
        TinyModel model(shape, 15);
        const auto tokens = randomTokens(40, shape.vocab, 6);
        const auto expected = runChunked(model, tokens, bestIsa(), 1, 16, 40);
        Setup s = setUp(model, bestIsa(), 2, 16);
        Driver::Sequence first;
        s.driver->step({{&first, {tokens.begin(), tokens.begin() + 24}}});
        // A fork shares block 0 and gets its own copy of the half-filled block 1.
        Driver::Sequence fork = first;
        const std::int32_t fresh = s.driver->freeBlocks.back();
        s.driver->freeBlocks.pop_back();
        fork.table[1] = fresh;
        const auto other = randomTokens(16, shape.vocab, 7);
        s.driver->step({{&fork, {other.begin(), other.end()}}}, {{first.table[1], fresh, 8}});
        const auto rest = s.driver->step({{&first, {tokens.begin() + 24, tokens.end()}}});
        QVERIFY(std::memcmp(rest.data(), expected.data() + 24 * shape.vocab, rest.size() * 4) == 0);
        // The fork's answer equals that of a sequence which was never forked.
        std::vector<std::int32_t> whole(tokens.begin(), tokens.begin() + 24);
        whole.insert(whole.end(), other.begin(), other.end());
        whole.push_back(1);
        const auto straight = runChunked(model, whole, bestIsa(), 1, 16, 7);
        const auto last = s.driver->step({{&fork, {1}}});
        QVERIFY(std::memcmp(last.data(), straight.data() + 40 * shape.vocab, last.size() * 4) == 0);

        // Bytes read from one block and written to another carry everything.
        std::vector<std::byte> bytes(model.kvLayout(16, 1).bytesPerBlock());
        const std::int32_t moved = s.driver->freeBlocks.back();
        s.driver->freeBlocks.pop_back();
        s.backend->readBlock(fork.table[0], bytes);
        s.backend->writeBlock(moved, bytes);
        const std::vector<std::byte> junk(bytes.size(), std::byte(0xff));
        s.backend->writeBlock(fork.table[0], junk);
        fork.table[0] = moved;
        whole.push_back(2);
        const auto again = s.driver->step({{&fork, {2}}});
        const auto straightAgain = runChunked(model, whole, bestIsa(), 1, 16, 7);
        QVERIFY(std::memcmp(again.data(), straightAgain.data() + 41 * shape.vocab, again.size() * 4) == 0);
    }

    void wrongInputsFailWithASentence() {
        TinyShape shape;
        TinyModel model(shape, 16);
        Setup s = setUp(model, bestIsa(), 2, 16);
        const std::int32_t ids[] = {1, 2}, positions[] = {0, 1}, mapping[] = {0, 1}, cu[] = {0, 2}, lengths[] = {2},
                           table[] = {0}, starts[] = {0, 1}, rows[] = {1};
        StepInputs good;
        good.tokenIds = ids;
        good.positions = positions;
        good.slotMapping = mapping;
        good.cuQueryLens = cu;
        good.sequenceLengths = lengths;
        good.blockTables = table;
        good.tableStarts = starts;
        good.logitRows = rows;
        const auto fails = [&](const StepInputs& in) {
            const StepStatus status = s.backend->await(s.backend->submit(in));
            return status == StepStatus::Failed && !s.backend->lastError().message.empty();
        };
        QVERIFY(!fails(good));
        StepInputs in = good;
        const std::int32_t badIds[] = {1, 96};
        in.tokenIds = badIds;
        QVERIFY(fails(in));
        in = good;
        const std::int32_t badSlots[] = {0, 17};
        in.slotMapping = badSlots;
        QVERIFY(fails(in));
        in = good;
        const std::int32_t badTable[] = {128};
        in.blockTables = badTable;
        QVERIFY(fails(in));
        in = good;
        const std::int32_t badLengths[] = {3};
        in.sequenceLengths = badLengths; // positions do not follow from it
        QVERIFY(fails(in));
        in = good;
        const std::int32_t badRows[] = {2};
        in.logitRows = badRows;
        QVERIFY(fails(in));
        in = good;
        const BlockCopy badCopy[] = {{0, 0, 4}};
        in.copies = badCopy;
        QVERIFY(fails(in));
        QVERIFY(fails(StepInputs()));
        QVERIFY(!fails(good));
        QVERIFY(s.backend->await(Ticket{12345}) == StepStatus::Failed);
        auto bare = makeBackend(bestIsa(), 1);
        QVERIFY(bare->await(bare->submit(good)) == StepStatus::Failed);
        KvLayout kv = model.kvLayout(12, 4);
        QVERIFY(!bare->createKvCache(kv));
        kv = model.kvLayout(16, 4);
        kv.format.keys = KvDType::Int8; // without tail slots
        QVERIFY(!bare->createKvCache(kv));
        Program empty;
        QVERIFY(!bare->setProgram(empty));
    }

    void abortStopsAStepAndLeavesTheBackendUsable() {
        TinyShape shape{256, 8, 4, 32, 32, 512, 512, 8};
        TinyModel model(shape, 17);
        Setup s = setUp(model, bestIsa(), 2, 16);
        const auto tokens = randomTokens(500, shape.vocab, 8);
        bool aborted = false;
        for (int attempt = 0; attempt < 20 && !aborted; ++attempt) {
            Driver::Sequence sequence;
            const auto blocks = s.driver->freeBlocks;
            std::thread other([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(1 + attempt));
                s.backend->requestAbort();
            });
            s.driver->step({{&sequence, tokens}});
            aborted = s.driver->status == StepStatus::Aborted;
            other.join();
            s.driver->freeBlocks = blocks;
        }
        QVERIFY(aborted);
        Driver::Sequence sequence; // an abort belongs to the step in flight, not to the next
        const auto logits = s.driver->step({{&sequence, tokens}});
        QVERIFY(s.driver->status == StepStatus::Done);
        QVERIFY(sameBits(logits, runChunked(model, tokens, bestIsa(), 1, 16, 500)));
    }

    void samplingRowsTogetherEqualsAlone() {
        TinyShape shape;
        TinyModel model(shape, 18);
        Setup s = setUp(model, bestIsa(), 3, 16);
        const auto tokens = randomTokens(20, shape.vocab, 9);
        Driver::Sequence sequence;
        s.driver->step({{&sequence, tokens}});
        const Ticket ticket{1};
        std::vector<SampleRow> rows(20);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            rows[i].logitRow = static_cast<std::int32_t>(i);
            rows[i].params.temperature = i % 2 ? 0.8f : 0;
            rows[i].params.topP = 0.9f;
            rows[i].params.seed = 5;
            rows[i].params.tokenIndex = i;
            rows[i].params.repetitionPenalty = 1.3f;
            rows[i].promptTokens = tokens;
        }
        std::vector<SampledToken> together(20), alone(1);
        s.backend->sample(ticket, rows, together);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            s.backend->sample(ticket, {&rows[i], 1}, alone);
            QCOMPARE(alone[0].token, together[i].token);
            QCOMPARE(alone[0].logprob, together[i].logprob);
            QVERIFY(alone[0].token >= 0);
        }
        QVERIFY(s.backend->phaseTimes().sample > 0);
        SampleRow outside;
        outside.logitRow = 20;
        s.backend->sample(ticket, {&outside, 1}, alone);
        QCOMPARE(alone[0].token, -1);
    }

    void memoryIsCountedAndTheNameSaysWhatRuns() {
        TinyShape shape;
        TinyModel model(shape, 19);
        Setup s = setUp(model, Isa::Portable, 2, 16);
        QCOMPARE(s.backend->describe(), std::string("CPU, 2 threads, portable"));
        const BackendMemory before = s.backend->memory();
        QCOMPARE(before.kvPool, model.kvLayout(16, 128).bytesPerBlock() * 128);
        QVERIFY(before.weights > 0);
        QCOMPARE(before.activationsPeak, std::size_t(0));
        Driver::Sequence sequence;
        s.driver->step({{&sequence, randomTokens(4, shape.vocab, 1)}});
        const std::size_t few = s.backend->memory().activationsPeak;
        s.driver->step({{&sequence, randomTokens(300, shape.vocab, 1)}});
        const std::size_t many = s.backend->memory().activationsPeak;
        QVERIFY(few > 0 && many > few);
        s.driver->step({{&sequence, {1}}});
        QCOMPARE(s.backend->memory().activationsPeak, many);
        const PhaseTimes t = s.backend->phaseTimes();
        QVERIFY(t.embed > 0 && t.qkv > 0 && t.attention > 0 && t.mlp > 0 && t.logits > 0);
    }

    void protectedAndLateBackendsGiveTheSameBits() {
        TinyShape shape;
        TinyModel model(shape, 20);
        const auto tokens = randomTokens(100, shape.vocab, 10);
        const auto expected = runChunked(model, tokens, bestIsa(), 1, 16, 100);
        CpuOptions options;
        options.threads = 2;
        for (bool late : {false, true}) {
            auto made = testing::ProtectedBackend::make(options);
            QVERIFY(bool(made));
            std::unique_ptr<Backend> backend = std::move(*made.value);
            if (late)
                backend = std::make_unique<testing::LateBackend>(std::move(backend));
            QVERIFY(bool(backend->createKvCache(model.kvLayout(16, 64))));
            QCOMPARE(model.load(*backend, 64, 4, 64, 128), std::string());
            Driver driver(*backend, model, 16, 64);
            Driver::Sequence sequence;
            std::vector<float> got;
            for (std::size_t i = 0; i < tokens.size(); i += 20) {
                const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(i);
                const auto part = driver.step({{&sequence, {from, from + 20}}});
                QVERIFY(driver.status == StepStatus::Done);
                got.insert(got.end(), part.begin(), part.end());
            }
            QVERIFY(sameBits(expected, got));
        }
    }
};

QTEST_APPLESS_MAIN(TestKernelProgram)
#include "test_kernel_program.moc"
