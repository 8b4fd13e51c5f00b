// SPDX-License-Identifier: GPL-3.0-or-later
//
// How message rows are read and written. Inside the store only.
#pragma once

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>

#include "engine/store/records.h"

namespace kvscope::store {

/// Columns of all conversations, to be followed by WHERE; read by readConversation.
extern const char* const kConversationSelect;
Conversation readConversation(SQLite::Statement& row);

/// All messages of conversation ?1 with tokens and receipts, parents before children (ids grow with time).
extern const char* const kMessageSelect;
Message readMessage(SQLite::Statement& row);

extern const char* const kReceiptInsert;
void bindReceipt(SQLite::Statement& insert, MessageId id, const Receipt& receipt);

/// name, content, tokens at `column`
Attachment readAttachment(SQLite::Statement& row, int column);
/// (owner, position, name, content, tokens)
void bindAttachment(SQLite::Statement& insert, std::int64_t owner, std::size_t position, const Attachment& attachment);

/// Stable names with a space between them; what is no such name is left out.
std::string joinNames(const std::vector<std::string>& names);
std::vector<std::string> splitNames(const std::string& all);

/// Little-endian 32-bit ids, four bytes each.
std::string packTokens(const std::vector<TokenId>& ids);
std::vector<TokenId> unpackTokens(const void* blob, std::size_t bytes);

template <class Id> Id readId(const SQLite::Column& column) {
    return column.isNull() ? Id() : Id(column.getInt64());
}
template <class Id> void bindId(SQLite::Statement& statement, int index, Id id) {
    if (id.valid())
        statement.bind(index, id.value());
    else
        statement.bind(index); // NULL
}

} // namespace kvscope::store
