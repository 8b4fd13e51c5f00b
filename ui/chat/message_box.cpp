// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/message_box.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

#include "ui/chat/message_paint.h"
#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr std::size_t kBesideAtMost = 2;

} // namespace

MessageBox::MessageBox(Kind kind, const QString& sentence, const QString& detail, const std::vector<Action>& actions,
                       const Theme& theme, QWidget* parent)
    : QFrame(parent)
    , m_theme(theme)
    , m_kind(kind)
    , m_sentence(new QLabel(sentence, this)) {
    setAccessibleName(sentence);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(14 + 16 + 12, 12, 14, 12);
    row->setSpacing(12);
    auto* words = new QVBoxLayout;
    words->setSpacing(0);
    words->addStretch(1);
    m_sentence->setFont(textFont(TextRole::Control));
    m_sentence->setWordWrap(true);
    m_sentence->setTextFormat(Qt::PlainText);
    m_sentence->setTextInteractionFlags(Qt::TextSelectableByMouse);
    words->addWidget(m_sentence);
    if (!detail.isEmpty()) {
        auto* more = new QLabel(detail, this);
        more->setObjectName(QStringLiteral("quiet"));
        more->setFont(textFont(TextRole::Table));
        more->setWordWrap(true);
        more->setTextFormat(Qt::PlainText);
        words->addWidget(more);
    }
    QHBoxLayout* buttons = row;
    row->addLayout(words, 1);
    if (actions.size() > kBesideAtMost) {
        buttons = new QHBoxLayout;
        buttons->setContentsMargins(0, 8, 0, 0);
        buttons->setSpacing(8);
        words->addLayout(buttons);
    }
    words->addStretch(1);
    for (const Action& action : actions) {
        auto* button =
            new Button(action.text, action.primary ? Button::Kind::Primary : Button::Kind::Ghost, theme, this);
        connect(button, &QAbstractButton::clicked, this, action.run);
        buttons->addWidget(button, 0, Qt::AlignVCenter);
    }
    if (buttons != row)
        buttons->addStretch(1);
}

QString MessageBox::sentence() const {
    return m_sentence->text();
}

void MessageBox::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void MessageBox::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_kind == Kind::Danger ? m_theme.dangerFill
                     : m_kind == Kind::Warn ? m_theme.warnFill
                                            : m_theme.bg3);
    painter.drawRoundedRect(rect(), 8, 8);
    const int firstLine = m_sentence->y() + m_sentence->fontMetrics().height() / 2;
    paintIcon(painter, QRect(14, firstLine - 8, 16, 16), m_kind == Kind::Neutral ? Icon::Info : Icon::Warn, 16,
              m_kind == Kind::Danger ? m_theme.danger
              : m_kind == Kind::Warn ? m_theme.warn
                                     : m_theme.text2,
              devicePixelRatioF());
}

} // namespace kvscope::ui
