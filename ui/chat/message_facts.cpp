// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/message_facts.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <QPainterPath>

#include "ui/models/chat_words.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("MessageItem", text);
}

constexpr int kKeyPadding = 4;

} // namespace

QString stateSentence(const ChatMessage& message) {
    switch (message.status) {
    case MessageStatus::Saving:
        return tr("Saving…");
    case MessageStatus::Queued:
    case MessageStatus::Committing:
    case MessageStatus::Writing:
        return {};
    case MessageStatus::Waiting:
        return words::waitingLine(message.progress);
    case MessageStatus::Reading:
        return words::readingLine(message.progress);
    case MessageStatus::Failed:
        return message.error;
    case MessageStatus::Done:
    case MessageStatus::Stopped:
    case MessageStatus::Interrupted:
        if (message.thinkingOpen && message.text.isEmpty())
            return message.status == MessageStatus::Interrupted ? words::endLine(message)
                                                                : tr("Stopped while thinking");
        return words::endLine(message);
    }
    return {};
}

bool canContinue(const ChatMessage& message) {
    if (message.role != MessageRole::Assistant)
        return false;
    return message.status == MessageStatus::Interrupted || message.status == MessageStatus::Stopped ||
           (message.status == MessageStatus::Done && message.reason == api::FinishReason::Length);
}

QString thoughtLine(const ChatMessage& message) {
    if (message.thinking.isEmpty() && !(message.thinkingOpen && message.text.isEmpty()))
        return {};
    if (message.thinkingOpen && isRunning(message.status))
        return tr("Thinking…");
    QString line =
        message.thinkingSeconds > 0 ? tr("Thought for %1").arg(formatSeconds(message.thinkingSeconds)) : tr("Thought");
    if (message.thinkingTokens > 0)
        line += message.thinkingTokens == 1 ? tr(" · 1 token")
                                            : tr(" · %1 tokens").arg(formatNumber(message.thinkingTokens));
    return line;
}

QString versionWords(const ChatMessage& message) {
    return QStringLiteral("%1/%2").arg(message.version).arg(message.versions);
}

QString cutSentence() {
    return tr("The turns above are no longer read");
}

QString continueWord() {
    return tr("Continue");
}

QString discardWord() {
    return tr("Discard");
}

int textButtonWidth(const QString& text) {
    return QFontMetrics(textFont(TextRole::Table, QFont::Medium)).horizontalAdvance(text) + 20;
}

void paintTextButton(QPainter& painter, const QRect& rect, const QString& text, bool plain, const MessageLook& look,
                     MessagePart part) {
    const Theme& t = *look.theme;
    const bool over = look.under.part == part;
    painter.setRenderHint(QPainter::Antialiasing);
    if (plain || over) {
        painter.setPen(over ? t.line3 : t.line2);
        painter.setBrush(look.pressed.part == part ? t.bg4 : t.bg3);
        painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
    }
    painter.setPen(plain || over ? t.text1 : t.text2);
    painter.setFont(textFont(TextRole::Table, QFont::Medium));
    painter.drawText(rect, Qt::AlignCenter, text);
}

void paintRing(QPainter& painter, const QRect& around, double radius, const Theme& theme) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.focus, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(QRectF(around), radius, radius);
}

StateStyle stateStyle(const ChatMessage& message, const Theme& theme) {
    switch (message.status) {
    case MessageStatus::Failed:
        return {theme.danger, Icon::Warn};
    case MessageStatus::Interrupted:
        return {theme.warn, Icon::Pause};
    case MessageStatus::Stopped:
        return {theme.text3, Icon::Stop};
    case MessageStatus::Done:
        return {theme.text3, Icon::Info};
    default:
        return {theme.text3, std::nullopt};
    }
}

