// SPDX-License-Identifier: GPL-3.0-or-later
//
// MessageItem: how it looks.
#include <QCoreApplication>
#include <QFontMetrics>
#include <algorithm>

#include "ui/chat/message_facts.h"
#include "ui/chat/message_item.h"
#include "ui/chat/message_metrics.h"
#include "ui/chat/message_paint.h"
#include "ui/models/chat_words.h"
#include "ui/models/format.h"

namespace kvscope::ui {

void MessageItem::paint(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                        const ChatMessage& message) const {
    if (m_cutRect.isValid())
        paintCut(painter, origin, look);
    if (look.ringed) {
        const QRect around = m_own ? m_bubble.adjusted(-3, -3, 3, 3)
                                   : QRect(-5, m_cutRect.height() + 2, m_width + 10, m_height - m_cutRect.height() - 4);
        paintRing(painter, around.translated(origin), 8, *look.theme);
    }
    if (m_own)
        paintOwn(painter, origin, clip, look, message);
    else
        paintAnswer(painter, origin, clip, look, message);
    const QRect part =
        look.focused.part == MessagePart::Attachment ? rectOf(look.focused) : rectOfPart(look.focused.part);
    if (part.isValid())
        paintRing(painter, part.translated(origin), 6, *look.theme);
}

/// A dashed line through the column: what is above it is no longer read.
void MessageItem::paintCut(QPainter& painter, QPoint origin, const MessageLook& look) const {
    const Theme& t = *look.theme;
    const QRect row = m_cutRect.translated(origin);
    const QFont font = figureFont(TextRole::Table);
    const QString words = QFontMetrics(font).elidedText(cutSentence(), Qt::ElideRight, m_width - 80);
    const int width = QFontMetrics(font).horizontalAdvance(words) + 24;
    const int left = row.left() + (row.width() - width) / 2;
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(QPen(t.line3, 1, Qt::DashLine));
    painter.drawLine(row.left(), row.center().y(), left - 8, row.center().y());
    painter.drawLine(left + width + 8, row.center().y(), row.right(), row.center().y());
    paintIcon(painter, QRect(left, row.top(), 16, row.height()), Icon::Scissors, 16, t.text3, look.devicePixelRatio);
    painter.setFont(font);
    painter.setPen(t.text3);
    painter.drawText(row.adjusted(left - row.left() + 24, 0, 0, 0), Qt::AlignVCenter, words);
}

void MessageItem::paintText(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look) const {
    if (m_editHeight > 0)
        return; // a box stands in its place
    TextLook text;
    text.theme = look.theme;
    text.own = m_own;
    text.selection = look.selection;
    text.lit = look.lit;
    text.under = textHitOf(look.under);
    text.focused = textHitOf(look.focused);
    text.done = textHitOf(look.done);
    text.devicePixelRatio = look.devicePixelRatio;
    m_text.paint(painter, origin + m_textRect.topLeft(), clip, text);
}

void MessageItem::paintOwn(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                           const ChatMessage& message) const {
    const Theme& t = *look.theme;
    if (m_editHeight == 0)
        paintBubble(painter, QRectF(m_bubble.translated(origin)), t.bubble);
    if (!message.text.isEmpty() || m_chips.empty())
        paintText(painter, origin, clip, look);
    paintChips(painter, origin, look);
    paintVersions(painter, origin, look, message);
    paintActions(painter, origin, look, message);
    if (message.status == MessageStatus::Saving) {
        painter.setPen(t.text3);
        painter.setFont(textFont(TextRole::Table));
        painter.drawText(m_stateRect.translated(origin), Qt::AlignRight | Qt::AlignVCenter, stateSentence(message));
    }
}

void MessageItem::paintChips(QPainter& painter, QPoint origin, const MessageLook& look) const {
    for (std::size_t i = 0; i < m_chips.size(); ++i) {
        const MessageHit hit{MessagePart::Attachment, int(i)};
        paintChip(painter, m_chips[i].rect.translated(m_chipsAt + origin), m_chips[i], look,
                  look.under == hit || look.pressed == hit);
    }
}

void MessageItem::paintAnswer(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                              const ChatMessage& message) const {
    const Theme& t = *look.theme;
    if (isRunning(message.status) || look.blocksLit) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(look.blocksLit ? t.text1 : t.accent);
        painter.drawRoundedRect(QRectF(origin.x(), origin.y() + 12, 3, m_height - 20), 1.5, 1.5);
    }
    paintText(painter, origin, clip, look);
    if (message.status == MessageStatus::Writing)
        paintCaret(painter, origin, look, message);
    // While it is being written only the last line is asked for, many times a second.
    const auto asked = [&](const QRect& rect) { return rect.isValid() && rect.translated(origin).intersects(clip); };
    if (asked(m_stateRect))
        paintState(painter, origin, look, message);
    if (message.receipt && asked(rectOfPart(MessagePart::Receipt)))
        paintReceipt(painter, origin, look, message);
    if (asked(m_detailsRect))
        paintDetails(painter, origin, look, message);
    if (asked(m_actionsRect)) {
        paintVersions(painter, origin, look, message);
        paintActions(painter, origin, look, message);
    }
}

