// SPDX-License-Identifier: GPL-3.0-or-later
//
// The parts of the KV cache that are moved as a whole: blocks, those of the window group, tails; none overlaps another.
#include <QTest>
#include <vector>

#include "kernels/cpu/cpu_backend.h"

using namespace kvscope::kernels;

namespace {

constexpr KvPart kParts[] = {KvPart::Block, KvPart::WindowBlock, KvPart::Tail};

KvLayout layout() {
    KvLayout kv;
    kv.layers = 3;
    kv.kvHeads = 2;
    kv.headDimK = kv.headDimV = 32;
    kv.blockSize = 16;
    kv.numBlocks = 5;
    kv.format = *kvFormatByName("k8v4");
    kv.format.skipLayers = 1; // with parts of 16 bits beside quantized ones
    kv.tailSlots = 3;
    kv.windowLayers = {true, false, true};
    kv.window = 20;
    kv.windowBlocks = 4;
    return kv;
}

std::vector<std::byte> pattern(KvPart part, std::int32_t index, std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(31 * static_cast<int>(part) + 7 * index + static_cast<int>(i % 251));
    return bytes;
}

} // namespace

class TestKernelParts : public QObject {
    Q_OBJECT
private slots:
    void everyPartKeepsItsOwnBytes() {
        const KvLayout kv = layout();
        auto backend = std::move(*makeCpuBackend({}).value);
        QVERIFY(backend->movesKv());
        const auto made = backend->createKvCache(kv);
        QVERIFY2(made, made.error.message.c_str());
        std::size_t sum = 0;
        for (const KvPart part : kParts) {
            QVERIFY(kv.partCount(part) > 0 && kv.partBytes(part) > 0);
            sum += static_cast<std::size_t>(kv.partCount(part)) * kv.partBytes(part);
            for (std::int32_t i = 0; i < kv.partCount(part); ++i)
                backend->writeKv(part, i, 0, pattern(part, i, kv.partBytes(part)));
        }
        QCOMPARE(sum, kv.poolBytes());
        for (const KvPart part : kParts)
            for (std::int32_t i = 0; i < kv.partCount(part); ++i) {
                std::vector<std::byte> read(kv.partBytes(part));
                backend->readKv(part, i, 0, read);
                QVERIFY(read == pattern(part, i, read.size()));
            }
    }

    void aPartCanBeMovedInPieces() {
        const KvLayout kv = layout();
        auto backend = std::move(*makeCpuBackend({}).value);
        QVERIFY(backend->createKvCache(kv));
        const auto whole = pattern(KvPart::Tail, 2, kv.partBytes(KvPart::Tail));
        const std::size_t piece = whole.size() / 3 + 1; // the last one is shorter
        for (std::size_t at = 0; at < whole.size(); at += piece)
            backend->writeKv(KvPart::Tail, 2, at, std::span(whole).subspan(at, std::min(piece, whole.size() - at)));
        std::vector<std::byte> read(whole.size());
        for (std::size_t at = 0; at < whole.size(); at += piece)
            backend->readKv(KvPart::Tail, 2, at, std::span(read).subspan(at, std::min(piece, whole.size() - at)));
        QVERIFY(read == whole);
    }

    void whatIsNotThereIsNotTouched() {
        const KvLayout kv = layout();
        auto backend = std::move(*makeCpuBackend({}).value);
        QVERIFY(backend->createKvCache(kv));
        for (const KvPart part : kParts) {
            std::vector<std::byte> bytes(kv.partBytes(part) + 8, std::byte(1)), read(bytes.size(), std::byte(9));
            for (const std::int32_t outside : {-1, kv.partCount(part)})
                backend->writeKv(part, outside, 0, bytes);
            backend->writeKv(part, 0, kv.partBytes(part), bytes);
            backend->readKv(part, kv.partCount(part) - 1, 0, read);
            QVERIFY(read[0] == std::byte(0) && read[kv.partBytes(part) - 1] == std::byte(0));
            QVERIFY(read.back() == std::byte(9)); // behind the part
        }
    }
};

QTEST_APPLESS_MAIN(TestKernelParts)
#include "test_kernel_parts.moc"
