// SPDX-License-Identifier: GPL-3.0-or-later
//
// Quantized keys and values on the CPU backend: sizes, codes, and whole programs whose logits are the same to the last
// bit for any chunk, company, thread count and place of blocks.
#include <QTest>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "tests/kernels/kernel_tables.h"
#include "tests/kernels/kv_formats.h"
#include "tests/kernels/tiny_model.h"

using namespace kvscope;
using namespace kvscope::kernels;
using namespace kvscope::tests;

namespace {

constexpr std::int32_t kLength = 329; // more than a partition, and a half filled block at the end

std::vector<std::int32_t> randomTokens(std::size_t count, std::int32_t vocab, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::int32_t> token(0, vocab - 1);
    std::vector<std::int32_t> out(count);
    for (auto& t : out)
        t = token(random);
    return out;
}

struct Setup {
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Driver> driver;
};

Setup setUp(TinyModel& model, Isa isa, int threads, std::int32_t blockSize, const KvFormat& format) {
    CpuOptions options;
    options.forceIsa = isa;
    options.threads = threads;
    Setup s;
    s.backend = std::move(*makeCpuBackend(options).value);
    const std::int32_t blocks = 4096 / blockSize;
    const KvLayout layout = model.kvLayout(blockSize, blocks, format);
    if (const auto made = s.backend->createKvCache(layout); !made)
        qFatal("%s", made.error.message.c_str());
    if (const std::string wrong = model.load(*s.backend, 512, 16, 512, 2 * blocks); !wrong.empty())
        qFatal("%s", wrong.c_str());
    s.driver = std::make_unique<Driver>(*s.backend, model, blockSize, blocks, layout.tailSlots);
    return s;
}

std::vector<float> runAlone(TinyModel& model, const std::vector<std::int32_t>& tokens, Isa isa, int threads,
                            std::int32_t blockSize, const KvFormat& format, std::size_t chunk) {
    Setup s = setUp(model, isa, threads, blockSize, format);
    Driver::Sequence sequence;
    std::vector<float> logits = s.driver->run(sequence, tokens, chunk);
    if (logits.empty())
        qFatal("%s", s.backend->lastError().message.c_str());
    return logits;
}

KvLayout layoutOf(std::int32_t blockSize, const KvFormat& format) {
    KvLayout kv; // SmolLM2-135M at its default pool: 8 x 8,192 tokens
    kv.layers = 30;
    kv.kvHeads = 3;
    kv.headDimK = kv.headDimV = 64;
    kv.blockSize = blockSize;
    kv.numBlocks = 8 * 8192 / blockSize;
    kv.format = format;
    kv.tailSlots = format.quantized() ? 16 : 0;
    return kv;
}

KvFormat named(const char* name) {
    return *kvFormatByName(name);
}

} // namespace

class TestKernelKvFormats : public QObject {
    Q_OBJECT
private slots:
    void poolGainCountsTailsAndScales() {
        const auto gain = [](const char* name, std::int32_t blockSize) {
            return static_cast<double>(layoutOf(blockSize, {}).poolBytes()) /
                   static_cast<double>(layoutOf(blockSize, named(name)).poolBytes());
        };
        QVERIFY(gain("fp8", 32) >= 1.95);
        QVERIFY(gain("int8", 32) >= 1.85);
        QVERIFY(gain("k8v4", 32) >= 2.4);
        QVERIFY(gain("int4", 32) >= 3.1);
        QVERIFY(gain("fp8", 32) < 2 && gain("k8v4", 32) < 2.47); // the tails are counted
        // Bytes of a head and token at 64 dimensions: 256 in f16.
        const auto perHead = [](const char* name, std::int32_t blockSize) {
            return static_cast<double>(layoutOf(blockSize, named(name)).bytesPerBlock()) / (90.0 * blockSize);
        };
        QCOMPARE(perHead("f16", 16), 256.0);
        QCOMPARE(perHead("bf16", 16), 256.0);
        QCOMPARE(perHead("fp8", 16), 128.0);
        QCOMPARE(perHead("int8", 16), 140.0); // 64 + 8, 64 + 4
        QCOMPARE(perHead("int8", 32), 136.0);
        QCOMPARE(perHead("k8v4", 32), 104.0); // 64 + 32 + 8
        QCOMPARE(perHead("int4", 32), 80.0);  // 32 + 8, 32 + 8
        KvFormat rotated = named("int4");
        rotated.rotation = true;
        QCOMPARE(static_cast<double>(layoutOf(32, rotated).bytesPerBlock()) / (90.0 * 32), 74.0); // 32 + 2, 40
    }

