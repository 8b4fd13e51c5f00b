// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/chat_words.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <QRegularExpression>
#include <algorithm>

#include "ui/models/format.h"

namespace kvscope::ui::words {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("words", text);
}

} // namespace

QString receiptLine(const Receipt& receipt) {
    const api::CacheReceipt& c = receipt.cache;
    QStringList parts{tr("%1 reused").arg(formatNumber(c.reusedTokens)),
                      tr("%1 computed").arg(formatNumber(c.computedTokens))};
    if (c.newBlocks >= 0) // known when the answer has ended
        parts << tr("%1 new %2").arg(formatNumber(c.newBlocks), c.newBlocks == 1 ? tr("block") : tr("blocks"));
    if (c.loadedBlocks > 0)
        parts << tr("%1 %2 from main memory")
                     .arg(formatNumber(c.loadedBlocks), c.loadedBlocks == 1 ? tr("block") : tr("blocks"));
    if (receipt.ttftMs > 0)
        parts << tr("%1 to first token").arg(formatSeconds(receipt.ttftMs / 1000));
    return parts.join(QStringLiteral(" · "));
}

bool receiptWarns(const api::CacheReceipt& c) {
    return c.missReason == api::MissReason::Diverged || c.missReason == api::MissReason::Evicted;
}

QString receiptCause(const api::CacheReceipt& c) {
    switch (c.missReason) {
    case api::MissReason::None:
        return c.computedTokens < c.blockSize || c.reusedTokens > 0
                   ? tr("Everything that was in the cache was reused. Only the new text was computed.")
                   : tr("Nothing of this text had been computed before.");
    case api::MissReason::Disabled:
        return tr("Nothing was reused: the prefix cache is switched off.");
    case api::MissReason::ColdStart:
        return tr("Nothing was reused: this beginning has not been computed since the program started.");
    case api::MissReason::ShorterThanBlock:
        return tr("The common beginning ends inside a block: only whole blocks of %1 tokens can be shared.")
            .arg(c.blockSize);
    case api::MissReason::Diverged:
        if (c.divergingTurn == 0)
            return tr("The system prompt differs from that of the previous turn: everything after token %1 was "
                      "computed "
                      "again.")
                .arg(formatNumber(c.divergingToken));
        if (c.divergingTurn > 0)
            return tr("Turn %1 is not what it was before, from token %2 on: everything after it was computed again.")
                .arg(formatNumber(c.divergingTurn), formatNumber(c.divergingToken));
        return c.divergingToken >= 0
                   ? tr("The chat differs from its previous turn at token %1: everything after it was "
                        "computed again.")
                         .arg(formatNumber(c.divergingToken))
                   : tr("The chat differs from its previous turn: the rest was computed again.");
    case api::MissReason::Evicted:
        return tr("A part was in the cache before, but its blocks were needed by another chat.");
    case api::MissReason::PastWindow:
        return tr("Only first and last tokens are kept: what lies behind the first window is computed again.");
    case api::MissReason::WindowCut:
        return tr("The oldest turns no longer fit and were left out: what follows was computed again, once.");
    case api::MissReason::CheaperToCompute:
        return tr("A part lies in main memory, but loading it would have taken longer than computing it again.");
    }
    return {};
}

QString receiptCause(const Receipt& receipt) {
    if (receipt.cache.missReason != api::MissReason::Evicted ||
        (receipt.evictedBy.isEmpty() && receipt.evictedAgoMs < 0))
        return receiptCause(receipt.cache);
    const QString who = receipt.evictedBy.isEmpty() ? tr("another chat") : tr("“%1”").arg(receipt.evictedBy);
    const QString line = tr("A part was in the cache before: evicted by %1").arg(who);
    return receipt.evictedAgoMs < 0
               ? line + QLatin1Char('.')
               : line + QLatin1Char(' ') + formatAgo(receipt.evictedAgoMs * 1'000'000) + QLatin1Char('.');
}

QString readingLine(const Progress& p) {
    QString line = tr("Reading %1 of %2 tokens").arg(formatNumber(p.done), formatNumber(p.total));
    if (p.secondsLeft >= 0)
        line += tr(", about %1 left").arg(formatSeconds(p.secondsLeft));
    return line;
}

QString waitingLine(const Progress& p) {
    if (p.preempted)
        return p.lentTo.isEmpty() ? tr("Waiting: its blocks were lent to another chat")
                                  : tr("Waiting: its blocks were lent to “%1”").arg(p.lentTo);
    if (p.runningLimit > 0)
        return tr("Waiting: %1 of %1 sequences are running").arg(p.runningLimit);
    if (p.longPrefillLimit > 0)
        return p.longPrefillLimit == 1 ? tr("Waiting: another long prompt is being read")
                                       : tr("Waiting: %1 other long prompts are being read").arg(p.longPrefillLimit);
    if (p.neededBlocks > 0)
        return tr("Waiting: needs %1 %2, %3 are available")
            .arg(formatNumber(p.neededBlocks), p.neededBlocks == 1 ? tr("block") : tr("blocks"),
                 formatNumber(p.availableBlocks));
    return tr("Waiting for the engine");
}

