// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/conversation_delegate.h"

#include <QKeyEvent>
#include <QPainter>

#include "ui/models/conversation_list_model.h"
#include "ui/models/format.h"
#include "ui/models/search_model.h"
#include "ui/widgets/bar.h"
#include "ui/widgets/line_edit.h"
#include "ui/widgets/marked_text.h"

namespace kvscope::ui {
namespace {

constexpr int kRow = 56;
constexpr int kHeading = 32;
constexpr QSize kWarmth(28, 4);
using Model = ConversationListModel;

QRect cardOf(const QRect& row) {
    return row.adjusted(8, 0, -8, 0);
}
QRect titleOf(const QRect& row) {
    const QRect card = cardOf(row);
    return {card.left() + 10, card.top() + 8, card.width() - 18, 20};
}
QRect secondLineOf(const QRect& title) {
    return {title.left(), title.bottom() + 1 + 4, title.width(), 16};
}

void paintRowCard(QPainter& painter, const QStyleOptionViewItem& option, const Theme& theme) {
    const bool selected = option.state & QStyle::State_Selected;
    const QRect card = cardOf(option.rect);
    if (selected || (option.state & QStyle::State_MouseOver)) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(selected ? theme.sel : theme.bg3);
        painter.drawRoundedRect(card, 6, 6);
    }
    if (selected && (option.state & QStyle::State_HasFocus)) {
        painter.setPen(QPen(theme.focus, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(QRectF(card).adjusted(1, 1, -1, -1), 6, 6);
    }
}

} // namespace

// ---- conversations ----

ConversationDelegate::ConversationDelegate(const Theme& theme, QObject* parent)
    : QStyledItemDelegate(parent)
    , m_theme(theme) {}

QSize ConversationDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
    return {option.rect.width(), index.data(Model::HeadingRole).toBool() ? kHeading : kRow};
}

void ConversationDelegate::paintHeading(QPainter& painter, const QRect& rect, const QString& text) const {
    painter.setFont(textFont(TextRole::Axis, QFont::Medium));
    painter.setPen(m_theme.text3);
    painter.drawText(rect.adjusted(18, 12, -8, -4), Qt::AlignVCenter, text);
}

int ConversationDelegate::paintTime(QPainter& painter, const QRect& title, const QModelIndex& index) const {
    if (index.data(Model::RunningRole).toBool()) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(m_theme.accent);
        painter.drawEllipse(QRectF(title.right() - 7, title.center().y() - 3, 8, 8));
        return title.right() - 16;
    }
    const QString time = index.data(Model::TimeRole).toString();
    painter.setFont(figureFont(TextRole::Axis));
    painter.setPen(m_theme.text3);
    painter.drawText(title, Qt::AlignRight | Qt::AlignVCenter, time);
    return title.right() - painter.fontMetrics().horizontalAdvance(time) - 8;
}

void ConversationDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                                 const QModelIndex& index) const {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    if (index.data(Model::HeadingRole).toBool()) {
        paintHeading(*painter, option.rect, index.data().toString());
        painter->restore();
        return;
    }
    paintRowCard(*painter, option, m_theme);
    const QRect title = titleOf(option.rect);
    const int right = paintTime(*painter, title, index);
    const QFont titleFont = textFont(TextRole::Control, QFont::Medium);
    painter->setFont(titleFont);
    painter->setPen(m_theme.text1);
    const QRect titleText(title.left(), title.top(), right - title.left(), title.height());
    painter->drawText(titleText, Qt::AlignVCenter,
                      QFontMetrics(titleFont).elidedText(index.data().toString(), Qt::ElideRight, titleText.width()));
    QRect line = secondLineOf(title);
    if (index.data(Model::UnsavedRole).toBool()) {
        const QString mark = tr("not saved");
        painter->setFont(textFont(TextRole::Axis, QFont::Medium));
        painter->setPen(m_theme.warn);
        painter->drawText(line, Qt::AlignRight | Qt::AlignVCenter, mark);
        line.setRight(line.right() - painter->fontMetrics().horizontalAdvance(mark) - 8);
    }
    const QFont subtitleFont = figureFont(TextRole::Table);
    painter->setFont(subtitleFont);
    painter->setPen(option.state & QStyle::State_Selected ? m_theme.text2 : m_theme.text3);
    const QRect subtitle = line.adjusted(0, 0, -kWarmth.width() - 8, 0);
    painter->drawText(subtitle, Qt::AlignVCenter,
                      QFontMetrics(subtitleFont)
                          .elidedText(index.data(Model::SubtitleRole).toString(), Qt::ElideRight, subtitle.width()));
    paintWarmth(*painter, QRectF(QPointF(line.right() + 1 - kWarmth.width(), line.center().y() - 1), kWarmth), index);
    painter->restore();
}