    void layersDoNotOverlap() {
        for (const KvFormat& format : allFormats())
            for (const std::int32_t skip : {0, 1, 2}) {
                KvLayout kv = layoutOf(16, format);
                kv.layers = 5;
                kv.format.skipLayers = format.quantized() ? skip : 0;
                std::size_t next = 0, nextOpen = 0;
                for (std::int32_t layer = 0; layer < kv.layers; ++layer)
                    for (std::int32_t head = 0; head < kv.kvHeads; ++head) {
                        QCOMPARE(kv.headOffset(layer, head), next);
                        QCOMPARE(kv.openHeadOffset(layer, head), nextOpen);
                        next += kv.keyBytes(layer) + kv.valueBytes(layer);
                        nextOpen += kv.openHeadBytes(layer);
                    }
                QCOMPARE(kv.bytesPerBlock(), next);
                QCOMPARE(kv.bytesPerTail(), nextOpen);
                QVERIFY(checkKvFormat(kv).empty());
            }
    }

    /// Blocks of the pool and of the window group, each over its own layers; the tails behind both.
    void groupsDoNotOverlap() {
        for (const KvFormat& format : allFormats()) {
            KvLayout kv = layoutOf(16, format);
            kv.layers = 7;
            kv.numBlocks = 10;
            kv.format.skipLayers = format.quantized() ? 1 : 0;
            kv.windowLayers = {true, true, false, true, true, false, true};
            kv.window = 20;
            kv.windowBlocks = 4;
            std::size_t next[2] = {};
            for (std::int32_t layer = 0; layer < kv.layers; ++layer)
                for (std::int32_t head = 0; head < kv.kvHeads; ++head) {
                    std::size_t& at = next[kv.inWindowGroup(layer)];
                    QCOMPARE(kv.headOffset(layer, head), at);
                    at += kv.keyBytes(layer) + kv.valueBytes(layer);
                }
            QCOMPARE(kv.bytesPerBlock(), next[0]);
            QCOMPARE(kv.bytesPerWindowBlock(), next[1]);
            QCOMPARE(kv.windowOffset(), 10 * next[0]);
            QCOMPARE(kv.tailOffset(), 10 * next[0] + 4 * next[1]);
            QCOMPARE(kv.poolBytes(), kv.tailOffset() + static_cast<std::size_t>(kv.tailSlots) * kv.bytesPerTail());
        }
    }

    void sequencesTimesWindowAndStep() {
        QCOMPARE(windowBlocksNeeded(16, 1, 512, 16), 34);
        QCOMPARE(windowBlocksNeeded(20, 3, 7, 16), 9); // 3 x (ceil(27 / 16) + 1)
        QCOMPARE(windowBlocksNeeded(1 << 30, 1 << 20, 512, 8), INT32_MAX);
    }

