// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "ui/models/curve_window.h"
#include "ui/models/history.h"
#include "ui/models/memory_parts.h"
#include "ui/models/minmax.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

constexpr Nanos kMs = 1'000'000;
constexpr std::uint64_t kMiB = 1024 * 1024;

CurveSample sampleAt(Nanos time, float hitRate = -1) {
    CurveSample s;
    s.time = time;
    s.presence = metrics::kHasBlocks | metrics::kHasPrefix | metrics::kHasTokens | metrics::kHasEngineMemory;
    s.hitRate = hitRate;
    return s;
}

} // namespace

class TestCurves : public QObject {
    Q_OBJECT
private slots:
    void historyForgetsTheOldest() {
        History<CurveSample> history(8);
        QVERIFY(history.empty());
        QCOMPARE(history.firstAt(0), history.end());
        for (int i = 0; i < 20; ++i)
            history.push(sampleAt(i * 10));
        QCOMPARE(history.size(), std::size_t(8));
        QCOMPARE(history.begin(), std::uint64_t(12));
        QCOMPARE(history.at(12).time, Nanos(120));
        QCOMPARE(history.back().time, Nanos(190));
        QCOMPARE(history.firstAt(0), std::uint64_t(12));
        QCOMPARE(history.firstAt(151), std::uint64_t(16));
        QCOMPARE(history.firstAt(191), history.end());
        history.clear();
        QVERIFY(history.empty());
        history.push(sampleAt(500));
        QCOMPARE(history.firstAt(0), std::uint64_t(20));
    }

    void sampleKeepsWhatTheCurvesNeed() {
        metrics::StepSample s;
        s.presence = metrics::kHasBlocks | metrics::kHasPrefix;
        s.blockSize = 16;
        s.referencedBlocks = 10;
        s.usedSlots = 120;
        s.recentReusedTokens = 30;
        s.recentPromptTokens = 120;
        const CurveSample c = CurveSample::from(s);
        QCOMPARE(c.hitRate, 0.25f);
        QCOMPARE(c.fragmentation, 0.25f);
        s.recentPromptTokens = 0;
        s.referencedBlocks = 0;
        QVERIFY(CurveSample::from(s).hitRate < 0); // nothing admitted is a gap, not 0
        QVERIFY(CurveSample::from(s).fragmentation < 0);
    }

    void noSpikeIsLostAndStacksTakeTheLast() {
        // Against a naive sweep over the same samples.
        History<CurveSample> history(4096);
        const History<metrics::MemorySample> none(4);
        std::map<std::int64_t, std::vector<CurveSample>> naive;
        CurveBuckets live(100 * kMs, 64), atOnce(100 * kMs, 64);
        std::uint32_t x = 12345;
        Nanos time = 3 * kMs;
        for (int i = 0; i < 700; ++i) {
            x = x * 1664525u + 1013904223u;
            time += 1 + Nanos(x % 9) * kMs;
            CurveSample s = sampleAt(time, (x >> 8) % 5 == 0 ? -1.f : float((x >> 8) % 1000) / 1000);
            s.blocks[0] = x % 4096;
            s.presence = (x >> 20) % 7 == 0 ? 0u : s.presence;
            history.push(s);
            naive[time / (100 * kMs)].push_back(s);
            if (i % 13 == 0)
                live.consume(history, none); // in pieces, as a live plot does
        }
        live.consume(history, none);
        atOnce.consume(history, none);
        int compared = 0;
        const std::int64_t newest = live.indexOf(time);
        for (const auto& [index, samples] : naive) {
            if (index <= newest - 64) {
                QVERIFY(!live.bucket(index));
                continue;
            }
            for (const CurveBuckets* buckets : {&live, &atOnce}) {
                const CurveBucket* b = buckets->bucket(index);
                QVERIFY(b);
                QCOMPARE(std::size_t(b->samples), samples.size());
                QCOMPARE(b->last.blocks[0], samples.back().blocks[0]);
                MinMax expected;
                for (const CurveSample& s : samples)
                    if ((s.presence & metrics::kHasPrefix) && s.hitRate >= 0)
                        expected.add(s.hitRate);
                QCOMPARE(b->hitRate.empty(), expected.empty());
                if (!expected.empty()) {
                    QCOMPARE(b->hitRate.min, expected.min);
                    QCOMPARE(b->hitRate.max, expected.max);
                    QCOMPARE(b->hitRate.last, expected.last);
                }
            }
            ++compared;
        }
        QVERIFY(compared > 20);
    }

