// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <ctime>
#include <numeric>
#include <thread>

#include "kernels/cpu/kernel_team.h"
#include "kernels/cpu/memory_region.h"

using namespace kvscope::kernels;

namespace {

double processCpuSeconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

} // namespace

class TestKernelTeam : public QObject {
    Q_OBJECT
private slots:
    void barriersOrderPlainMemory() {
        // Each round every thread writes its own cell and then reads all cells of the others: without a barrier that
        // orders memory some value is stale (and ThreadSanitizer reports a race).
        for (int size : {1, 2, 3, 5}) {
            KernelTeam team(size);
            std::vector<int> cells(static_cast<std::size_t>(size) * 2);
            std::vector<int> wrong(static_cast<std::size_t>(size));
            constexpr int kRounds = 2000;
            team.run([&](int thread) {
                const auto n = static_cast<std::size_t>(size), me = static_cast<std::size_t>(thread);
                for (int round = 0; round < kRounds; ++round) {
                    int* now = cells.data() + static_cast<std::size_t>(round % 2) * n;
                    now[me] = round;
                    team.barrier();
                    for (std::size_t i = 0; i < n; ++i)
                        wrong[me] += now[i] != round;
                }
            });
            QCOMPARE(std::accumulate(wrong.begin(), wrong.end(), 0), 0);
        }
    }

    void everyChunkExactlyOnce() {
        for (int size : {1, 2, 4}) {
            KernelTeam team(size);
            for (std::int64_t chunks : {0, 1, 2, 3, 7, 100}) {
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(chunks));
                constexpr int kRounds = 50;
                team.run([&](int thread) {
                    for (int round = 0; round < kRounds; ++round) {
                        team.forChunks(thread, chunks, [&](std::int64_t i) { ++seen[static_cast<std::size_t>(i)]; });
                        team.barrier();
                    }
                });
                for (const auto& count : seen)
                    QCOMPARE(count.load(), kRounds);
            }
        }
    }

    void manyShortRuns() {
        KernelTeam team(3);
        std::atomic<int> total{0};
        for (int i = 0; i < 3000; ++i) {
            if (i % 500 == 0) // long enough for the workers to park
                std::this_thread::sleep_for(std::chrono::milliseconds(3));
            team.run([&](int thread) { total += thread + 1; });
        }
        QCOMPARE(total.load(), 3000 * 6);
    }

    void anIdleTeamUsesNoProcessorTime() {
        KernelTeam team(4);
        team.run([](int) {});
        std::this_thread::sleep_for(std::chrono::milliseconds(50)); // spinning and yielding end
        const double before = processCpuSeconds();
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        const double used = processCpuSeconds() - before;
        QVERIFY2(used < 0.02, qPrintable(QString::number(used)));
    }

    void arenaIsAlignedZeroedAndCounted() {
        Arena arena;
        std::size_t bytes = 0;
        for (std::size_t size : {1, 64, 65, 40 << 20, 3}) {
            std::byte* p = arena.allocate(size);
            QVERIFY(p);
            QCOMPARE(reinterpret_cast<std::uintptr_t>(p) % 64, std::uintptr_t(0));
            QCOMPARE(p[0], std::byte(0));
            QCOMPARE(p[size - 1], std::byte(0));
            p[0] = p[size - 1] = std::byte(1);
            bytes += (size + 63) / 64 * 64;
        }
        QCOMPARE(arena.usedBytes(), bytes);
        QVERIFY(!arena.allocate(std::size_t(1) << 62)); // refused, not a crash
    }
};

QTEST_APPLESS_MAIN(TestKernelTeam)
#include "test_kernel_team.moc"
