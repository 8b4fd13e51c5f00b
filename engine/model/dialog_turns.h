// SPDX-License-Identifier: GPL-3.0-or-later
//
// From the messages of a dialog to the turns that a template is given. Many templates refuse a system role, two turns
// of one side in a row, or a dialog that the user does not begin; then the dialog is adapted, and what was done is
// told. The messages themselves stay as they are: every byte of a turn knows which message it came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/jinja/value.h"

namespace kvscope::model {

struct ChatMessage; // engine/model/dialog.h

/// What was done to a dialog so that the template could take it.
enum class DialogAdaptation {
    SystemInFirstMessage, ///< system text was put before the user's first message
    MessagesJoined,       ///< neighbours of one side became one turn
    EmptyMessageAdded,    ///< an empty turn of the user was put in front of the first answer
};

/// One turn as the template gets it: the messages that it is made of, an empty line between two of them.
struct DialogTurn {
    std::string role;
    std::vector<std::int32_t> messages; ///< indices, ascending; none = an empty turn
    bool onlyText = true;               ///< may be joined with others: nothing but their text would be lost
};

struct DialogTurns {
    std::vector<DialogTurn> turns;
    std::vector<DialogAdaptation> adaptations;
};

/// The ways to give a template these messages, the least change first; the first one changes nothing. Only changes that
/// make a difference are among them.
std::vector<DialogTurns> waysToGive(const std::vector<ChatMessage>& messages, std::size_t count);

/// The list of dicts for the template; contents carry marks with the index of their message.
jinja::Value turnsValue(const DialogTurns& turns, const std::vector<ChatMessage>& messages);

} // namespace kvscope::model
