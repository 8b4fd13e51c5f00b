// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/attachment_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QVBoxLayout>

#include "ui/chat/message_chips.h"
#include "ui/models/attachment.h"
#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr int kWidth = 640, kHeight = 560;
constexpr qsizetype kLongestLine = 2000; // what a text field lays out without a stall

} // namespace

QString withShortLines(const QString& text, qsizetype most) {
    QString out;
    out.reserve(text.size() + text.size() / most);
    qsizetype line = 0;
    for (const QChar c : text) {
        if (line >= most && !c.isLowSurrogate() && c != QLatin1Char('\n')) {
            out += QLatin1Char('\n');
            line = 0;
        }
        out += c;
        line = c == QLatin1Char('\n') ? 0 : line + 1;
    }
    return out;
}

AttachmentView::AttachmentView(const Attachment& attachment, const Theme& theme, QWidget* parent)
    : QDialog(parent)
    , m_attachment(attachment)
    , m_text(new QPlainTextEdit(this)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(attachmentTitle(attachment));
    resize(kWidth, kHeight);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(16, 16, 16, 16);
    column->setSpacing(8);
    auto* head = new QHBoxLayout;
    auto* note = new QLabel(attachmentNote(attachment), this);
    note->setFont(figureFont(TextRole::Control));
    note->setTextFormat(Qt::PlainText);
    auto* copy = new Button(tr("Copy"), Button::Kind::Ghost, theme, this);
    copy->setGlyph(Icon::Copy);
    connect(copy, &QAbstractButton::clicked, this, &AttachmentView::copyAll);
    head->addWidget(note, 1);
    head->addWidget(copy);
    column->addLayout(head);
    m_text->setReadOnly(true);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_text->setFont(monoFont(TextRole::Table));
    m_text->setAccessibleName(tr("Text of %1").arg(attachmentTitle(attachment)));
    m_text->setPlainText(withShortLines(attachment.text, kLongestLine));
    column->addWidget(m_text, 1);
    m_text->setFocus();
}

QString AttachmentView::shownText() const {
    return m_text->toPlainText();
}

void AttachmentView::copyAll() {
    QGuiApplication::clipboard()->setText(m_attachment.text);
}

void AttachmentView::setTheme(const Theme&) {
    m_text->viewport()->update();
}

} // namespace kvscope::ui
