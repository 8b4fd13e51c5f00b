// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <algorithm>
#include <random>

#include "engine/sched/growth_outlook.h"

using namespace kvscope::sched;

namespace {

using Member = GrowthOutlook::Member;

std::int64_t mostOf(const std::vector<Member>& members, std::int32_t blockSize) {
    GrowthOutlook outlook(blockSize);
    for (const Member& member : members)
        outlook.add(member);
    return outlook.most();
}

/// The same step by step: each member takes a block when its next token needs one, and ends after its last token.
std::int64_t simulated(const std::vector<Member>& members, std::int64_t blockSize) {
    std::int64_t most = 0, longest = 0;
    for (const Member& member : members)
        longest = std::max(longest, member.delay + member.steps);
    for (std::int64_t step = 1; step <= longest; ++step) {
        std::int64_t needed = 0;
        for (const Member& member : members) {
            if (step > member.delay + member.steps) {
                needed -= member.ownBlocks;
                continue;
            }
            std::int64_t tokens = member.tokens, blocks = member.blocks;
            for (std::int64_t s = member.delay + 2; s <= step; ++s)
                ++tokens; // drawn in the step before
            while (blocks * blockSize < tokens)
                ++blocks;
            needed += blocks - member.blocks;
        }
        most = std::max(most, needed);
    }
    return most;
}

} // namespace

class TestGrowthOutlook : public QObject {
    Q_OBJECT
private slots:
    void oneAloneNeedsWhatItGrows() {
        QCOMPARE(mostOf({}, 8), std::int64_t(0));
        QCOMPARE(mostOf({{8, 1, 0, 1, 1}}, 8), std::int64_t(0)); // the last token drawn needs no slot
        QCOMPARE(mostOf({{8, 2, 0, 1, 1}}, 8), std::int64_t(1));
        QCOMPARE(mostOf({{8, 17, 0, 1, 1}}, 8), std::int64_t(2));
    }

    void whoEndsMakesRoomForTheOthers() {
        // The first ends after 9 steps with 3 blocks; the other grows from 1 to 5 in 33 steps.
        const Member first{16, 9, 0, 2, 2}, other{8, 33, 0, 1, 1};
        QCOMPARE(mostOf({first, other}, 8), std::int64_t(2)); // one each before the end; then 4 - 2
        QCOMPARE(mostOf({first}, 8), std::int64_t(1));
        QCOMPARE(mostOf({other}, 8), std::int64_t(4));
    }

    void sharedBlocksDoNotComeBack() {
        const Member first{16, 9, 0, 2, 0}, other{8, 33, 0, 1, 1};
        QCOMPARE(mostOf({first, other}, 8), std::int64_t(4));
    }

    void whoHasToReadDrawsLater() {
        QCOMPARE(mostOf({{8, 9, 0, 1, 1}, {8, 9, 0, 1, 1}}, 8), std::int64_t(2));
        QCOMPARE(mostOf({{8, 9, 0, 1, 1}, {8, 9, 20, 1, 1}}, 8), std::int64_t(1)); // after the first has ended
    }

    void itIsWhatASimulationFinds() {
        std::mt19937 random(1);
        const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
        std::int64_t largest = 0;
        for (int run = 0; run < 300; ++run) {
            std::vector<Member> members(static_cast<std::size_t>(1 + below(8)));
            for (Member& member : members) {
                member.tokens = 1 + below(60);
                member.steps = 1 + below(60);
                member.delay = below(3) == 0 ? below(10) : 0;
                member.blocks = (member.tokens + 7) / 8;
                member.ownBlocks = member.blocks - below(static_cast<int>(member.blocks + 1));
            }
            const std::int64_t found = mostOf(members, 8);
            QCOMPARE(found, simulated(members, 8));
            largest = std::max(largest, found);
        }
        QVERIFY(largest > 10);
    }
};

QTEST_APPLESS_MAIN(TestGrowthOutlook)
#include "test_growth_outlook.moc"
