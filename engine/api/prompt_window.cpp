// SPDX-License-Identifier: GPL-3.0-or-later
//
// PromptEncoder's part about chats that have outgrown their window.
#include <algorithm>
#include <numeric>

#include "engine/api/prompt_encoder.h"

namespace kvscope::api {

namespace {

CutMessage::Side sideOf(const DialogMessage& message) {
    return message.role == "system"      ? CutMessage::Side::System
           : message.role == "user"      ? CutMessage::Side::User
           : message.role == "assistant" ? CutMessage::Side::Answer
                                         : CutMessage::Side::Tool;
}

/// Tokens of system messages that lie in the range of another message: some templates print them in the first turn of
/// the user. They stay when that turn is left out, so they are not its own.
std::int64_t systemWithin(const DialogPrompt& dialog, const EncodedPrompt& prompt, std::size_t message) {
    if (sideOf(dialog.messages[message]) == CutMessage::Side::System)
        return 0;
    const auto& [begin, end] = prompt.messageRanges[message];
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < dialog.messages.size(); ++i)
        if (sideOf(dialog.messages[i]) == CutMessage::Side::System) {
            const auto& [from, to] = prompt.messageRanges[i];
            tokens += std::max<std::int64_t>(0, std::min(end, to) - std::max(begin, from));
        }
    return tokens;
}

} // namespace

/// What the messages take is measured in the rendering of all of them. Some templates render the rest a little longer
/// than that; then further turns go until it fits.
Result<EncodedPrompt> PromptEncoder::encodeWithin(const DialogPrompt& dialog, const WindowRoom& window) const {
    auto whole = encodeDialog(dialog);
    if (!whole || dialog.messages.empty() ||
        static_cast<std::int64_t>(whole->ids.size()) + window.answer <= window.limit)
        return whole;
    std::vector<CutMessage> messages;
    for (std::size_t i = 0; i < dialog.messages.size(); ++i) {
        const auto& [begin, end] = whole->messageRanges[i];
        messages.push_back({sideOf(dialog.messages[i]), end - begin - systemWithin(dialog, *whole, i)});
    }
    const std::int64_t said = std::accumulate(messages.begin(), messages.end(), std::int64_t(0),
                                              [](std::int64_t sum, const CutMessage& m) { return sum + m.tokens; });
    const std::vector<std::int32_t> turns = dialogTurns(messages);
    const std::int32_t newest = *std::max_element(turns.begin(), turns.end());
    const DialogCut cut = chooseCut(messages, static_cast<std::int64_t>(whole->ids.size()) - said, window);
    bool moved = cut.moved;
    for (auto first = static_cast<std::int32_t>(cut.turns);; ++first, moved = true) {
        if (first <= 0)
            return whole;
        auto kept = encodeWithout(dialog, messages, turns, first);
        if (!kept || first >= newest || static_cast<std::int64_t>(kept->ids.size()) < window.limit) {
            if (kept && !moved)
                kept->newCutAt = -1;
            return kept;
        }
    }
}

/// The dialog without its turns before `firstTurn`, all messages counted.
Result<EncodedPrompt> PromptEncoder::encodeWithout(const DialogPrompt& dialog, const std::vector<CutMessage>& messages,
                                                   const std::vector<std::int32_t>& turns,
                                                   std::int32_t firstTurn) const {
    const auto leftOut = [&](std::size_t i) { return turns[i] >= 0 && turns[i] < firstTurn; };
    DialogPrompt kept{{}, dialog.addGenerationPrompt, dialog.continueLast, dialog.variables};
    WindowCut cut;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (!leftOut(i)) {
            kept.messages.push_back(dialog.messages[i]);
            continue;
        }
        ++cut.messages;
        cut.tokens += messages[i].tokens;
    }
    auto out = encodeDialog(kept);
    if (!out)
        return out;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    auto next = out->messageRanges.begin();
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (!leftOut(i)) {
            if (out->newCutAt < 0 && turns[i] >= firstTurn)
                out->newCutAt = next->first;
            ranges.push_back(*next++);
        } else {
            ranges.emplace_back(next->first, next->first);
        }
    }
    out->messageRanges = std::move(ranges);
    out->cut = cut;
    return out;
}

} // namespace kvscope::api
