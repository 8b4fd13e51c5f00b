// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reading while an answer is being written: nothing that is read moves by a pixel, whatever the reader does. Positions
// are those of words on the screen, found in the picture of the view's own geometry.
#include <QApplication>
#include <QSignalSpy>

#include "tests/ui/chat/chat_view_fixture.h"
#include "ui/widgets/button.h"

using namespace kvscope;
using namespace kvscope::ui;
using namespace kvscope::ui::test;

namespace {

constexpr int kCodeLines = 400;

/// An answer of short code lines, as fast as they can be drawn.
class Writing {
public:
    explicit Writing(ChatView& view) : m_view(view) {
        fill(m_model, 12);
        view.resize(600, 500);
        view.show();
        view.setModel(&m_model);
        ChatMessage answer =
            message(MessageRole::Assistant, QStringLiteral("Here it is:\n\n```c\n"), MessageStatus::Writing);
        answer.thinking = QStringLiteral("First I think about it.\n\n").repeated(6);
        m_row = m_model.append(answer);
        view.grab();
    }
    void write(int lines) {
        for (int i = 0; i < lines; ++i) {
            const QString line = QStringLiteral("\tint x%1 = %1;\n").arg(m_line++);
            m_model.appendTokens(m_row, line, {m_line}, 100);
            m_model.flush();
            QCoreApplication::processEvents();
        }
    }
    void finish() {
        m_model.appendTokens(m_row, QStringLiteral("```\nDone."), {}, 100);
        m_model.edit(m_row, [](ChatMessage& m) { m.status = MessageStatus::Done; });
        m_model.flush();
    }
    ChatModel& model() { return m_model; }
    int row() const { return m_row; }
    int line() const { return m_line; }
    /// The y of a place in the text of the answer.
    int yOf(const QString& words) const {
        const MessageText& text = m_view.textOf(m_row);
        const int at = int(m_model.at(m_row).text.indexOf(words)) + text.answerAt();
        return m_view.partRect(m_row, MessagePart::Text).top() + int(text.caretRect(at).top());
    }
    bool newestShown() const { return m_view.findChild<Button*>()->isVisible(); }

private:
    ChatView& m_view;
    ChatModel m_model;
    int m_row = -1, m_line = 0;
};

} // namespace

class TestChatReading final : public QObject {
    Q_OBJECT
    const Theme m_theme = Theme::load(ThemeKind::Dark);

private slots:
    void nothingMovesWhileReading_data() {
        QTest::addColumn<QString>("how");
        for (const char* how : {"one notch", "three notches", "page up", "bar", "select", "up", "thought", "receipt"})
            QTest::newRow(how) << QString::fromUtf8(how);
    }

