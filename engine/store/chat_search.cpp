// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/chat_search.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include <utf8proc.h>

#include "engine/store/fold.h"

namespace kvscope::store {

namespace {

constexpr std::size_t kNone = std::string::npos;
constexpr std::size_t kTrigram = 3;        ///< characters: below them the index knows nothing
constexpr std::size_t kLongestPhrase = 64; ///< characters; the rest of a longer text is compared, not looked up
constexpr std::size_t kSnippetBefore = 48, kSnippetAfter = 96; ///< characters around the beginning of the place
constexpr const char* kEllipsis = "\xE2\x80\xA6";

bool isContinuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

std::size_t characters(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !isContinuation(c); }));
}

/// The first `count` characters.
std::string beginning(const std::string& text, std::size_t count) {
    std::size_t at = 0;
    while (at < text.size() && (count > 0 || isContinuation(text[at])))
        count -= isContinuation(text[at++]) ? 0 : 1;
    return text.substr(0, at);
}

bool contains(const void* text, std::size_t size, const std::string& wanted) {
    return wanted.empty() || (size >= wanted.size() && ::memmem(text, size, wanted.data(), wanted.size()) != nullptr);
}
bool contains(const std::string& text, const std::string& wanted) {
    return contains(text.data(), text.size(), wanted);
}

/// FTS5 takes anything between quotes as text.
std::string phrase(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text)
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
}

/// The next piece of text that is folded by itself: a character with all that may be composed with it.
std::size_t nextPiece(const std::string& text, std::size_t at) {
    const auto byteAt = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byteAt(at) < 0x80 && (at + 1 == text.size() || byteAt(at + 1) < 0x80))
        return at + 1;
    const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto size = static_cast<utf8proc_ssize_t>(text.size());
    utf8proc_int32_t before = -1, after = -1, state = 0;
    auto used = utf8proc_iterate(data + at, size - static_cast<utf8proc_ssize_t>(at), &before);
    if (used <= 0)
        return at + 1;
    at += static_cast<std::size_t>(used);
    while (at < text.size()) {
        used = utf8proc_iterate(data + at, size - static_cast<utf8proc_ssize_t>(at), &after);
        if (used <= 0 || utf8proc_grapheme_break_stateful(before, after, &state))
            break;
        before = after;
        at += static_cast<std::size_t>(used);
    }
    return at;
}

/// A character beyond U+FFFF takes two, a byte that is not UTF-8 becomes U+FFFD.
std::size_t utf16Units(std::string_view text) {
    const std::string valid = validUtf8(text);
    return characters(valid) + static_cast<std::size_t>(std::count_if(valid.begin(), valid.end(), [](char c) {
               return static_cast<unsigned char>(c) >= 0xF0;
           }));
}

