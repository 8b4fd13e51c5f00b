// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/message_item.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <algorithm>

#include "ui/chat/message_facts.h"
#include "ui/chat/message_paint.h"
#include "ui/models/chat_words.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

constexpr int kAnswerIndent = 14; // room of the bar at the left
constexpr int kMeasure = 720;     // an answer's lines are never longer
constexpr int kLine = 24;         // receipt, state
constexpr int kActions = 28;
constexpr int kBubbleTop = 6; // the answer above ends with the room of its actions
constexpr QPoint kBubblePadding(12, 8);
constexpr int kDetailsPadding = 12;
constexpr int kFactNames = 104;

} // namespace

void MessageItem::guess(const ChatMessage& message, const ChatStyle& style, int width) {
    m_measured = false;
    m_own = message.role == MessageRole::User;
    m_height = MessageText::estimateHeight(message.text, style, std::min(width, kMeasure)) +
               (m_own ? 36 : 12 + kActions + (message.receipt ? kLine : 0));
}

void MessageItem::update(const ChatMessage& message, const ChatStyle& style, int width, bool appendedOnly) {
    m_own = message.role == MessageRole::User;
    const int textWidth = m_own ? width * 82 / 100 - 2 * kBubblePadding.x() : std::min(kMeasure, width - kAnswerIndent);
    if (!m_measured || width != m_width || style.textLine != m_style.textLine) {
        m_style = style;
        m_text.setStyle(style, textWidth);
        appendedOnly = appendedOnly && m_measured;
    }
    m_width = width;
    if (m_text.text() != message.text)
        m_text.setText(message.text, appendedOnly);
    m_measured = true;
    m_stateRect = m_receiptRect = m_detailsRect = m_actionsRect = m_copyRect = m_showRect = m_stopRect = QRect();
    if (m_own)
        placeOwn(message, width);
    else
        placeAnswer(message, width);
}

void MessageItem::placeOwn(const ChatMessage& message, int width) {
    const QSize bubble(m_text.naturalWidth() + 2 * kBubblePadding.x(), m_text.height() + 2 * kBubblePadding.y());
    m_bubble = QRect(QPoint(width - bubble.width(), kBubbleTop), bubble);
    m_textRect = m_bubble.adjusted(kBubblePadding.x(), kBubblePadding.y(), -kBubblePadding.x(), -kBubblePadding.y());
    m_copyRect = QRect(m_bubble.left() - 32, m_bubble.top() + 4, kActions, kActions);
    int y = m_bubble.bottom() + 1 + 4;
    if (message.status == MessageStatus::Saving) {
        m_stateRect = QRect(0, y, width, kLine);
        y += kLine;
    }
    m_height = y;
}

void MessageItem::placeAnswer(const ChatMessage& message, int width) {
    const int left = kAnswerIndent;
    const int inner = width - left;
    int y = 8;
    m_textRect = QRect(left, y, std::min(kMeasure, inner), m_text.height());
    if (m_text.height() > 0)
        y += m_text.height() + 8;
    const QString state = stateSentence(message);
    if (!state.isEmpty()) {
        const int height = message.status == MessageStatus::Reading ? kLine + 8
                           : message.status == MessageStatus::Failed
                               ? std::max(kLine, wrappedHeight(state, textFont(TextRole::Control),
                                                               lineHeight(TextRole::Control), inner - 24) +
                                                     4)
                               : kLine;
        m_stateRect = QRect(left, y, inner, height);
        y += height;
    }
    if (message.receipt) {
        m_receiptRect = QRect(left, y, inner, kLine);
        y += kLine;
        if (m_receiptOpen) {
            const int boxWidth = std::min(kMeasure, inner);
            const int height = kDetailsPadding * 2 +
                               wrappedHeight(words::receiptCause(message.receipt->cache), textFont(TextRole::Table),
                                             lineHeight(TextRole::Table), boxWidth - 2 * kDetailsPadding - 24) +
                               8 + factsHeight(receiptFacts(message), boxWidth - 2 * kDetailsPadding, kFactNames);
            m_detailsRect = QRect(left, y + 4, boxWidth, height);
            y += height + 8;
        }
    }
    // Room for the actions is always there, so that hovering moves nothing.
    m_actionsRect = QRect(left - 6, y, inner + 6, kActions);
    int x = m_actionsRect.left();
    if (isRunning(message.status)) {
        m_stopRect = QRect(left, y + 2, stopButtonWidth(), kLine);
        x = m_stopRect.right() + 9;
    }
    if (!message.text.isEmpty()) {
        m_copyRect = QRect(x, y, kActions, kActions);
        x += kActions + 2;
    }
    if (message.tokenRange.second > message.tokenRange.first)
        m_showRect = QRect(x, y, kActions, kActions);
    m_height = y + kActions + 4;
}

