// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/schema.h"

namespace kvscope::store {

namespace {

// Version 1. Notes on what is not obvious:
//  * message.parent_id makes a tree from the start: siblings share a parent, sibling numbers count them.
//  * parent_id does not cascade: a long conversation would exceed SQLite's trigger depth. Deleting the conversation
//    deletes all its messages in one statement, which the deferred check accepts.
//  * conversation.active_leaf and message.conversation_id point at each other, so the former is deferred.
//  * *_folded columns are written by the program (Unicode folding is not in SQLite); the triggers keep the external
//    content indexes in step with them. An external-content index must be told the old values exactly.
//  * receipt and message_tokens are apart from message, so that listing a conversation need not read token blobs.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE preset(
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    system_prompt TEXT NOT NULL DEFAULT '',
    settings      TEXT NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE model(
    id              INTEGER PRIMARY KEY,
    path            TEXT NOT NULL UNIQUE,
    size            INTEGER NOT NULL DEFAULT 0,
    mtime           INTEGER NOT NULL DEFAULT 0,
    fingerprint     TEXT NOT NULL DEFAULT '',
    template_choice TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE run(
    id            INTEGER PRIMARY KEY,
    version       TEXT NOT NULL,
    configuration TEXT NOT NULL DEFAULT '',
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    clean_exit    INTEGER CHECK (clean_exit IN (0, 1))
) STRICT;

CREATE TABLE conversation(
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    title         TEXT NOT NULL DEFAULT '',
    title_folded  TEXT NOT NULL DEFAULT '',
    title_by_user INTEGER NOT NULL DEFAULT 0 CHECK (title_by_user IN (0, 1)),
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    deleted_at    INTEGER,
    active_leaf   INTEGER REFERENCES message(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    draft         TEXT NOT NULL DEFAULT '',
    system_prompt TEXT NOT NULL DEFAULT '',
    settings      TEXT NOT NULL DEFAULT '',
    preset_id     INTEGER REFERENCES preset(id) ON DELETE SET NULL,
    model_id      INTEGER REFERENCES model(id) ON DELETE SET NULL
) STRICT;
CREATE INDEX conversation_by_use ON conversation(updated_at DESC) WHERE deleted_at IS NULL;

CREATE TABLE message(
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    parent_id       INTEGER REFERENCES message(id) DEFERRABLE INITIALLY DEFERRED,
    sibling         INTEGER NOT NULL,
    role            TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    text            TEXT NOT NULL DEFAULT '',
    text_folded     TEXT NOT NULL DEFAULT '',
    thinking        TEXT NOT NULL DEFAULT '',
    status          TEXT NOT NULL CHECK (status IN ('complete', 'interrupted', 'generating', 'error')),
    finish_reason   TEXT NOT NULL DEFAULT '',
    error           TEXT NOT NULL DEFAULT '',
    settings        TEXT NOT NULL DEFAULT '',
    model_id        INTEGER REFERENCES model(id) ON DELETE SET NULL,
    run_id          INTEGER REFERENCES run(id) ON DELETE SET NULL,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX message_by_conversation ON message(conversation_id, id);
CREATE UNIQUE INDEX message_sibling ON message(conversation_id, ifnull(parent_id, 0), sibling);
CREATE INDEX message_by_parent ON message(parent_id);
CREATE INDEX message_generating ON message(status) WHERE status = 'generating';

CREATE TABLE message_tokens(
    message_id INTEGER PRIMARY KEY REFERENCES message(id) ON DELETE CASCADE,
    tokenizer  TEXT NOT NULL,
    ids        BLOB NOT NULL CHECK (length(ids) % 4 = 0),
    end_token  INTEGER
) STRICT;

CREATE TABLE receipt(
    message_id             INTEGER PRIMARY KEY REFERENCES message(id) ON DELETE CASCADE,
    prompt_tokens          INTEGER NOT NULL,
    reused_tokens          INTEGER NOT NULL,
    computed_tokens        INTEGER NOT NULL,
    answer_tokens          INTEGER NOT NULL,
    new_blocks             INTEGER NOT NULL,
    preemptions            INTEGER NOT NULL,
    swapped_blocks         INTEGER NOT NULL,
    blocks_peak            INTEGER NOT NULL,
    blocks_available_after INTEGER NOT NULL,
    blocks_cached_after    INTEGER NOT NULL,
    block_size             INTEGER NOT NULL,
    cause                  TEXT NOT NULL DEFAULT '',
    diverging_token        INTEGER,
    queue_ms               REAL NOT NULL,
    prefill_ms             REAL NOT NULL,
    decode_ms              REAL NOT NULL,
    ttft_ms                REAL NOT NULL,
    e2e_ms                 REAL NOT NULL
) STRICT;

CREATE TABLE attachment(
    id         INTEGER PRIMARY KEY,
    message_id INTEGER NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    name       TEXT NOT NULL,
    content    BLOB NOT NULL,
    tokens     INTEGER,
    UNIQUE (message_id, position)
) STRICT;

CREATE TABLE load_estimate(
    id              INTEGER PRIMARY KEY,
    run_id          INTEGER REFERENCES run(id) ON DELETE CASCADE,
    model_id        INTEGER REFERENCES model(id) ON DELETE CASCADE,
    at              INTEGER NOT NULL,
    part            TEXT NOT NULL,
    estimated_bytes INTEGER NOT NULL,
    measured_bytes  INTEGER NOT NULL
) STRICT;
CREATE INDEX load_estimate_by_model ON load_estimate(model_id);
CREATE INDEX load_estimate_by_run ON load_estimate(run_id);

CREATE TABLE event(
    id              INTEGER PRIMARY KEY,
    run_id          INTEGER REFERENCES run(id) ON DELETE CASCADE,
    conversation_id INTEGER REFERENCES conversation(id) ON DELETE CASCADE,
    message_id      INTEGER REFERENCES message(id) ON DELETE CASCADE,
    at              INTEGER NOT NULL,
    kind            TEXT NOT NULL,
    detail          TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX event_by_run ON event(run_id);
CREATE INDEX event_by_conversation ON event(conversation_id);
CREATE INDEX event_by_message ON event(message_id);

CREATE VIRTUAL TABLE message_search USING fts5(
    text_folded, content='message', content_rowid='id', tokenize='trigram case_sensitive 1');
CREATE TRIGGER message_search_insert AFTER INSERT ON message BEGIN
    INSERT INTO message_search(rowid, text_folded) VALUES (new.id, new.text_folded);
END;
CREATE TRIGGER message_search_delete AFTER DELETE ON message BEGIN
    INSERT INTO message_search(message_search, rowid, text_folded) VALUES ('delete', old.id, old.text_folded);
END;
CREATE TRIGGER message_search_update AFTER UPDATE OF text_folded ON message BEGIN
    INSERT INTO message_search(message_search, rowid, text_folded) VALUES ('delete', old.id, old.text_folded);
    INSERT INTO message_search(rowid, text_folded) VALUES (new.id, new.text_folded);
END;

CREATE VIRTUAL TABLE conversation_search USING fts5(
    title_folded, content='conversation', content_rowid='id', tokenize='trigram case_sensitive 1');
CREATE TRIGGER conversation_search_insert AFTER INSERT ON conversation BEGIN
    INSERT INTO conversation_search(rowid, title_folded) VALUES (new.id, new.title_folded);
END;
CREATE TRIGGER conversation_search_delete AFTER DELETE ON conversation BEGIN
    INSERT INTO conversation_search(conversation_search, rowid, title_folded)
        VALUES ('delete', old.id, old.title_folded);
END;
CREATE TRIGGER conversation_search_update AFTER UPDATE OF title_folded ON conversation BEGIN
    INSERT INTO conversation_search(conversation_search, rowid, title_folded)
        VALUES ('delete', old.id, old.title_folded);
    INSERT INTO conversation_search(rowid, title_folded) VALUES (new.id, new.title_folded);
END;
)sql";

// Version 2.
//  * conversation.imported: fingerprint of what it was imported from, so that importing twice adds nothing even after
//    the first copy was changed.
//  * draft_attachment and note keep what the composer holds; the new conversation has no row yet, so its draft is a
//    note, and its attachments stand under 0 (hence no foreign key).
//  * what is known of a thought stands beside it.
constexpr const char* kVersion2 = R"sql(
ALTER TABLE conversation ADD COLUMN imported TEXT NOT NULL DEFAULT '';
CREATE INDEX conversation_by_import ON conversation(imported) WHERE imported <> '';

ALTER TABLE message ADD COLUMN thinking_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN thinking_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN thinking_open INTEGER NOT NULL DEFAULT 0 CHECK (thinking_open IN (0, 1));

CREATE TABLE draft_attachment(
    conversation_id INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    name            TEXT NOT NULL,
    content         BLOB NOT NULL,
    tokens          INTEGER,
    PRIMARY KEY (conversation_id, position)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER draft_attachment_purge AFTER DELETE ON conversation BEGIN
    DELETE FROM draft_attachment WHERE conversation_id = old.id;
END;

CREATE TABLE note(
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
)sql";

// Version 3.
//  * attachment.folded: what is searched of it, written by the program like text_folded; those that are here already
//  get
//    it from kvscope_searched, a function that every connection has (Database).
//  * conversation.waiting and waiting_attachment: the message that is sent when the answer has ended.
//  * what the window said of an answer (how it ended, what was done to the chat for it, who took its blocks) stays.
//  * an import looks for chats of the same age.
constexpr const char* kVersion3 = R"sql(
CREATE INDEX conversation_by_age ON conversation(created_at) WHERE deleted_at IS NULL;

ALTER TABLE message ADD COLUMN ended_by TEXT NOT NULL DEFAULT '';
ALTER TABLE message ADD COLUMN adaptations TEXT NOT NULL DEFAULT '';

ALTER TABLE receipt ADD COLUMN diverging_turn INTEGER;
ALTER TABLE receipt ADD COLUMN evicted_by TEXT NOT NULL DEFAULT '';
ALTER TABLE receipt ADD COLUMN evicted_ago_ms INTEGER;

ALTER TABLE conversation ADD COLUMN waiting TEXT NOT NULL DEFAULT '';
CREATE TABLE waiting_attachment(
    conversation_id INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    position        INTEGER NOT NULL,
    name            TEXT NOT NULL,
    content         BLOB NOT NULL,
    tokens          INTEGER,
    PRIMARY KEY (conversation_id, position)
) STRICT, WITHOUT ROWID;

ALTER TABLE attachment ADD COLUMN folded TEXT NOT NULL DEFAULT '';
UPDATE attachment SET folded = kvscope_searched(name, content);
CREATE VIRTUAL TABLE attachment_search USING fts5(
    folded, content='attachment', content_rowid='id', tokenize='trigram case_sensitive 1');
INSERT INTO attachment_search(attachment_search) VALUES ('rebuild');
CREATE TRIGGER attachment_search_insert AFTER INSERT ON attachment BEGIN
    INSERT INTO attachment_search(rowid, folded) VALUES (new.id, new.folded);
END;
CREATE TRIGGER attachment_search_delete AFTER DELETE ON attachment BEGIN
    INSERT INTO attachment_search(attachment_search, rowid, folded) VALUES ('delete', old.id, old.folded);
END;
CREATE TRIGGER attachment_search_update AFTER UPDATE OF folded ON attachment BEGIN
    INSERT INTO attachment_search(attachment_search, rowid, folded) VALUES ('delete', old.id, old.folded);
    INSERT INTO attachment_search(rowid, folded) VALUES (new.id, new.folded);
END;
)sql";

} // namespace

const std::vector<Migration>& migrations() {
    static const std::vector<Migration> kAll = {{1, kVersion1}, {2, kVersion2}, {3, kVersion3}};
    return kAll;
}

int schemaVersion() {
    return migrations().back().to;
}

} // namespace kvscope::store