/// Adds snippet and its marks to a hit whose place in `text` is known.
void addSnippet(SearchHit& hit, const std::string& text) {
    std::size_t from = hit.at, to = hit.at;
    for (std::size_t n = 0; from > 0 && n < kSnippetBefore; ++n)
        do
            --from;
        while (from > 0 && isContinuation(text[from]));
    for (std::size_t n = 0; to < text.size() && n < kSnippetAfter; ++n)
        do
            ++to;
        while (to < text.size() && isContinuation(text[to]));
    const auto clean = [&](std::size_t begin, std::size_t end) {
        std::string line = validUtf8(std::string_view(text).substr(begin, end - begin));
        std::replace_if(
            line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
        return line;
    };
    const std::size_t end = std::min(to, hit.at + hit.bytes);
    const std::string found = clean(hit.at, end);
    hit.snippet = from > 0 ? kEllipsis : "";
    hit.snippet += clean(from, hit.at);
    hit.snippetAt = hit.snippet.size();
    hit.snippetBytes = found.size();
    hit.snippet += found + clean(end, to);
    if (to < text.size())
        hit.snippet += kEllipsis;
}

/// One search: finds ids first, which is cheap, and reads texts only for the hits that are shown.
class Search {
public:
    Search(Database& database, const std::string& query, const std::atomic<bool>* stop, std::size_t mostHits)
        : m_db(database)
        , m_folded(foldCase(query))
        , m_stop(stop)
        , m_mostHits(mostHits) {
        m_result.query = query;
        m_byIndex = characters(m_folded) >= kTrigram;
    }

    SearchResult run() {
        readConversations();
        findTitles();
        findMessages();
        order();
        addSnippets();
        m_result.superseded = stopped();
        return std::move(m_result);
    }

private:
    struct Found {
        std::size_t rank; ///< of its conversation, 0 = last used
        std::int64_t id;
    };

    bool stopped() const { return m_stop && m_stop->load(std::memory_order_relaxed); }

    void readConversations() {
        auto select = m_db.statement("SELECT id FROM conversation WHERE deleted_at IS NULL"
                                     " ORDER BY updated_at DESC, id DESC");
        while (select->executeStep()) {
            m_rank.emplace(select->getColumn(0).getInt64(), m_ids.size());
            m_ids.push_back(select->getColumn(0).getInt64());
        }
    }

    void findTitles() {
        auto select = m_db.statement("SELECT id, title_folded FROM conversation WHERE deleted_at IS NULL");
        while (select->executeStep()) {
            const SQLite::Column folded = select->getColumn(1);
            if (contains(folded.getText(), static_cast<std::size_t>(folded.getBytes()), m_folded))
                m_titles.insert(m_rank.at(select->getColumn(0).getInt64()));
        }
    }

    void findMessages() {
        if (!m_byIndex)
            scan();
        else
            lookUp();
    }

    void scan() {
        auto select = m_db.statement("SELECT id, conversation_id, text_folded FROM message");
        while (!stopped() && select->executeStep()) {
            const auto rank = m_rank.find(select->getColumn(1).getInt64());
            if (rank == m_rank.end())
                continue;
            const SQLite::Column folded = select->getColumn(2);
            if (m_folded.empty() || contains(folded.getText(), static_cast<std::size_t>(folded.getBytes()), m_folded))
                m_messages.push_back({rank->second, select->getColumn(0).getInt64()});
        }
        auto files = m_db.statement("SELECT a.message_id, m.conversation_id, a.folded FROM attachment a"
                                    " JOIN message m ON m.id = a.message_id");
        while (!stopped() && files->executeStep()) {
            const auto rank = m_rank.find(files->getColumn(1).getInt64());
            const SQLite::Column folded = files->getColumn(2);
            if (rank != m_rank.end() &&
                contains(folded.getText(), static_cast<std::size_t>(folded.getBytes()), m_folded))
                m_messages.push_back({rank->second, files->getColumn(0).getInt64()});
        }
    }

    void lookUp() {
        // Which chat a message belongs to comes from an index that holds nothing else: the rows are not read.
        std::unordered_map<std::int64_t, std::size_t> rankOf;
        auto all = m_db.statement("SELECT conversation_id, id FROM message INDEXED BY message_by_conversation");
        while (!stopped() && all->executeStep())
            if (const auto rank = m_rank.find(all->getColumn(0).getInt64()); rank != m_rank.end())
                rankOf.emplace(all->getColumn(1).getInt64(), rank->second);
        const std::string first = beginning(m_folded, kLongestPhrase);
        auto select = m_db.statement("SELECT rowid FROM message_search WHERE message_search MATCH ?");
        select->bind(1, phrase(first));
        while (!stopped() && select->executeStep()) {
            const std::int64_t id = select->getColumn(0).getInt64();
            const auto rank = rankOf.find(id);
            if (rank != rankOf.end() &&
                (first.size() == m_folded.size() || holdsWhole("SELECT text_folded FROM message WHERE id = ?", id)))
                m_messages.push_back({rank->second, id});
        }
        auto files = m_db.statement("SELECT a.id, a.message_id FROM attachment_search s JOIN attachment a"
                                    " ON a.id = s.rowid WHERE attachment_search MATCH ?");
        files->bind(1, phrase(first));
        while (!stopped() && files->executeStep()) {
            const auto rank = rankOf.find(files->getColumn(1).getInt64());
            if (rank != rankOf.end() &&
                (first.size() == m_folded.size() ||
                 holdsWhole("SELECT folded FROM attachment WHERE id = ?", files->getColumn(0).getInt64())))
                m_messages.push_back({rank->second, files->getColumn(1).getInt64()});
        }
    }

    bool holdsWhole(const char* sql, std::int64_t id) {
        auto select = m_db.statement(sql);
        select->bind(1, id);
        if (!select->executeStep())
            return false;
        const SQLite::Column folded = select->getColumn(0);
        return contains(folded.getText(), static_cast<std::size_t>(folded.getBytes()), m_folded);
    }

    void order() {
        std::sort(m_messages.begin(), m_messages.end(),
                  [](const Found& a, const Found& b) { return a.rank != b.rank ? a.rank < b.rank : a.id > b.id; });
        // A message may have been found in its text and in several attachments.
        m_messages.erase(std::unique(m_messages.begin(), m_messages.end(),
                                     [](const Found& a, const Found& b) { return a.id == b.id; }),
                         m_messages.end());
        std::vector<std::size_t> titles(m_titles.begin(), m_titles.end());
        std::sort(titles.begin(), titles.end());
        for (const std::size_t rank : titles)
            m_result.titles.emplace_back(m_ids[rank]);
        auto title = titles.begin();
        for (auto at = m_messages.begin(); at != m_messages.end() || title != titles.end();) {
            const std::size_t rank = at == m_messages.end()  ? *title
                                     : title == titles.end() ? at->rank
                                                             : std::min(*title, at->rank);
            SearchHit hit;
            hit.conversation = ConversationId(m_ids[rank]);
            if (title != titles.end() && *title == rank)
                ++title;
            for (; at != m_messages.end() && at->rank == rank; ++at) {
                if (hit.count++ == 0)
                    hit.message = MessageId(at->id);
                m_result.messages.emplace_back(at->id);
            }
            ++m_result.conversations;
            if (m_result.hits.size() < m_mostHits)
                m_result.hits.push_back(std::move(hit));
        }
    }

    void addSnippets() {
        for (SearchHit& hit : m_result.hits) {
            if (stopped())
                return;
            const bool inTitle = !hit.message.valid();
            auto select = m_db.statement(inTitle ? "SELECT title FROM conversation WHERE id = ?"
                                                 : "SELECT text FROM message WHERE id = ?");
            select->bind(1, inTitle ? hit.conversation.value() : hit.message.value());
            if (!select->executeStep())
                continue;
            const std::string text = select->getColumn(0).getString();
            if (!addPlace(hit, text) && !inTitle)
                lookInAttachments(hit);
        }
    }

    /// False: it is not in this text.
    bool addPlace(SearchHit& hit, const std::string& text) {
        const auto [at, bytes] = findFolded(text, m_folded);
        hit.at = at == kNone ? 0 : at;
        hit.bytes = at == kNone ? 0 : bytes;
        hit.atUnits = utf16Units(std::string_view(text).substr(0, hit.at));
        hit.units = utf16Units(std::string_view(text).substr(hit.at, hit.bytes));
        addSnippet(hit, text);
        return at != kNone;
    }

    void lookInAttachments(SearchHit& hit) {
        auto files = m_db.statement("SELECT position, name, content FROM attachment WHERE message_id = ?"
                                    " ORDER BY position");
        files->bind(1, hit.message.value());
        while (files->executeStep()) {
            const std::string text = files->getColumn(1).getString() + "\n" + files->getColumn(2).getString();
            if (!contains(foldCase(text), m_folded))
                continue;
            hit.attachment = files->getColumn(0).getInt64();
            addPlace(hit, text);
            return;
        }
    }

    Database& m_db;
    std::string m_folded;
    const std::atomic<bool>* m_stop;
    std::size_t m_mostHits;
    bool m_byIndex = false;
    std::unordered_map<std::int64_t, std::size_t> m_rank;
    std::vector<std::int64_t> m_ids; ///< of the conversations by rank
    std::unordered_set<std::size_t> m_titles;
    std::vector<Found> m_messages;
    SearchResult m_result;
};

} // namespace

Result<SearchResult> searchChats(Database& database, const std::string& query, const std::atomic<bool>* stop,
                                 std::size_t mostHits) {
    return database.read([&]() -> Result<SearchResult> {
        SQLite::Transaction snapshot(database.handle()); // all its queries see the same state
        return Search(database, query, stop, mostHits).run();
    });
}

std::pair<std::size_t, std::size_t> findFolded(const std::string& text, const std::string& folded) {
    const std::size_t begin = foldCase(text).find(folded);
    if (begin == kNone)
        return {kNone, 0};
    const std::size_t end = begin + folded.size();
    std::size_t at = 0, foldedAt = 0;
    std::size_t first = kNone;
    while (at < text.size() && (first == kNone || foldedAt < end)) {
        const std::size_t next = nextPiece(text, at);
        const std::size_t size =
            next == at + 1 && static_cast<signed char>(text[at]) > 0 ? 1 : foldCase(text.substr(at, next - at)).size();
        if (first == kNone && foldedAt + size > begin)
            first = at;
        foldedAt += size;
        at = next;
        if (first != kNone && foldedAt >= end)
            break;
    }
    if (first == kNone)
        return {text.size(), 0};
    return {first, folded.empty() ? 0 : at - first};
}

} // namespace kvscope::store
