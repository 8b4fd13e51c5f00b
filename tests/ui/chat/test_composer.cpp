// SPDX-License-Identifier: GPL-3.0-or-later
//
// The message field: keys that send, input methods, attachments, pastes of any size.
#include <QAbstractButton>
#include <QApplication>
#include <QClipboard>
#include <QFile>
#include <QInputMethodEvent>
#include <QMimeData>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QUrl>
#include <sys/stat.h>

#include "ui/chat/attachment_chips.h"
#include "ui/chat/composer.h"
#include "ui/widgets/icon_button.h"
#include "ui/widgets/line_edit.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

void compose(QWidget* field, const QString& preedit) {
    QInputMethodEvent event(preedit, {});
    QCoreApplication::sendEvent(field, &event);
}
void commit(QWidget* field, const QString& text) {
    QInputMethodEvent event;
    event.setCommitString(text);
    QCoreApplication::sendEvent(field, &event);
}

void paste(ComposerEdit* edit, const QString& text) {
    QGuiApplication::clipboard()->setText(text);
    edit->paste();
}

} // namespace

class TestComposer final : public QObject {
    Q_OBJECT
    const Theme m_theme = Theme::load(ThemeKind::Dark);
    QTemporaryDir m_dir;

    QString file(const QString& name, const QByteArray& bytes) const {
        QFile out(m_dir.filePath(name));
        if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size())
            qFatal("a file of the test cannot be written");
        return out.fileName();
    }

