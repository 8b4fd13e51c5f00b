// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include "engine/store/conversation_store.h"
#include "engine/store/run_log.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::store;
using kvscope::test::TempDir;

namespace {

/// A database in a folder of its own with a clock that the test moves.
struct Fixture {
    TempDir dir;
    WallMillis now = 1'000'000;
    std::unique_ptr<Database> database;
    std::optional<ConversationStore> chats;
    std::optional<RunLog> runs;

    Fixture() { reopen(); }
    void reopen() {
        chats.reset();
        runs.reset();
        database.reset();
        DatabaseOptions options;
        options.path = dir.file("kvscope.db");
        auto opened = Database::open(options);
        if (!opened)
            qFatal("%s", opened.error().message.c_str());
        database = std::move(*opened);
        const WallClock clock = [this] { return ++now; };
        chats.emplace(*database, clock);
        runs.emplace(*database, clock);
    }
    ConversationId newChat(const std::string& title = "chat") { return chats->create({title, "", "", ""})->id; }
    ConversationStore::Turn turn(ConversationId chat, const std::string& text, MessageId parent = {}) {
        NewTurn turn;
        turn.conversation = chat;
        turn.parent = parent;
        turn.text = text;
        turn.model = "/models/a.gguf";
        auto made = chats->addTurn(turn, RunId());
        if (!made)
            qFatal("%s", made.error().message.c_str());
        return *made;
    }
    void end(MessageId answer, const std::string& text) {
        AnswerEnd end;
        end.answer = answer;
        end.text = text;
        end.finishReason = "stop";
        const auto ended = chats->endAnswer(end);
        if (!ended)
            qFatal("%s", ended.error().message.c_str());
    }
    std::int64_t number(const std::string& sql) { return database->handle().execAndGet(sql).getInt64(); }
};

std::vector<std::string> titles(const std::vector<Conversation>& list) {
    std::vector<std::string> names;
    for (const Conversation& c : list)
        names.push_back(c.title);
    return names;
}

} // namespace

class TestStore : public QObject {
    Q_OBJECT
private slots:
    void conversationsAreListedByLastUse() {
        Fixture f;
        const auto a = f.newChat("a"), b = f.newChat("b"), c = f.newChat("c");
        QCOMPARE(titles(*f.chats->list()), (std::vector<std::string>{"c", "b", "a"}));
        f.turn(a, "hello");
        QCOMPARE(titles(*f.chats->list()), (std::vector<std::string>{"a", "c", "b"}));
        QVERIFY(f.chats->remove(c));
        QCOMPARE(titles(*f.chats->list()), (std::vector<std::string>{"a", "b"}));
        QVERIFY(f.chats->restore(c));
        QCOMPARE(titles(*f.chats->list()), (std::vector<std::string>{"a", "c", "b"}));
        QVERIFY(f.chats->rename(b, "B, \xC3\xA4\xE4\xB8\xAD", true));
        f.reopen();
        QCOMPARE(f.chats->load(b)->conversation.title, std::string("B, \xC3\xA4\xE4\xB8\xAD"));
    }

    void automaticTitleNeverReplacesTheUsers() {
        Fixture f;
        const auto chat = f.newChat("");
        QVERIFY(f.chats->rename(chat, "automatic", false));
        QCOMPARE(f.chats->load(chat)->conversation.title, std::string("automatic"));
        QVERIFY(f.chats->rename(chat, "mine", true));
        QVERIFY(f.chats->rename(chat, "automatic again", false));
        QCOMPARE(f.chats->load(chat)->conversation.title, std::string("mine"));
    }

