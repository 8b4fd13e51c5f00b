// SPDX-License-Identifier: GPL-3.0-or-later
//
// The shown path of a conversation as text for people. Invalid UTF-8 becomes U+FFFD.
#pragma once

#include <string>

#include "engine/store/records.h"

namespace kvscope::store {

/// The messages of the shown path, first to last.
std::vector<const Message*> shownPath(const ConversationContent& content);

/// A heading for the conversation and one for each message; texts stand as they are, and a code fence that a message
/// leaves open is closed after it.
std::string chatToMarkdown(const ConversationContent& content);

/// A page of its own: every text escaped, style inside, no script and nothing from elsewhere (and a policy that forbids
/// both). `body` is the pages' common part: one file may hold several conversations.
std::string chatToHtmlBody(const ConversationContent& content);
std::string htmlHead(const std::string& title);
std::string htmlFoot();

} // namespace kvscope::store
