// SPDX-License-Identifier: GPL-3.0-or-later
//
// Rows of the database <-> values of the window. Pure functions.
#pragma once

#include <vector>

#include "engine/store/chat_search.h"
#include "engine/store/records.h"
#include "ui/models/chat_store.h"

namespace kvscope::desktop {

ui::Conversation conversationOf(const store::Conversation& row);
/// The shown path, from the first message to the active leaf.
std::vector<ui::ChatMessage> pathOf(const store::ConversationContent& content);
std::vector<ui::Attachment> attachmentsOf(const std::vector<store::Attachment>& rows);
std::vector<store::Attachment> rowsOf(const std::vector<ui::Attachment>& attachments);
ui::ChatStore::Preset presetOf(const store::Preset& row);
store::Preset rowOf(const ui::ChatStore::Preset& preset);
/// Places in bytes become places in UTF-16 units of the text that the window shows.
ui::ChatStore::SearchResult resultOf(const store::SearchResult& result);
store::AnswerProgress progressOf(const ui::ChatMessage& answer, const std::string& tokenizer);
store::AnswerEnd endOf(const ui::ChatMessage& answer, const std::string& tokenizer);

} // namespace kvscope::desktop
