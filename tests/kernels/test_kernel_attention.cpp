// SPDX-License-Identifier: GPL-3.0-or-later
//
// The KV cache's kernels of each instruction set: storing keys and values as halves, attention over block tables.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/step_buffers.h"
#include "tests/kernels/kernel_tables.h"
#include "tests/kernels/tiny_model.h"

using namespace kvscope::kernels;
using namespace kvscope::tests;

class TestKernelAttention : public QObject {
    Q_OBJECT
private slots:
    void attentionOverPagesAgreesWithFloat64_data() {
        QTest::addColumn<int>("blockSize");
        QTest::addColumn<int>("dimK");
        QTest::addColumn<int>("dimV");
        QTest::addColumn<int>("group");
        QTest::addColumn<int>("window");
        QTest::addColumn<int>("sinks");
        QTest::newRow("block 8") << 8 << 64 << 64 << 3 << 0 << 0;
        QTest::newRow("block 16, odd dimensions") << 16 << 20 << 44 << 5 << 0 << 0;
        QTest::newRow("block 32, one head") << 32 << 8 << 8 << 1 << 0 << 0;
        QTest::newRow("block 64, many heads") << 64 << 128 << 80 << 19 << 0 << 0;
        QTest::newRow("itself only") << 16 << 16 << 16 << 2 << 1 << 0;
        QTest::newRow("window 20") << 8 << 20 << 44 << 3 << 20 << 0;
        QTest::newRow("window of a tile") << 16 << 32 << 32 << 4 << 64 << 0;
        QTest::newRow("window of a partition and one") << 64 << 16 << 24 << 17 << 257 << 0;
        QTest::newRow("window longer than anything") << 16 << 16 << 16 << 1 << 700 << 0;
        QTest::newRow("a sink and itself") << 16 << 16 << 16 << 2 << 1 << 1;
        QTest::newRow("sinks and window in one tile") << 8 << 20 << 44 << 3 << 20 << 4;
        QTest::newRow("sinks of a tile") << 16 << 32 << 32 << 4 << 100 << 64;
        QTest::newRow("sinks to the middle of a tile") << 32 << 8 << 24 << 5 << 60 << 100;
        QTest::newRow("sinks beyond a partition") << 64 << 16 << 24 << 17 << 65 << 300;
        QTest::newRow("sinks and window meet") << 16 << 16 << 16 << 1 << 301 << 300;
    }
    void attentionOverPagesAgreesWithFloat64() {
        QFETCH(int, blockSize);
        QFETCH(int, dimK);
        QFETCH(int, dimV);
        QFETCH(int, group);
        QFETCH(int, window);
        QFETCH(int, sinks);
        std::mt19937 random(7);
        constexpr int kLength = 601;
        const int blocks = (kLength + blockSize - 1) / blockSize;
        KvAccess kv;
        kv.blockSize = blockSize;
        kv.headDimK = dimK;
        kv.headDimV = dimV;
        kv.valueOffset = static_cast<std::size_t>(blockSize * dimK * 2);
        kv.headOffset = 0;
        kv.blockBytes = static_cast<std::size_t>(blockSize * (dimK + dimV) * 2);
        // Slots that are not written, or that the window has passed, hold NaN; and one block more than needed.
        std::vector<std::byte> pool(kv.blockBytes * static_cast<std::size_t>(blocks + 1));
        kv.pool = pool.data();
        std::vector<std::int32_t> table(static_cast<std::size_t>(blocks));
        std::iota(table.begin(), table.end(), 1);
        std::shuffle(table.begin(), table.end(), random);
        const auto nk = static_cast<std::size_t>(dimK), nv = static_cast<std::size_t>(dimV);
        const std::vector<float> keys = normals(random, kLength * nk), values = normals(random, kLength * nv);
        std::vector<float> q = normals(random, static_cast<std::size_t>(group) * nk, 2);
        const float scale = 1.0f / std::sqrt(static_cast<float>(dimK));
        const auto rounded = [](float v) { return static_cast<double>(halfToFloat(floatToHalf(v))); };

        std::vector<float> firstOut;
        for (const KernelTable* k : tablesHere()) {
            AttentionArgs args;
            args.kv = kv;
            args.table = table.data();
            args.scale = scale;
            args.group = group;
            args.q = q.data();
            args.qStride = static_cast<std::int64_t>(q.size());
            args.window = window;
            args.sinks = sinks;
            const std::size_t record = static_cast<std::size_t>(group) * (2 + nv);
            for (int length : {1, 9, 64, 255, 256, 257, kLength}) {
                const int parts = (length + 255) / 256, first = window > 0 ? std::max(0, length - window) : 0;
                const auto seen = [&](int i) { return i < sinks || i >= first; };
                std::fill(pool.begin(), pool.end(), std::byte(0xff));
                for (int i = 0; i < length; ++i) {
                    if (!seen(i))
                        continue;
                    const int slot = table[static_cast<std::size_t>(i / blockSize)] * blockSize + i % blockSize;
                    k->storeKey(kv, slot, keys.data() + static_cast<std::size_t>(i) * nk);
                    k->storeValue(kv, slot, values.data() + static_cast<std::size_t>(i) * nv);
                }
                args.firstPosition = length - 1;
                args.tokens = 1;
                // Partitions between the sinks and the window are not computed.
                const int begin = first <= sinks ? 0 : first / 256, leading = std::min(begin, (sinks + 255) / 256);
                std::vector<float> partials(record * static_cast<std::size_t>(parts), std::nanf(""));
                std::vector<float> scratch(static_cast<std::size_t>(attentionScratchFloats(group, dimK, dimV)));
                for (int p = 0; p < parts; ++p)
                    if (p < leading || p >= begin)
                        k->attendPartition(args, p * 256, std::min(length, (p + 1) * 256),
                                           partials.data() + static_cast<std::size_t>(p) * record, scratch.data());
                std::vector<float> out(static_cast<std::size_t>(group) * nv), whole(out.size());
                k->combinePartials(partials.data(), leading, begin, parts, group, dimV, out.data());
                // The path of prefill gives the same bits.
                k->attendTokens(args, whole.data(), static_cast<std::int64_t>(whole.size()), scratch.data());
                QVERIFY2(sameBits(out, whole), k->name);
                for (int h = 0; h < group; ++h) {
                    std::vector<double> s(static_cast<std::size_t>(length));
                    double largest = -1e30, sum = 0;
                    for (int i = 0; i < length; ++i) {
                        if (!seen(i))
                            continue;
                        double dot = 0;
                        for (std::size_t d = 0; d < nk; ++d)
                            dot += static_cast<double>(q[static_cast<std::size_t>(h) * nk + d]) *
                                   rounded(keys[static_cast<std::size_t>(i) * nk + d]);
                        s[static_cast<std::size_t>(i)] = dot * static_cast<double>(scale);
                        largest = std::max(largest, s[static_cast<std::size_t>(i)]);
                    }
                    for (int i = 0; i < length; ++i)
                        if (seen(i))
                            sum += s[static_cast<std::size_t>(i)] = std::exp(s[static_cast<std::size_t>(i)] - largest);
                    for (std::size_t d = 0; d < nv; ++d) {
                        double exact = 0;
                        for (int i = 0; i < length; ++i)
                            if (seen(i))
                                exact += s[static_cast<std::size_t>(i)] / sum *
                                         rounded(values[static_cast<std::size_t>(i) * nv + d]);
                        const double error =
                            std::fabs(static_cast<double>(out[static_cast<std::size_t>(h) * nv + d]) - exact);
                        QVERIFY2(error < 3e-6, qPrintable(QStringLiteral("%1, length %2, head %3: error %4")
                                                              .arg(k->name)
                                                              .arg(length)
                                                              .arg(h)
                                                              .arg(error)));
                    }
                }
            }
        }
    }