    void nothingMovesWhileReading() {
        QFETCH(QString, how);
        ChatView view(m_theme);
        Writing writing(view);
        writing.write(120);
        QVERIFY(view.atEnd());
        const QRect text = view.partRect(writing.row(), MessagePart::Text);
        if (how == "one notch")
            wheel(view, 1);
        else if (how == "three notches")
            wheel(view, 3);
        else if (how == "page up")
            QTest::keyClick(&view, Qt::Key_PageUp);
        else if (how == "up")
            QTest::keyClick(&view, Qt::Key_Up);
        else if (how == "bar")
            view.verticalScrollBar()->setSliderPosition(view.verticalScrollBar()->maximum() / 2);
        else if (how == "select") {
            QTest::mousePress(view.viewport(), Qt::LeftButton, {}, QPoint(text.left() + 40, 100));
            QTest::mouseMove(view.viewport(), QPoint(text.left() + 120, 160));
            QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, QPoint(text.left() + 120, 160));
            QVERIFY(!view.selectedText().isEmpty());
        } else if (how == "thought") {
            QTest::keyClick(&view, Qt::Key_PageUp);
            view.verticalScrollBar()->setValue(view.verticalScrollBar()->value() +
                                               view.partRect(writing.row(), MessagePart::Thought).top() - 50);
            QTest::mouseClick(view.viewport(), Qt::LeftButton, {},
                              view.partRect(writing.row(), MessagePart::Thought).center());
            writing.write(5);
            QTest::mouseClick(view.viewport(), Qt::LeftButton, {},
                              view.partRect(writing.row(), MessagePart::Thought).center());
        } else { // an earlier answer's receipt, opened above
            QTest::keyClick(&view, Qt::Key_Home);
            QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.partRect(1, MessagePart::Receipt).center());
        }
        const QString selected = view.selectedText();
        const int before = writing.yOf("int x60 "), value = view.verticalScrollBar()->value();
        const int at = writing.line();
        writing.write(kCodeLines - at);
        QCOMPARE(writing.yOf("int x60 "), before);
        QCOMPARE(view.verticalScrollBar()->value(), value);
        QCOMPARE(view.selectedText(), selected);
        QVERIFY(!view.atEnd());
        QVERIFY(writing.newestShown());
        writing.finish();
        QCoreApplication::processEvents();
        QCOMPARE(writing.yOf("int x60 "), before);
        QCOMPARE(view.selectedText(), selected);
        QVERIFY(writing.newestShown());
        QTest::mouseClick(view.findChild<Button*>(), Qt::LeftButton);
        QVERIFY(view.atEnd());
        QVERIFY(!writing.newestShown());
    }

    /// The first line that is seen whole stays, though what is above it wraps anew.
    void resizingKeepsTheLine() {
        ChatView view(m_theme);
        Writing writing(view);
        writing.write(60);
        wheel(view, 6);
        const int top = writing.yOf("int x20 ");
        view.verticalScrollBar()->setValue(view.verticalScrollBar()->value() + top);
        QCOMPARE(writing.yOf("int x20 "), 0);
        for (const int width : {480, 900, 430, 600}) {
            view.resize(width, 500);
            QCoreApplication::processEvents();
            writing.write(3);
            QCOMPARE(writing.yOf("int x20 "), 0);
        }
        view.resize(600, 300);
        writing.write(3);
        QCOMPARE(writing.yOf("int x20 "), 0);
    }

    void goingToTheEndFollowsAgain() {
        ChatView view(m_theme);
        Writing writing(view);
        writing.write(60);
        wheel(view, 3);
        writing.write(20);
        QVERIFY(!view.atEnd());
        for (int i = 0; i < 200 && !view.atEnd(); ++i)
            wheel(view, -1);
        QVERIFY(view.atEnd());
        writing.write(40);
        QVERIFY(view.atEnd());
        QTest::keyClick(&view, Qt::Key_PageUp);
        QVERIFY(!view.atEnd());
        QTest::keyClick(&view, Qt::Key_End);
        writing.write(40);
        QVERIFY(view.atEnd());
    }

    /// While the mouse selects at the end, the words below it stay.
    void draggingASelectionHoldsTheView() {
        ChatView view(m_theme);
        Writing writing(view);
        writing.write(60);
        const QRect text = view.partRect(writing.row(), MessagePart::Text);
        QTest::mousePress(view.viewport(), Qt::LeftButton, {}, QPoint(text.left() + 60, 200));
        QTest::mouseMove(view.viewport(), QPoint(text.left() + 60, 240));
        const int before = writing.yOf("int x50 ");
        writing.write(30);
        QCOMPARE(writing.yOf("int x50 "), before);
        QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, QPoint(text.left() + 60, 240));
    }

    /// Opened and closed, with the mouse on it: the line that was clicked stays under the pointer.
    void whatIsClickedStaysUnderThePointer() {
        ChatView view(m_theme);
        Writing writing(view);
        writing.finish();
        writing.model().append(message(MessageRole::User, QStringLiteral("more")));
        for (const MessagePart part : {MessagePart::Thought, MessagePart::Receipt}) {
            view.scrollToEnd();
            view.grab();
            QRect rect = view.partRect(writing.row(), part);
            view.verticalScrollBar()->setValue(view.verticalScrollBar()->value() + rect.top() - 200);
            rect = view.partRect(writing.row(), part);
            for (int i = 0; i < 2; ++i) {
                QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, rect.topLeft() + QPoint(20, 10));
                QCOMPARE(view.partRect(writing.row(), part).top(), rect.top());
            }
        }
    }
};

QTEST_MAIN(TestChatReading)
#include "test_chat_reading.moc"