namespace {

QString howItEnded(const ChatMessage& m) {
    const auto n = std::int64_t(m.tokens.size());
    const QString tokens = tr("%1 %2").arg(formatNumber(n), n == 1 ? tr("token") : tr("tokens"));
    const bool thinking = m.thinkingOpen && m.text.isEmpty();
    switch (m.status) {
    case MessageStatus::Interrupted:
        return thinking ? tr("Interrupted while thinking, after %1").arg(tokens)
               : n > 0  ? tr("Interrupted after %1").arg(tokens)
                        : tr("Interrupted before the first token");
    case MessageStatus::Stopped:
        return thinking ? tr("Stopped while thinking, after %1").arg(tokens)
               : n > 0  ? tr("Stopped after %1").arg(tokens)
                        : tr("Stopped before the first token");
    case MessageStatus::Done:
        if (m.role != MessageRole::Assistant)
            return {};
        if (m.reason == api::FinishReason::Length) {
            if (thinking)
                return tr("Stopped while thinking, at %1").arg(tokens);
            const std::int64_t drawn = m.receipt && m.receipt->drawnTokens > 0 ? m.receipt->drawnTokens : n;
            return drawn >= m.settings.maxTokens ? tr("Ended at %1, the limit in Settings").arg(tokens)
                                                 : tr("Ended after %1: the context is full").arg(tokens);
        }
        if (thinking)
            return tr("Ended while thinking, after %1").arg(tokens);
        return {};
    default:
        return {};
    }
}

} // namespace

QString endLine(const ChatMessage& m) {
    QStringList lines = adaptationLines(m.adaptations);
    if (const QString end = howItEnded(m); !end.isEmpty())
        lines.prepend(end);
    return lines.join(QStringLiteral(" · "));
}

QString tooLongLine(std::int64_t needed, std::int64_t limit) {
    return tr("Needs %1 tokens, the window holds %2. Nothing is sent yet.")
        .arg(formatNumber(needed), formatNumber(limit));
}

QString tokensFit(std::int64_t tokens) {
    std::int64_t unit = 1;
    while (tokens / unit >= 1000)
        unit *= 10;
    return tr("%1 tokens fit").arg(formatNumber(tokens / unit * unit));
}

QString dayGroup(qint64 thenMs, qint64 nowMs) {
    const QDate then = QDateTime::fromMSecsSinceEpoch(thenMs).date();
    const QDate now = QDateTime::fromMSecsSinceEpoch(nowMs).date();
    const qint64 days = then.daysTo(now);
    if (days <= 0)
        return tr("Today");
    if (days == 1)
        return tr("Yesterday");
    if (days < 7)
        return tr("Last 7 days");
    if (then.year() == now.year())
        return QLocale(QLocale::English).standaloneMonthName(then.month());
    return QString::number(then.year());
}

QString shortTime(qint64 thenMs, qint64 nowMs) {
    const QDateTime then = QDateTime::fromMSecsSinceEpoch(thenMs);
    const qint64 days = then.date().daysTo(QDateTime::fromMSecsSinceEpoch(nowMs).date());
    static const QLocale locale(QLocale::English);
    if (days <= 0)
        return then.toString(QStringLiteral("HH:mm"));
    if (days < 7)
        return locale.toString(then.date(), QStringLiteral("ddd"));
    return locale.toString(then.date(), QStringLiteral("d MMM"));
}

QString titleFrom(const QString& firstMessage) {
    constexpr qsizetype kLimit = 120; // each view elides to the room that it has
    const QString line = firstMessage.simplified();
    if (line.isEmpty())
        return tr("New chat");
    if (line.size() <= kLimit)
        return line;
    qsizetype cut = line.lastIndexOf(QLatin1Char(' '), kLimit);
    if (cut < kLimit / 2)
        cut = kLimit;
    if (line.at(cut - 1).isHighSurrogate())
        --cut;
    return line.left(cut) + QChar(0x2026);
}

QString titleFromAnswer(const QString& answer) {
    constexpr qsizetype kLongest = 80;
    static const QRegularExpression kAround(
        QStringLiteral(R"(^(?:[\s#*_>"'`“”‘’«»„\-]|title\s*:)+|[\s*_"'`“”‘’«»„.。:]+$)"),
        QRegularExpression::CaseInsensitiveOption | QRegularExpression::UseUnicodePropertiesOption);
    const QStringList lines = answer.split(QLatin1Char('\n'));
    for (const QString& line : lines) {
        QString title = line.simplified();
        title.remove(kAround);
        if (!title.isEmpty())
            return title.size() <= kLongest ? title : QString(); // whoever writes so much did not write a title
    }
    return {};
}

QString branchTitle(const QString& title) {
    static const QRegularExpression kBranch(QStringLiteral(R"(^(.*) \(branch(?: (\d+))?\)$)"));
    const QRegularExpressionMatch match = kBranch.match(title);
    if (!match.hasMatch())
        return tr("%1 (branch)").arg(title);
    return tr("%1 (branch %2)").arg(match.captured(1)).arg(std::max(2, match.captured(2).toInt() + 1));
}

QStringList adaptationLines(const std::vector<api::DialogAdaptation>& adaptations) {
    QStringList lines;
    for (const api::DialogAdaptation adaptation : adaptations)
        switch (adaptation) {
        case api::DialogAdaptation::SystemInFirstMessage:
            lines << tr("System text placed in your first message: this model's template has no place for it.");
            break;
        case api::DialogAdaptation::MessagesJoined:
            lines << tr("Messages of one side in a row joined: this model's template wants the sides to alternate.");
            break;
        case api::DialogAdaptation::EmptyMessageAdded:
            lines << tr("An empty message placed before the first answer: this model's template wants you to begin.");
            break;
        }
    return lines;
}

QString endedByLine(const ChatMessage& m) {
    if (!m.endedBy.isEmpty())
        return tr("Ended by %1").arg(m.endedBy.simplified());
    return m.endToken >= 0 ? tr("Ended by token %1").arg(m.endToken) : QString();
}

} // namespace kvscope::ui::words
