// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sentences of the chat side. Pure functions, so that every wording has a test. "about" before every estimate;
// figures as in format.h.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

#include "ui/models/chat_types.h"

namespace kvscope::ui::words {

/// "1,940 reused · 62 computed · 5 new blocks · 0.21 s to first token"
QString receiptLine(const Receipt& receipt);
/// Why less was reused than the prompt holds, in one sentence; says so too when everything possible was reused.
QString receiptCause(const api::CacheReceipt& cache);
/// The same with who took the blocks and when: 'Evicted by "Chat B" 4 min ago', as far as it is known.
QString receiptCause(const Receipt& receipt);
/// True when something that had been there before was not reused: the receipt is drawn in the warning colour.
bool receiptWarns(const api::CacheReceipt& cache);

/// "Reading 1,536 of 2,391 tokens, about 1.3 s left"
QString readingLine(const Progress& progress);
/// "Waiting: needs 12 blocks, 9 are available"
QString waitingLine(const Progress& progress);
/// "Interrupted after 212 tokens", "Stopped after 12 tokens", "Stopped at 256 tokens, the limit of this chat"; and what
/// was done to the chat so that the model could take it.
QString endLine(const ChatMessage& message);
/// "Needs 5,120 tokens, the window holds 4,096. Nothing is sent yet."
QString tooLongLine(std::int64_t needed, std::int64_t limit);
/// "228,000 tokens fit": two significant figures and more, rounded down.
QString tokensFit(std::int64_t tokens);
/// "Today", "Yesterday", "Last 7 days", "October", "2025"
QString dayGroup(qint64 thenMs, qint64 nowMs);
/// "14:02" today, "Mon" within a week, "3 Oct" before that
QString shortTime(qint64 thenMs, qint64 nowMs);
/// Title of a chat from its first message: one line, at most 48 characters, cut between words.
QString titleFrom(const QString& firstMessage);
/// Title from what a model answered when asked for one: its first line without marks and quotes; empty = it is none.
QString titleFromAnswer(const QString& answer);
/// Title of a chat that begins with a part of another: "Title (branch)", "Title (branch 2)", ...
QString branchTitle(const QString& title);
/// What was done to the chat so that the model could take it, one sentence each.
QStringList adaptationLines(const std::vector<api::DialogAdaptation>& adaptations);
/// "Ended by <|im_end|>"; empty when nothing ended it, or it is not known.
QString endedByLine(const ChatMessage& message);

} // namespace kvscope::ui::words
