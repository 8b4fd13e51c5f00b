// SPDX-License-Identifier: GPL-3.0-or-later
//
// MessageItem: geometry. How it looks: message_item_paint.cpp.
#include "ui/chat/message_item.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <algorithm>

#include "ui/chat/message_facts.h"
#include "ui/chat/message_metrics.h"
#include "ui/chat/message_paint.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

constexpr int kAnswerIndent = 14; // room of the bar at the left
constexpr int kMeasure = 720;     // an answer's lines are never longer
constexpr int kBubbleTop = 6;     // the answer above ends with the room of its actions
constexpr QPoint kBubblePadding(12, 8);
constexpr int kCut = 32; // line where the window was cut
constexpr int kVersion = 24;
constexpr int kChipsGap = 8;

MessageHit ofText(TextHit hit) {
    switch (hit.part) {
    case TextPart::Thought:
        return {MessagePart::Thought, hit.index};
    case TextPart::CopyCode:
        return {MessagePart::CopyCode, hit.index};
    case TextPart::Link:
        return {MessagePart::Link, hit.index};
    case TextPart::Words:
        return {MessagePart::Text, 0};
    case TextPart::None:
        break;
    }
    return {};
}

} // namespace

TextHit textHitOf(MessageHit hit) {
    switch (hit.part) {
    case MessagePart::Thought:
        return {TextPart::Thought, hit.index};
    case MessagePart::CopyCode:
        return {TextPart::CopyCode, hit.index};
    case MessagePart::Link:
        return {TextPart::Link, hit.index};
    default:
        return {};
    }
}

void MessageItem::guess(const ChatMessage& message, const ChatStyle& style, int width) {
    m_measured = false;
    m_own = message.role == MessageRole::User;
    m_height = MessageText::estimateHeight(message.text, style, std::min(width, kMeasure)) +
               (m_own ? 36 : 12 + kActions + (message.receipt ? kLine : 0)) + (message.windowCut ? kCut : 0) +
               (message.thinking.isEmpty() ? 0 : kActions) + guessChipsHeight(message.attachments.size());
}

int MessageItem::textWidth(int width) const {
    return m_own ? width * 82 / 100 - 2 * kBubblePadding.x() : std::min(kMeasure, width - kAnswerIndent);
}

void MessageItem::update(const ChatMessage& message, const ChatStyle& style, int width, bool appendedOnly) {
    m_own = message.role == MessageRole::User;
    const bool restyled = width != m_width || style.textLine != m_style.textLine || style.text != m_style.text;
    if (!m_measured || restyled) {
        m_style = style;
        m_text.setStyle(style, textWidth(width));
        appendedOnly = appendedOnly && m_measured;
    }
    m_width = width;
    m_text.setThought(thoughtLine(message), m_thoughtOpen);
    m_text.setContent(message.thinking, message.text, m_own ? MessageText::Mode::Typed : MessageText::Mode::Markdown,
                      appendedOnly);
    m_measured = true;
    place(message);
}

bool MessageItem::measure(const ChatMessage& message, int top, int bottom) {
    if (!m_text.measure(top - m_textRect.top(), bottom - m_textRect.top()))
        return false;
    place(message);
    return true;
}

void MessageItem::place(const ChatMessage& message) {
    m_parts.fill({});
    m_chips.clear();
    m_cutRect = m_stateRect = m_detailsRect = m_actionsRect = m_versionRect = m_bubble = QRect();
    if (message.windowCut)
        m_cutRect = QRect(0, 0, m_width, kCut);
    if (m_own)
        placeOwn(message);
    else
        placeAnswer(message);
}

QRect MessageItem::editRect() const {
    return m_own ? m_bubble : m_textRect;
}