QRect MessageItem::tailRect() const {
    const QRectF caret = m_text.caretRect(int(m_text.text().size()));
    return {m_textRect.left(), m_textRect.top() + int(caret.top()), m_textRect.width() + 4, int(caret.height()) + 2};
}

MessagePart MessageItem::partAt(QPoint point) const {
    if (m_stopRect.contains(point))
        return MessagePart::Stop;
    if (m_copyRect.contains(point))
        return MessagePart::Copy;
    if (m_showRect.contains(point))
        return MessagePart::ShowBlocks;
    if (m_receiptRect.contains(point))
        return MessagePart::Receipt;
    if (m_textRect.adjusted(-4, -4, 4, 4).contains(point))
        return MessagePart::Text;
    return MessagePart::None;
}

QRect MessageItem::partRect(MessagePart part) const {
    switch (part) {
    case MessagePart::Text:
        return m_textRect;
    case MessagePart::Receipt:
        return m_receiptRect;
    case MessagePart::Copy:
        return m_copyRect;
    case MessagePart::ShowBlocks:
        return m_showRect;
    case MessagePart::Stop:
        return m_stopRect;
    case MessagePart::None:
        break;
    }
    return {};
}

QString MessageItem::hint(MessagePart part) const {
    switch (part) {
    case MessagePart::Copy:
        return QCoreApplication::translate("MessageItem", "Copy this message");
    case MessagePart::ShowBlocks:
        return QCoreApplication::translate("MessageItem", "Show its blocks in the map");
    case MessagePart::Receipt:
        return m_receiptOpen ? QString()
                             : QCoreApplication::translate("MessageItem", "What the cache did for this answer");
    default:
        return {};
    }
}

void MessageItem::paint(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                        const ChatMessage& message) const {
    if (look.ringed) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(look.theme->focus, 2));
        painter.setBrush(Qt::NoBrush);
        const QRect around = m_own ? m_bubble.adjusted(-3, -3, 3, 3) : QRect(-5, 2, m_width + 10, m_height - 4);
        painter.drawRoundedRect(QRectF(around.translated(origin)), 8, 8);
    }
    if (m_own)
        paintOwn(painter, origin, clip, look, message);
    else
        paintAnswer(painter, origin, clip, look, message);
}

void MessageItem::paintText(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look) const {
    const Theme& t = *look.theme;
    MessageText::Colors colors;
    colors.text = t.text1;
    colors.code = t.text1;
    colors.quiet = t.text3;
    colors.card = t.kind == ThemeKind::Light ? t.bg2 : t.bg0;
    colors.cardLine = t.line1;
    colors.selection = t.kind == ThemeKind::Light ? t.sel.darker(106) : t.sel.lighter(130);
    colors.lit = t.accentSoft;
    m_text.paint(painter, origin + m_textRect.topLeft(), clip, colors, look.selection, look.lit);
}

