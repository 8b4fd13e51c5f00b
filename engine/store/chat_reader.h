// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads conversations from files of KVScope and of other programs:
//  * KVScope's own JSON (see chat_json.h), whole;
//  * OpenAI-style: {"messages": [{"role", "content"}]}, a list of such, JSON lines, a bare list of messages, and the
//    trees ("mapping") of ChatGPT's data export;
//  * ShareGPT: {"conversations": [{"from", "value"}]}, a list of such, JSON lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/store/chat_json.h"

namespace kvscope::store {

/// A conversation as it was read: its ids count from 1 and name parents only.
struct ReadChat {
    ConversationContent content;
    std::string fingerprint; ///< for ConversationStore::adopt
};

struct ChatReadOptions {
    std::size_t mostFileBytes = std::size_t(1) << 30;  ///< larger files are refused
    std::size_t mostChatBytes = std::size_t(64) << 20; ///< larger conversations are skipped
    std::function<bool()> stop;                        ///< looked at before each conversation; true ends the reading
};

struct ChatReadReport {
    std::int64_t chats = 0;           ///< given to `take`
    std::int64_t skippedCount = 0;    ///< parts that were left out
    std::int64_t skippedChats = 0;    ///< of them: whole conversations, or what may have been some
    std::vector<SkippedPart> skipped; ///< the first `kMostSkippedTold`
};

/// Reads one conversation after the other and hands each to `take`; a Result that is an error ends the reading with it.
/// What cannot be read is skipped and told, the rest is read: damaged, cut off, too large, nested too deep.
/// Errors: Corrupt where nothing is a conversation, Newer (KVScope's own of a later version), TooLong (the file).
Result<ChatReadReport> readChats(std::string_view text, const std::function<Result<void>(ReadChat&&)>& take,
                                 const ChatReadOptions& options = {});
/// The same of a file. Errors: also NotFound, Io.
Result<ChatReadReport> readChatFile(const std::string& path, const std::function<Result<void>(ReadChat&&)>& take,
                                    const ChatReadOptions& options = {});

/// One conversation of another program. Errors: Corrupt with what is missing. `skipped` gets what was left out.
Result<ConversationContent> chatFromForeign(const nlohmann::json& value, SkippedParts& skipped);
/// Whether this is one message of a conversation rather than a conversation.
bool isForeignMessage(const nlohmann::json& value);

} // namespace kvscope::store
