// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/row_io.h"

#include <algorithm>

namespace kvscope::store {

const char* const kMessageSelect =
    "SELECT m.id, m.conversation_id, m.parent_id, m.sibling, m.role, m.text, m.thinking, m.status, m.finish_reason,"
    " m.error, m.settings, ifnull(o.path, ''), m.created_at, t.tokenizer, t.ids, t.end_token, r.message_id,"
    " r.prompt_tokens, r.reused_tokens, r.computed_tokens, r.answer_tokens, r.new_blocks, r.preemptions,"
    " r.swapped_blocks, r.blocks_peak, r.blocks_available_after, r.blocks_cached_after, r.block_size, r.cause,"
    " r.diverging_token, r.queue_ms, r.prefill_ms, r.decode_ms, r.ttft_ms, r.e2e_ms,"
    " m.thinking_ms, m.thinking_tokens, m.thinking_open, m.ended_by, m.adaptations, r.diverging_turn, r.evicted_by,"
    " r.evicted_ago_ms"
    " FROM message m LEFT JOIN model o ON o.id = m.model_id LEFT JOIN message_tokens t ON t.message_id = m.id"
    " LEFT JOIN receipt r ON r.message_id = m.id WHERE m.conversation_id = ? ORDER BY m.id";

const char* const kConversationSelect =
    "SELECT c.id, c.title, c.title_by_user, c.created_at, c.updated_at, c.deleted_at, c.active_leaf, c.draft,"
    " c.system_prompt, c.settings, ifnull(m.path, ''),"
    " ifnull((SELECT substr(text, 1, 200) FROM message WHERE id = c.active_leaf), ''), c.waiting"
    " FROM conversation c LEFT JOIN model m ON m.id = c.model_id ";

const char* const kReceiptInsert =
    "INSERT OR REPLACE INTO receipt(message_id, prompt_tokens, reused_tokens, computed_tokens, answer_tokens, "
    "new_blocks,"
    " preemptions, swapped_blocks, blocks_peak, blocks_available_after, blocks_cached_after, block_size, cause,"
    " diverging_token, queue_ms, prefill_ms, decode_ms, ttft_ms, e2e_ms, diverging_turn, evicted_by, evicted_ago_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

namespace {

Role readRole(const std::string& name) {
    for (const Role role : {Role::System, Role::User, Role::Assistant})
        if (name == roleName(role))
            return role;
    return Role::User; // the table's CHECK admits no other name
}

MessageStatus readStatus(const std::string& name) {
    for (const MessageStatus status : {MessageStatus::Complete, MessageStatus::Interrupted, MessageStatus::Generating})
        if (name == messageStatusName(status))
            return status;
    return MessageStatus::Error;
}

Receipt readReceipt(SQLite::Statement& row, int column) {
    Receipt r;
    for (std::int64_t* field :
         {&r.promptTokens, &r.reusedTokens, &r.computedTokens, &r.answerTokens, &r.newBlocks, &r.preemptions,
          &r.swappedBlocks, &r.blocksPeak, &r.blocksAvailableAfter, &r.blocksCachedAfter, &r.blockSize})
        *field = row.getColumn(column++).getInt64();
    r.cause = row.getColumn(column++).getString();
    const SQLite::Column diverging = row.getColumn(column++);
    r.divergingToken = diverging.isNull() ? -1 : diverging.getInt64();
    for (double* field : {&r.queueMs, &r.prefillMs, &r.decodeMs, &r.ttftMs, &r.e2eMs})
        *field = row.getColumn(column++).getDouble();
    return r;
}

std::int64_t knownOr(const SQLite::Column& column, std::int64_t unknown) {
    return column.isNull() ? unknown : column.getInt64();
}

} // namespace

std::string joinNames(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names)
        if (!name.empty() && name.find(' ') == std::string::npos)
            all += (all.empty() ? "" : " ") + name;
    return all;
}

std::vector<std::string> splitNames(const std::string& all) {
    std::vector<std::string> names;
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t end = std::min(all.find(' ', at), all.size());
        if (end > at)
            names.push_back(all.substr(at, end - at));
        at = end + 1;
    }
    return names;
}

Conversation readConversation(SQLite::Statement& row) {
    Conversation c;
    c.id = ConversationId(row.getColumn(0).getInt64());
    c.title = row.getColumn(1).getString();
    c.titleByUser = row.getColumn(2).getInt() != 0;
    c.created = row.getColumn(3).getInt64();
    c.updated = row.getColumn(4).getInt64();
    if (!row.getColumn(5).isNull())
        c.deleted = row.getColumn(5).getInt64();
    c.activeLeaf = readId<MessageId>(row.getColumn(6));
    c.draft = row.getColumn(7).getString();
    c.systemPrompt = row.getColumn(8).getString();
    c.settings = row.getColumn(9).getString();
    c.model = row.getColumn(10).getString();
    c.preview = row.getColumn(11).getString();
    c.waiting.text = row.getColumn(12).getString();
    return c;
}

