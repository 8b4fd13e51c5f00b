// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QClipboard>
#include <QInputMethodEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScreen>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>

#include "tests/ui/chat/chat_view_fixture.h"
#include "ui/chat/composer.h"
#include "ui/chat/conversation_panel.h"
#include "ui/chat/settings_panel.h"
#include "ui/models/chat_model.h"

using namespace kvscope;
using namespace kvscope::ui;
using namespace kvscope::ui::test;

namespace {

void scrollTo(ChatView& view, double share) {
    view.verticalScrollBar()->setValue(int(view.verticalScrollBar()->maximum() * share));
}

} // namespace

class TestChatViews final : public QObject {
    Q_OBJECT
    const Theme m_theme = Theme::load(ThemeKind::Dark);

private slots:
    void onlyWhatIsSeenIsLaidOut() {
        ChatModel model;
        fill(model, 1000);
        ChatView view(m_theme);
        view.resize(600, 800);
        view.show();
        view.setModel(&model);
        QVERIFY(view.atEnd());
        view.grab();
        QVERIFY2(view.laidOutRows() < 60, qPrintable(QString::number(view.laidOutRows())));
        for (int step = 0; step <= 20; ++step) {
            scrollTo(view, 1.0 - step / 20.0);
            view.grab();
            QVERIFY2(view.laidOutRows() < 60, qPrintable(QString::number(view.laidOutRows())));
        }
        QCOMPARE(view.verticalScrollBar()->value(), 0);
        QCOMPARE(view.rowRect(0).top(), 0);
    }

    void followsAtTheEndAndStaysPutAbove() {
        ChatModel model;
        fill(model, 30);
        ChatView view(m_theme);
        view.resize(600, 500);
        view.show();
        view.setModel(&model);
        const int row = model.append(message(MessageRole::Assistant, {}, MessageStatus::Writing));
        for (int i = 0; i < 50; ++i) {
            model.appendTokens(row, QStringLiteral("more words and more "), {i}, 20);
            model.flush();
            QVERIFY(view.atEnd());
        }
        // The user reads above: nothing there moves by a pixel.
        scrollTo(view, 0.3);
        view.grab();
        int seen = 0;
        while (view.rowRect(seen).bottom() < 0)
            ++seen;
        const QRect before = view.rowRect(seen);
        for (int i = 0; i < 50; ++i) {
            model.appendTokens(row, QStringLiteral("even more words\n\n"), {i}, 20);
            model.flush();
        }
        model.append(message(MessageRole::User, QStringLiteral("another")));
        QCOMPARE(view.rowRect(seen), before);
        QVERIFY(!view.atEnd());
        QTest::keyClick(&view, Qt::Key_End);
        QVERIFY(view.atEnd());
    }

    /// A new line moves the pixels of those above it: what stands on the screen is what a fresh painting would show.
    void whatIsScrolledIsWhatWouldBePainted() {
        ChatModel model;
        fill(model, 3);
        ChatView view(m_theme);
        view.resize(600, 500);
        view.setModel(&model);
        const int row = model.append(message(MessageRole::Assistant, {}, MessageStatus::Writing));
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        const QStringList pieces = {"some ", "words and ", "longer-words-that-wrap ", "\n\n", "```cpp\n", "int i;\n",
                                    "```",   "\n"};
        for (int i = 0; i < 160; ++i) {
            const bool code = i % 40 >= 30;
            model.appendTokens(row, code ? pieces[3 + i % 5] : pieces[i % 3], {i}, 20 + i / 10);
            model.setTokenEnd(row, i + 1);
            model.flush();
            QCoreApplication::processEvents();
            const QImage screen =
                view.screen()->grabWindow(view.winId()).toImage().convertToFormat(QImage::Format_RGB32);
            QCOMPARE(screen, view.grab().toImage().convertToFormat(QImage::Format_RGB32));
        }
    }

    /// Rows above are only guessed until they come near the screen: measuring them must not push what is seen.
    void scrollingUpIsSmooth() {
        ChatModel model;
        fill(model, 200);
        ChatView view(m_theme);
        view.resize(420, 500);
        view.show();
        view.setModel(&model);
        view.grab();
        for (int i = 0; i < 200; ++i) {
            int seen = 0;
            while (view.rowRect(seen).bottom() < 40)
                ++seen;
            const int top = view.rowRect(seen).top();
            view.verticalScrollBar()->setValue(view.verticalScrollBar()->value() - 30);
            if (view.verticalScrollBar()->value() == 0)
                break;
            const int moved = view.rowRect(seen).top() - top;
            QVERIFY2(moved >= 28 && moved <= 32, qPrintable(QStringLiteral("step %1 moved %2").arg(i).arg(moved)));
        }
    }

