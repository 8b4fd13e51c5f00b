// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/dialog_turns.h"

#include <algorithm>
#include <utility>

#include "engine/model/dialog.h"

namespace kvscope::model {

namespace {

using jinja::Text;
using jinja::Value;

constexpr const char* kSystem = "system";
constexpr const char* kUser = "user";
constexpr const char* kAssistant = "assistant";

/// The text of leading system turns goes before the first message of the user.
bool moveSystem(std::vector<DialogTurn>& turns) {
    DialogTurn system;
    const auto rest = std::find_if(turns.begin(), turns.end(), [](const DialogTurn& t) { return t.role != kSystem; });
    for (auto turn = turns.begin(); turn != rest; ++turn) {
        system.messages.insert(system.messages.end(), turn->messages.begin(), turn->messages.end());
        system.onlyText = system.onlyText && turn->onlyText;
    }
    turns.erase(turns.begin(), rest);
    if (system.messages.empty() || !system.onlyText)
        return false;
    if (turns.empty() || turns.front().role != kUser || !turns.front().onlyText)
        turns.insert(turns.begin(), DialogTurn{kUser, {}});
    turns.front().messages.insert(turns.front().messages.begin(), system.messages.begin(), system.messages.end());
    return true;
}

bool joinNeighbours(std::vector<DialogTurn>& turns) {
    std::vector<DialogTurn> joined;
    for (DialogTurn& turn : turns) {
        if (joined.empty() || joined.back().role != turn.role || !joined.back().onlyText || !turn.onlyText) {
            joined.push_back(std::move(turn));
            continue;
        }
        std::vector<std::int32_t>& before = joined.back().messages;
        before.insert(before.end(), turn.messages.begin(), turn.messages.end());
    }
    turns.swap(joined);
    return turns.size() < joined.size();
}

bool addEmptyUser(std::vector<DialogTurn>& turns) {
    const auto first =
        std::find_if(turns.begin(), turns.end(), [](const DialogTurn& turn) { return turn.role != kSystem; });
    if (first == turns.end() || first->role != kAssistant)
        return false;
    turns.insert(first, DialogTurn{kUser, {}});
    return true;
}

} // namespace

std::vector<DialogTurns> waysToGive(const std::vector<ChatMessage>& messages, std::size_t count) {
    DialogTurns plain;
    for (std::size_t i = 0; i < count; ++i)
        plain.turns.push_back({messages[i].role, {static_cast<std::int32_t>(i)}, messages[i].onlyText});
    struct Change {
        DialogAdaptation name;
        bool (*make)(std::vector<DialogTurn>&);
    };
    // In the order in which they are made: what one leaves behind, the next one sees.
    constexpr Change kChanges[] = {{DialogAdaptation::SystemInFirstMessage, moveSystem},
                                   {DialogAdaptation::MessagesJoined, joinNeighbours},
                                   {DialogAdaptation::EmptyMessageAdded, addEmptyUser}};
    constexpr unsigned kSets[] = {0, 2, 1, 4, 3, 5, 6, 7}; // bit i = change i; few changes first
    std::vector<DialogTurns> ways;
    for (const unsigned set : kSets) {
        DialogTurns way = plain;
        bool all = true;
        for (unsigned i = 0; i < std::size(kChanges); ++i)
            if ((set >> i & 1u) != 0) {
                all = all && kChanges[i].make(way.turns);
                way.adaptations.push_back(kChanges[i].name);
            }
        if (all)
            ways.push_back(std::move(way));
    }
    return ways;
}

Value turnsValue(const DialogTurns& turns, const std::vector<ChatMessage>& messages) {
    std::vector<Value> list;
    for (const DialogTurn& turn : turns.turns) {
        Text content;
        for (const std::int32_t index : turn.messages) {
            const ChatMessage& message = messages[static_cast<std::size_t>(index)];
            if (!content.empty())
                content.append("\n\n");
            content.append(message.opener);
            content.appendMarked(message.content, index);
        }
        std::vector<std::pair<Value, Value>> fields;
        if (turn.messages.size() == 1)
            fields = messages[static_cast<std::size_t>(turn.messages.front())].fields;
        if (fields.empty())
            fields = {{Value::string("role"), Value::string(turn.role)}, {Value::string("content"), Value()}};
        for (auto& [key, value] : fields)
            if (value.isUndefined())
                value = Value::string(content);
        list.push_back(Value::dict(std::move(fields)));
    }
    return Value::list(std::move(list));
}

} // namespace kvscope::model