Facts receiptFacts(const ChatMessage& message) {
    const Receipt& receipt = *message.receipt;
    const api::CacheReceipt& c = receipt.cache;
    Facts facts;
    facts.emplace_back(tr("Prompt"), tr("%1 tokens: %2 reused, %3 computed")
                                         .arg(formatNumber(c.promptTokens), formatNumber(c.reusedTokens),
                                              formatNumber(c.computedTokens)));
    facts.emplace_back(tr("First token"), tr("after %1").arg(formatSeconds(receipt.ttftMs / 1000)));
    if (message.tokensPerSecond > 0)
        facts.emplace_back(tr("Written"), tr("%1 tokens at %2")
                                              .arg(formatNumber(std::int64_t(message.tokens.size())),
                                                   formatRate(message.tokensPerSecond)));
    if (c.newBlocks >= 0)
        facts.emplace_back(tr("Blocks"),
                           tr("%1 new of %2 tokens each, %3 at most")
                               .arg(formatNumber(c.newBlocks), formatNumber(c.blockSize), formatNumber(c.blocksPeak)));
    if (c.newBlocks >= 0)
        facts.emplace_back(tr("Left behind"),
                           tr("%1 available, %2 of them cached")
                               .arg(formatNumber(c.blocksAvailableAfter), formatNumber(c.blocksCachedAfter)));
    if (!message.endedBy.isEmpty() || message.endToken >= 0)
        facts.emplace_back(tr("Ended by"), message.endedBy.isEmpty() ? tr("token %1").arg(message.endToken)
                                                                     : message.endedBy.simplified());
    if (c.preemptions > 0)
        facts.emplace_back(tr("Preempted"),
                           c.preemptions == 1 ? tr("once: its blocks were lent to another chat")
                                              : tr("%1 times: its blocks were lent to other chats").arg(c.preemptions));
    if (c.divergingToken >= 0)
        facts.emplace_back(tr("First difference"), tr("token %1").arg(formatNumber(c.divergingToken)));
    return facts;
}

QString litSentence(int blocks) {
    return blocks == 0   ? tr("none of its blocks is in the cache any more")
           : blocks == 1 ? tr("1 block lit in the map")
                         : tr("%1 blocks lit in the map").arg(formatNumber(blocks));
}

int stopButtonWidth() {
    const QFontMetrics label(textFont(TextRole::Table, QFont::Medium));
    const QFontMetrics key(monoFont(TextRole::Axis));
    return 8 + 16 + 6 + label.horizontalAdvance(tr("Stop")) + 6 + key.horizontalAdvance(tr("Esc")) + 2 * kKeyPadding +
           8;
}

void paintStopButton(QPainter& painter, const QRect& rect, const MessageLook& look) {
    const Theme& t = *look.theme;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(look.under.part == MessagePart::Stop ? t.line3 : t.line2);
    painter.setBrush(look.pressed.part == MessagePart::Stop ? t.bg4 : t.bg3);
    painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
    paintIcon(painter, QRect(rect.left() + 8, rect.top(), 16, rect.height()), Icon::Stop, 16, t.text1,
              look.devicePixelRatio);
    const QFont font = textFont(TextRole::Table, QFont::Medium);
    painter.setFont(font);
    painter.setPen(t.text1);
    const int x = rect.left() + 8 + 16 + 6;
    painter.drawText(QRect(x, rect.top(), rect.width(), rect.height()), Qt::AlignVCenter, tr("Stop"));
    const QFont keyFont = monoFont(TextRole::Axis);
    const int keyX = x + QFontMetrics(font).horizontalAdvance(tr("Stop")) + 6;
    const QRect key(keyX, rect.top() + 3, QFontMetrics(keyFont).horizontalAdvance(tr("Esc")) + 2 * kKeyPadding,
                    rect.height() - 6);
    painter.setPen(t.line2);
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(QRectF(key).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    painter.setFont(keyFont);
    painter.setPen(t.text3);
    painter.drawText(key, Qt::AlignCenter, tr("Esc"));
}

void paintActionIcon(QPainter& painter, const QRect& rect, Icon icon, const MessageLook& look, MessagePart part,
                     bool on) {
    const Theme& t = *look.theme;
    const bool over = look.under.part == part;
    if (on || over) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(look.pressed.part == part ? t.bg4 : t.bg3);
        painter.drawRoundedRect(QRectF(rect), 6, 6);
    }
    paintIcon(painter, rect, icon, 16, on || over ? t.text1 : t.text3, look.devicePixelRatio);
}

void paintBubble(QPainter& painter, const QRectF& r, const QColor& color) {
    constexpr double kRound = 10, kSharp = 3;
    QPainterPath path;
    path.moveTo(r.left() + kRound, r.top());
    path.lineTo(r.right() - kRound, r.top());
    path.quadTo(r.right(), r.top(), r.right(), r.top() + kRound);
    path.lineTo(r.right(), r.bottom() - kSharp);
    path.quadTo(r.right(), r.bottom(), r.right() - kSharp, r.bottom());
    path.lineTo(r.left() + kRound, r.bottom());
    path.quadTo(r.left(), r.bottom(), r.left(), r.bottom() - kRound);
    path.lineTo(r.left(), r.top() + kRound);
    path.quadTo(r.left(), r.top(), r.left() + kRound, r.top());
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillPath(path, color);
}

} // namespace kvscope::ui