Message readMessage(SQLite::Statement& row) {
    Message m;
    m.id = MessageId(row.getColumn(0).getInt64());
    m.conversation = ConversationId(row.getColumn(1).getInt64());
    m.parent = readId<MessageId>(row.getColumn(2));
    m.sibling = row.getColumn(3).getInt64();
    m.role = readRole(row.getColumn(4).getString());
    m.text = row.getColumn(5).getString();
    m.thinking = row.getColumn(6).getString();
    m.status = readStatus(row.getColumn(7).getString());
    m.finishReason = row.getColumn(8).getString();
    m.error = row.getColumn(9).getString();
    m.settings = row.getColumn(10).getString();
    m.model = row.getColumn(11).getString();
    m.created = row.getColumn(12).getInt64();
    if (!row.getColumn(13).isNull()) {
        MessageTokens tokens;
        tokens.tokenizer = row.getColumn(13).getString();
        const SQLite::Column ids = row.getColumn(14);
        tokens.ids = unpackTokens(ids.getBlob(), static_cast<std::size_t>(ids.getBytes()));
        if (!row.getColumn(15).isNull())
            tokens.endToken = row.getColumn(15).getInt();
        m.tokens = std::move(tokens);
    }
    if (!row.getColumn(16).isNull()) {
        m.receipt = readReceipt(row, 17);
        m.receipt->divergingTurn = knownOr(row.getColumn(40), -1);
        m.receipt->evictedBy = row.getColumn(41).getString();
        m.receipt->evictedAgoMs = knownOr(row.getColumn(42), -1);
    }
    m.endedBy = row.getColumn(38).getString();
    m.adaptations = splitNames(row.getColumn(39).getString());
    m.thinkingFacts.ms = row.getColumn(35).getInt64();
    m.thinkingFacts.tokens = row.getColumn(36).getInt64();
    m.thinkingFacts.open = row.getColumn(37).getInt() != 0;
    return m;
}

void bindReceipt(SQLite::Statement& insert, MessageId id, const Receipt& r) {
    int index = 1;
    insert.bind(index++, id.value());
    for (const std::int64_t value :
         {r.promptTokens, r.reusedTokens, r.computedTokens, r.answerTokens, r.newBlocks, r.preemptions, r.swappedBlocks,
          r.blocksPeak, r.blocksAvailableAfter, r.blocksCachedAfter, r.blockSize})
        insert.bind(index++, value);
    insert.bind(index++, r.cause);
    if (r.divergingToken >= 0)
        insert.bind(index, r.divergingToken);
    ++index;
    for (const double value : {r.queueMs, r.prefillMs, r.decodeMs, r.ttftMs, r.e2eMs})
        insert.bind(index++, value);
    if (r.divergingTurn >= 0)
        insert.bind(index, r.divergingTurn);
    insert.bind(index + 1, r.evictedBy);
    if (r.evictedAgoMs >= 0)
        insert.bind(index + 2, r.evictedAgoMs);
}

Attachment readAttachment(SQLite::Statement& row, int column) {
    Attachment attachment;
    attachment.name = row.getColumn(column).getString();
    attachment.content = row.getColumn(column + 1).getString();
    attachment.tokens = row.getColumn(column + 2).getInt64();
    return attachment;
}

void bindAttachment(SQLite::Statement& insert, std::int64_t owner, std::size_t position, const Attachment& attachment) {
    insert.bind(1, owner);
    insert.bind(2, static_cast<std::int64_t>(position));
    insert.bind(3, attachment.name);
    insert.bind(4, attachment.content.data(), static_cast<int>(attachment.content.size()));
    if (attachment.tokens > 0)
        insert.bind(5, attachment.tokens);
}

std::string packTokens(const std::vector<TokenId>& ids) {
    std::string blob;
    blob.reserve(ids.size() * 4);
    for (const TokenId id : ids) {
        const auto bits = static_cast<std::uint32_t>(id);
        for (int shift = 0; shift < 32; shift += 8)
            blob.push_back(static_cast<char>((bits >> shift) & 0xff));
    }
    return blob;
}

std::vector<TokenId> unpackTokens(const void* blob, std::size_t bytes) {
    const auto* data = static_cast<const unsigned char*>(blob);
    std::vector<TokenId> ids(bytes / 4);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        std::uint32_t bits = 0;
        for (int byte = 3; byte >= 0; --byte)
            bits = bits << 8 | data[i * 4 + static_cast<std::size_t>(byte)];
        ids[i] = static_cast<TokenId>(bits);
    }
    return ids;
}

} // namespace kvscope::store
