// SPDX-License-Identifier: GPL-3.0-or-later
//
// One conversation as JSON, whole: every version of every message with its tokens, settings and receipt. Reading what
// was written gives the same, byte for byte.
//
//   {"title", "title_by_user", "created", "updated", "system_prompt", "settings", "model", "draft", "active",
//    "messages": [{"id", "parent"?, "sibling"?, "role", "text", "text_hex"?, "thinking"?, "status", "finish_reason"?,
//                  "error"?, "ended_by"?, "adaptations"?, "settings"?, "model"?, "created",
//                  "tokens"?: {"tokenizer", "ids", "end_token"?}, "receipt"?,
//                  "attachments"?: [{"name", "text", "tokens"?}]}]}
//
// Ids count from 1 in the order of the messages, parents first. A text that is not UTF-8 stands there with U+FFFD for
// its bad bytes, and all its bytes in "text_hex" beside it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/result.h"
#include "engine/store/records.h"

namespace kvscope::store {

inline constexpr const char* kChatFormat = "kvscope-chats"; ///< "format" of a file of conversations
inline constexpr int kChatFormatVersion = 1;

nlohmann::ordered_json chatToJson(const ConversationContent& content);

/// What was left out of a conversation, and why.
struct SkippedPart {
    std::string what; ///< "message 3"
    std::string why;  ///< a sentence
};

inline constexpr std::size_t kMostSkippedTold = 200;
/// What was left out: all counted, the first of them by name, so that a file of millions of them costs no memory.
class SkippedParts {
public:
    void push_back(SkippedPart part) {
        ++m_count;
        if (m_first.size() < kMostSkippedTold)
            m_first.push_back(std::move(part));
    }
    std::int64_t count() const { return m_count; }
    const std::vector<SkippedPart>& first() const { return m_first; }
    bool empty() const { return m_count == 0; }

private:
    std::int64_t m_count = 0;
    std::vector<SkippedPart> m_first;
};

/// Errors: Corrupt with what is wrong. Message ids of the result count from 1.
Result<ConversationContent> chatFromJson(const nlohmann::json& value, SkippedParts& skipped);

} // namespace kvscope::store
