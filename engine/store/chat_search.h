// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "engine/store/database.h"
#include "engine/store/records.h"

namespace kvscope::store {

/// One conversation whose title, or a message of which, contains the text: its newest such message, else its title.
struct SearchHit {
    ConversationId conversation;
    MessageId message;                           ///< invalid: only the title contains it
    std::int64_t count = 0;                      ///< its messages that contain it
    std::int64_t attachment = -1;                ///< where: an attachment of the message, from 0; -1 = its text
    std::size_t at = 0, bytes = 0;               ///< the first place, in bytes of the title or text as stored
    std::size_t atUnits = 0, units = 0;          ///< the same in UTF-16 units, as a window counts
    std::string snippet;                         ///< one line around that place, valid UTF-8
    std::size_t snippetAt = 0, snippetBytes = 0; ///< the found text in `snippet`
};

struct SearchResult {
    std::string query;
    bool superseded = false;     ///< told to stop before it was done
    std::vector<SearchHit> hits; ///< see `search`
    /// All messages that contain it, conversation by conversation, the newest first; titles: the conversations.
    std::vector<MessageId> messages;
    std::vector<ConversationId> titles;
    std::int64_t conversations = 0; ///< with at least one hit, in title or message
};

inline constexpr std::size_t kMostHits = 500;

/// Finds `query` in titles, texts and attachments (not in thoughts) of all conversations that are not deleted: exactly
/// where a scan for the folded text (`foldCase`, `searchedText`) finds it, so any text is a valid query, one character
/// and punctuation included. Hits: the last used conversation first; the first `mostHits` of them. `stop` is looked at
/// while it runs; null = never.
///
/// From three characters on the trigram index answers; below that, every text is looked at.
Result<SearchResult> searchChats(Database& database, const std::string& query, const std::atomic<bool>* stop = nullptr,
                                 std::size_t mostHits = kMostHits);

/// Where `folded` (a folded text) first stands in `text`, in bytes of `text`; whole characters. None: {npos, 0}.
std::pair<std::size_t, std::size_t> findFolded(const std::string& text, const std::string& folded);

} // namespace kvscope::store
