// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/sequence_delegate.h"

#include <QPainter>

#include "ui/cockpit/look.h"
#include "ui/models/format.h"
#include "ui/models/sequence_model.h"
#include "ui/widgets/bar.h"

namespace kvscope::ui {
namespace {
constexpr int kPadding = 8;
constexpr int kEdge = 14; ///< first column left, last column right
constexpr int kSquare = 8;
constexpr int kBarWidth = 32, kBarHeight = 4;
} // namespace

void SequenceDelegate::paint(QPainter* p, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    p->save();
    const bool chosen = index.data(SequenceModel::OwnerRole).toLongLong() == m_current.value();
    const bool last = index.row() + 1 == index.model()->rowCount();
    p->fillRect(option.rect, chosen ? m_theme.sel : m_theme.bg1);
    if (!last)
        p->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), m_theme.line1);
    QRect text = option.rect.adjusted(kPadding, 0, -kPadding, 0);
    const QString value = index.data().toString();
    const int column = index.column();
    if (column == SequenceModel::Conversation) {
        text.setLeft(option.rect.left() + kEdge);
        const int number = index.data(SequenceModel::OwnerNumberRole).toInt();
        p->setRenderHint(QPainter::Antialiasing);
        p->setPen(Qt::NoPen);
        p->setBrush(QColor(blockPalette(m_theme).ownerColor(number)));
        p->drawRoundedRect(QRect(text.left(), text.center().y() - kSquare / 2 + 1, kSquare, kSquare), 2, 2);
        text.setLeft(text.left() + kSquare + 8);
        p->setFont(figureFont(TextRole::Axis));
        p->setPen(m_theme.text3);
        const QString owner = QString::number(number);
        p->drawText(text, Qt::AlignVCenter, owner);
        text.setLeft(text.left() + p->fontMetrics().horizontalAdvance(owner) + 6);
        p->setFont(textFont(TextRole::Table));
        p->setPen(m_theme.text1);
        p->drawText(text, Qt::AlignVCenter, p->fontMetrics().elidedText(value, Qt::ElideRight, text.width()));
    } else if (const QVariant waiting = index.data(SequenceModel::WaitingRole);
               waiting.isValid() && column == SequenceModel::State) {
        p->setFont(figureFont(TextRole::Table));
        p->setPen(m_theme.warn);
        p->drawText(text, Qt::AlignVCenter,
                    p->fontMetrics().elidedText(waiting.toString(), Qt::ElideRight, text.width()));
    } else {
        if (column == SequenceModel::PerToken)
            text.setRight(option.rect.right() - kEdge);
        p->setFont(figureFont(TextRole::Table));
        const bool quiet = value == QString(kEnDash) || index.data(SequenceModel::IdleRole).toBool();
        p->setPen(quiet ? m_theme.text3 : m_theme.text1);
        p->drawText(text, (column >= SequenceModel::Tokens ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter, value);
        if (column == SequenceModel::State)
            paintShare(*p, text, index);
    }
    if (option.state & QStyle::State_HasFocus) {
        p->setRenderHint(QPainter::Antialiasing, false);
        p->setPen(QPen(m_theme.focus, 2));
        p->drawRect(option.rect.adjusted(1, 1, -1, -1));
    }
    p->restore();
}

/// How much of the prompt is read, or how much of an idle chat is still cached, beside the word.
void SequenceDelegate::paintShare(QPainter& p, const QRect& text, const QModelIndex& index) const {
    const QVariant progress = index.data(SequenceModel::ProgressRole);
    const QVariant cached = index.data(SequenceModel::StillCachedRole);
    if (!progress.isValid() && !cached.isValid())
        return;
    // At the place of the widest text, so that the bar stands still while the figure grows.
    const QString widest = SequenceModel::tr("Reading %1").arg(formatPercent(1));
    const int at = text.left() + p.fontMetrics().horizontalAdvance(widest) + 6;
    if (at + kBarWidth > text.right())
        return;
    const QRectF bar(at, text.center().y() - kBarHeight / 2 + 1, kBarWidth, kBarHeight);
    if (progress.isValid())
        paintBar(p, bar, {{progress.toDouble(), m_theme.accent}}, m_theme.bg4, m_theme.bg4);
    else
        paintBar(p, bar, {{cached.toDouble(), m_theme.stateCachedRing}}, m_theme.line2, m_theme.bg1);
}

} // namespace kvscope::ui