    void streamedTextEqualsTheWhole() {
        const QString whole = QStringLiteral(
            "Intro line\n\nA paragraph.\n```python\nx = 1\n\nprint(x)\n```\nEnd of it 👨‍👩‍👧‍👦\n");
        MessageText streamed, atOnce;
        const ChatStyle style = ChatStyle::at(14);
        streamed.setStyle(style, 400);
        atOnce.setStyle(style, 400);
        for (qsizetype n = 1; n <= whole.size(); ++n)
            streamed.setContent({}, whole.left(n), MessageText::Mode::Markdown, true);
        atOnce.setContent({}, whole, MessageText::Mode::Markdown, false);
        QCOMPARE(streamed.height(), atOnce.height());
        QCOMPARE(streamed.naturalWidth(), atOnce.naturalWidth());
        for (int position = 0; position < whole.size(); position += 3)
            QCOMPARE(streamed.caretRect(position), atOnce.caretRect(position));
    }

    void selectionGoesAcrossMessages() {
        ChatModel model;
        model.setMessages({message(MessageRole::User, QStringLiteral("first")),
                           message(MessageRole::Assistant, QStringLiteral("second\n```\ncode  here\n```")),
                           message(MessageRole::User, QStringLiteral("third"))});
        ChatView view(m_theme);
        view.resize(600, 600);
        view.show();
        view.setModel(&model);
        view.grab();
        QTest::keyClick(&view, Qt::Key_A, Qt::ControlModifier);
        QCOMPARE(view.selectedText(), QStringLiteral("first\n\nsecond\n```\ncode  here\n```\n\nthird"));
        QTest::keyClick(&view, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QGuiApplication::clipboard()->text(), view.selectedText()); // the source, byte for byte
        // By mouse: from inside the first to inside the third.
        const QRect from = view.partRect(0, MessagePart::Text), to = view.partRect(2, MessagePart::Text);
        QTest::mousePress(view.viewport(), Qt::LeftButton, {}, from.topLeft() + QPoint(0, 8));
        QTest::mouseMove(view.viewport(), to.topRight() + QPoint(30, -8 + to.height()));
        QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, to.topRight() + QPoint(30, -8 + to.height()));
        QCOMPARE(view.selectedText(), QStringLiteral("first\n\nsecond\n```\ncode  here\n```\n\nthird"));
        QTest::mouseDClick(view.viewport(), Qt::LeftButton, {}, from.center());
        QCOMPARE(view.selectedText(), QStringLiteral("first"));
    }

    void partsAnswerToMouseAndKeys() {
        ChatModel model;
        model.setMessages({message(MessageRole::User, QStringLiteral("q")),
                           message(MessageRole::Assistant, QStringLiteral("a"), MessageStatus::Writing)});
        ChatView view(m_theme);
        view.resize(600, 600);
        view.show();
        view.setModel(&model);
        view.grab();
        QSignalSpy stop(&view, &ChatView::stopRequested), blocks(&view, &ChatView::showBlocksRequested);
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.partRect(1, MessagePart::Stop).center());
        QCOMPARE(stop.size(), 1);
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.partRect(1, MessagePart::ShowBlocks).center());
        QCOMPARE(blocks.size(), 1);
        QCOMPARE(blocks[0][0].toInt(), 1);
        const int closed = view.rowRect(1).height();
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.partRect(1, MessagePart::Receipt).center());
        QVERIFY(view.rowRect(1).height() > closed + 40);
        view.setFocus(Qt::TabFocusReason);
        QTest::keyClick(&view, Qt::Key_Return);
        QCOMPARE(view.rowRect(1).height(), closed);
        QTest::keyClick(&view, Qt::Key_B);
        QCOMPARE(blocks.size(), 2);
    }

    void enterSendsButNotWhileComposing() {
        Composer composer(m_theme);
        composer.setState(true, false, {});
        composer.show();
        ComposerEdit* edit = composer.edit();
        QSignalSpy sent(&composer, &Composer::sendRequested);
        QTest::keyClicks(edit, QStringLiteral("hi"));
        QTest::keyClick(edit, Qt::Key_Return, Qt::ShiftModifier);
        QTest::keyClicks(edit, QStringLiteral("you"));
        QCOMPARE(composer.text(), QStringLiteral("hi\nyou"));
        QCOMPARE(sent.size(), 0);
        QInputMethodEvent composing(QStringLiteral("ni hao"), {});
        QCoreApplication::sendEvent(edit, &composing);
        QTest::keyClick(edit, Qt::Key_Return);
        QTest::keyClick(edit, Qt::Key_Enter);
        QCOMPARE(sent.size(), 0);
        QInputMethodEvent committed;
        committed.setCommitString(QStringLiteral("你好"));
        QCoreApplication::sendEvent(edit, &committed);
        QCOMPARE(composer.text(), QStringLiteral("hi\nyou你好"));
        QTest::keyClick(edit, Qt::Key_Return);
        QCOMPARE(sent.size(), 1);
    }

    void composerGrowsToEightLines() {
        Composer composer(m_theme);
        composer.resize(500, 100);
        composer.show();
        const int two = composer.edit()->height();
        for (int i = 0; i < 5; ++i)
            QTest::keyClick(composer.edit(), Qt::Key_Return, Qt::ShiftModifier);
        const int six = composer.edit()->height();
        QVERIFY(six > two);
        for (int i = 0; i < 20; ++i)
            QTest::keyClick(composer.edit(), Qt::Key_Return, Qt::ShiftModifier);
        const int eight = composer.edit()->height();
        QVERIFY(eight > six && eight < two * 5);
        composer.clear();
        QCOMPARE(composer.edit()->height(), two);
    }

    void impossibleSettingsStayAtTheField() {
        SettingsPanel panel(m_theme);
        api::SamplingParams start = defaultChatSettings();
        panel.setValues({}, start);
        panel.show();
        QSignalSpy changed(&panel, &SettingsPanel::settingsChanged);
        QLineEdit* topP = panel.field(SettingField::Id::TopP);
        topP->selectAll();
        QTest::keyClicks(topP, QStringLiteral("7"));
        QCOMPARE(changed.size(), 0);
        QVERIFY(panel.message(SettingField::Id::TopP)->isVisible());
        QCOMPARE(panel.message(SettingField::Id::TopP)->text(), QStringLiteral("Allowed: above 0, up to 1 (off)"));
        topP->selectAll();
        QTest::keyClicks(topP, QStringLiteral("1"));
        QVERIFY(!panel.message(SettingField::Id::TopP)->isVisible());
        QCOMPARE(changed.size(), 1);
        QCOMPARE(changed[0][0].value<api::SamplingParams>().topP, 1.0);
        QTest::keyClick(topP, Qt::Key_Return);
        QCOMPARE(topP->text(), QStringLiteral("off"));
    }

    void listFollowsItsConversation() {
        ConversationListModel model;
        Conversation a, b;
        a.id = 1;
        a.title = QStringLiteral("a");
        a.updatedMs = 1'773'327'600'000;
        b = a;
        b.id = 2;
        b.title = QStringLiteral("b");
        b.updatedMs += 1000;
        model.setConversations({a, b}, b.updatedMs);
        ConversationPanel panel(&model, nullptr, m_theme);
        panel.resize(248, 500);
        panel.show();
        QSignalSpy selected(&panel, &ConversationPanel::selected);
        panel.setCurrent(1);
        QCOMPARE(selected.size(), 0);
        a.updatedMs += 5000;
        model.put(a, a.updatedMs); // it moves up, and stays chosen
        QCOMPARE(model.idAt(panel.list()->currentIndex().row()), ConversationId(1));
        QCOMPARE(selected.size(), 0);
        QTest::keyClick(panel.list(), Qt::Key_Down);
        QCOMPARE(selected.size(), 1);
        QCOMPARE(selected[0][0].toLongLong(), 2);
        QSignalSpy deleted(&panel, &ConversationPanel::deleteRequested);
        QTest::keyClick(panel.list(), Qt::Key_Delete);
        QCOMPARE(deleted[0][0].toLongLong(), 2);
    }
};

QTEST_MAIN(TestChatViews)
#include "test_chat_views.moc"