void MessageItem::paintCaret(QPainter& painter, QPoint origin, const MessageLook& look,
                             const ChatMessage& message) const {
    const bool thinking = message.text.isEmpty() && !message.thinking.isEmpty();
    if (thinking && !m_thoughtOpen)
        return; // its line says that it thinks
    const QRectF caret = m_text.caretRect(thinking ? int(m_text.thinking().size()) : m_text.end());
    const QPointF at = QPointF(origin + m_textRect.topLeft()) + caret.topLeft();
    painter.fillRect(QRectF(at.x() + 1, at.y() + (caret.height() - 17) / 2, 2, 17), look.theme->accent);
}

void MessageItem::paintState(QPainter& painter, QPoint origin, const MessageLook& look,
                             const ChatMessage& message) const {
    const Theme& t = *look.theme;
    const QRect rect = m_stateRect.translated(origin);
    if (message.status == MessageStatus::Reading) {
        paintReading(painter, rect, look, message);
        return;
    }
    const StateStyle style = stateStyle(message, t);
    if (style.icon)
        paintIcon(painter,
                  QRect(rect.left(), rect.top(), 16, message.status == MessageStatus::Failed ? kLine : rect.height()),
                  *style.icon, 16, style.color, look.devicePixelRatio);
    const QRect words = rect.adjusted(style.icon ? 24 : 0, 0, 0, 0);
    if (message.status == MessageStatus::Failed) {
        paintWrapped(painter, words.adjusted(0, 2, 0, 0), stateSentence(message), textFont(TextRole::Control),
                     lineHeight(TextRole::Control), style.color);
        return;
    }
    const QRect& go = rectOfPart(MessagePart::Continue);
    QRect line(words.left(), words.top(), words.width(), rect.height());
    if (go.isValid()) {
        line.setRight(go.translated(origin).left() - 8);
        paintTextButton(painter, go.translated(origin), continueWord(), true, look, MessagePart::Continue);
    }
    if (const QRect& away = rectOfPart(MessagePart::Discard); away.isValid())
        paintTextButton(painter, away.translated(origin), discardWord(), false, look, MessagePart::Discard);
    const QFont font = figureFont(TextRole::Table);
    painter.setPen(style.color);
    painter.setFont(font);
    painter.drawText(line, Qt::AlignVCenter,
                     QFontMetrics(font).elidedText(stateSentence(message), Qt::ElideRight, line.width()));
}

void MessageItem::paintReading(QPainter& painter, const QRect& rect, const MessageLook& look,
                               const ChatMessage& message) const {
    const Theme& t = *look.theme;
    paintFigures(painter, QRect(rect.left(), rect.top(), rect.width(), kLine), stateSentence(message),
                 figureFont(TextRole::Table), t.text2, t.text1);
    const Progress& p = message.progress;
    const double total = double(std::max<std::int64_t>(1, p.total));
    paintBar(painter, QRectF(rect.left(), rect.top() + kLine, rect.width(), 4),
             {{double(p.reused) / total, t.stateCachedRing}, {double(p.done - p.reused) / total, t.accent}}, t.bg4,
             t.well);
}

void MessageItem::paintReceipt(QPainter& painter, QPoint origin, const MessageLook& look,
                               const ChatMessage& message) const {
    const Theme& t = *look.theme;
    const QRect rect = rectOfPart(MessagePart::Receipt).translated(origin);
    const api::CacheReceipt& cache = message.receipt->cache;
    const double prompt = double(std::max<std::int64_t>(1, cache.reusedTokens + cache.computedTokens));
    paintBar(painter, QRectF(rect.left(), rect.center().y() - 2, 56, 6),
             {{double(cache.reusedTokens) / prompt, t.stateCachedRing},
              {double(cache.computedTokens) / prompt, t.stateActive}},
             t.stateEmpty, t.well);
    const bool warns = words::receiptWarns(cache);
    const bool over = look.under.part == MessagePart::Receipt;
    QRect line = rect.adjusted(64, 0, -24, 0);
    const QFont font = figureFont(TextRole::Table);
    if (message.tokensPerSecond > 0 && isRunning(message.status)) {
        const QString rate = formatRate(message.tokensPerSecond);
        const int width = QFontMetrics(font).horizontalAdvance(rate) + 8;
        painter.setPen(t.accent);
        painter.setFont(font);
        painter.drawText(rect, Qt::AlignRight | Qt::AlignVCenter, rate);
        line.setRight(line.right() - width);
    }
    const int end = paintFigures(painter, line, words::receiptLine(*message.receipt), font,
                                 warns  ? t.warn
                                 : over ? t.text1
                                        : t.text3,
                                 warns  ? t.warn
                                 : over ? t.text1
                                        : t.text2);
    paintIcon(painter, QRect(end + 4, rect.top(), 16, rect.height()), m_receiptOpen ? Icon::Up : Icon::Down, 16,
              warns  ? t.warn
              : over ? t.text1
                     : t.text3,
              look.devicePixelRatio);
}

