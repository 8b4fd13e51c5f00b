// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a chat keeps: attachments with their message, the message that waits, drafts beside an over-long message,
// deleted messages until they are brought back.
#include <QAbstractButton>
#include <QClipboard>
#include <QGuiApplication>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/fake_chat_source.h"
#include "tests/support/fake_chat_store.h"
#include "ui/chat/attachment_chips.h"
#include "ui/chat/attachment_view.h"
#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/composer.h"
#include "ui/chat/overlong_box.h"

using namespace kvscope;
using namespace kvscope::ui;
using kvscope::test::FakeChatSource;
using kvscope::test::FakeChatStore;

namespace {

const Attachment kLog{QStringLiteral("server.log"), QStringLiteral("one\ntwo ``` three"), 7};
const Attachment kPaste{QString(), QStringLiteral("pasted words"), 2};

/// The chat column over an engine and a database that do only what the test says.
struct Stage {
    QTemporaryDir folder;
    FakeChatSource source;
    FakeChatStore store;
    ManualClock clock;
    qint64 wall = 1'773'327'600'000;
    ChatController chat{source, store, clock, [this] { return wall; }};
    ModelListModel models{folder.path(), [](const std::string&) -> Result<api::ModelProbe> {
                              return fail(ErrorCode::NotFound, "no file here");
                          }};
    ChatPanel panel{&chat, &models, Theme::load(ThemeKind::Dark)};

    Stage() {
        QObject::connect(&panel, &ChatPanel::draftChanged, &panel,
                         [this](qint64 id, const Draft& draft) { store.saveDraft(id, draft.text, draft.attachments); });
        chat.setAutoTitles(false);
        panel.resize(600, 800);
        panel.show();
        chat.start();
        store.settleAll();
        chat.handleEvent(FakeChatSource::loaded());
    }
    Composer& composer() { return *panel.composer(); }
    ChatView& view() { return *panel.view(); }
    const ChatMessage& row(int at) { return chat.messages()->at(at); }
    void sendDraft(const Draft& draft) {
        composer().setDraft(draft);
        emit composer().sendRequested();
        store.settleAll();
    }
    void answer(const std::string& text = "yes", api::FinishReason reason = api::FinishReason::Stop) {
        chat.handleEvent(FakeChatSource::finished(source.submitted.back(), text, {1, 2}, reason));
        store.settleAll();
    }
    /// What the engine read of the user's message `at` of the newest request.
    QString asked(std::size_t at = 0) {
        return QString::fromStdString(std::get<api::DialogPrompt>(source.submitted.back().prompt).messages[at].content);
    }
    /// The engine counts what it was asked last.
    void measured(std::int64_t tokens, std::int64_t limit = 2048) {
        api::MeasuredEvent event;
        event.id = source.measured.back().id;
        event.promptTokens = tokens;
        event.limit = event.window = event.poolTokens = limit;
        chat.handleEvent(event);
        store.settleAll();
    }
    void choose(const QString& word) {
        const auto buttons = composer().overlong()->findChildren<QAbstractButton*>();
        for (QAbstractButton* row : buttons)
            if (row->isCheckable() && row->text().contains(word))
                row->click();
        for (QAbstractButton* button : buttons)
            if (!button->isCheckable() && button->text().contains(word)) // it names the choice
                return button->click();
        QFAIL(qPrintable(QStringLiteral("no choice ") + word));
    }
};

} // namespace

class TestChatKeeping final : public QObject {
    Q_OBJECT

private slots:
    void attachmentsStayWithTheirMessage() {
        Stage s;
        const Draft draft{QStringLiteral("Read this"), {kLog, kPaste}};
        s.sendDraft(draft);
        QCOMPARE(s.row(0).text, QStringLiteral("Read this"));
        QCOMPARE(s.row(0).attachments, draft.attachments);
        QCOMPARE(s.store.turns.back().text, draft.text);
        QCOMPARE(s.store.turns.back().attachments, draft.attachments);
        QCOMPARE(s.asked(), messageWith(draft)); // fenced and named, as ever
        QVERIFY(s.asked().contains(QStringLiteral("server.log:\n````log\n")));
        s.answer();
        QVERIFY(s.chat.regenerate(1)); // and again
        s.store.settleAll();
        QCOMPARE(s.asked(), messageWith(draft));
        s.answer();
        QVERIFY(s.chat.editMessage(0, QStringLiteral("Read it well")));
        s.store.settleAll();
        QCOMPARE(s.row(0).attachments, draft.attachments);
        QCOMPARE(s.store.turns.back().attachments, draft.attachments);
        QCOMPARE(s.asked(), messageWith({QStringLiteral("Read it well"), draft.attachments}));
        s.answer();
        QVERIFY(s.chat.branch(1));
        s.store.settleAll();
        QCOMPARE(s.row(0).attachments, draft.attachments);
        // As after a restart: the dialog is built from what the database has.
        ChatController other{s.source, s.store, s.clock, [] { return qint64(0); }};
        other.start();
        s.store.settleAll();
        other.select(s.chat.current().conversation.id);
        s.store.settleAll();
        QCOMPARE(other.messages()->at(0).attachments, draft.attachments);
        QCOMPARE(QString::fromStdString(other.shownPrompt().messages[0].content), s.asked());
    }