    void everythingOfATurnSurvivesReopening() {
        Fixture f;
        const auto chat = f.newChat();
        QVERIFY(f.chats->setDraft(chat, {"half a th", {{"notes.txt", "one\ntwo", 3}}}));
        QVERIFY(f.chats->setSystemPrompt(chat, "Be brief."));
        QVERIFY(f.chats->setSettings(chat, R"({"temperature":0.7})"));
        QVERIFY(f.chats->setModel(chat, "/models/b.gguf"));
        const auto turn = f.turn(chat, std::string("a\0b \xFF raw", 8));
        QCOMPARE(int(turn.answer->status), int(MessageStatus::Generating));
        AnswerEnd end;
        end.answer = turn.answer->id;
        end.text = "answer";
        end.thinking = "thought";
        end.finishReason = "stop";
        end.tokens = MessageTokens{"fp", {1, -2, 0x7fffffff}, 7};
        Receipt receipt;
        receipt.promptTokens = 2002;
        receipt.reusedTokens = 1940;
        receipt.computedTokens = 62;
        receipt.answerTokens = 3;
        receipt.newBlocks = 5;
        receipt.blockSize = 16;
        receipt.cause = "diverged";
        receipt.divergingToken = 0;
        receipt.ttftMs = 210.5;
        receipt.e2eMs = 1000.25;
        end.receipt = receipt;
        QVERIFY(f.chats->endAnswer(end));

        f.reopen();
        const auto content = f.chats->load(chat);
        QVERIFY(content);
        QCOMPARE(content->conversation.draft, std::string()); // sending empties it
        QCOMPARE(content->conversation.systemPrompt, std::string("Be brief."));
        QCOMPARE(content->conversation.settings, std::string(R"({"temperature":0.7})"));
        QCOMPARE(content->conversation.model, std::string("/models/b.gguf"));
        QCOMPARE(content->conversation.activeLeaf, turn.answer->id);
        QCOMPARE(content->messages.size(), std::size_t(2));
        QCOMPARE(content->messages[0].text, std::string("a\0b \xFF raw", 8));
        const Message& answer = content->messages[1];
        QCOMPARE(answer.text, std::string("answer"));
        QCOMPARE(answer.thinking, std::string("thought"));
        QCOMPARE(answer.model, std::string("/models/a.gguf"));
        QCOMPARE(int(answer.status), int(MessageStatus::Complete));
        QCOMPARE(answer.tokens->tokenizer, std::string("fp"));
        QCOMPARE(answer.tokens->ids, (std::vector<TokenId>{1, -2, 0x7fffffff}));
        QCOMPARE(*answer.tokens->endToken, 7);
        QCOMPARE(answer.receipt->promptTokens, std::int64_t(2002));
        QCOMPARE(answer.receipt->reusedTokens, std::int64_t(1940));
        QCOMPARE(answer.receipt->blockSize, std::int64_t(16));
        QCOMPARE(answer.receipt->cause, std::string("diverged"));
        QCOMPARE(answer.receipt->divergingToken, std::int64_t(0));
        QCOMPARE(answer.receipt->ttftMs, 210.5);
        QCOMPARE(answer.receipt->e2eMs, 1000.25);
    }

    void siblingsAreNumberedUnderTheirParent() {
        Fixture f;
        const auto chat = f.newChat();
        const auto first = f.turn(chat, "one");
        f.end(first.answer->id, "answer 1");
        const auto again = f.chats->addAnswer({chat, first.user.id, "", ""}, RunId());
        QVERIFY(again);
        QCOMPARE(again->sibling, std::int64_t(1));
        const auto edited = f.turn(chat, "one, edited"); // a second root
        QCOMPARE(edited.user.sibling, std::int64_t(1));
        QCOMPARE(edited.answer->sibling, std::int64_t(0));
        QCOMPARE(f.chats->load(chat)->conversation.activeLeaf, edited.answer->id);
        QVERIFY(f.chats->setActiveLeaf(chat, again->id));
        QCOMPARE(f.chats->load(chat)->conversation.activeLeaf, again->id);
        QCOMPARE(f.chats->load(chat)->messages.size(), std::size_t(5));
    }

