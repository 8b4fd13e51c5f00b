// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/chat_session.h"

#include <algorithm>

#include "ui/models/attachment.h"

namespace kvscope::ui {

namespace {
constexpr Nanos kPaceWindow = 2'000'000'000;
}

void Pace::add(Nanos now, std::int64_t tokens) {
    m_points.emplace_back(now, tokens);
    while (m_points.size() > 2 && m_points.front().first < now - kPaceWindow)
        m_points.pop_front();
}

double Pace::perSecond() const {
    if (m_points.size() < 2)
        return 0;
    const double seconds = double(m_points.back().first - m_points.front().first) / 1e9;
    return seconds <= 0 ? 0 : double(m_points.back().second - m_points.front().second) / seconds;
}

api::DialogPrompt ChatSession::dialog(const QString& modelPath, int rows) {
    api::DialogPrompt prompt;
    dialogRows.clear();
    if (!conversation.systemPrompt.trimmed().isEmpty()) {
        prompt.messages.push_back({"system", conversation.systemPrompt.toStdString(), {}});
        dialogRows.push_back(-1);
    }
    for (int row = 0; row < (rows < 0 ? model->size() : std::min(rows, model->size())); ++row) {
        const ChatMessage& m = model->at(row);
        if (m.role == MessageRole::User) {
            prompt.messages.push_back({"user", wholeText(m).toStdString(), {}});
        } else if (const bool goesOn = continuing && row == answerRow;
                   goesOn || (!m.text.isEmpty() && !isRunning(m.status))) {
            // Ids of another model's tokenizer mean nothing to this one.
            prompt.messages.push_back({"assistant", m.text.toStdString(),
                                       m.model == modelPath ? m.tokens : std::vector<TokenId>{},
                                       m.thinking.toStdString()});
            prompt.continueLast = goesOn;
        } else {
            continue;
        }
        dialogRows.push_back(row);
    }
    prompt.addGenerationPrompt = !prompt.continueLast;
    return prompt;
}

void ChatSession::contextFromReceipts() {
    context = {};
    for (int row = model->size() - 1; row >= 0; --row) {
        const ChatMessage& last = model->at(row);
        if (!last.receipt)
            continue;
        // Of an answer that was written on, the tokens that it had before are part of its last prompt.
        const auto drawn = last.receipt->drawnTokens > 0 ? last.receipt->drawnTokens : std::int64_t(last.tokens.size());
        context.length = last.receipt->cache.promptTokens + drawn;
        context.cached = last.receipt->cache.reusedTokens;
        context.thisTurn = context.length - context.cached;
        return;
    }
}

void ChatSession::setRanges(const std::vector<std::pair<std::int64_t, std::int64_t>>& messageRanges,
                            std::int64_t promptTokens) {
    for (int row = 0; row < model->size(); ++row)
        model->edit(row, [](ChatMessage& m) { m.tokenRange = {0, 0}; });
    const std::size_t n = std::min(messageRanges.size(), dialogRows.size());
    for (std::size_t i = 0; i < n; ++i)
        if (dialogRows[i] >= 0)
            model->edit(dialogRows[i], [&](ChatMessage& m) { m.tokenRange = messageRanges[i]; });
    // An answer that is written on lies in the prompt itself, as its last message.
    model->edit(answerRow, [&](ChatMessage& m) {
        m.tokenRange = {continuing ? m.tokenRange.first : promptTokens, promptTokens};
    });
}

std::string_view wholeCharacters(std::string_view bytes) {
    std::size_t back = 0; // continuation bytes at the end
    while (back < 3 && back < bytes.size() &&
           (static_cast<unsigned char>(bytes[bytes.size() - 1 - back]) & 0xC0) == 0x80)
        ++back;
    if (back == bytes.size())
        return bytes;
    const auto lead = static_cast<unsigned char>(bytes[bytes.size() - 1 - back]);
    const std::size_t needed = lead >= 0xF0 && lead < 0xF8   ? 3
                               : lead >= 0xE0 && lead < 0xF0 ? 2
                               : lead >= 0xC2 && lead < 0xE0 ? 1
                                                             : 0;
    return back < needed ? bytes.substr(0, bytes.size() - 1 - back) : bytes;
}

} // namespace kvscope::ui
