// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <cstring>

#include "engine/api/session_player.h"
#include "tests/support/trace.h"

using namespace kvscope;
using namespace kvscope::api;
using metrics::BlockMapSnapshot;
using metrics::StepSample;

namespace {

constexpr Nanos kSecond = 1'000'000'000;

/// What a window would show at a position.
struct Shown {
    BlockMapSnapshot map;
    std::vector<SequenceRow> rows;
    StepSample sample;
    int samples = 0;

    void drain(SessionPlayer& player) {
        StepSample next;
        while (player.nextSample(next)) {
            sample = next;
            ++samples;
        }
        if (const auto* newest = player.takeBlockMap())
            map = *newest;
        if (const auto* newest = player.takeSequences())
            rows = *newest;
    }
};

bool sameMap(const BlockMapSnapshot& a, const BlockMapSnapshot& b) {
    return a.epoch == b.epoch && a.owners == b.owners && a.cells.size() == b.cells.size() &&
           std::memcmp(a.cells.data(), b.cells.data(), a.cells.size() * sizeof(metrics::BlockCell)) == 0;
}

bool sameRows(const std::vector<SequenceRow>& a, const std::vector<SequenceRow>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SequenceRow& x, const SequenceRow& y) {
        return x.request == y.request && x.owner == y.owner && x.state == y.state && x.tokens == y.tokens &&
               x.blocks == y.blocks && x.ttftMs == y.ttftMs;
    });
}

} // namespace

class TestSessionPlayer : public QObject {
    Q_OBJECT
private slots:
    void traceShowsEveryStateAndItsStatesSumToThePool() {
        const metrics::SessionLog log = test::makeTrace();
        std::array<bool, kv::kBlockStateCount> seen{};
        int samples = 0;
        for (const auto& record : log.records) {
            const auto* sample = std::get_if<StepSample>(&record);
            if (!sample)
                continue;
            ++samples;
            std::uint32_t sum = 0;
            for (std::size_t i = 0; i < seen.size(); ++i) {
                sum += sample->blocksByState[i];
                seen[i] |= sample->blocksByState[i] > 0;
            }
            QCOMPARE(sum, std::uint32_t(384));
        }
        QCOMPARE(samples, 1500);
        for (std::size_t i = 0; i < seen.size(); ++i)
            QVERIFY2(seen[i], kv::blockStateName(static_cast<kv::BlockState>(i)));
    }

    void mapAgreesWithTheSampleOfItsStep() {
        ManualClock clock;
        SessionPlayer player(test::makeTrace(), clock);
        Shown shown;
        for (Nanos t = 20'000'000; t <= player.duration(); t += 60'000'000) { // the steps that record a map
            player.seek(t);
            shown.drain(player);
            std::array<std::uint32_t, kv::kBlockStateCount> counted{};
            for (const metrics::BlockCell& cell : shown.map.cells)
                ++counted[static_cast<std::size_t>(cell.state)];
            QCOMPARE(shown.map.epoch, shown.sample.step);
            QVERIFY(counted == shown.sample.blocksByState);
        }
    }

    void jumpEqualsSequentialPlayback() {
        ManualClock clock;
        SessionPlayer sequential(test::makeTrace(), clock);
        Shown step;
        std::uint32_t random = 7;
        for (int i = 0; i < 60; ++i) {
            const Nanos target = sequential.position() + kSecond / 3;
            if (target > sequential.duration())
                break;
            sequential.seek(target);
            step.drain(sequential);

            SessionPlayer jumping(test::makeTrace(), clock);
            Shown jump;
            random = random * 1664525u + 1013904223u;
            jumping.seek(static_cast<Nanos>(random % 30'000) * 1'000'000); // somewhere else first
            jump.drain(jumping);
            const auto generation = jumping.generation();
            const bool back = target < jumping.position();
            jumping.seek(target);
            QCOMPARE(jumping.generation(), generation + (back ? 1 : 0));
            if (back)
                jump = Shown(); // what a window does when the generation moves
            jump.drain(jumping);
            QVERIFY(sameMap(step.map, jump.map));
            QVERIFY(sameRows(step.rows, jump.rows));
            QCOMPARE(step.sample.step, jump.sample.step);
            QCOMPARE(step.samples, jump.samples);
        }
    }

    void playsByTheClockAtAnySpeedAndStopsAtTheEnd() {
        ManualClock clock;
        SessionPlayer player(test::makeTrace(), clock);
        QCOMPARE(player.duration(), 30 * kSecond);
        StepSample sample;
        clock.advance(5 * kSecond);
        QCOMPARE(player.position(), Nanos(0)); // paused
        QVERIFY(!player.nextSample(sample));
        player.play();
        clock.advance(kSecond);
        QCOMPARE(player.position(), kSecond);
        player.setSpeed(4);
        clock.advance(kSecond);
        QCOMPARE(player.position(), 5 * kSecond);
        player.pause();
        clock.advance(kSecond);
        QCOMPARE(player.position(), 5 * kSecond);
        int count = 0;
        while (player.nextSample(sample))
            ++count;
        QCOMPARE(count, 250);
        player.play();
        clock.advance(1000 * kSecond);
        QCOMPARE(player.position(), player.duration());
        while (player.nextSample(sample))
            ++count;
        QCOMPARE(count, 1500);
    }

    void reportsOnlyWhatTheLogHolds() {
        ManualClock clock;
        metrics::SessionLog log = test::makeTrace();
        std::erase_if(log.records, [](const metrics::LogRecord& r) {
            return std::holds_alternative<metrics::BlockRecord>(r) ||
                   std::holds_alternative<metrics::SequencesRecord>(r);
        });
        SessionPlayer player(std::move(log), clock);
        QVERIFY(!player.capabilities().blockMap);
        QVERIFY(!player.capabilities().sequences);
        player.seek(player.duration());
        QVERIFY(!player.takeBlockMap());
        QVERIFY(!player.takeSequences());
        SessionPlayer whole(test::makeTrace(), clock);
        QVERIFY(whole.capabilities().blockMap);
        QVERIFY(whole.capabilities().sequences);
    }

    void aMapThatBeginsWithAChangeIsNotShownBeforeItsKeyFrame() {
        ManualClock clock;
        metrics::SessionLog log = test::makeTrace();
        const auto first = std::find_if(log.records.begin(), log.records.end(), [](const metrics::LogRecord& r) {
            return std::holds_alternative<metrics::BlockRecord>(r);
        });
        log.records.erase(first); // the ring has lost the key frame
        SessionPlayer player(std::move(log), clock);
        player.seek(9 * kSecond);
        QVERIFY(!player.takeBlockMap());
        player.seek(11 * kSecond);
        const auto* map = player.takeBlockMap();
        QVERIFY(map);
        QCOMPARE(map->cells.size(), std::size_t(384));
    }
};

QTEST_APPLESS_MAIN(TestSessionPlayer)
#include "test_session_player.moc"
