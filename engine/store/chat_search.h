// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "engine/store/database.h"
#include "engine/store/records.h"

namespace kvscope::store {

/// One conversation title or message that contains the text.
struct SearchHit {
    ConversationId conversation;
    MessageId message;                           ///< invalid: the title
    std::size_t at = 0, bytes = 0;               ///< the first place, in bytes of the title or text as stored
    std::size_t atUnits = 0, units = 0;          ///< the same in UTF-16 units, as a window counts
    std::string snippet;                         ///< one line around that place, valid UTF-8
    std::size_t snippetAt = 0, snippetBytes = 0; ///< the found text in `snippet`
};

struct SearchResult {
    std::string query;
    bool superseded = false;     ///< told to stop before it was done
    std::vector<SearchHit> hits; ///< see `search`
    /// All messages that contain it, in the order of the hits; titles: the conversations.
    std::vector<MessageId> messages;
    std::vector<ConversationId> titles;
    std::int64_t conversations = 0; ///< with at least one hit, in title or message
};

inline constexpr std::size_t kMostHits = 500;

/// Finds `query` in titles and texts (not in thoughts) of all conversations that are not deleted: exactly where a scan
/// for the folded text (`foldCase`) finds it, so any text is a valid query, one character and punctuation included.
/// Hits: conversation by conversation, the last used first; in it the title, then the newest message first; the first
/// `kMostHits` with a snippet. `stop` is looked at while it runs; null = never.
///
/// From three characters on the trigram index answers; below that, every text is looked at.
Result<SearchResult> searchChats(Database& database, const std::string& query, const std::atomic<bool>* stop = nullptr);

/// Where `folded` (a folded text) first stands in `text`, in bytes of `text`; whole characters. None: {npos, 0}.
std::pair<std::size_t, std::size_t> findFolded(const std::string& text, const std::string& folded);

} // namespace kvscope::store