    /// Tokens of a chunk, their windows beginning in different tiles and partitions, against each of them alone.
    void aChunkWithAWindowGivesTheBitsOfItsTokens() {
        constexpr int kLength = 601, kDims = 24, kGroup = 3, kBlock = 16;
        std::mt19937 random(8);
        KvAccess kv;
        kv.blockSize = kBlock;
        kv.headDimK = kv.headDimV = kDims;
        kv.valueOffset = kBlock * kDims * 2;
        kv.blockBytes = 2 * kv.valueOffset;
        std::vector<std::byte> pool(kv.blockBytes * (kLength / kBlock + 1));
        kv.pool = pool.data();
        std::vector<std::int32_t> table(kLength / kBlock + 1);
        std::iota(table.begin(), table.end(), 0);
        const std::vector<float> q = normals(random, kAttentionTokens * kGroup * kDims, 2);
        for (const KernelTable* k : tablesHere()) {
            for (int i = 0; i < kLength; ++i) {
                k->storeKey(kv, i, normals(random, kDims).data());
                k->storeValue(kv, i, normals(random, kDims).data());
            }
            AttentionArgs args;
            args.kv = kv;
            args.table = table.data();
            args.scale = 0.2f;
            args.group = kGroup;
            args.qStride = kGroup * kDims;
            std::vector<float> scratch(static_cast<std::size_t>(attentionScratchFloats(kGroup, kDims, kDims)));
            for (const auto& [window, sinks] : {std::pair(1, 0),
                                                {5, 0},
                                                {63, 0},
                                                {64, 0},
                                                {65, 0},
                                                {190, 0},
                                                {256, 0},
                                                {300, 0},
                                                {1, 1},
                                                {5, 4},
                                                {30, 64},
                                                {63, 4},
                                                {64, 70},
                                                {100, 256},
                                                {190, 4},
                                                {256, 3},
                                                {290, 260},
                                                {33, 300}})
                for (const int first : {0, 50, 60, 250, 300, 505, 580}) {
                    args.window = window;
                    args.sinks = sinks;
                    std::vector<float> chunk(q.size()), alone(q.size());
                    args.q = q.data();
                    args.firstPosition = first;
                    args.tokens = kAttentionTokens;
                    k->attendTokens(args, chunk.data(), args.qStride, scratch.data());
                    args.tokens = 1;
                    for (std::int64_t t = 0; t < kAttentionTokens; ++t) {
                        args.firstPosition = first + t;
                        args.q = q.data() + t * args.qStride;
                        k->attendTokens(args, alone.data() + t * args.qStride, args.qStride, scratch.data());
                    }
                    QVERIFY2(sameBits(chunk, alone), k->name);
                }
        }
    }

