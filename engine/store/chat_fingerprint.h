// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "engine/store/records.h"

namespace kvscope::store {

/// For each message a hash of itself (role, text, thought, attachments) and of all before it on its path: two messages
/// of different conversations with equal ones have the same history. Messages stand parents first.
std::vector<std::string> pathFingerprints(const std::vector<Message>& messages);

/// Of a whole conversation: `source` (an id that its file gives it, or ""), title, system prompt and messages. Times,
/// settings and the shown path do not count.
std::string chatFingerprint(const ConversationContent& content, const std::string& source);

} // namespace kvscope::store