void ConversationDelegate::paintWarmth(QPainter& painter, const QRectF& rect, const QModelIndex& index) const {
    if (!index.data(Model::WarmthKnownRole).toBool())
        return;
    paintBar(painter, rect,
             {{index.data(Model::WarmthInUseRole).toDouble(), m_theme.stateActive},
              {index.data(Model::WarmthCachedRole).toDouble(), m_theme.stateCachedRing}},
             m_theme.line2, m_theme.bg2);
}

QWidget* ConversationDelegate::createEditor(QWidget* parent, const QStyleOptionViewItem&, const QModelIndex&) const {
    auto* editor = new LineEdit(parent);
    editor->setObjectName(QStringLiteral("renameEditor"));
    editor->setAccessibleName(tr("Title of the chat"));
    editor->setFont(textFont(TextRole::Control, QFont::Medium));
    editor->setProperty("kvscopeFocusInside", true);
    return editor;
}

void ConversationDelegate::updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                                                const QModelIndex&) const {
    const QRect card = cardOf(option.rect);
    editor->setGeometry(card.adjusted(2, 3, -2, -25));
}

/// The base class would rename at Enter before the editor has seen the key.
bool ConversationDelegate::eventFilter(QObject* editor, QEvent* event) {
    const auto* field = qobject_cast<LineEdit*>(editor);
    if (field && field->composing() && (event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride))
        return false;
    return QStyledItemDelegate::eventFilter(editor, event);
}

// ---- what was found ----

QSize SearchDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const {
    return {option.rect.width(), kRow};
}

void SearchDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    paintRowCard(*painter, option, m_theme);
    const bool selected = option.state & QStyle::State_Selected;
    const QColor ground = selected ? QColor() : m_theme.sel;
    const QColor quiet = selected ? m_theme.text2 : m_theme.text3;
    const QRect title = titleOf(option.rect);
    const QString time = index.data(SearchModel::TimeRole).toString();
    painter->setFont(figureFont(TextRole::Axis));
    painter->setPen(quiet);
    painter->drawText(title, Qt::AlignRight | Qt::AlignVCenter, time);
    const int timeWidth = painter->fontMetrics().horizontalAdvance(time);
    const QString name = index.data().toString();
    paintMarked(*painter, title.adjusted(0, 0, -timeWidth - 8, 0), {name, foundRanges(name, m_query), false},
                textFont(TextRole::Control, QFont::Medium), m_theme.text1, m_theme.text1, ground);
    QRect line = secondLineOf(title);
    const int count = index.data(SearchModel::CountRole).toInt();
    if (count > 1) {
        const QString hits = tr("%1 hits").arg(formatNumber(count));
        painter->setFont(figureFont(TextRole::Axis));
        painter->setPen(quiet);
        painter->drawText(line, Qt::AlignRight | Qt::AlignVCenter, hits);
        line.setRight(line.right() - painter->fontMetrics().horizontalAdvance(hits) - 8);
    }
    const QString snippet = index.data(SearchModel::SnippetRole).toString();
    paintMarked(*painter, line,
                {snippet, foundRanges(snippet, m_query), index.data(SearchModel::SnippetCutRole).toBool()},
                figureFont(TextRole::Table), quiet, m_theme.text1, ground);
    painter->restore();
}

} // namespace kvscope::ui
