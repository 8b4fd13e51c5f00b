// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where a chat that has outgrown its window is cut, against an oracle that plays all its requests one after another.
#include <QTest>

#include <rapidcheck.h>

#include "engine/api/dialog_cut.h"
#include "tests/support/holds.h"

using namespace kvscope::api;

namespace {

using Side = CutMessage::Side;

struct Dialog {
    std::vector<CutMessage> messages;
    std::int64_t frame = 0;
    WindowRoom room;
};

/// Tokens of messages [0, end) without the first `turns` turns.
std::int64_t sizeOf(const Dialog& d, std::size_t end, std::size_t turns) {
    std::int64_t sum = d.frame;
    std::size_t begun = 0;
    for (std::size_t i = 0; i < end; ++i) {
        begun += d.messages[i].side == Side::User ? 1 : 0;
        const std::size_t turn = begun == 0 ? 0 : begun - 1;
        if (d.messages[i].side == Side::System || turn >= turns)
            sum += d.messages[i].tokens;
    }
    return sum;
}

std::size_t turnsOf(const Dialog& d, std::size_t end) {
    std::size_t users = 0;
    bool said = false;
    for (std::size_t i = 0; i < end; ++i) {
        users += d.messages[i].side == Side::User ? 1 : 0;
        said = said || d.messages[i].side != Side::System;
    }
    return std::max<std::size_t>(users, said ? 1 : 0);
}

/// The cut of each request of the dialog, the last one at the end.
std::vector<std::size_t> played(const Dialog& d) {
    std::vector<std::size_t> cuts;
    std::size_t cut = 0;
    for (std::size_t end = 1; end <= d.messages.size(); ++end) {
        const Side side = d.messages[end - 1].side;
        if (end < d.messages.size() && (side == Side::Answer || side == Side::System))
            continue;
        const std::size_t turns = turnsOf(d, end);
        if (sizeOf(d, end, cut) + d.room.answer > d.room.limit && cut + 1 < turns) {
            ++cut;
            while (cut + 1 < turns && sizeOf(d, end, cut) + d.room.answer > d.room.limit - d.room.limit / 4)
                ++cut;
        }
        cuts.push_back(cut);
    }
    return cuts;
}

Dialog anyDialog() {
    Dialog d;
    d.frame = *rc::gen::inRange<std::int64_t>(0, 20);
    d.room = windowRoom(*rc::gen::inRange<std::int64_t>(8, 400), *rc::gen::inRange<std::int64_t>(1, 200));
    const auto count = *rc::gen::inRange<std::size_t>(1, 40);
    for (std::size_t i = 0; i < count; ++i) {
        const int kind = *rc::gen::inRange(0, 12);
        const Side side = kind < 5 ? Side::User : kind < 10 ? Side::Answer : kind < 11 ? Side::Tool : Side::System;
        d.messages.push_back({side, *rc::gen::inRange<std::int64_t>(0, 60)});
    }
    return d;
}

} // namespace

class TestDialogCut : public QObject {
    Q_OBJECT
private slots:
    void aCutIsWhatItsRequestsOneAfterAnotherCameTo() {
        std::size_t cuts = 0, moves = 0;
        const bool ok = kvscope::test::holds("a cut is what its requests came to", kvscope::test::kHoldsRuns, [&] {
            const Dialog d = anyDialog();
            const std::vector<std::size_t> expected = played(d);
            const DialogCut cut = chooseCut(d.messages, d.frame, d.room);
            RC_ASSERT(cut.turns == expected.back());
            RC_ASSERT(cut.moved == (expected.back() > (expected.size() > 1 ? expected[expected.size() - 2] : 0)));
            cuts += cut.turns > 0 ? 1 : 0;
            moves += cut.moved ? 1 : 0;
        });
        QVERIFY(ok);
        QVERIFY2(cuts > 20 && moves > 5, "hardly anything was cut");
    }

    void theNewestTurnStaysAndAfterACutThereIsRoom() {
        QVERIFY(kvscope::test::holds("the newest turn stays, and there is room", kvscope::test::kHoldsRuns, [] {
            const Dialog d = anyDialog();
            const DialogCut cut = chooseCut(d.messages, d.frame, d.room);
            const std::size_t turns = turnsOf(d, d.messages.size());
            RC_ASSERT(cut.turns < std::max<std::size_t>(turns, 1));
            const std::int64_t size = sizeOf(d, d.messages.size(), cut.turns) + d.room.answer;
            if (cut.turns + 1 < turns)
                RC_ASSERT(size <= (cut.moved ? d.room.limit - d.room.limit / 4 : d.room.limit));
        }));
    }

    /// Turns of 50 tokens in a window of 400: of ten requests in a row at least every second one finds what the one
    /// before it computed.
    void aCutStaysUntilTheWindowIsFullAgain() {
        Dialog d{{{Side::System, 30}}, 4, windowRoom(400, 50)};
        int moves = 0;
        for (int turn = 0; turn < 40; ++turn) {
            d.messages.push_back({Side::User, 20});
            const DialogCut cut = chooseCut(d.messages, d.frame, d.room);
            moves += cut.moved ? 1 : 0;
            QVERIFY(sizeOf(d, d.messages.size(), cut.turns) + 50 <= 400);
            d.messages.push_back({Side::Answer, 30});
        }
        QVERIFY2(moves > 5 && moves <= 40 / 2, qPrintable(QString::number(moves)));
    }

    void theAnswersRoomIsAtMostAQuarter() {
        QCOMPARE(windowRoom(1000, 128).answer, std::int64_t(128));
        QCOMPARE(windowRoom(1000, 2048).answer, std::int64_t(250));
        QCOMPARE(windowRoom(2, 100).answer, std::int64_t(1));
    }
};

QTEST_APPLESS_MAIN(TestDialogCut)
#include "test_dialog_cut.moc"