    void aLostSampleCostsNoTotals() {
        const History<metrics::MemorySample> none(4);
        double written[2] = {}, evicted[2] = {};
        for (const int lossy : {0, 1}) {
            History<CurveSample> history(1024);
            CurveBuckets buckets(50 * kMs, 256);
            for (int i = 0; i <= 400; ++i) {
                CurveSample s = sampleAt(i * 10 * kMs);
                s.decodeTokens = std::uint64_t(i) * 2;
                s.evictions = std::uint32_t(i / 3);
                if (!lossy || i % 4 == 0)
                    history.push(s);
            }
            buckets.consume(history, none);
            for (std::int64_t i = 0; i <= buckets.indexOf(4000 * kMs); ++i)
                if (const CurveBucket* b = buckets.bucket(i)) {
                    written[lossy] += b->writtenTokens;
                    evicted[lossy] += b->evictions;
                }
        }
        QCOMPARE(written[0], 800.0);
        QCOMPARE(written[1], written[0]);
        QCOMPARE(evicted[1], evicted[0]);
    }

    void pausesAreNotSlowWriting() {
        // 100 tokens a second for half a second, then nothing: the speed while writing stays 100.
        History<CurveSample> history(1024);
        const History<metrics::MemorySample> none(4);
        CurveBuckets buckets(1000 * kMs, 8);
        std::uint64_t tokens = 0;
        for (int i = 0; i < 100; ++i) {
            CurveSample s = sampleAt(i * 10 * kMs);
            s.decodeTokens = tokens += i > 0 && i <= 50 ? 1 : 0;
            history.push(s);
        }
        buckets.consume(history, none);
        const CurveBucket* b = buckets.bucket(0);
        QVERIFY(b);
        QVERIFY(std::abs(b->writeRate() - 100) < 1e-6);
        QVERIFY(b->readRate() < 0); // nothing was read: a gap, not 0
    }

    void liveViewGrowsWithTheSession() {
        History<CurveSample> history(1 << 14);
        const History<metrics::MemorySample> none(4);
        CurveWindow window(history, none);
        window.setColumns(476);
        const Nanos start = 1000 * kMs;
        std::vector<Nanos> spans;
        for (int i = 0; i <= 6500; ++i) { // 650 s, ten samples a second
            history.push(sampleAt(start + i * 100 * kMs, 0.5f));
            window.refresh(start);
            if (spans.empty() || spans.back() != window.span())
                spans.push_back(window.span());
        }
        const Nanos second = 1000 * kMs;
        QCOMPARE(spans, (std::vector<Nanos>{60 * second, 120 * second, 300 * second, 600 * second}));
        QVERIFY(window.live());
        QVERIFY(window.column(475));
        QVERIFY(window.column(0));
    }

    void piecemealEqualsAtOnce() {
        // What a live view has gathered piece by piece is what one that is opened now reads from the history.
        History<CurveSample> history(1 << 12);
        const History<metrics::MemorySample> none(4);
        CurveWindow live(history, none), fresh(history, none);
        live.setColumns(200);
        fresh.setColumns(200);
        std::uint32_t x = 7;
        Nanos time = 1000 * kMs;
        for (int i = 0; i < 1500; ++i) {
            x = x * 1664525u + 1013904223u;
            time += Nanos(5 + x % 90) * kMs;
            CurveSample s = sampleAt(time, float((x >> 8) % 100) / 100);
            s.decodeTokens = std::uint64_t(i) * 3;
            s.blocks[2] = x % 500;
            history.push(s);
            if (i % 7 == 0)
                live.refresh(1000 * kMs);
        }
        live.refresh(1000 * kMs);
        fresh.refresh(1000 * kMs);
        QCOMPARE(live.end(), fresh.end());
        QCOMPARE(live.span(), fresh.span());
        int seen = 0;
        for (int column = 0; column < 200; ++column) {
            const CurveBucket *a = live.column(column), *b = fresh.column(column);
            QCOMPARE(a != nullptr, b != nullptr);
            if (!a)
                continue;
            ++seen;
            QCOMPARE(a->index, b->index);
            QCOMPARE(a->last.blocks[2], b->last.blocks[2]);
            QCOMPARE(a->hitRate.max, b->hitRate.max);
            const CurveBucket *binA = live.bin(live.binOf(column)), *binB = fresh.bin(fresh.binOf(column));
            QVERIFY(binA && binB);
            QCOMPARE(binA->index, binB->index);
        }
        QVERIFY(seen > 100);
    }

    void pausedViewStaysAndZoomsAroundItsAnchor() {
        History<CurveSample> history(1 << 14);
        const History<metrics::MemorySample> none(4);
        CurveWindow window(history, none);
        window.setColumns(400);
        for (int i = 0; i < 3000; ++i)
            history.push(sampleAt((1 + i) * 100 * kMs));
        window.refresh(0);
        window.pause();
        const Nanos end = window.end();
        for (int i = 3000; i < 3100; ++i)
            history.push(sampleAt((1 + i) * 100 * kMs));
        window.refresh(0);
        QCOMPARE(window.end(), end);
        const Nanos anchored = window.timeOf(100);
        window.zoom(2, 100);
        window.refresh(0);
        QVERIFY(std::abs(double(window.timeOf(100) - anchored)) < 2.0 * double(window.span()) / 400);
        window.pan(50);
        window.refresh(0);
        QVERIFY(window.end() < end);
        window.resume();
        window.refresh(0);
        QVERIFY(window.live() && window.end() > end);
    }