    void valuesBeyondHalfAreClamped() {
        for (const KernelTable* k : tablesHere()) {
            std::vector<std::byte> pool(8 * (4 + 4) * 2);
            KvAccess kv{pool.data(), pool.size(), 0, 8 * 4 * 2, 8, 4, 4};
            const float wild[] = {1e9f, -1e9f, 65504, 1e-9f};
            k->storeKey(kv, 3, wild);
            k->storeValue(kv, 3, wild);
            for (int d = 0; d < 4; ++d) {
                std::uint16_t key, value;
                std::memcpy(&key, pool.data() + (d * 8 + 3) * 2, 2);
                std::memcpy(&value, pool.data() + 64 + (3 * 4 + d) * 2, 2);
                QCOMPARE(key, value);
                QCOMPARE(halfToFloat(key), d == 0 || d == 2 ? 65504.0f : d == 1 ? -65504.0f : 0.0f);
            }
        }
    }

    void everyHalfSurvivesTheCache() {
        // All 63,488 finite halves as float32 and back, through the store of each instruction set.
        for (const KernelTable* k : tablesHere()) {
            std::vector<std::byte> pool(8 * 2 * 2);
            KvAccess kv{pool.data(), pool.size(), 0, 8 * 2, 8, 1, 1};
            for (std::uint32_t h = 0; h < 65536; ++h) {
                if ((h & 0x7c00) == 0x7c00)
                    continue;
                const float value = halfToFloat(static_cast<std::uint16_t>(h));
                k->storeKey(kv, 0, &value);
                std::uint16_t got;
                std::memcpy(&got, pool.data(), 2);
                QCOMPARE(got, static_cast<std::uint16_t>(h));
                const float between = value * 1.0004f; // rounds like the reference, ties and subnormals included
                k->storeKey(kv, 0, &between);
                std::memcpy(&got, pool.data(), 2);
                QCOMPARE(got, floatToHalf(std::min(65504.0f, std::max(-65504.0f, between))));
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestKernelAttention)
#include "test_kernel_attention.moc"
