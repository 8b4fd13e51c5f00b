// SPDX-License-Identifier: GPL-3.0-or-later
//
// Trial U25: somebody else holds the database for longer than ten seconds, at the start of one window and in the middle
// of the work of another. Both say so in words, go on, and save everything once it is free.
#include <QElapsedTimer>
#include <SQLiteCpp/SQLiteCpp.h>

#include "tests/e2e/desktop/desktop_harness.h"
#include "ui/chat/message_box.h"

using namespace kvscope;
using test::kAnswerMs;
using test::Program;

namespace {

constexpr int kHeldMs = 11'000; // a lock is told after ten seconds

/// Another program with the database in its hands.
class Holder {
public:
    explicit Holder(const std::string& path) : m_database(path, SQLite::OPEN_READWRITE, 5000) {
        m_database.exec("BEGIN EXCLUSIVE");
    }
    void release() { m_database.exec("COMMIT"); }

private:
    SQLite::Database m_database;
};

const ui::MessageBox* notice(const Program& program) {
    for (const ui::MessageBox* box : program.window().findChildren<ui::MessageBox*>())
        if (box->isVisible() && box->sentence().contains(QStringLiteral("holds the database")))
            return box;
    return nullptr;
}

std::string integrity(const std::string& path) {
    SQLite::Database database(path, SQLite::OPEN_READONLY, 5000);
    return database.execAndGet("PRAGMA integrity_check").getString();
}

} // namespace

class TestDesktopLocked final : public QObject {
    Q_OBJECT

private slots:
    void saidInWordsAndTriedAgain() {
        test::TempDir dir;
        const std::string tiny = test::tinyModel(dir);
        const std::string early = dir.file("early");
        { // a chat from before
            Program before(tiny, 256, early);
            before.settings(0, 8);
            before.ask(QStringLiteral("before"));
        }
        Program atWork(tiny);
        atWork.settings(0, 200);
        atWork.begin(QStringLiteral("while it is free"));
        QTRY_VERIFY_WITH_TIMEOUT(atWork.chat().messages()->at(1).tokens.size() > 2, kAnswerMs);

        Holder atStart(early + "/kvscope.db"), inTheMiddle(atWork.databasePath());
        QElapsedTimer held;
        held.start();
        Program starting(tiny, 256, early); // its window is there, and its model
        QVERIFY(starting.window().isVisible());
        // The answer goes on to its end, and a further message can be written.
        const ui::ChatMessage& answer = atWork.awaitEnd();
        QCOMPARE(int(answer.tokens.size()), 200);
        QVERIFY(!notice(atWork));
        ui::ComposerEdit* edit = atWork.window().chatPanel()->composer()->edit();
        edit->setPlainText(QStringLiteral("while it is held"));
        QTest::keyClick(edit, Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(notice(atWork) && notice(starting), kHeldMs + kAnswerMs);
        QVERIFY(held.elapsed() >= 9'000);
        for (const Program* program : {&atWork, &starting})
            QVERIFY(notice(*program)->sentence().contains(QStringLiteral("close it")));
        while (held.elapsed() < kHeldMs)
            QTest::qWait(100);
        atStart.release();
        inTheMiddle.release();
        QTRY_VERIFY_WITH_TIMEOUT(!notice(atWork) && !notice(starting), kAnswerMs);

        QTRY_COMPARE_WITH_TIMEOUT(atWork.chat().messages()->size(), 4, kAnswerMs);
        QTRY_VERIFY_WITH_TIMEOUT(!atWork.chat().answering(), kAnswerMs);
        const std::vector<store::Message> stored = atWork.stored();
        QCOMPARE(stored.size(), std::size_t(4));
        QCOMPARE(stored[1].tokens->ids.size(), std::size_t(200));
        QCOMPARE(stored[2].text, std::string("while it is held"));
        for (const store::Message& message : stored)
            QCOMPARE(message.status, store::MessageStatus::Complete);
        QCOMPARE(integrity(atWork.databasePath()), std::string("ok"));

        QTRY_COMPARE_WITH_TIMEOUT(starting.chat().messages()->size(), 2, kAnswerMs); // the chat from before
        starting.settings(0, 8);
        starting.ask(QStringLiteral("after"));
        QCOMPARE(starting.stored().size(), std::size_t(4));
        QCOMPARE(integrity(starting.databasePath()), std::string("ok"));
    }
};

QTEST_MAIN(TestDesktopLocked)
#include "test_desktop_locked.moc"