private slots:
    void theChosenKeySends_data() {
        QTest::addColumn<int>("setting");
        QTest::addColumn<int>("modifiers");
        QTest::addColumn<bool>("sends");
        const auto row = [](SendKey key, Qt::KeyboardModifiers with, bool sends) {
            QTest::addRow("%s with %d", qPrintable(sendKeyName(key)), int(with)) << int(key) << int(with) << sends;
        };
        row(SendKey::Enter, Qt::NoModifier, true);
        row(SendKey::Enter, Qt::KeypadModifier, true);
        row(SendKey::Enter, Qt::ShiftModifier, false);
        row(SendKey::Enter, Qt::ControlModifier, true);
        row(SendKey::ShiftEnter, Qt::NoModifier, false);
        row(SendKey::ShiftEnter, Qt::ShiftModifier, true);
        row(SendKey::ShiftEnter, Qt::ControlModifier, false);
        row(SendKey::CtrlEnter, Qt::NoModifier, false);
        row(SendKey::CtrlEnter, Qt::ShiftModifier, false);
        row(SendKey::CtrlEnter, Qt::ControlModifier, true);
    }
    void theChosenKeySends() {
        QFETCH(int, setting);
        QFETCH(int, modifiers);
        QFETCH(bool, sends);
        Composer composer(m_theme);
        composer.setSendKey(SendKey(setting));
        composer.setState(true, false, {});
        composer.show();
        QTest::keyClicks(composer.edit(), QStringLiteral("a"));
        QSignalSpy sent(&composer, &Composer::sendRequested);
        QTest::keyClick(composer.edit(), Qt::Key_Return, Qt::KeyboardModifiers(modifiers));
        QCOMPARE(sent.count(), sends ? 1 : 0);
        QCOMPARE(composer.text(), sends ? QStringLiteral("a") : QStringLiteral("a\n"));
        QCOMPARE(sendKeyFrom(sendKeyName(SendKey(setting))), SendKey(setting));
    }

    /// U30: the keys of a composition are the input method's.
    void enterWhileComposingSendsNothing() {
        Composer composer(m_theme);
        composer.setState(true, false, {});
        composer.show();
        QSignalSpy sent(&composer, &Composer::sendRequested);
        ComposerEdit* edit = composer.edit();
        compose(edit, QStringLiteral("nihao"));
        for (const Qt::Key key : {Qt::Key_Return, Qt::Key_Enter, Qt::Key_Up, Qt::Key_Down, Qt::Key_Left, Qt::Key_Tab}) {
            QTest::keyClick(edit, key);
            QVERIFY(edit->composing());
        }
        QTest::keyClick(edit, Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(sent.count(), 0);
        QCOMPARE(composer.text(), QString());
        commit(edit, QStringLiteral("你好"));
        QCOMPARE(composer.text(), QStringLiteral("你好"));
        QTest::keyClick(edit, Qt::Key_Return);
        QCOMPARE(sent.count(), 1);
        QCOMPARE(composer.message(), QStringLiteral("你好"));
    }

    void escapeWhileComposingThrowsOnlyTheCompositionAway() {
        Composer composer(m_theme);
        composer.show();
        ComposerEdit* edit = composer.edit();
        QTest::keyClicks(edit, QStringLiteral("before"));
        compose(edit, QStringLiteral("nihao"));
        QTest::keyClick(edit, Qt::Key_Escape);
        QVERIFY(!edit->composing());
        QCOMPARE(composer.text(), QStringLiteral("before"));
    }

    /// The candidates of an input method open at the caret: the field says where that is.
    void theCaretIsWhereTheTextIs() {
        Composer composer(m_theme);
        composer.resize(500, 160);
        composer.show();
        QTest::keyClicks(composer.edit(), QStringLiteral("some words"));
        const QRect caret = composer.edit()->inputMethodQuery(Qt::ImCursorRectangle).toRect();
        QVERIFY(caret.isValid());
        QVERIFY(composer.edit()->viewport()->rect().contains(caret.center()));
        QVERIFY(caret.left() > 20);
    }

    void oneLineFieldsLeaveCompositionsAlone() {
        LineEdit field;
        field.show();
        QSignalSpy entered(&field, &QLineEdit::returnPressed), ended(&field, &QLineEdit::editingFinished);
        compose(&field, QStringLiteral("nihao"));
        QTest::keyClick(&field, Qt::Key_Return);
        QCOMPARE(entered.count() + ended.count(), 0);
        commit(&field, QStringLiteral("你好"));
        QCOMPARE(field.text(), QStringLiteral("你好"));
        QTest::keyClick(&field, Qt::Key_Return);
        QCOMPARE(entered.count(), 1);
    }

    void ctrlKBelongsToTheWindow() {
        Composer composer(m_theme);
        composer.show();
        composer.setText(QStringLiteral("a line that must stay"));
        composer.edit()->moveCursor(QTextCursor::Start);
        QKeyEvent override(QEvent::ShortcutOverride, Qt::Key_K, Qt::ControlModifier);
        override.ignore();
        QCoreApplication::sendEvent(composer.edit(), &override);
        QVERIFY2(!override.isAccepted(), "the field wants to edit with it");
    }

    void textStaysAsItWasPasted() {
        Composer composer(m_theme);
        composer.show();
        const QString text = QStringLiteral("tab\there\u00a0no break\n\n  indented\u3000wide\n");
        paste(composer.edit(), text);
        QCOMPARE(composer.text(), text);
        composer.edit()->undo();
        QCOMPARE(composer.text(), QString());
        composer.edit()->redo();
        QCOMPARE(composer.text(), text);
    }

    void whatWasSentComesBackByUndo() {
        Composer composer(m_theme);
        QTest::keyClicks(composer.edit(), QStringLiteral("typed"));
        composer.clear();
        QCOMPARE(composer.text(), QString());
        composer.edit()->undo();
        QCOMPARE(composer.text(), QStringLiteral("typed"));
    }

    void anotherDraftDoesNotMixWithThisOne() {
        Composer composer(m_theme);
        QTest::keyClicks(composer.edit(), QStringLiteral("of the first chat"));
        composer.setDraft({QStringLiteral("of the second"), {}});
        composer.edit()->undo();
        QCOMPARE(composer.text(), QStringLiteral("of the second"));
    }

    /// 1.5 MB in one line, in many, and in Chinese: it becomes a chip, and is sent to the last character.
    void hugePastesBecomeChips_data() {
        QTest::addColumn<QString>("text");
        QTest::newRow("one line") << QString(1'500'000, QLatin1Char('x'));
        QTest::newRow("many lines") << QStringLiteral("a line of a log file, as there are many\n").repeated(37'500);
        QTest::newRow("Chinese") << QStringLiteral("把块还给池。").repeated(100'000);
        QTest::newRow("a long line among short ones")
            << QStringLiteral("short\n") + QString(20'000, QLatin1Char('y')) + QStringLiteral("\nshort");
    }
    void hugePastesBecomeChips() {
        QFETCH(QString, text);
        Composer composer(m_theme);
        composer.setState(true, false, {});
        composer.show();
        QTest::keyClicks(composer.edit(), QStringLiteral("Summarise:"));
        paste(composer.edit(), text);
        QCOMPARE(composer.text(), QStringLiteral("Summarise:"));
        QCOMPARE(composer.chips()->attachments().size(), std::size_t(1));
        QCOMPARE(composer.message(), QStringLiteral("Summarise:\n\n") + text);
        composer.setDraft(composer.draft());
        QCOMPARE(composer.message(), QStringLiteral("Summarise:\n\n") + text);
    }

    void filesAreFencedAndNamed() {
        Composer composer(m_theme);
        composer.show();
        QTest::keyClicks(composer.edit(), QStringLiteral("Explain"));
        composer.addFiles({file(QStringLiteral("a.py"), "print(1)\n"),
                           file(QStringLiteral("notes"), "```\ninside ````fence\n``` no newline at the end")});
        QCOMPARE(composer.refusal(), QString());
        QCOMPARE(composer.message(),
                 QStringLiteral("Explain\n\na.py:\n```py\nprint(1)\n```\n\n"
                                "notes:\n`````\n```\ninside ````fence\n``` no newline at the end\n`````"));
        QCOMPARE(composer.chips()->chip(0)->note(), QStringLiteral("9\u202fB"));
        composer.chips()->setTokens(0, 4610);
        QCOMPARE(composer.chips()->chip(0)->note(), QStringLiteral("9\u202fB · 4,610 tokens"));
        QTest::mouseClick(composer.chips()->chip(0)->removeButton(), Qt::LeftButton);
        QCOMPARE(composer.chips()->attachments().size(), std::size_t(1));
        QCOMPARE(composer.chips()->attachments()[0].name, QStringLiteral("notes"));
    }

    void whatIsNoTextIsRefused_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QString>("sentence");
        const auto row = [](const char* name, const QByteArray& bytes, const char* sentence) {
            QTest::newRow(name) << QString::fromLatin1(name) << bytes << QString::fromUtf8(sentence);
        };
        row("picture.png", QByteArray("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16), "picture.png is not text");
        row("zeros", QByteArray(100, '\0'), "zeros is not text");
        row("latin1.txt", "caf\xe9 cr\xe8me", "latin1.txt is not UTF-8 text; save it as UTF-8");
        row("cut.txt", "half a character \xe4\xbd", "cut.txt is not UTF-8 text");
        row("empty.txt", "", "empty.txt is empty");
        row("large.log", QByteArray((1 << 20) + 1, 'x'), "large.log has 1.0\u202fMiB, an attachment at most");
    }
    void whatIsNoTextIsRefused() {
        QFETCH(QString, name);
        QFETCH(QByteArray, bytes);
        QFETCH(QString, sentence);
        Composer composer(m_theme);
        composer.addFiles({file(name, bytes)});
        QVERIFY2(composer.refusal().startsWith(sentence), qPrintable(composer.refusal()));
        QVERIFY(composer.chips()->attachments().empty());
    }

    void whatIsNoFileIsRefused() {
        Composer composer(m_theme);
        composer.addFiles({m_dir.path()});
        QVERIFY(composer.refusal().contains(QStringLiteral("is a folder")));
        composer.addFiles({m_dir.filePath(QStringLiteral("gone.txt"))});
        QVERIFY(composer.refusal().contains(QStringLiteral("is not there any more")));
        const QString pipe = m_dir.filePath(QStringLiteral("pipe"));
        QCOMPARE(::mkfifo(qPrintable(pipe), 0600), 0); // reading it would never end
        composer.addFiles({pipe});
        QVERIFY(composer.refusal().contains(QStringLiteral("is not a file")));
    }

    void textFilesOfOtherKindsAreRead() {
        Composer composer(m_theme);
        composer.addFiles({file(QStringLiteral("whole.txt"), QByteArray(1 << 20, 'x')),
                           file(QStringLiteral("mark.txt"), "\xef\xbb\xbfwith a mark"),
                           file(QStringLiteral("utf16.txt"), QByteArray("\xff\xfeh\0i\0", 6)),
                           file(QStringLiteral("colours.log"), "\x1b[31mred\x1b[0m and plain text of a line\n")});
        QCOMPARE(composer.refusal(), QString());
        QCOMPARE(composer.chips()->attachments().size(), std::size_t(4));
        QCOMPARE(composer.chips()->attachments()[1].text, QStringLiteral("with a mark"));
        QCOMPARE(composer.chips()->attachments()[2].text, QStringLiteral("hi"));
    }

    void pastedFilesAreAttached() {
        Composer composer(m_theme);
        QSignalSpy offered(&composer, &Composer::filesOffered);
        auto* data = new QMimeData;
        const QString path = file(QStringLiteral("b.txt"), "text");
        data->setUrls({QUrl::fromLocalFile(path)});
        QGuiApplication::clipboard()->setMimeData(data);
        composer.edit()->paste();
        QCOMPARE(offered.count(), 1);
        QCOMPARE(offered[0][0].toStringList(), QStringList{path});
        QCOMPARE(composer.text(), QString());
    }

    void theButtonDoesWhatCanBeDone() {
        Composer composer(m_theme);
        composer.show();
        QAbstractButton* button = nullptr;
        for (QAbstractButton* candidate : composer.findChildren<QAbstractButton*>())
            if (candidate->accessibleName() == QStringLiteral("Send"))
                button = candidate;
        QVERIFY(button);
        composer.setState(true, false, {});
        QVERIFY(!button->isEnabled());
        QTest::keyClicks(composer.edit(), QStringLiteral("  "));
        QVERIFY2(!button->isEnabled(), "spaces are no message");
        QTest::keyClicks(composer.edit(), QStringLiteral("x"));
        QVERIFY(button->isEnabled());
        composer.setState(true, true, {});
        QSignalSpy sent(&composer, &Composer::sendRequested), stopped(&composer, &Composer::stopRequested);
        button->click();
        QCOMPARE(sent.count(), 1); // it waits for the end of the answer
        composer.clear();
        button->click();
        QCOMPARE(stopped.count(), 1);
    }

    void theWaitingMessageCanBeTakenBack() {
        Composer composer(m_theme);
        composer.show();
        composer.setQueued(QStringLiteral("next question"));
        QSignalSpy edit(&composer, &Composer::queuedEditRequested), cancel(&composer, &Composer::queuedCancelRequested);
        auto* editButton = composer.findChild<QAbstractButton*>(QStringLiteral("queuedEdit"));
        auto* cancelButton = composer.findChild<QAbstractButton*>(QStringLiteral("queuedCancel"));
        QVERIFY(editButton->isVisible() && cancelButton->isVisible());
        editButton->click();
        cancelButton->click();
        QCOMPARE(edit.count(), 1);
        QCOMPARE(cancel.count(), 1);
        composer.setQueued({});
        QVERIFY(!editButton->isVisible());
    }
};

QTEST_MAIN(TestComposer)
#include "test_composer.moc"