void MessageItem::placeOwn(const ChatMessage& message) {
    const int top = kBubbleTop + m_cutRect.height();
    const bool editing = m_editHeight > 0;
    m_chips = layOutChips(message.attachments, textWidth(m_width));
    const QSize chips = sizeOf(m_chips);
    const QSize bubble = editing ? QSize(m_width, m_editHeight) : bubbleSize(message);
    m_bubble = QRect(QPoint(m_width - bubble.width(), top), bubble);
    m_textRect = m_bubble.adjusted(kBubblePadding.x(), kBubblePadding.y(), -kBubblePadding.x(), -kBubblePadding.y());
    m_chipsAt = m_textRect.topLeft();
    if (editing)
        m_chipsAt = QPoint(m_width - chips.width(), m_bubble.bottom() + 1 + kChipsGap);
    else if (!m_chips.empty())
        m_chipsAt.ry() = m_textRect.bottom() + 1 - chips.height();
    if (!editing && !m_chips.empty())
        m_textRect.setBottom(m_chipsAt.y() - 1 - (message.text.isEmpty() ? 0 : kChipsGap));
    int x = m_bubble.left() - 4;
    if (!editing && message.status != MessageStatus::Committing && message.status != MessageStatus::Saving)
        for (const MessagePart part : {MessagePart::Edit, MessagePart::Copy, MessagePart::Branch}) {
            x -= kActions;
            if (x >= 0)
                rectOfPart(part) = QRect(x, m_bubble.top() + 4, kActions, kActions);
        }
    int y = m_bubble.bottom() + 1 + 4 + (editing && !m_chips.empty() ? kChipsGap + chips.height() : 0);
    if (message.versions > 1 && !editing) {
        const int width = placeVersions(message, 0, y);
        for (const MessagePart part : {MessagePart::Previous, MessagePart::Next})
            rectOfPart(part).translate(m_width - width, 0);
        m_versionRect.translate(m_width - width, 0);
        y += kVersion;
    }
    if (message.status == MessageStatus::Saving) {
        m_stateRect = QRect(0, y, m_width, kLine);
        y += kLine;
    }
    m_height = y;
}

/// The text, and below it what is attached.
QSize MessageItem::bubbleSize(const ChatMessage& message) {
    const QSize chips = sizeOf(m_chips);
    QSize inside(chips.width(), chips.height());
    if (!message.text.isEmpty() || m_chips.empty()) {
        inside.setWidth(std::max(inside.width(), m_text.naturalWidth()));
        inside.rheight() += m_text.height() + (m_chips.empty() ? 0 : kChipsGap);
    }
    return inside + QSize(2 * kBubblePadding.x(), 2 * kBubblePadding.y());
}

void MessageItem::placeAnswer(const ChatMessage& message) {
    const int left = kAnswerIndent;
    const int inner = m_width - left;
    int y = 8 + m_cutRect.height();
    const int height = m_editHeight > 0 ? m_editHeight : m_text.height();
    m_textRect = QRect(left, y, std::min(kMeasure, inner), height);
    if (height > 0)
        y += height + 8;
    y = placeState(message, left, y);
    y = placeReceipt(message, left, y);
    // Room for the actions is always there, so that hovering moves nothing.
    m_actionsRect = QRect(left - 6, y, inner + 6, kActions);
    placeActions(message, left, y);
    m_height = y + kActions + 4;
}

int MessageItem::placeState(const ChatMessage& message, int left, int y) {
    const QString state = stateSentence(message);
    if (state.isEmpty())
        return y;
    const int inner = m_width - left;
    int height = kLine;
    if (message.status == MessageStatus::Reading)
        height = kLine + 8;
    if (message.status == MessageStatus::Failed)
        height = std::max(
            kLine, wrappedHeight(state, textFont(TextRole::Control), lineHeight(TextRole::Control), inner - 24) + 4);
    if (canContinue(message))
        height = kActions; // the same whether it is the last or not, so that what follows does not move it
    if (canContinue(message) && m_last) {
        int right = left + std::min(kMeasure, inner);
        if (message.status == MessageStatus::Interrupted) {
            const int width = textButtonWidth(discardWord());
            rectOfPart(MessagePart::Discard) = QRect(right - width, y + 2, width, kLine);
            right -= width + 4;
        }
        const int width = textButtonWidth(continueWord());
        rectOfPart(MessagePart::Continue) = QRect(right - width, y + 2, width, kLine);
    }
    m_stateRect = QRect(left, y, inner, height);
    return y + height;
}

int MessageItem::placeReceipt(const ChatMessage& message, int left, int y) {
    if (!message.receipt)
        return y;
    rectOfPart(MessagePart::Receipt) = QRect(left, y, m_width - left, kLine);
    y += kLine;
    if (!m_receiptOpen)
        return y;
    const int boxWidth = std::min(kMeasure, m_width - left);
    const int height = kDetailsPadding * 2 +
                       wrappedHeight(words::receiptCause(*message.receipt), textFont(TextRole::Table),
                                     lineHeight(TextRole::Table), boxWidth - 2 * kDetailsPadding - 24) +
                       8 + factsHeight(receiptFacts(message), boxWidth - 2 * kDetailsPadding, kFactNames);
    m_detailsRect = QRect(left, y + 4, boxWidth, height);
    return y + height + 8;
}

