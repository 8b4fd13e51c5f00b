// SPDX-License-Identifier: GPL-3.0-or-later
//
// Answers as Markdown in the view: code and its Copy, thoughts, links, selection, the keyboard, edits, colours.
#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QInputMethodEvent>
#include <QMessageBox>
#include <QPushButton>
#include <QSet>
#include <QSignalSpy>

#include "tests/ui/chat/chat_view_fixture.h"
#include "tests/ui/chat/contrast.h"
#include "ui/chat/markdown_style.h"

using namespace kvscope;
using namespace kvscope::ui;
using namespace kvscope::ui::test;

namespace {

/// A view of one answer.
struct Shown {
    explicit Shown(const Theme& theme, const ChatMessage& answer, QSize size = {640, 900}) : view(theme) {
        model.setMessages({message(MessageRole::User, QStringLiteral("q")), answer});
        view.resize(size);
        view.show();
        view.setModel(&model);
        view.grab();
    }
    std::vector<MessageHit> parts(MessagePart part) const {
        std::vector<MessageHit> out;
        for (const MessageHit& hit : view.targets(1))
            if (hit.part == part)
                out.push_back(hit);
        return out;
    }
    void click(MessageHit hit) {
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.partRect(1, hit).center());
    }
    ChatModel model;
    ChatView view;
};

QString clipboard() {
    return QGuiApplication::clipboard()->text();
}

class LinkCatcher : public QObject {
    Q_OBJECT
public:
    QList<QUrl> opened;
public slots:
    void open(const QUrl& url) { opened << url; }
};

} // namespace