void MessageItem::paintOwn(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                           const ChatMessage& message) const {
    const Theme& t = *look.theme;
    paintBubble(painter, QRectF(m_bubble.translated(origin)), t.bubble);
    paintText(painter, origin, clip, look);
    if (look.hovered)
        paintActionIcon(painter, m_copyRect.translated(origin), Icon::Copy, look, MessagePart::Copy, false);
    if (message.status == MessageStatus::Saving) {
        painter.setPen(t.text3);
        painter.setFont(textFont(TextRole::Table));
        painter.drawText(m_stateRect.translated(origin), Qt::AlignRight | Qt::AlignVCenter, stateSentence(message));
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
        paintCaret(painter, origin, look);
    // While it is being written only the last line is asked for, many times a second.
    const auto asked = [&](const QRect& rect) { return rect.isValid() && rect.translated(origin).intersects(clip); };
    if (asked(m_stateRect))
        paintState(painter, origin, look, message);
    if (message.receipt && asked(m_receiptRect))
        paintReceipt(painter, origin, look, message);
    if (asked(m_detailsRect))
        paintDetails(painter, origin, look, message);
    paintActions(painter, origin, look, message);
}

void MessageItem::paintCaret(QPainter& painter, QPoint origin, const MessageLook& look) const {
    const QRectF caret = m_text.caretRect(int(m_text.text().size()));
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
        paintIcon(painter, QRect(rect.left(), rect.top(), 16, kLine), *style.icon, 16, style.color,
                  look.devicePixelRatio);
    const QRect words = rect.adjusted(style.icon ? 24 : 0, 0, 0, 0);
    if (message.status == MessageStatus::Failed) {
        paintWrapped(painter, words.adjusted(0, 2, 0, 0), stateSentence(message), textFont(TextRole::Control),
                     lineHeight(TextRole::Control), style.color);
        return;
    }
    painter.setPen(style.color);
    painter.setFont(figureFont(TextRole::Table));
    painter.drawText(QRect(words.left(), words.top(), words.width(), kLine), Qt::AlignVCenter, stateSentence(message));
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
    const QRect rect = m_receiptRect.translated(origin);
    const api::CacheReceipt& cache = message.receipt->cache;
    const double prompt = double(std::max<std::int64_t>(1, cache.reusedTokens + cache.computedTokens));
    paintBar(painter, QRectF(rect.left(), rect.center().y() - 2, 56, 6),
             {{double(cache.reusedTokens) / prompt, t.stateCachedRing},
              {double(cache.computedTokens) / prompt, t.stateActive}},
             t.stateEmpty, t.well);
    const bool warns = words::receiptWarns(cache);
    const bool over = look.under == MessagePart::Receipt;
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
    const QString cause = words::receiptCause(cache);
    const QRect sentence(inside.left() + 24, inside.top(), inside.width() - 24, line);
    paintWrapped(painter, sentence, cause, textFont(TextRole::Table), line, t.text1);
    const int used = wrappedHeight(cause, textFont(TextRole::Table), line, sentence.width()) + 8;
    paintFacts(painter, inside.adjusted(0, used, 0, 0), receiptFacts(message), kFactNames, t);
}

void MessageItem::paintActions(QPainter& painter, QPoint origin, const MessageLook& look,
                               const ChatMessage& message) const {
    const Theme& t = *look.theme;
    if (m_stopRect.isValid())
        paintStopButton(painter, m_stopRect.translated(origin), look);
    if (!look.hovered && !look.blocksLit)
        return;
    if (m_copyRect.isValid())
        paintActionIcon(painter, m_copyRect.translated(origin), Icon::Copy, look, MessagePart::Copy, false);
    if (m_showRect.isValid()) {
        paintActionIcon(painter, m_showRect.translated(origin), Icon::Target, look, MessagePart::ShowBlocks,
                        look.blocksLit);
        if (look.blocksLit) {
            painter.setPen(t.text2);
            painter.setFont(figureFont(TextRole::Table));
            painter.drawText(QRect(m_showRect.right() + 7, m_showRect.top(), m_width, kActions).translated(origin),
                             Qt::AlignVCenter | Qt::AlignLeft, litSentence(look.litBlocks));
        }
    }
    if (message.status == MessageStatus::Done && message.tokensPerSecond > 0 && look.hovered && !look.blocksLit) {
        painter.setPen(t.text3);
        painter.setFont(figureFont(TextRole::Table));
        painter.drawText(m_actionsRect.translated(origin), Qt::AlignRight | Qt::AlignVCenter,
                         formatRate(message.tokensPerSecond));
    }
}

} // namespace kvscope::ui