/// "< 2/3 >"; returns its width.
int MessageItem::placeVersions(const ChatMessage& message, int left, int y) {
    const int words = QFontMetrics(figureFont(TextRole::Table)).horizontalAdvance(versionWords(message)) + 4;
    rectOfPart(MessagePart::Previous) = QRect(left, y, kVersion, kVersion);
    m_versionRect = QRect(left + kVersion, y, words, kVersion);
    rectOfPart(MessagePart::Next) = QRect(m_versionRect.right() + 1, y, kVersion, kVersion);
    return 2 * kVersion + words;
}

void MessageItem::placeActions(const ChatMessage& message, int left, int y) {
    int x = m_actionsRect.left();
    if (message.versions > 1)
        x += placeVersions(message, x, y + 2) + 8;
    const bool running = isRunning(message.status);
    if (running) {
        x = std::max(x, left);
        rectOfPart(MessagePart::Stop) = QRect(x, y + 2, stopButtonWidth(), kLine);
        x = rectOfPart(MessagePart::Stop).right() + 9;
    }
    const auto icon = [&](MessagePart part, bool there) {
        if (!there)
            return;
        rectOfPart(part) = QRect(x, y, kActions, kActions);
        x += kActions + 2;
    };
    const bool quiet = !running && m_editHeight == 0;
    icon(MessagePart::Copy, !message.text.isEmpty());
    icon(MessagePart::Again, quiet);
    icon(MessagePart::Edit, quiet && !message.text.isEmpty());
    icon(MessagePart::Branch, quiet);
    icon(MessagePart::ShowBlocks, message.tokenRange.second > message.tokenRange.first);
}

MessageHit MessageItem::hitAt(QPoint point) const {
    for (std::size_t part = 0; part < m_parts.size(); ++part)
        if (m_parts[part].contains(point))
            return {MessagePart(part), 0};
    for (std::size_t i = 0; i < m_chips.size(); ++i)
        if (m_chips[i].rect.translated(m_chipsAt).contains(point))
            return {MessagePart::Attachment, int(i)};
    if (m_editHeight == 0 && m_textRect.adjusted(-4, -4, 4, 4).contains(point))
        return ofText(m_text.hitAt(point - m_textRect.topLeft()));
    return {};
}

QRect MessageItem::rectOf(MessageHit hit) const {
    if (hit.part == MessagePart::Text)
        return m_textRect;
    if (hit.part == MessagePart::Attachment)
        return hit.index >= 0 && hit.index < int(m_chips.size())
                   ? m_chips[std::size_t(hit.index)].rect.translated(m_chipsAt)
                   : QRect();
    if (const TextHit text = textHitOf(hit); text.part != TextPart::None)
        return m_text.rectOf(text).toAlignedRect().translated(m_textRect.topLeft());
    return rectOfPart(hit.part);
}

std::vector<MessageHit> MessageItem::targets() const {
    std::vector<MessageHit> out;
    if (m_editHeight == 0)
        for (const TextHit hit : m_text.targets())
            out.push_back(ofText(hit));
    for (std::size_t i = 0; i < m_chips.size(); ++i)
        out.push_back({MessagePart::Attachment, int(i)});
    for (std::size_t part = 0; part < m_parts.size(); ++part)
        if (m_parts[part].isValid())
            out.push_back({MessagePart(part), 0});
    return out;
}

QString MessageItem::hint(MessageHit hit) const {
    const auto tr = [](const char* text) { return QCoreApplication::translate("MessageItem", text); };
    switch (hit.part) {
    case MessagePart::Copy:
        return tr("Copy this message (C)");
    case MessagePart::Again:
        return tr("Write another answer beside this one (R)");
    case MessagePart::Edit:
        return tr("Edit (E): the old version stays beside the new one");
    case MessagePart::Branch:
        return tr("New chat that begins with everything up to here (N)");
    case MessagePart::ShowBlocks:
        return tr("Show its blocks in the map (B)");
    case MessagePart::Receipt:
        return m_receiptOpen ? QString() : tr("What the cache did for this answer");
    case MessagePart::Previous:
        return tr("Version before this one");
    case MessagePart::Next:
        return tr("Version after this one");
    case MessagePart::Link:
        return m_text.linkOf(hit.index);
    case MessagePart::Attachment:
        return tr("Open what was attached");
    default:
        return {};
    }
}

} // namespace kvscope::ui