void MessageItem::paintDetails(QPainter& painter, QPoint origin, const MessageLook& look,
                               const ChatMessage& message) const {
    const Theme& t = *look.theme;
    const QRect box = m_detailsRect.translated(origin);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(t.line2);
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
    const QRect inside = box.adjusted(kDetailsPadding, kDetailsPadding, -kDetailsPadding, -kDetailsPadding);
    const api::CacheReceipt& cache = message.receipt->cache;
    const int line = lineHeight(TextRole::Table);
    paintIcon(painter, QRect(inside.left(), inside.top(), 16, line), Icon::Info, 16,
              words::receiptWarns(cache) ? t.warn : t.text3, look.devicePixelRatio);
    const QString cause = words::receiptCause(*message.receipt);
    const QRect sentence(inside.left() + 24, inside.top(), inside.width() - 24, line);
    paintWrapped(painter, sentence, cause, textFont(TextRole::Table), line, t.text1);
    const int used = wrappedHeight(cause, textFont(TextRole::Table), line, sentence.width()) + 8;
    paintFacts(painter, inside.adjusted(0, used, 0, 0), receiptFacts(message), kFactNames, t);
}

void MessageItem::paintVersions(QPainter& painter, QPoint origin, const MessageLook& look,
                                const ChatMessage& message) const {
    if (!m_versionRect.isValid())
        return;
    const Theme& t = *look.theme;
    for (const MessagePart part : {MessagePart::Previous, MessagePart::Next}) {
        const bool there = part == MessagePart::Previous ? message.version > 1 : message.version < message.versions;
        const QRect rect = rectOfPart(part).translated(origin);
        const Icon icon = part == MessagePart::Previous ? Icon::Left : Icon::Right;
        if (there)
            paintActionIcon(painter, rect, icon, look, part, false);
        else
            paintIcon(painter, rect, icon, 16, t.textOff, look.devicePixelRatio);
    }
    painter.setPen(t.text2);
    painter.setFont(figureFont(TextRole::Table));
    painter.drawText(m_versionRect.translated(origin), Qt::AlignCenter, versionWords(message));
}

void MessageItem::paintActions(QPainter& painter, QPoint origin, const MessageLook& look,
                               const ChatMessage& message) const {
    const Theme& t = *look.theme;
    if (const QRect& stop = rectOfPart(MessagePart::Stop); stop.isValid())
        paintStopButton(painter, stop.translated(origin), look);
    if (!look.hovered && !look.blocksLit)
        return;
    constexpr std::pair<MessagePart, Icon> kIcons[] = {{MessagePart::Copy, Icon::Copy},
                                                       {MessagePart::Again, Icon::Again},
                                                       {MessagePart::Edit, Icon::Edit},
                                                       {MessagePart::Branch, Icon::Branch},
                                                       {MessagePart::ShowBlocks, Icon::Target}};
    for (const auto& [part, icon] : kIcons)
        if (const QRect& rect = rectOfPart(part); rect.isValid())
            paintActionIcon(painter, rect.translated(origin), look.done == MessageHit{part, 0} ? Icon::Check : icon,
                            look, part, part == MessagePart::ShowBlocks && look.blocksLit);
    const QRect& show = rectOfPart(MessagePart::ShowBlocks);
    if (look.blocksLit && show.isValid()) {
        painter.setPen(t.text2);
        painter.setFont(figureFont(TextRole::Table));
        painter.drawText(QRect(show.right() + 7, show.top(), m_width, kActions).translated(origin),
                         Qt::AlignVCenter | Qt::AlignLeft, litSentence(look.litBlocks));
    }
    if (message.status == MessageStatus::Done && message.tokensPerSecond > 0 && look.hovered && !look.blocksLit) {
        painter.setPen(t.text3);
        painter.setFont(figureFont(TextRole::Table));
        painter.drawText(m_actionsRect.translated(origin), Qt::AlignRight | Qt::AlignVCenter,
                         formatRate(message.tokensPerSecond));
    }
}

} // namespace kvscope::ui
