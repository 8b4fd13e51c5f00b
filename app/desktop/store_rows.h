// SPDX-License-Identifier: GPL-3.0-or-later
//
// Rows of the database <-> values of the window. Pure functions.
#pragma once

#include <vector>

#include "engine/store/records.h"
#include "ui/models/chat_types.h"

namespace kvscope::desktop {

ui::Conversation conversationOf(const store::Conversation& row);
/// The shown path, from the first message to the active leaf.
std::vector<ui::ChatMessage> pathOf(const store::ConversationContent& content);
store::AnswerProgress progressOf(const ui::ChatMessage& answer, const std::string& tokenizer);
store::AnswerEnd endOf(const ui::ChatMessage& answer, const std::string& tokenizer);

} // namespace kvscope::desktop