    void onlyAttachmentsAreAMessageToo() {
        Stage s;
        s.sendDraft({QString(), {kLog}});
        QCOMPARE(s.row(0).text, QString());
        QCOMPARE(s.chat.current().conversation.title, kLog.name);
        QCOMPARE(s.asked(), attachmentAsText(kLog));
        s.answer();
        s.view().beginEdit(0); // words are added to it
        s.view().editBox()->field()->setPlainText(QStringLiteral("What is this?"));
        emit s.view().editBox()->field()->accepted();
        s.store.settleAll();
        QCOMPARE(s.asked(), messageWith({QStringLiteral("What is this?"), {kLog}}));
        s.answer();
        s.view().beginEdit(0); // and taken away
        s.view().editBox()->field()->setPlainText(QString());
        emit s.view().editBox()->field()->accepted();
        s.store.settleAll();
        QCOMPARE(s.asked(), attachmentAsText(kLog));
    }

    void aSentMessageShowsAndOpensWhatIsAttached() {
        Stage s;
        s.sendDraft({QStringLiteral("Read this"), {kLog, kPaste}});
        s.answer();
        s.panel.grab(); // laid out
        const QRect chip = s.view().partRect(0, MessageHit{MessagePart::Attachment, 0});
        const QRect second = s.view().partRect(0, MessageHit{MessagePart::Attachment, 1});
        QVERIFY(chip.isValid() && second.isValid() && !chip.intersects(second));
        QVERIFY(s.view().rowRect(0).contains(chip));
        QTest::mouseClick(s.view().viewport(), Qt::LeftButton, {}, chip.center());
        auto* open = s.view().findChild<AttachmentView*>();
        QVERIFY(open && open->isVisible());
        QCOMPARE(open->shownText(), kLog.text);
        QCOMPARE(open->windowTitle(), kLog.name);
        open->copyAll();
        QCOMPARE(QGuiApplication::clipboard()->text(), kLog.text);
        delete open;
        // By keyboard: from part to part, Enter opens.
        s.view().setFocus();
        QTest::keyClick(&s.view(), Qt::Key_Up, Qt::ControlModifier);
        QTest::keyClick(&s.view(), Qt::Key_Up, Qt::ControlModifier);
        for (int i = 0; i < 12 && s.view().focusedPart() != MessageHit{MessagePart::Attachment, 1}; ++i)
            QTest::keyClick(&s.view(), Qt::Key_Right);
        QCOMPARE(s.view().focusedPart().part, MessagePart::Attachment);
        QTest::keyClick(&s.view(), Qt::Key_Return);
        open = s.view().findChild<AttachmentView*>();
        QVERIFY(open);
        QCOMPARE(open->shownText(), kPaste.text);
        delete open;
        QTest::keyClick(&s.view(), Qt::Key_C); // what was sent
        QCOMPARE(QGuiApplication::clipboard()->text(), messageWith({QStringLiteral("Read this"), {kLog, kPaste}}));
    }

