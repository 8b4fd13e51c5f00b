// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/composer.h"

#include <QAbstractTextDocumentLayout>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QInputMethod>
#include <QInputMethodEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr int kLinesAtMost = 8;
constexpr int kLinesAtLeast = 2;

} // namespace

ComposerEdit::ComposerEdit(QWidget* parent) : QPlainTextEdit(parent) {
    setObjectName(QStringLiteral("composerText"));
    setFrameShape(QFrame::NoFrame);
    setPlaceholderText(tr("Write a message"));
    setAccessibleName(tr("Message"));
    setTabChangesFocus(true);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setProperty("kvscopeFocusInside", true);
    document()->setDocumentMargin(0);
}

int ComposerEdit::wantedHeight() const {
    // A plain text document measures its height in lines.
    const int lines = std::clamp(int(document()->size().height()), kLinesAtLeast, kLinesAtMost);
    return lines * fontMetrics().lineSpacing() + 2;
}

void ComposerEdit::keyPressEvent(QKeyEvent* event) {
    const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (!enter) {
        QPlainTextEdit::keyPressEvent(event);
        return;
    }
    event->accept();
    if (m_composing) {
        QGuiApplication::inputMethod()->commit();
    } else if (event->modifiers() & Qt::ShiftModifier) {
        insertPlainText(QStringLiteral("\n"));
        ensureCursorVisible();
    } else {
        emit sendRequested();
    }
}

void ComposerEdit::inputMethodEvent(QInputMethodEvent* event) {
    m_composing = !event->preeditString().isEmpty();
    QPlainTextEdit::inputMethodEvent(event);
}

void ComposerEdit::focusInEvent(QFocusEvent* event) {
    QPlainTextEdit::focusInEvent(event);
    emit focusChanged(true);
}

void ComposerEdit::focusOutEvent(QFocusEvent* event) {
    m_composing = false;
    QPlainTextEdit::focusOutEvent(event);
    emit focusChanged(false);
}

Composer::Composer(const Theme& theme, QWidget* parent)
    : QFrame(parent)
    , m_theme(theme)
    , m_edit(new ComposerEdit(this))
    , m_hint(new QLabel(this))
    , m_button(new Button(QString(), Button::Kind::Primary, theme, this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14, 10, 8, 8);
    column->setSpacing(6);
    column->addWidget(m_edit);
    auto* foot = new QHBoxLayout;
    foot->setContentsMargins(0, 0, 0, 0);
    foot->setSpacing(8);
    m_hint->setObjectName(QStringLiteral("hint"));
    m_hint->setFont(textFont(TextRole::Table));
    m_hint->setTextFormat(Qt::PlainText);
    foot->addWidget(m_hint, 1);
    foot->addWidget(m_button);
    column->addLayout(foot);
    m_button->setFixedSize(32, 28);
    connect(m_edit, &ComposerEdit::sendRequested, this, &Composer::sendRequested);
    connect(m_edit, &ComposerEdit::focusChanged, this, [this] { update(); });
    connect(m_edit, &QPlainTextEdit::textChanged, this, [this] {
        updateHeight();
        updateButton();
    });
    connect(m_edit->document()->documentLayout(), &QAbstractTextDocumentLayout::documentSizeChanged, this,
            [this] { updateHeight(); });
    connect(m_button, &QAbstractButton::clicked, this,
            [this] { m_answering ? emit stopRequested() : emit sendRequested(); });
    setTextSize(14);
    updateButton();
}

void Composer::setText(const QString& text) {
    m_edit->setPlainText(text);
    m_edit->moveCursor(QTextCursor::End);
}

void Composer::setTextSize(int pixels) {
    QFont font = textFont(TextRole::Chat);
    font.setPixelSize(pixels);
    m_edit->setFont(font);
    updateHeight();
}

void Composer::setState(bool canSend, bool answering, const QString& hint) {
    m_canSend = canSend;
    m_answering = answering;
    m_hint->setText(hint);
    updateButton();
}

void Composer::setTheme(const Theme& theme) {
    m_theme = theme;
    QPalette palette = m_edit->palette();
    palette.setColor(QPalette::PlaceholderText, theme.text3);
    m_edit->setPalette(palette);
    update();
}

void Composer::updateButton() {
    m_button->setGlyph(m_answering ? Icon::Stop : Icon::Send);
    m_button->setAccessibleName(m_answering ? tr("Stop") : tr("Send"));
    m_button->setToolTip(m_answering ? tr("Stop (Esc)") : tr("Send (Enter)"));
    m_button->setEnabled(m_answering || (m_canSend && !m_edit->toPlainText().trimmed().isEmpty()));
}

void Composer::updateHeight() {
    const int wanted = m_edit->wantedHeight();
    if (m_edit->height() != wanted || m_edit->minimumHeight() != wanted)
        m_edit->setFixedHeight(wanted);
    m_edit->setVerticalScrollBarPolicy(
        int(m_edit->document()->size().height()) > kLinesAtMost ? Qt::ScrollBarAsNeeded : Qt::ScrollBarAlwaysOff);
}

void Composer::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    updateHeight();
}

void Composer::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const bool focused = m_edit->hasFocus();
    painter.setPen(QPen(focused ? m_theme.focus : m_theme.line3, focused ? 2 : 1));
    painter.setBrush(m_theme.kind == ThemeKind::Light ? m_theme.bg1 : m_theme.bg2);
    const double inset = focused ? 1 : 0.5;
    painter.drawRoundedRect(QRectF(rect()).adjusted(inset, inset, -inset, -inset), 10, 10);
}

} // namespace kvscope::ui