    /// Latent attention: one row of 512 + 64 values for all heads of a layer, as keys and values alike.
    void aLatentGroupHasOneRow() {
        KvLayout kv; // DeepSeek V3
        kv.layers = 61;
        kv.kvHeads = 1;
        kv.headDimK = 576;
        kv.headDimV = 0;
        kv.numBlocks = 3;
        for (const KvFormat& format : {KvFormat{}, named("bf16")}) {
            kv.format = format;
            QCOMPARE(kv.bytesPerBlock(), std::size_t(16) * 70'272);
            QCOMPARE(kv.headOffset(60, 0), std::size_t(60) * 16 * 576 * 2);
            QCOMPARE(kv.poolBytes(), std::size_t(3) * 16 * 70'272);
        }
    }

    void impossibleFormatsAreRefusedWithAReason() {
        const auto refused = [](KvFormat format, std::int32_t blockSize = 16, std::int32_t dims = 64) {
            KvLayout kv = layoutOf(blockSize, format);
            kv.headDimK = kv.headDimV = dims;
            return !checkKvFormat(kv).empty();
        };
        QVERIFY(refused({KvDType::F16, KvDType::F16, true, 0}));
        QVERIFY(refused({KvDType::Fp8E4M3, KvDType::Fp8E4M3, true, 0}));
        QVERIFY(refused({KvDType::F16, KvDType::F16, false, 1}));
        QVERIFY(refused({KvDType::Int8, KvDType::Int8, false, 15}));
        QVERIFY(refused({KvDType::Int8, KvDType::Int8, false, -1}));
        QVERIFY(refused({KvDType::Int4, KvDType::Int4, false, 0}, 8));
        QVERIFY(refused({KvDType::Int8, KvDType::Int8, false, 0}, 16, 512));
        QVERIFY(refused({KvDType::Int8, KvDType::Int8, true, 0}, 16, 44));
        QVERIFY(!refused({KvDType::Int8, KvDType::Int8, true, 14}, 16, 80));
        QVERIFY(!kvFormatByName("q8_0") && !kvFormatByName("") && kvFormatByName("auto"));
    }

    void fp8IsTheNearestCode() {
        // All halves through the store of each instruction set: ties to even, saturation, subnormals.
        std::vector<double> codes;
        for (unsigned c = 0; c < 127; ++c)
            codes.push_back(valueOfFp8(c));
        for (const KernelTable* k : tablesHere()) {
            std::vector<std::byte> pool(2048), open(64 * 2);
            KvAccess kv;
            kv.pool = pool.data();
            kv.blockBytes = 64;
            kv.blockSize = 64;
            kv.headDimK = kv.headDimV = 1;
            kv.keyCode = kv.valueCode = KvCode::Fp8;
            for (std::uint32_t first = 0; first < 65536; first += 64) {
                if ((first & 0x7c00) == 0x7c00)
                    continue;
                for (std::uint32_t i = 0; i < 64; ++i) {
                    const auto half = static_cast<std::uint16_t>(first + i);
                    std::memcpy(open.data() + i * 2, &half, 2);
                }
                k->sealKeys(open.data(), kv, 1);
                for (std::uint32_t i = 0; i < 64; ++i) {
                    const double exact = halfToFloat(static_cast<std::uint16_t>(first + i)), size = std::fabs(exact);
                    const auto above = std::lower_bound(codes.begin(), codes.end(), size);
                    auto best = above == codes.end() ? codes.end() - 1 : above;
                    if (above != codes.end() && above != codes.begin()) {
                        const double up = *above - size, down = size - *(above - 1);
                        const bool odd = (above - codes.begin()) % 2 != 0;
                        best = down < up || (down == up && odd) ? above - 1 : above;
                    }
                    const auto wanted =
                        static_cast<unsigned>(best - codes.begin()) | (std::signbit(exact) ? 0x80u : 0u);
                    QCOMPARE(static_cast<unsigned>(pool[64 + i]), wanted);
                }
            }
        }
    }

    void hadamardTwiceIsTheIdentity() {
        std::mt19937 random(3);
        for (const KernelTable* k : tablesHere())
            for (const int span : {1, 2, 8, 16, 64, 128}) {
                std::vector<float> x = normals(random, static_cast<std::size_t>(span) * 3), before = x;
                k->hadamard(x.data(), span, span * 3);
                double exact = 0; // row 1 of the matrix alternates
                for (int i = 0; i < span; ++i)
                    exact += (i % 2 == 0 ? 1.0 : -1.0) * static_cast<double>(before[static_cast<std::size_t>(i)]);
                if (span > 1)
                    QVERIFY(std::fabs(static_cast<double>(x[1]) - exact / std::sqrt(span)) < 1e-5);
                k->hadamard(x.data(), span, span * 3);
                for (std::size_t i = 0; i < x.size(); ++i)
                    QVERIFY(std::fabs(x[i] - before[i]) < 2e-6f);
            }
    }

    void everyChunkGivesTheSameBits_data() {
        QTest::addColumn<int>("format");
        QTest::addColumn<int>("isa");
        QTest::addColumn<int>("blockSize");
        QTest::addColumn<int>("window");
        QTest::addColumn<int>("sinks");
        const auto formats = allFormats();
        for (std::size_t f = 0; f < formats.size(); ++f)
            for (const Isa isa : {Isa::Portable, Isa::Avx2, Isa::Avx512})
                for (const int size : {8, 16, 32, 64}) {
                    const bool narrow = formats[f].keys == KvDType::Int4 && size == 8;
                    if (cpuSupports(isa) && !narrow && (isa == bestIsa() || size == 16))
                        QTest::addRow("%s, %s, block %d", formatLabel(formats[f]).c_str(), isaName(isa), size)
                            << static_cast<int>(f) << static_cast<int>(isa) << size << 0 << 0;
                    if (cpuSupports(isa) && size == 16)
                        QTest::addRow("%s, %s, window 40", formatLabel(formats[f]).c_str(), isaName(isa))
                            << static_cast<int>(f) << static_cast<int>(isa) << size << 40 << 0;
                    if (isa == bestIsa() && size == 16)
                        QTest::addRow("%s, %s, window 40, sinks 5", formatLabel(formats[f]).c_str(), isaName(isa))
                            << static_cast<int>(f) << static_cast<int>(isa) << size << 40 << 5;
                }
    }
    void everyChunkGivesTheSameBits() {
        QFETCH(int, format);
        QFETCH(int, isa);
        QFETCH(int, blockSize);
        QFETCH(int, window);
        QFETCH(int, sinks);
        const KvFormat form = allFormats()[static_cast<std::size_t>(format)];
        const Isa set = static_cast<Isa>(isa);
        TinyShape shape;
        shape.layers = form.skipLayers > 0 ? 3 : 2;
        shape.type = DType::F32;
        shape.window = window;
        shape.sinks = sinks;
        TinyModel model(shape, 5);
        const auto tokens = randomTokens(kLength, shape.vocab, 9);
        const std::vector<float> expected = runAlone(model, tokens, set, 1, blockSize, form, 512);
        for (const std::size_t chunk : {1u, 7u, 16u, 48u})
            QVERIFY2(sameBits(expected, runAlone(model, tokens, set, 1, blockSize, form, chunk)),
                     qPrintable(QStringLiteral("chunk %1").arg(chunk)));
        QVERIFY(sameBits(expected, runAlone(model, tokens, set, 2, blockSize, form, 48)));

        // In company: three others with lengths of their own, in steps that mix chunks and single tokens; blocks and
        // tail slots anywhere.
        Setup s = setUp(model, set, 2, blockSize, form);
        std::mt19937 random(11);
        std::shuffle(s.driver->freeBlocks.begin(), s.driver->freeBlocks.end(), random);
        std::shuffle(s.driver->freeTails.begin(), s.driver->freeTails.end(), random);
        std::vector<Driver::Sequence> others(3);
        Driver::Sequence own;
        std::vector<float> logits;
        const std::size_t vocab = static_cast<std::size_t>(shape.vocab);
        while (own.length < kLength) {
            std::vector<Driver::Part> parts;
            for (Driver::Sequence& other : others)
                if (other.length < 500)
                    parts.push_back({&other, randomTokens(1 + random() % 3 * 20, shape.vocab, 1)});
            auto count = std::min<std::int32_t>(kLength - own.length, random() % 2 ? 1 : 37);
            const auto cut = [&](std::int32_t from, std::int32_t n) {
                const std::int32_t to = from + n;
                return form.quantized() && from % blockSize != 0 && from / blockSize != to / blockSize
                           ? to / blockSize * blockSize - from
                           : n;
            };
            for (Driver::Part& part : parts)
                part.tokens.resize(static_cast<std::size_t>(
                    cut(part.sequence->length, static_cast<std::int32_t>(part.tokens.size()))));
            count = cut(own.length, count);
            const auto at = tokens.begin() + own.length;
            const std::size_t place = random() % (parts.size() + 1);
            parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(place), {&own, {at, at + count}});
            std::size_t row = 0;
            for (std::size_t i = 0; i < place; ++i)
                row += parts[i].tokens.size();
            const std::vector<float> all = s.driver->step(parts);
            QVERIFY2(s.driver->status == StepStatus::Done, s.backend->lastError().message.c_str());
            logits.insert(logits.end(), all.begin() + static_cast<std::ptrdiff_t>(row * vocab),
                          all.begin() + static_cast<std::ptrdiff_t>((row + static_cast<std::size_t>(count)) * vocab));
        }
        QVERIFY(sameBits(expected, logits));
    }

    void anAbortedStepLeavesTheTailAsItWas() {
        // A step that fills a block is done over after an abort: the tail still has what was there before.
        for (const char* name : {"fp8", "int8", "k8v4"}) {
            TinyModel model(TinyShape{}, 5);
            const auto tokens = randomTokens(40, model.shape.vocab, 9);
            const std::vector<float> expected = runAlone(model, tokens, bestIsa(), 1, 16, named(name), 10);
            Setup s = setUp(model, bestIsa(), 1, 16, named(name));
            Driver::Sequence sequence;
            std::vector<float> logits = s.driver->run(sequence, {tokens.begin(), tokens.begin() + 10}, 10);
            const Driver::Sequence before = sequence;
            const std::vector<std::int32_t> others(6, 1); // other tokens than those that will follow
            s.driver->step({{&sequence, others}});
            sequence.length = before.length; // as an aborted step leaves it, at worst: all was written
            const auto rest = s.driver->run(sequence, {tokens.begin() + 10, tokens.end()}, 10);
            logits.insert(logits.end(), rest.begin(), rest.end());
            QVERIFY2(sameBits(expected, logits), name);
        }
    }

    void stepsThatOneTailCannotHoldAreRefused() {
        TinyModel model(TinyShape{}, 5);
        Setup s = setUp(model, bestIsa(), 1, 16, named("int8"));
        Driver::Sequence a, b;
        s.driver->step({{&a, std::vector<std::int32_t>(10, 1)}});
        QCOMPARE(s.driver->status, StepStatus::Done);
        Driver::Sequence far = a;
        s.driver->step({{&far, std::vector<std::int32_t>(10, 1)}}); // 10..20: half of two blocks
        QCOMPARE(s.driver->status, StepStatus::Failed);
        b.tailSlot = a.tailSlot;
        s.driver->step({{&a, {1}}, {&b, {1}}});
        QCOMPARE(s.driver->status, StepStatus::Failed);
        b.tailSlot = 99;
        s.driver->step({{&b, {1}}});
        QCOMPARE(s.driver->status, StepStatus::Failed);
    }

    void wrongWindowTablesFailWithASentence() {
        TinyShape shape;
        shape.window = 20;
        TinyModel model(shape, 16);
        const std::unique_ptr<Backend> backend = std::move(*makeCpuBackend(CpuOptions()).value);
        KvLayout kv = model.kvLayout(8, 8);
        kv.windowLayers = {true, false};
        kv.window = 20;
        kv.windowBlocks = 5;
        QVERIFY(bool(backend->createKvCache(kv)));
        QCOMPARE(model.load(*backend, 64, 2, 64, 16), std::string());
        std::vector<std::int32_t> ids(30, 1), positions(30), mapping(30);
        for (std::int32_t i = 0; i < 30; ++i) {
            positions[static_cast<std::size_t>(i)] = i;
            mapping[static_cast<std::size_t>(i)] = i;
        }
        const std::int32_t cu[] = {0, 30}, lengths[] = {30}, table[] = {0, 1, 2, 3}, starts[] = {0, 4};
        StepInputs in;
        in.tokenIds = ids;
        in.positions = positions;
        in.slotMapping = mapping;
        in.cuQueryLens = cu;
        in.sequenceLengths = lengths;
        in.blockTables = table;
        in.tableStarts = starts;
        const auto status = [&](std::initializer_list<std::int32_t> windowTable) {
            const std::vector<std::int32_t> entries(windowTable);
            in.windowTables = entries;
            return backend->await(backend->submit(in));
        };
        QVERIFY(status({4, 0, 2, 1}) == StepStatus::Done);
        QVERIFY(status({4, 0, 2, 5}) == StepStatus::Failed);  // the group has five
        QVERIFY(status({4, 0, -1, 1}) == StepStatus::Failed); // written in this step
        QVERIFY(status({4, 0, 2}) == StepStatus::Failed);
        const BlockCopy copy[] = {{0, 4, 8}};
        in.copies = copy;
        QVERIFY(status({4, 0, 2, 1}) == StepStatus::Failed);
        in.copies = {};
        const std::int32_t oneMore[] = {30}, oneCu[] = {0, 1}, oneLength[] = {31};
        in.tokenIds = std::span(ids).first(1);
        in.positions = oneMore;
        in.slotMapping = oneMore;
        in.cuQueryLens = oneCu;
        in.sequenceLengths = oneLength;
        QVERIFY(status({-1, 0, 2, 1}) == StepStatus::Done); // it sees 11..30
        QVERIFY(status({-1, -1, 2, 1}) == StepStatus::Failed);
        QVERIFY(!backend->lastError().message.empty());

        kv.window = 19; // less than the layer looks back
        QVERIFY(!backend->createKvCache(kv));
        kv.window = 20;
        kv.windowLayers = {true, true};
        QVERIFY(!backend->createKvCache(kv));
    }

    void qualityFollowsTheBits() {
        // The coarser the form, the larger the difference to f16; each within what its steps allow.
        TinyShape shape;
        shape.headDimK = shape.headDimV = 32;
        shape.type = DType::F32;
        TinyModel model(shape, 5);
        const auto tokens = randomTokens(kLength, shape.vocab, 9);
        const std::vector<float> exact = runAlone(model, tokens, bestIsa(), 1, 32, {}, 512);
        const auto difference = [&](const KvFormat& format) {
            const std::vector<float> got = runAlone(model, tokens, bestIsa(), 1, 32, format, 512);
            double squares = 0;
            for (std::size_t i = 0; i < exact.size(); ++i)
                squares += std::pow(static_cast<double>(exact[i] - got[i]), 2);
            return std::sqrt(squares / static_cast<double>(exact.size()));
        };
        const double int8 = difference(named("int8")), fp8 = difference(named("fp8")), int4 = difference(named("int4"));
        QVERIFY2(int8 > 0 && int8 < fp8 && fp8 < int4,
                 qPrintable(QStringLiteral("%1 %2 %3").arg(int8).arg(fp8).arg(int4)));
        QVERIFY2(int8 < 0.12 && fp8 < 0.4 && int4 < 1,
                 qPrintable(QStringLiteral("%1 %2 %3").arg(int8).arg(fp8).arg(int4)));
    }
};

QTEST_APPLESS_MAIN(TestKernelKvFormats)
#include "test_kernel_kv_formats.moc"
