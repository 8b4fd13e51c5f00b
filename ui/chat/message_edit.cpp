// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/message_edit.h"

#include <QGuiApplication>
#include <QHBoxLayout>
#include <QInputMethod>
#include <QInputMethodEvent>
#include <QKeyEvent>
#include <QTextBlock>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/chat/composer_edit.h"
#include "ui/widgets/button.h"
#include "ui/widgets/field_frame.h"
#include "ui/widgets/line_edit.h"

namespace kvscope::ui {
namespace {

constexpr int kLinesAtLeast = 2, kLinesAtMost = 14;
constexpr int kFoot = 28 + 6;
constexpr QMargins kMargins(12, 8, 8, 8);

} // namespace

MessageEditField::MessageEditField(QWidget* parent) : QPlainTextEdit(parent) {
    setObjectName(QStringLiteral("composerText")); // the same look: its frame is that of the box around it
    setFrameShape(QFrame::NoFrame);
    setAccessibleName(tr("Text of the message"));
    setTabChangesFocus(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setProperty("kvscopeFocusInside", true);
    document()->setDocumentMargin(0);
}

void MessageEditField::keyPressEvent(QKeyEvent* event) {
    const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (m_composing && (enter || event->key() == Qt::Key_Escape)) {
        if (enter)
            QGuiApplication::inputMethod()->commit();
        event->accept();
    } else if (enter && event->modifiers() & Qt::ControlModifier) {
        emit accepted();
    } else if (event->key() == Qt::Key_Escape) {
        emit cancelled();
    } else {
        QPlainTextEdit::keyPressEvent(event);
    }
}

/// Esc is for this field before it is for any shortcut of the window; Ctrl+K is the window's.
bool MessageEditField::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride && windowKey(static_cast<QKeyEvent*>(event)))
        return true;
    if (event->type() == QEvent::ShortcutOverride && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        event->accept();
        return true;
    }
    return QPlainTextEdit::event(event);
}

void MessageEditField::inputMethodEvent(QInputMethodEvent* event) {
    m_composing = !event->preeditString().isEmpty();
    QPlainTextEdit::inputMethodEvent(event);
}

void MessageEditField::focusOutEvent(QFocusEvent* event) {
    m_composing = false;
    QPlainTextEdit::focusOutEvent(event);
}

MessageEdit::MessageEdit(const QString& text, bool question, int textPixels, const Theme& theme, QWidget* parent)
    : QFrame(parent)
    , m_theme(theme)
    , m_field(new MessageEditField(this))
    , m_cancel(new Button(tr("Cancel"), Button::Kind::Ghost, theme, this))
    , m_accept(new Button(question ? tr("Send") : tr("Save"), Button::Kind::Primary, theme, this)) {
    QFont font = textFont(TextRole::Chat);
    font.setPixelSize(textPixels);
    m_field->setFont(font);
    m_field->setPlainText(text);
    m_field->moveCursor(QTextCursor::End);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(kMargins);
    column->setSpacing(6);
    column->addWidget(m_field, 1);
    auto* foot = new QHBoxLayout;
    foot->setSpacing(8);
    foot->addStretch(1);
    foot->addWidget(m_cancel);
    foot->addWidget(m_accept);
    column->addLayout(foot);
    m_accept->setToolTip(question ? tr("Send as a new version (Ctrl+Enter)")
                                  : tr("Keep as a new version (Ctrl+Enter)"));
    m_cancel->setToolTip(tr("Leave it as it was (Esc)"));
    setFocusProxy(m_field);
    connect(m_field, &MessageEditField::accepted, this, [this] {
        if (m_accept->isEnabled())
            emit accepted();
    });
    connect(m_field, &MessageEditField::cancelled, this, &MessageEdit::cancelled);
    connect(m_cancel, &QAbstractButton::clicked, this, &MessageEdit::cancelled);
    connect(m_accept, &QAbstractButton::clicked, this, &MessageEdit::accepted);
    connect(m_field, &QPlainTextEdit::textChanged, this, [this] {
        updateButton();
        emit heightChanged();
    });
    updateButton();
}

QString MessageEdit::text() const {
    return exactTextOf(*m_field->document());
}

void MessageEdit::updateButton() {
    m_accept->setEnabled(m_mayBeEmpty || !text().trimmed().isEmpty());
}

void MessageEdit::setMayBeEmpty(bool may) {
    m_mayBeEmpty = may;
    updateButton();
}

int MessageEdit::wantedHeight(int width) const {
    // Counted here and not asked from the field, which knows its lines only after it has been shown at this width.
    const double inner = std::max(40, width - kMargins.left() - kMargins.right() - 16);
    const double perLine = std::max(1.0, inner / m_field->fontMetrics().averageCharWidth());
    int lines = 0;
    for (QTextBlock block = m_field->document()->begin(); block.isValid() && lines < kLinesAtMost; block = block.next())
        lines += 1 + int(block.length() / perLine);
    lines = std::clamp(lines, kLinesAtLeast, kLinesAtMost);
    return lines * m_field->fontMetrics().lineSpacing() + 4 + kFoot + kMargins.top() + kMargins.bottom();
}

void MessageEdit::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void MessageEdit::paintEvent(QPaintEvent*) {
    paintFieldFrame(*this, m_theme, m_field->hasFocus());
}

} // namespace kvscope::ui
