// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/dialog_cut.h"

#include <algorithm>

namespace kvscope::api {

namespace {

constexpr std::int64_t kMostAnswerShare = 4; ///< of the window, as a divisor

} // namespace

WindowRoom windowRoom(std::int64_t limit, std::int64_t maxTokens) {
    return {limit, std::clamp<std::int64_t>(maxTokens, 1, std::max<std::int64_t>(1, limit / kMostAnswerShare))};
}

std::vector<std::int32_t> dialogTurns(std::span<const CutMessage> messages) {
    std::vector<std::int32_t> turns;
    std::int32_t begun = 0;
    for (const CutMessage& message : messages) {
        begun += message.side == CutMessage::Side::User ? 1 : 0;
        turns.push_back(message.side == CutMessage::Side::System ? -1 : std::max(0, begun - 1));
    }
    return turns;
}

DialogCut chooseCut(std::span<const CutMessage> messages, std::int64_t frame, const WindowRoom& room) {
    const std::vector<std::int32_t> turns = dialogTurns(messages);
    std::vector<std::int64_t> before; // by turn: tokens of those before it, system messages apart
    std::int64_t said = 0, system = 0;
    DialogCut cut;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const CutMessage& message = messages[i];
        const bool last = i + 1 == messages.size();
        if (message.side == CutMessage::Side::System) {
            system += message.tokens;
        } else {
            while (before.size() <= static_cast<std::size_t>(turns[i]))
                before.push_back(said);
            said += message.tokens;
        }
        // A request ended with every message but an answer, or ends here.
        if (!last && message.side != CutMessage::Side::User && message.side != CutMessage::Side::Tool)
            continue;
        cut.moved = false;
        const auto without = [&](std::size_t turn) { return frame + system + said - before[turn]; };
        const std::size_t newest = before.empty() ? 0 : before.size() - 1;
        if (cut.turns >= newest || without(cut.turns) + room.answer <= room.limit)
            continue;
        do
            ++cut.turns;
        while (cut.turns < newest && without(cut.turns) > room.afterCut());
        cut.moved = true;
    }
    return cut;
}

} // namespace kvscope::api
