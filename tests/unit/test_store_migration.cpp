// SPDX-License-Identifier: GPL-3.0-or-later
//
// A stored database of every older version opens with all its chats, also after being killed at any point of it.
#include <QTest>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/store/chat_search.h"
#include "engine/store/conversation_store.h"
#include "engine/store/preset_store.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::store;
namespace fs = std::filesystem;

namespace {

constexpr int kKills = 20;

std::string stored(int version) {
    return KVSCOPE_TEST_DATA "/store/kvscope-v" + std::to_string(version) + ".db";
}

Result<std::unique_ptr<Database>> openAt(const std::string& path, const std::string& vfs = {}) {
    DatabaseOptions options;
    options.path = path;
    options.vfs = vfs;
    return Database::open(options);
}

/// What only a database of version 2 and later holds.
std::string wrongSince2(ConversationStore& chats, const Conversation& first) {
    if (first.draftAttachments != std::vector<Attachment>{{"plan.md", "# Plan", 4}})
        return "a draft's attachment";
    const auto draft = chats.newChatDraft();
    if (!draft || *draft != Draft{"begun and not sent", {{"", "pasted", 0}}})
        return "the draft of the new chat";
    const auto content = chats.load(first.id);
    const ThinkingFacts facts = content->messages[3].thinkingFacts;
    return facts == ThinkingFacts{1500, 12, true} && content->messages[3].thinking == "why" ? "" : "a thought";
}

/// Everything that the stored database of this version holds, as this program sees it; "" = as it should be.
std::string wrong(Database& database, int version) {
    ConversationStore chats(database, systemWallClock());
    const auto list = chats.list();
    if (!list || list->size() != 3 || (*list)[0].title != "Zweiter: \xE4\xB8\xAD\xE6\x96\x87" ||
        (*list)[1].title != "First chat" || (*list)[2].title != "Empty")
        return "the list";
    if (!(*list)[0].titleByUser || (*list)[1].draft != "half a th" || (*list)[1].systemPrompt != "Be brief.")
        return "the conversations";
    const auto first = chats.load((*list)[1].id);
    if (!first || first->messages.size() != 5)
        return "the messages";
    const Message& answer = first->messages[1];
    if (answer.text != "STRASSE and \xE4\xBF\xAE\xE5\xA4\x8D\xE5\xB7\xB2\xE9\xAA\x8C\xE8\xAF\x81" ||
        answer.thinking != "a thought" || answer.thinkingFacts != ThinkingFacts{})
        return "an answer";
    if (!answer.tokens || answer.tokens->ids != std::vector<TokenId>{1, -2, 50000} || answer.tokens->endToken != 7)
        return "tokens";
    if (!answer.receipt || answer.receipt->reusedTokens != 16 || answer.receipt->e2eMs != 9.75)
        return "a receipt";
    if (first->messages[4].sibling != 1 || first->messages[4].parent != first->messages[0].id)
        return "a version";
    const auto second = chats.load((*list)[0].id);
    if (!second || second->messages[0].attachments != std::vector<Attachment>{{"a.txt", "one\ntwo", 3}})
        return "an attachment";
    // What a version could not search yet is searched now.
    const auto found = searchChats(database, "E\nTW");
    if (!found || found->messages != std::vector<MessageId>{second->messages[0].id} || found->hits[0].attachment != 0)
        return "the text of an attachment";
    if (version >= 2)
        if (const std::string problem = wrongSince2(chats, (*list)[1]); !problem.empty())
            return problem;
    PresetStore presets(database, systemWallClock());
    const auto all = presets.list();
    if (!all || all->size() != 1 || all->front().systemPrompt != "Rhyme.")
        return "a preset";
    if (database.handle().execAndGet("PRAGMA integrity_check").getString() != "ok" ||
        database.handle().execAndGet("SELECT count(*) FROM pragma_foreign_key_check").getInt() != 0)
        return "integrity";
    for (const char* table : {"message_search", "conversation_search", "attachment_search"}) // throws where it is stale
        database.handle().exec(std::string("INSERT INTO ") + table + "(" + table +
                               ", rank) VALUES ('integrity-check', 1)");
    if (!chats.restore(ConversationId(3)) || chats.list()->size() != 4)
        return "a deleted chat";
    return chats.remove(ConversationId(3)) ? "" : "deleting";
}

} // namespace

class TestStoreMigration : public QObject {
    Q_OBJECT
private slots:
    void everyOlderVersionIsStoredAndOpensWithAllItsChats() {
        for (int version = 1; version < schemaVersion(); ++version) {
            test::TempDir dir;
            const std::string path = dir.file("kvscope.db");
            QVERIFY2(fs::exists(stored(version)), "a released version needs its database among the test data");
            fs::copy_file(stored(version), path);
            auto database = openAt(path);
            QVERIFY2(database, database ? "" : database.error().message.c_str());
            QCOMPARE((*database)->handle().execAndGet("PRAGMA user_version").getInt(), schemaVersion());
            QCOMPARE(wrong(**database, version), std::string());
            QVERIFY(fs::exists(path + ".v" + std::to_string(version) + ".bak"));
            // Without touching the file: what an export beside a running window does.
            fs::copy_file(stored(version), dir.file("other.db"));
            DatabaseOptions options;
            options.path = dir.file("other.db");
            auto copy = Database::openInMemory(options);
            QVERIFY(copy);
            QCOMPARE(wrong(**copy, version), std::string());
            copy->reset();
            QCOMPARE(SQLite::Database(options.path).execAndGet("PRAGMA user_version").getInt(), version);
        }
    }

    void killedAtAnyPointItStillDoes() {
        int killed = 0;
        for (int point = 0; point < kKills; ++point) {
            test::TempDir dir;
            const std::string path = dir.file("kvscope.db");
            const int version = 1 + point % (schemaVersion() - 1);
            fs::copy_file(stored(version), path);
            const pid_t child = fork();
            if (child == 0) {
                test::FaultVfs faults;
                faults.killAfter = point * 2; // writes and syncs of the database, its log and its backup's source
                (void)openAt(path, faults.name());
                _exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 1 : 0;
            auto database = openAt(path);
            QVERIFY2(database, database ? "" : database.error().message.c_str());
            QCOMPARE((*database)->handle().execAndGet("PRAGMA user_version").getInt(), schemaVersion());
            QCOMPARE(wrong(**database, version), std::string());
        }
        QVERIFY2(killed >= kKills / 2, qPrintable(QString::number(killed)));
    }
};

QTEST_APPLESS_MAIN(TestStoreMigration)
#include "test_store_migration.moc"
