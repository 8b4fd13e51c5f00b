// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>

#include "ui/models/palette.h"
#include "ui/models/sequence_model.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

api::SequenceRow row(int request, int owner, api::SequenceState state) {
    api::SequenceRow r;
    r.request = RequestId(request);
    r.owner = OwnerId(owner);
    r.state = state;
    r.tokens = 2867;
    r.promptTokens = 2550;
    r.computedTokens = 2550;
    r.blocks = 180;
    r.sharedBlocks = 40;
    r.cachedPrefix = 2480;
    return r;
}

} // namespace

class TestSequences : public QObject {
    Q_OBJECT
    OwnerNumbers m_numbers;
    SequenceModel make() {
        return SequenceModel([](OwnerId o) { return QStringLiteral("Chat %1").arg(o.value()); },
                             [this](OwnerId o) { return m_numbers.numberOf(o); });
    }
    static QString cell(const SequenceModel& m, int row, int column) { return m.index(row, column).data().toString(); }

private slots:
    void rows() {
        SequenceModel model = make();
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        auto writing = row(1, 7, api::SequenceState::Writing);
        writing.ttftMs = 102;
        writing.itlMs = 21.3;
        model.setRows({writing});
        QCOMPARE(cell(model, 0, SequenceModel::Conversation), QStringLiteral("Chat 7"));
        QCOMPARE(cell(model, 0, SequenceModel::State), QStringLiteral("Writing"));
        QCOMPARE(cell(model, 0, SequenceModel::Tokens), QStringLiteral("2,867"));
        QCOMPARE(cell(model, 0, SequenceModel::FirstToken), QStringLiteral("0.10\u202fs"));
        QCOMPARE(cell(model, 0, SequenceModel::PerToken), QStringLiteral("21\u202fms"));
        QCOMPARE(model.index(0, 0).data(SequenceModel::OwnerNumberRole).toInt(), 1);

        auto reading = row(2, 8, api::SequenceState::Reading);
        reading.computedTokens = 2480 + 35; // half of the 70 that are not cached
        model.setRows({writing, reading});
        QCOMPARE(cell(model, 1, SequenceModel::State), QStringLiteral("Reading 50\u202f%"));
        QCOMPARE(model.index(1, 1).data(SequenceModel::ProgressRole).toDouble(), 0.5);
        QCOMPARE(cell(model, 1, SequenceModel::FirstToken), QStringLiteral("\u2013")); // not 0
        QVERIFY(!model.index(0, 1).data(SequenceModel::ProgressRole).isValid());
        QCOMPARE(model.running(), 2);

        auto waiting = row(3, 9, api::SequenceState::Waiting);
        waiting.neededBlocks = 12;
        waiting.availableBlocks = 9;
        model.setRows({writing, reading, waiting});
        QCOMPARE(model.index(2, 1).data(SequenceModel::WaitingRole).toString(),
                 QStringLiteral("Waiting: needs 12 blocks, 9 are available"));
        QCOMPARE(cell(model, 2, SequenceModel::Tokens), QString()); // its columns are the reason's
        waiting.runningLimit = 4;
        QCOMPARE(waitingReason(waiting), QStringLiteral("all 4 places are taken"));
        QCOMPARE(model.waiting(), 1);

        // The source lists them in another order and one has ended: rows stay where they are.
        model.setRows({waiting, writing});
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(cell(model, 0, SequenceModel::Conversation), QStringLiteral("Chat 7"));
        QCOMPARE(cell(model, 1, SequenceModel::Conversation), QStringLiteral("Chat 9"));
        model.setRows({});
        QCOMPARE(model.rowCount(), 0);
    }
    void idleChatsStandBehind() {
        bool known = true;
        const auto titleOf = [&](OwnerId o) {
            return o == OwnerId(11) || (o == OwnerId(7) && !known) ? QString()
                                                                   : QStringLiteral("Chat %1").arg(o.value());
        };
        SequenceModel model(titleOf, [this](OwnerId o) { return m_numbers.numberOf(o); });
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        auto idle = row(-1, 7, api::SequenceState::Idle);
        idle.cachedBlocks = 45;
        const auto deleted = row(-1, 11, api::SequenceState::Idle);
        model.setRows({idle, deleted});
        QCOMPARE(model.rowCount(), 1); // a chat without a title is one that was deleted
        QCOMPARE(cell(model, 0, SequenceModel::State), QStringLiteral("Idle"));
        QCOMPARE(cell(model, 0, SequenceModel::Blocks), QStringLiteral("45"));
        QCOMPARE(cell(model, 0, SequenceModel::Shared), QStringLiteral("\u2013"));
        QCOMPARE(model.index(0, 1).data(SequenceModel::StillCachedRole).toDouble(), 0.25);
        QVERIFY(model.index(0, 1).data(Qt::ToolTipRole).toString().contains(QStringLiteral("45 of 180")));
        QVERIFY(!model.index(0, 1).data(SequenceModel::ProgressRole).isValid());

        const auto writing = row(2, 8, api::SequenceState::Writing);
        model.setRows({writing, idle});
        QCOMPARE(cell(model, 0, SequenceModel::Conversation), QStringLiteral("Chat 8"));
        QCOMPARE(cell(model, 1, SequenceModel::Conversation), QStringLiteral("Chat 7"));
        QCOMPARE(model.running(), 1);
        QCOMPARE(model.idle(), 1);
        QCOMPARE(model.waiting(), 0);

        idle.cachedBlocks = 0; // evicted: its bar empties
        const QSignalSpy spy(&model, &QAbstractItemModel::dataChanged);
        model.setRows({writing, idle});
        QCOMPARE(spy.size(), 2);
        QCOMPARE(spy[0][0].toModelIndex().column(), int(SequenceModel::State));
        QCOMPARE(spy[1][0].toModelIndex().column(), int(SequenceModel::Blocks));
        QVERIFY(model.index(1, 1).data(Qt::ToolTipRole).toString().contains(QStringLiteral("evicted")));

        known = false; // the chat is deleted while its row is shown
        model.setRows({writing, idle});
        QCOMPARE(model.rowCount(), 1);
        QCOMPARE(model.idle(), 0);
    }
    void onlyChangedCellsAreSignalled() {
        SequenceModel model = make();
        auto r = row(1, 7, api::SequenceState::Writing);
        model.setRows({r});
        const QSignalSpy spy(&model, &QAbstractItemModel::dataChanged);
        model.setRows({r});
        QCOMPARE(spy.size(), 0);
        r.tokens += 1;
        model.setRows({r});
        QCOMPARE(spy.size(), 1);
        QCOMPARE(spy[0][0].toModelIndex().column(), int(SequenceModel::Tokens));
        QCOMPARE(spy[0][1].toModelIndex().column(), int(SequenceModel::Tokens));
        r.tokens += 1;
        r.blocks += 1;
        r.sharedBlocks += 1;
        model.setRows({r});
        QCOMPARE(spy.size(), 2);
        QCOMPARE(spy[1][1].toModelIndex().column(), int(SequenceModel::Shared));
    }
};

QTEST_APPLESS_MAIN(TestSequences)
#include "test_ui-models_sequences.moc"