    void aLineWithoutEndDoesNotStallTheWindow() {
        const QString line(100'000, QLatin1Char('x'));
        const QString shown = withShortLines(line + QStringLiteral("\nshort"), 2000);
        for (const QString& one : shown.split(QLatin1Char('\n')))
            QVERIFY(one.size() <= 2000);
        QString whole = shown;
        QCOMPARE(whole.remove(QLatin1Char('\n')), line + QStringLiteral("short"));
        QCOMPARE(withShortLines(QStringLiteral("a\U0001F600b"), 2),
                 QStringLiteral("a\U0001F600\nb")); // no half characters
    }

    void theMessageThatWaitsIsStored() {
        Stage s;
        s.composer().setDraft({QStringLiteral("first"), {}});
        emit s.composer().sendRequested(); // a new chat: it has no id yet
        const Draft waits{QStringLiteral("next"), {kLog}};
        s.composer().setDraft(waits);
        emit s.composer().sendRequested();
        s.store.settleAll();
        const ConversationId id = s.chat.current().conversation.id;
        QCOMPARE(s.store.waiting[id].first, waits.text);
        QCOMPARE(s.store.waiting[id].second, waits.attachments);
        QVERIFY(s.composer().draft().isEmpty());
        s.answer(); // it is sent, and no longer waits
        QCOMPARE(s.asked(2), messageWith(waits));
        QVERIFY(s.store.waiting[id].first.isEmpty());
        // Taken back it is the draft, and only that.
        s.composer().setDraft({QStringLiteral("third"), {}});
        emit s.composer().sendRequested();
        s.store.settleAll();
        QCOMPARE(s.store.waiting[id].first, QStringLiteral("third"));
        emit s.composer().queuedEditRequested();
        QCOMPARE(s.store.drafts[id].first, QStringLiteral("third")); // first there ...
        QCOMPARE(s.store.waiting[id].first, QStringLiteral("third"));
        s.store.settleAll();
        QVERIFY(s.store.waiting[id].first.isEmpty()); // ... then forgotten here
        emit s.composer().sendRequested();
        s.store.settleAll();
        emit s.composer().queuedCancelRequested();
        s.store.settleAll();
        QVERIFY(s.store.waiting[id].first.isEmpty());
        QVERIFY(s.chat.queued().isEmpty() && s.composer().draft().isEmpty());
    }

    void anOverLongEditStaysAnEdit() {
        Stage s;
        s.sendDraft({QStringLiteral("short"), {kLog}});
        s.answer();
        s.composer().setDraft({QStringLiteral("begun meanwhile"), {}});
        const QString tooLong = QString(4000, QLatin1Char('x'));
        s.view().beginEdit(0);
        s.view().editBox()->field()->setPlainText(tooLong);
        emit s.view().editBox()->field()->accepted();
        s.measured(3000);
        QVERIFY(s.chat.tooLong());
        QVERIFY(!s.composer().overlong()->isHidden());
        QCOMPARE(s.composer().draft().text, QStringLiteral("begun meanwhile")); // it is not what is asked about
        s.choose(QStringLiteral("Shorten"));
        QVERIFY(s.view().editBox()); // where it was written
        QCOMPARE(s.view().editBox()->text(), tooLong);
        QCOMPARE(s.composer().draft().text, QStringLiteral("begun meanwhile"));
        s.view().editBox()->field()->setPlainText(QStringLiteral("shortened"));
        emit s.view().editBox()->field()->accepted();
        s.store.settleAll();
        QCOMPARE(s.chat.messages()->size(), 2);
        QCOMPARE(s.row(0).text, QStringLiteral("shortened"));
        QCOMPARE(s.row(0).versions, 2); // a version of the message, and no new one
        QCOMPARE(s.row(0).attachments, std::vector<Attachment>{kLog});
    }

    void anEditThatCannotBeSavedOpensAgain() {
        Stage s;
        s.sendDraft({QStringLiteral("question"), {}});
        s.answer();
        s.view().beginEdit(0);
        s.view().editBox()->field()->setPlainText(QStringLiteral("other question"));
        s.store.failNext({ErrorCode::InvalidArgument, "The database refuses this."});
        emit s.view().editBox()->field()->accepted();
        s.store.settleAll();
        QVERIFY(s.view().editBox());
        QCOMPARE(s.view().editBox()->text(), QStringLiteral("other question"));
        QVERIFY(s.composer().draft().isEmpty());
        QCOMPARE(s.row(0).text, QStringLiteral("question"));
    }

    void aNewChatForALongMessageKeepsWhatWasBegunThere() {
        Stage s;
        s.composer().setDraft({QStringLiteral("begun in a new chat"), {kPaste}});
        s.panel.flushDraft();
        // A chat that is long already.
        s.store.conversations[9].id = 9;
        s.store.conversations[9].title = QStringLiteral("long");
        ChatMessage old;
        old.id = 90;
        old.text = QStringLiteral("q");
        s.store.messages[9] = {old};
        s.chat.reloadList();
        s.store.settleAll();
        s.chat.select(9);
        s.store.settleAll();
        api::OwnerBlocksEvent blocks;
        blocks.owner = OwnerId(9);
        blocks.tokens = 1800;
        s.chat.handleEvent(blocks);
        const QString message(3000, QLatin1Char('y'));
        s.sendDraft({message, {}});
        s.measured(2500);
        QVERIFY(s.chat.tooLong());
        s.choose(QStringLiteral("new chat"));
        s.store.settleAll();
        s.measured(900); // alone it fits
        QCOMPARE(s.row(0).text, message);
        QVERIFY(s.composer().draft().isEmpty());
        QCOMPARE(s.store.drafts[kNoId].first, QStringLiteral("begun in a new chat"));
        QCOMPARE(s.store.drafts[kNoId].second, std::vector<Attachment>{kPaste});
        s.answer();
        s.chat.newConversation();
        QCOMPARE(s.composer().draft().text, QStringLiteral("begun in a new chat"));
    }

    void aMessageIsDeletedAndBroughtBack() {
        Stage s;
        s.sendDraft({QStringLiteral("one"), {}});
        s.answer("first answer");
        s.sendDraft({QStringLiteral("two"), {}});
        s.answer("second answer");
        s.view().setFocus();
        for (int i = 0; i < 4; ++i)
            QTest::keyClick(&s.view(), Qt::Key_Up, Qt::ControlModifier);
        QTest::keyClick(&s.view(), Qt::Key_Down, Qt::ControlModifier); // the first answer
        QTest::keyClick(&s.view(), Qt::Key_Delete);
        s.store.settleAll();
        QCOMPARE(s.chat.messages()->size(), 3);
        QCOMPARE(s.row(1).text, QStringLiteral("two"));
        QTest::keyClick(&s.view(), Qt::Key_Z, Qt::ControlModifier);
        s.store.settleAll();
        QCOMPARE(s.chat.messages()->size(), 4);
        QCOMPARE(s.row(1).text, QStringLiteral("first answer"));
        QCOMPARE(s.row(3).text, QStringLiteral("second answer"));
        // By the notice as well; a second undo finds nothing.
        QVERIFY(s.chat.deleteMessage(3));
        s.store.settleAll();
        QCOMPARE(s.chat.messages()->size(), 3);
        QAbstractButton* undo = nullptr;
        for (MessageBox* box : s.panel.findChildren<MessageBox*>())
            for (QAbstractButton* button : box->findChildren<QAbstractButton*>())
                if (box->sentence().contains(QStringLiteral("deleted")) && button->text() == QStringLiteral("Undo"))
                    undo = button;
        QVERIFY(undo);
        undo->click();
        s.store.settleAll();
        QCOMPARE(s.row(3).text, QStringLiteral("second answer"));
        QVERIFY(!s.chat.undoDeleteMessage());
        emit s.view().againRequested(3); // while it is written nothing is deleted
        s.store.settleAll();
        QTest::keyClick(&s.view(), Qt::Key_Delete);
        QVERIFY(!s.chat.deleteMessage(0));
    }

    void lookingAtAVersionIsNoUseOfAChat() {
        Stage s;
        s.sendDraft({QStringLiteral("older"), {}});
        s.answer("one");
        QVERIFY(s.chat.regenerate(1));
        s.store.settleAll();
        s.answer("two");
        const ConversationId older = s.chat.current().conversation.id;
        s.wall += 60'000;
        s.chat.newConversation();
        s.sendDraft({QStringLiteral("newer"), {}});
        s.answer();
        const std::vector<ConversationId> order = s.chat.conversations()->ids();
        QCOMPARE(order.back(), older);
        s.wall += 60'000;
        s.chat.select(older);
        s.store.settleAll();
        QVERIFY(s.chat.showVersion(1, 1));
        s.store.settleAll();
        QCOMPARE(s.row(1).text, QStringLiteral("one"));
        QCOMPARE(s.chat.conversations()->ids(), order);
        QCOMPARE(s.chat.conversations()->find(older)->preview, QStringLiteral("one"));
        QVERIFY(s.chat.deleteMessage(1));
        s.store.settleAll();
        QCOMPARE(s.chat.conversations()->ids(), order);
    }

    void aFieldOfAnEditLeavesCtrlKToTheWindow() {
        Stage s;
        s.sendDraft({QStringLiteral("some words"), {}});
        s.answer();
        s.view().beginEdit(0);
        QKeyEvent key(QEvent::ShortcutOverride, Qt::Key_K, Qt::ControlModifier);
        QCoreApplication::sendEvent(s.view().editBox()->field(), &key);
        QVERIFY(!key.isAccepted()); // else the field would delete to the end of the line
        QKeyEvent escape(QEvent::ShortcutOverride, Qt::Key_Escape, Qt::NoModifier);
        QCoreApplication::sendEvent(s.view().editBox()->field(), &escape);
        QVERIFY(escape.isAccepted());
    }

    void anEditKeepsSpacesThatDoNotBreak() {
        Stage s;
        s.sendDraft({QStringLiteral("10\u00a0km \u2028 on"), {}});
        s.answer();
        s.view().beginEdit(0);
        QVERIFY(s.view().editBox()->text().contains(QChar(0xa0)));
    }
};

QTEST_MAIN(TestChatKeeping)
#include "test_chat_keeping.moc"