    void impossibleWritesAreRefusedAndChangeNothing() {
        Fixture f;
        const auto chat = f.newChat(), other = f.newChat();
        const auto turn = f.turn(chat, "one");
        f.end(turn.answer->id, "answer");
        AnswerEnd second;
        second.answer = turn.answer->id;
        second.text = "other";
        QCOMPARE(f.chats->endAnswer(second).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(f.chats->saveProgress({turn.answer->id, "x", "", {}}).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(f.chats->saveProgress({MessageId(999), "x", "", {}}).error().code, ErrorCode::NotFound);
        QCOMPARE(f.chats->addAnswer({chat, turn.answer->id, "", ""}, RunId()).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(f.chats->addAnswer({other, turn.user.id, "", ""}, RunId()).error().code, ErrorCode::NotFound);
        QCOMPARE(f.chats->setActiveLeaf(other, turn.user.id).error().code, ErrorCode::NotFound);
        QCOMPARE(f.chats->load(ConversationId(77)).error().code, ErrorCode::NotFound);
        QCOMPARE(f.chats->rename(ConversationId(77), "x", true).error().code, ErrorCode::NotFound);
        NewTurn lost;
        lost.conversation = ConversationId(77);
        QCOMPARE(f.chats->addTurn(lost, RunId()).error().code, ErrorCode::NotFound);
        QCOMPARE(f.chats->load(chat)->messages[1].text, std::string("answer"));
        QCOMPARE(f.number("SELECT count(*) FROM message"), std::int64_t(2));
    }

    void purgeRemovesLongDeletedChatsWholeHoweverDeep() {
        Fixture f;
        const auto chat = f.newChat("deep"), kept = f.newChat("kept");
        MessageId parent;
        for (int i = 0; i < 700; ++i) { // deeper than SQLite's limit of nested triggers
            const auto turn = f.turn(chat, "q", parent);
            f.end(turn.answer->id, "a");
            parent = turn.answer->id;
        }
        f.turn(kept, "q");
        QVERIFY(f.chats->remove(chat));
        const WallMillis deletedAt = f.now;
        QCOMPARE(*f.chats->purgeDeleted(deletedAt), 0);
        QCOMPARE(*f.chats->purgeDeleted(deletedAt + 1), 1);
        QCOMPARE(f.number("SELECT count(*) FROM message"), std::int64_t(2));
        QCOMPARE(f.number("SELECT count(*) FROM message_search WHERE message_search MATCH '\"qqq\"'"), std::int64_t(0));
        QCOMPARE(f.database->handle().execAndGet("PRAGMA integrity_check").getString(), std::string("ok"));
    }

    void crashLeavesInterruptedAnswersAndAnUncleanRun() {
        Fixture f;
        QVERIFY(f.runs->begin("0.1", "{}"));
        const auto chat = f.newChat();
        const auto done = f.turn(chat, "one");
        f.end(done.answer->id, "all of it");
        const auto open = f.turn(chat, "two", done.answer->id);
        QVERIFY(f.chats->saveProgress({open.answer->id, "part of", "", MessageTokens{"fp", {5, 6}, {}}}));

        f.reopen(); // as after a crash: nobody ended the run
        const auto recovery = f.runs->recover();
        QCOMPARE(recovery->uncleanRuns, 1);
        QCOMPARE(recovery->interruptedAnswers, 1);
        const auto content = f.chats->load(chat);
        QCOMPARE(int(content->messages[1].status), int(MessageStatus::Complete));
        QCOMPARE(int(content->messages[3].status), int(MessageStatus::Interrupted));
        QCOMPARE(content->messages[3].text, std::string("part of"));
        QCOMPARE(content->messages[3].tokens->ids, (std::vector<TokenId>{5, 6}));

        const auto run = f.runs->begin("0.1", "{}");
        QVERIFY(f.runs->endCleanly(*run));
        f.reopen();
        QCOMPARE(f.runs->recover()->uncleanRuns, 0);
        QCOMPARE(f.number("SELECT clean_exit FROM run WHERE id = 1"), std::int64_t(0));
        QCOMPARE(f.number("SELECT clean_exit FROM run WHERE id = 2"), std::int64_t(1));
    }

    void eventsModelsAndEstimatesAreKept() {
        Fixture f;
        const auto run = f.runs->begin("0.1", "{}");
        const auto chat = f.newChat();
        QVERIFY(f.runs->noteModel({{}, "/m.gguf", 10, 20, "aa", ""}));
        QVERIFY(f.runs->noteModel({{}, "/m.gguf", 11, 21, "bb", "chatml"}));
        const auto models = f.runs->models();
        QCOMPARE(models->size(), std::size_t(1));
        QCOMPARE(models->front().fingerprint, std::string("bb"));
        QCOMPARE(models->front().size, std::uint64_t(11));
        QVERIFY(f.runs->addEstimates(*run, {{"/m.gguf", "weights", 100, 101}, {"/m.gguf", "pool", 200, 200}}));
        QCOMPARE(f.number("SELECT sum(measured_bytes) FROM load_estimate WHERE model_id = 1"), std::int64_t(301));
        QVERIFY(f.runs->addEvent(*run, {"preempted", R"({"blocks":3})", chat, MessageId(), 5}));
        QCOMPARE(f.number("SELECT at FROM event WHERE kind = 'preempted'"), std::int64_t(5));
        // an event about a chat that is not there is refused, not stored half
        QCOMPARE(f.runs->addEvent(*run, {"x", "", ConversationId(99), {}, 0}).error().code, ErrorCode::InvalidArgument);
    }
};

QTEST_APPLESS_MAIN(TestStore)
#include "test_store.moc"