class TestChatMarkdown final : public QObject {
    Q_OBJECT
    const Theme m_theme = Theme::load(ThemeKind::Dark);

private slots:
    /// Copy gives the source between the fences; a part has what is seen; the whole is the Markdown source.
    void copyingCode_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("code");
        QTest::newRow("python") << QStringLiteral("a\n\n```python\ndef f():\n\treturn 1  \n\n\n\tx = 2\n```\n\nb")
                                << QStringLiteral("def f():\n\treturn 1  \n\n\n\tx = 2");
        QTest::newRow("no language") << QStringLiteral("```\n x\n```") << QStringLiteral(" x");
        QTest::newRow("tildes") << QStringLiteral("~~~~\n```\n~~~\n~~~~") << QStringLiteral("```\n~~~");
        QTest::newRow("in a list") << QStringLiteral("- a\n\n  ```c\n  \tint x;\n\n    y\n  ```\n- b")
                                   << QStringLiteral("\tint x;\n\n  y");
        QTest::newRow("unfinished") << QStringLiteral("```c\nint x;\n\tint") << QStringLiteral("int x;\n\tint");
    }
    void copyingCode() {
        QFETCH(QString, source);
        QFETCH(QString, code);
        Shown shown(m_theme, message(MessageRole::Assistant, source));
        const std::vector<MessageHit> buttons = shown.parts(MessagePart::CopyCode);
        QCOMPARE(buttons.size(), std::size_t(1));
        shown.click(buttons[0]);
        QCOMPARE(clipboard(), code);
        // All of the code, selected with the mouse from its first to behind its last character.
        const MessageText& text = shown.view.textOf(1);
        const QPoint corner = shown.view.partRect(1, MessagePart::Text).topLeft();
        const int at = int(source.indexOf(code.left(code.indexOf('\n'))));
        const QString last = code.mid(code.lastIndexOf('\n') + 1).trimmed();
        const int end = int(source.indexOf(last, at + std::max<qsizetype>(0, code.indexOf('\n'))) + last.size());
        const QPoint from = corner + text.caretRect(at).center().toPoint();
        const QPoint to = corner + text.caretRect(end).center().toPoint();
        QTest::mousePress(shown.view.viewport(), Qt::LeftButton, {}, from);
        QTest::mouseMove(shown.view.viewport(), to);
        QTest::mouseRelease(shown.view.viewport(), Qt::LeftButton, {}, to);
        QTest::keyClick(&shown.view, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(clipboard(), code);
        // The whole message.
        shown.view.clearSelection();
        shown.click({MessagePart::Copy, 0});
        QCOMPARE(clipboard(), source);
        QTest::keyClick(&shown.view, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(clipboard(), source);
    }

    void aPartIsCopiedAsItIsSeen() {
        const QString source = QStringLiteral("One **two** [three](https://a.b) `four`\n\n- five\n- six");
        Shown shown(m_theme, message(MessageRole::Assistant, source));
        const MessageText& text = shown.view.textOf(1);
        QCOMPARE(text.copied({int(source.indexOf("two")), int(source.size())}),
                 QStringLiteral("two three four\n\n• five\n• six"));
        // A word that is clicked twice comes without its marks.
        const QPoint corner = shown.view.partRect(1, MessagePart::Text).topLeft();
        QTest::mouseDClick(shown.view.viewport(), Qt::LeftButton, {},
                           corner + text.caretRect(int(source.indexOf("two")) + 1).center().toPoint());
        QCOMPARE(shown.view.selectedText(), QStringLiteral("two"));
    }

    void thoughtsAreFolded() {
        ChatMessage answer = message(MessageRole::Assistant, QStringLiteral("Yes."));
        answer.thinking = QStringLiteral("I wonder.\n\n```c\nint thought;\n```");
        answer.thinkingSeconds = 1.3;
        answer.thinkingTokens = 64;
        Shown shown(m_theme, answer);
        QCOMPARE(shown.parts(MessagePart::CopyCode).size(), std::size_t(0));
        const int folded = shown.view.rowRect(1).height();
        QTest::keyClick(&shown.view, Qt::Key_A, Qt::ControlModifier);
        QCOMPARE(shown.view.selectedText(), QStringLiteral("q\n\nYes.")); // what is folded is not copied
        shown.view.clearSelection();
        shown.click({MessagePart::Thought, 0});
        QVERIFY(shown.view.rowRect(1).height() > folded + 60);
        QCOMPARE(shown.parts(MessagePart::CopyCode).size(), std::size_t(1));
        QTest::keyClick(&shown.view, Qt::Key_A, Qt::ControlModifier);
        QCOMPARE(shown.view.selectedText(), QStringLiteral("q\n\nI wonder.\n\nint thought;\n\nYes."));
        shown.click({MessagePart::Copy, 0});
        QCOMPARE(clipboard(), QStringLiteral("Yes."));
        shown.click({MessagePart::Thought, 0});
        QCOMPARE(shown.view.rowRect(1).height(), folded);
    }

    /// The four ways a thought goes wrong, as the view gets them: it never hides an answer and never thinks for ever.
    void thoughtsThatEndOddly() {
        ChatMessage cut = message(MessageRole::Assistant, QString());
        cut.thinking = QStringLiteral("I was just about to");
        cut.thinkingOpen = true;
        cut.reason = api::FinishReason::Length;
        Shown shown(m_theme, cut);
        QCOMPARE(shown.parts(MessagePart::Thought).size(), std::size_t(1));
        QSignalSpy more(&shown.view, &ChatView::continueRequested);
        shown.click({MessagePart::Continue, 0});
        QCOMPARE(more.size(), 1);
        cut.status = MessageStatus::Stopped;
        cut.reason = api::FinishReason::Cancelled;
        Shown stopped(m_theme, cut);
        QCOMPARE(stopped.parts(MessagePart::Continue).size(), std::size_t(1));
        // The marks in a fence are an answer like any other.
        Shown code(m_theme, message(MessageRole::Assistant, QStringLiteral("```\n<think>\n</think>\n```")));
        QCOMPARE(code.parts(MessagePart::Thought).size(), std::size_t(0));
        code.click(code.parts(MessagePart::CopyCode)[0]);
        QCOMPARE(clipboard(), QStringLiteral("<think>\n</think>"));
    }

    void aThoughtBecomesAnAnswerWhileItIsWritten() {
        ChatMessage answer = message(MessageRole::Assistant, QString(), MessageStatus::Writing);
        answer.thinkingOpen = true;
        Shown shown(m_theme, answer);
        QCOMPARE(shown.parts(MessagePart::Thought).size(), std::size_t(1)); // from the first moment
        for (const char* piece : {"hm ", "so ", "it is\n\n", "- a", "\n- b"}) {
            shown.model.edit(1, [&](ChatMessage& m) { m.thinking += QString::fromUtf8(piece); });
            shown.model.flush();
        }
        shown.click({MessagePart::Thought, 0});
        shown.model.edit(1, [&](ChatMessage& m) { m.thinkingOpen = false; });
        for (const char* piece : {"The ", "**answer**", " is\n\n", "```c\n", "int x;"}) {
            shown.model.appendTokens(1, QString::fromUtf8(piece), {1}, 20);
            shown.model.flush();
            shown.view.grab();
        }
        QCOMPARE(shown.view.textOf(1).copied({0, shown.view.textOf(1).end() - 1}),
                 QStringLiteral("hm so it is\n\n• a\n• b\n\nThe answer is\n\nint x"));
    }

    void linksAskFirst() {
        LinkCatcher catcher;
        QDesktopServices::setUrlHandler(QStringLiteral("https"), &catcher, "open");
        Shown shown(m_theme,
                    message(MessageRole::Assistant,
                            QStringLiteral("[a](https://example.org/x) [b](javascript:c) ![d](https://e.f/g.png)")));
        const std::vector<MessageHit> links = shown.parts(MessagePart::Link);
        QCOMPARE(links.size(), std::size_t(1));
        const auto answer = [&](QMessageBox::ButtonRole role) {
            shown.click(links[0]);
            auto* box = shown.view.findChild<QMessageBox*>();
            QVERIFY(box);
            QVERIFY(box->informativeText().contains(QStringLiteral("https://example.org/x")));
            for (QAbstractButton* button : box->buttons())
                if (box->buttonRole(button) == role)
                    button->click();
            QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        };
        answer(QMessageBox::RejectRole);
        QVERIFY(catcher.opened.isEmpty());
        answer(QMessageBox::ActionRole);
        QVERIFY(catcher.opened.isEmpty());
        QCOMPARE(clipboard(), QStringLiteral("https://example.org/x"));
        answer(QMessageBox::AcceptRole);
        QCOMPARE(catcher.opened, QList<QUrl>{QUrl(QStringLiteral("https://example.org/x"))});
        QDesktopServices::unsetUrlHandler(QStringLiteral("https"));
    }

    /// Every part of a message can be reached and used with the keyboard alone.
    void theKeyboardReachesEveryPart() {
        ChatMessage answer = message(MessageRole::Assistant, richText(), MessageStatus::Interrupted);
        answer.thinking = QStringLiteral("hm");
        answer.version = 2;
        answer.versions = 3;
        Shown shown(m_theme, answer, {640, 500});
        shown.view.activateWindow();
        shown.view.setFocus(Qt::TabFocusReason);
        QTRY_VERIFY(shown.view.hasFocus());
        QTest::keyClick(&shown.view, Qt::Key_Down, Qt::ControlModifier);
        std::vector<MessageHit> reached;
        const std::size_t wanted = shown.view.targets(1).size();
        for (std::size_t i = 0; i < wanted; ++i) {
            QTest::keyClick(&shown.view, Qt::Key_Tab);
            reached.push_back(shown.view.focusedPart());
            const QRect rect = shown.view.partRect(1, shown.view.focusedPart());
            QVERIFY2(rect.isValid() && rect.top() >= 0 && rect.bottom() <= shown.view.viewport()->height(),
                     qPrintable(QStringLiteral("part %1 at %2").arg(int(reached.back().part)).arg(rect.top())));
        }
        QCOMPARE(reached, shown.view.targets(1));
        for (const MessagePart part :
             {MessagePart::Thought, MessagePart::CopyCode, MessagePart::Link, MessagePart::Receipt, MessagePart::Copy,
              MessagePart::Again, MessagePart::Edit, MessagePart::Branch, MessagePart::ShowBlocks,
              MessagePart::Previous, MessagePart::Next, MessagePart::Continue, MessagePart::Discard})
            QVERIFY2(!shown.parts(part).empty(), qPrintable(QString::number(int(part))));
        QSignalSpy again(&shown.view, &ChatView::againRequested), branch(&shown.view, &ChatView::branchRequested),
            version(&shown.view, &ChatView::versionRequested), more(&shown.view, &ChatView::continueRequested),
            discard(&shown.view, &ChatView::discardRequested);
        QTest::keyClick(&shown.view, Qt::Key_R);
        QTest::keyClick(&shown.view, Qt::Key_N);
        QTest::keyClick(&shown.view, Qt::Key_Less);
        QTest::keyClick(&shown.view, Qt::Key_Greater);
        QCOMPARE(again.size(), 1);
        QCOMPARE(branch.size(), 1);
        QCOMPARE(version.size(), 2);
        QCOMPARE(version[0][1].toInt(), -1);
        QCOMPARE(version[1][1].toInt(), 1);
        for (int i = 0; i < 100 && shown.view.focusedPart().part != MessagePart::Continue; ++i)
            QTest::keyClick(&shown.view, Qt::Key_Left);
        QTest::keyClick(&shown.view, Qt::Key_Return);
        QCOMPARE(more.size(), 1);
        QTest::keyClick(&shown.view, Qt::Key_Right);
        QTest::keyClick(&shown.view, Qt::Key_Space);
        QCOMPARE(discard.size(), 1);
        QTest::keyClick(&shown.view, Qt::Key_C);
        QCOMPARE(clipboard(), richText());
    }

    void edgesOfVersionsDoNothing() {
        ChatMessage answer = message(MessageRole::Assistant, QStringLiteral("a"));
        answer.version = 1;
        answer.versions = 2;
        Shown shown(m_theme, answer);
        QSignalSpy version(&shown.view, &ChatView::versionRequested);
        shown.click({MessagePart::Previous, 0});
        QCOMPARE(version.size(), 0);
        shown.click({MessagePart::Next, 0});
        QCOMPARE(version.size(), 1);
    }

    /// A version that comes has another height: the arrows stay where they are, to be clicked again.
    void arrowsStayUnderThePointer() {
        ChatModel model;
        fill(model, 20);
        ChatMessage answer = message(MessageRole::Assistant, QStringLiteral("short"));
        answer.version = answer.versions = 2;
        model.append(answer);
        model.append(message(MessageRole::User, QStringLiteral("more ").repeated(400)));
        ChatView view(m_theme);
        view.resize(600, 600);
        view.show();
        view.setModel(&model);
        const int row = 40;
        view.verticalScrollBar()->setValue(view.verticalScrollBar()->value() + view.rowRect(row).top() - 300);
        view.grab();
        connect(&view, &ChatView::versionRequested, &view, [&](int asked, int step) {
            QCOMPARE(asked, row);
            while (model.size() > row)
                model.remove(model.size() - 1);
            answer.version += step;
            answer.text = answer.version == 1 ? QStringLiteral("A long version of it.\n\n").repeated(12)
                                              : QStringLiteral("short");
            model.append(answer);
        });
        const QRect before = view.partRect(row, MessagePart::Previous);
        for (const MessagePart part : {MessagePart::Previous, MessagePart::Next, MessagePart::Previous}) {
            QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.partRect(row, part).center());
            const QRect now = view.partRect(row, MessagePart::Previous);
            QVERIFY(now.top() == before.top() || view.atEnd()); // below the last message there is nothing to show
        }
    }

    /// Only the last answer can be written on.
    void continueIsForTheLastAnswer() {
        Shown shown(m_theme, message(MessageRole::Assistant, QStringLiteral("a"), MessageStatus::Stopped));
        QCOMPARE(shown.parts(MessagePart::Continue).size(), std::size_t(1));
        const int height = shown.view.rowRect(1).height();
        shown.model.append(message(MessageRole::User, QStringLiteral("b")));
        QCOMPARE(shown.parts(MessagePart::Continue).size(), std::size_t(0));
        QCOMPARE(shown.view.rowRect(1).height(), height);
        shown.model.remove(2);
        QCOMPARE(shown.parts(MessagePart::Continue).size(), std::size_t(1));
    }

    void editingInPlace() {
        Shown shown(m_theme, message(MessageRole::Assistant, QStringLiteral("**old**")));
        QSignalSpy edited(&shown.view, &ChatView::editRequested);
        for (const int row : {0, 1}) {
            const QString old = shown.model.at(row).text;
            shown.view.beginEdit(row);
            MessageEditField* field = shown.view.editBox()->field();
            QCOMPARE(field->toPlainText(), old); // the source, not what is seen
            // An input method's Enter and Esc belong to it.
            QInputMethodEvent composing(QStringLiteral("ni hao"), {});
            QCoreApplication::sendEvent(field, &composing);
            QTest::keyClick(field, Qt::Key_Return, Qt::ControlModifier);
            QTest::keyClick(field, Qt::Key_Escape);
            QVERIFY(shown.view.editBox());
            QInputMethodEvent committed;
            committed.setCommitString(QStringLiteral("你好"));
            QCoreApplication::sendEvent(field, &committed);
            QTest::keyClick(field, Qt::Key_Escape);
            QVERIFY(!shown.view.editBox());
            QCOMPARE(edited.size(), row);
            shown.view.beginEdit(row);
            field = shown.view.editBox()->field();
            QTest::keyClick(field, Qt::Key_Return);
            QTest::keyClicks(field, QStringLiteral("new"));
            QTest::keyClick(field, Qt::Key_Return, Qt::ControlModifier);
            QCOMPARE(edited.size(), row + 1);
            QCOMPARE(edited[row][0].toInt(), row);
            QCOMPARE(edited[row][1].toString(), old + QStringLiteral("\nnew"));
        }
        shown.view.beginEdit(1);
        QTest::keyClick(shown.view.editBox()->field(), Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(edited.size(), 2); // nothing changed, nothing is asked for
    }

    /// Streamed by any pieces, a message looks as it does when it is opened later.
    void streamedEqualsOpened() {
        const QString whole = richText();
        ChatModel streamed, opened;
        streamed.setMessages({message(MessageRole::Assistant, {}, MessageStatus::Writing)});
        opened.setMessages({message(MessageRole::Assistant, whole)});
        ChatView a(m_theme), b(m_theme);
        for (ChatView* view : {&a, &b}) {
            view->resize(560, 1500);
            view->show();
        }
        a.setModel(&streamed);
        b.setModel(&opened);
        for (int at = 0, n = 1; at < whole.size(); at += n, n = n % 7 + 1) {
            streamed.appendTokens(0, whole.mid(at, n), {1}, 20);
            streamed.flush();
        }
        streamed.edit(0, [](ChatMessage& m) { m = message(MessageRole::Assistant, m.text); });
        streamed.flush();
        QCOMPARE(a.rowRect(0), b.rowRect(0));
        QCOMPARE(a.grab().toImage(), b.grab().toImage());
    }

    /// U34: words, code, links and marks have a contrast of at least 4.5 on everything they stand on.
    void coloursCanBeRead() {
        for (const ThemeKind kind : {ThemeKind::Dark, ThemeKind::Light}) {
            const Theme t = Theme::load(kind);
            const TextColors c = TextColors::of(t, false), own = TextColors::of(t, true);
            const auto read = [&](const char* what, const QColor& text, std::initializer_list<QColor> grounds) {
                for (const QColor& ground : grounds)
                    QVERIFY2(contrast(text, ground) >= 4.5,
                             qPrintable(QStringLiteral("%1: %2 on %3 is %4")
                                            .arg(QLatin1StringView(what), text.name(), ground.name())
                                            .arg(contrast(text, ground))));
            };
            read("text", c.text, {t.bg1, c.selection, c.lit, c.tableHead, c.codeSpan});
            read("own text", own.text, {t.bubble, own.selection, own.codeSpan, own.card});
            read("code", c.code, {c.card, c.selection, c.lit});
            read("head of code", c.codeHead, {c.card});
            read("copy", t.text2, {c.card, t.bg3});
            read("thought", c.thought, {t.bg1, c.selection, c.codeSpan, c.tableHead, c.card});
            read("link", c.link, {t.bg1, c.selection, c.lit, c.tableHead});
            read("marks", t.warn, {t.bg1});
            read("failures", t.danger, {t.bg1});
            read("quiet", t.text3, {t.bg1});
            QVERIFY(contrast(t.focus, t.bg1) >= 3 && contrast(t.line3, t.bg1) >= 3);
        }
    }

    /// Lines are lines at every scale (this program is run at several): no half-coloured pixels beside them.
    void linesAreSharp() {
        const QString source = QStringLiteral("a\n\n---\n\n| b | c |\n|---|---|\n| d | e |\n| f | g |\n\n> \n");
        Shown shown(m_theme, message(MessageRole::Assistant, source), {500, 400});
        const QImage picture = shown.view.grab().toImage();
        const double scale = picture.devicePixelRatio();
        const QRect text = shown.view.partRect(1, MessagePart::Text);
        const int from = text.top() + int(shown.view.textOf(1).caretRect(int(source.indexOf("b |"))).top()) - 24;
        const TextColors colors = TextColors::of(m_theme, false);
        QSet<QRgb> seen;
        for (int y = int(from * scale); y < int(text.bottom() * scale); ++y)
            seen << picture.pixel(int((text.left() + 4) * scale), y);
        const QSet<QRgb> expected{m_theme.bg1.rgb(), colors.rule.rgb(), colors.cardLine.rgb(), colors.tableHead.rgb()};
        QVERIFY2((seen - expected).isEmpty(), qPrintable(QString::number(scale)));
        QCOMPARE(seen.size(), expected.size());
    }

    /// From 8 to 24 points, at every width of the chat: nothing leaves the column.
    void nothingIsCutOff() {
        for (const int pixels : {11, 14, 20, 32})
            for (const int width : {420, 572, 800}) {
                ChatMessage answer = message(MessageRole::Assistant, richText());
                answer.thinking = richText();
                Shown shown(m_theme, answer, {width, 700});
                shown.view.setTextSize(pixels);
                const MessageText& text = shown.view.textOf(1);
                QVERIFY(text.naturalWidth() <= shown.view.partRect(1, MessagePart::Text).width());
                for (const MessageHit& hit : shown.view.targets(1)) {
                    const QRect rect = shown.view.partRect(1, hit);
                    QVERIFY2(rect.left() >= 0 && rect.right() < width, qPrintable(QString::number(int(hit.part))));
                }
            }
    }
};

QTEST_MAIN(TestChatMarkdown)
#include "test_chat_markdown.moc"