    void memoryPartsSumToTheTotal_data() {
        QTest::addColumn<quint64>("process");
        QTest::addColumn<quint64>("available");
        QTest::newRow("everything touched") << quint64(1500) << quint64(1900);
        QTest::newRow("pool not touched yet") << quint64(150) << quint64(3200);
    }
    void memoryPartsSumToTheTotal() {
        QFETCH(quint64, process);
        QFETCH(quint64, available);
        CurveSample s = sampleAt(0);
        s.weightsBytes = 92 * kMiB;
        s.bytesPerBlock = 360 * 1024;
        s.blocks[std::size_t(kv::BlockState::Empty)] = 978;
        s.blocks[std::size_t(kv::BlockState::Active)] = 1000;
        s.blocks[std::size_t(kv::BlockState::Cached)] = 1500;
        s.activationsBytes = 58 * kMiB;
        metrics::MemorySample host{0, 4096 * kMiB, available * kMiB, process * kMiB};
        const MemoryParts parts = memoryParts(&s, &host);
        QVERIFY(parts.hasEngine && parts.hasHost);
        QCOMPARE(parts.pool(), std::uint64_t(3478) * 360 * 1024);
        QCOMPARE(parts.bytes[MemoryParts::KvInUse], std::uint64_t(1000) * 360 * 1024);
        QVERIFY(std::abs(double(parts.sum()) - double(parts.total)) <= 0.02 * double(parts.total));
    }
    /// Blocks of a window group and tails are of the pool too; the host tier is a part of its own.
    void memoryBesideTheBlocksIsCounted() {
        metrics::StepSample sample;
        sample.presence = metrics::kHasEngineMemory;
        sample.bytesPerBlock = 4096;
        sample.blocksByState[std::size_t(kv::BlockState::Active)] = 10;
        sample.blocksByState[std::size_t(kv::BlockState::Empty)] = 20;
        sample.windowUsedBytes = 5 * kMiB;
        sample.windowCachedBytes = 2 * kMiB;
        sample.windowBytes = 9 * kMiB;
        sample.tailUsedBytes = 1 * kMiB;
        sample.tailBytes = 4 * kMiB;
        sample.hostBytes = 64 * kMiB;
        sample.poolBytes = 30 * 4096 + 13 * kMiB;
        const CurveSample kept = CurveSample::from(sample);
        const MemoryParts parts = memoryParts(&kept, nullptr);
        QCOMPARE(parts.pool(), sample.poolBytes);
        QCOMPARE(parts.bytes[MemoryParts::KvInUse], 10 * 4096 + 6 * kMiB);
        QCOMPARE(parts.bytes[MemoryParts::KvCached], 2 * kMiB);
        QCOMPARE(parts.bytes[MemoryParts::HostTier], 64 * kMiB);
        QCOMPARE(parts.sum(), sample.poolBytes + sample.hostBytes);
    }
    void memoryOfThisComputer() {
        // The real figures, read one after the other as the probe does.
        metrics::MemorySample host;
        std::ifstream info("/proc/meminfo"), rollup("/proc/self/smaps_rollup");
        const auto kib = [](std::istream& in, const char* name) -> std::uint64_t {
            for (std::string line; std::getline(in, line);)
                if (line.rfind(name, 0) == 0)
                    return std::stoull(line.substr(line.find(':') + 1)) * 1024;
            return 0;
        };
        host.totalBytes = kib(info, "MemTotal");
        host.availableBytes = kib(info, "MemAvailable");
        host.processBytes = kib(rollup, "Pss");
        if (host.totalBytes == 0 || host.processBytes == 0)
            QSKIP("this system has no /proc/meminfo or smaps_rollup");
        const MemoryParts parts = memoryParts(nullptr, &host);
        QVERIFY(!parts.hasEngine);
        QVERIFY(std::abs(double(parts.sum()) - double(parts.total)) <= 0.02 * double(parts.total));
    }
    void whatIsNotReportedIsAbsent() {
        QVERIFY(!memoryParts(nullptr, nullptr).hasHost);
        CurveSample s;
        QVERIFY(!memoryParts(&s, nullptr).hasEngine);
    }
};

QTEST_APPLESS_MAIN(TestCurves)
#include "test_ui-models_curves.moc"
