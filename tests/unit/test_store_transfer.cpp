// SPDX-License-Identifier: GPL-3.0-or-later
//
// Conversations as files: out and in again, from other programs, and files that are not what they should be.
#include <QTest>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/store/chat_reader.h"
#include "engine/store/chat_text.h"
#include "engine/store/chat_writer.h"
#include "engine/store/conversation_store.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::store;
using nlohmann::json;

namespace {

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Side {
    test::TempDir dir;
    WallMillis now = 1'700'000'000'000;
    std::unique_ptr<Database> database;
    std::optional<ConversationStore> chats;

    Side() {
        DatabaseOptions options;
        options.path = dir.file("kvscope.db");
        database = std::move(*Database::open(options));
        chats.emplace(*database, [this] { return ++now; });
    }
    std::string exported(ChatFormat format, const std::string& name) {
        const std::string path = dir.file(name);
        auto writer = ChatWriter::create(path, format, "Chats");
        auto list = *chats->list();
        for (auto c = list.rbegin(); c != list.rend(); ++c)
            if (!(*writer)->add(*chats->load(c->id)))
                qFatal("cannot write");
        if (!(*writer)->finish())
            qFatal("cannot finish");
        return path;
    }
    struct Outcome {
        int added = 0, there = 0;
        ChatReadReport report;
        std::optional<Error> error;
    };
    Outcome take(const std::string& text, ChatReadOptions options = {}) {
        Outcome outcome;
        const auto report = readChats(
            text,
            [&](ReadChat&& chat) -> Result<void> {
                const auto adopted = chats->adopt(chat.content, chat.fingerprint);
                if (!adopted)
                    return tl::unexpected<Error>(adopted.error());
                (adopted->added ? outcome.added : outcome.there) += 1;
                return {};
            },
            options);
        if (report)
            outcome.report = *report;
        else
            outcome.error = report.error();
        return outcome;
    }
    ConversationContent only() { return *chats->load(chats->list()->front().id); }
};

/// Chats with everything that a chat can have.
void fill(Side& side) {
    const auto chat =
        side.chats->create({"A <b>title</b> & \"more\"", "Be\nbrief.", R"({"temperature":0.7})", "/m.gguf"})->id;
    (void)side.chats->rename(chat, "Mine: \xE4\xB8\xAD", true);
    MessageId parent;
    MessageId firstUser;
    for (int i = 0; i < 3; ++i) {
        NewTurn turn;
        turn.conversation = chat;
        turn.parent = parent;
        turn.text = "question " + std::to_string(i) + " <script>alert(1)</script> \xF0\x9F\x91\xA8";
        turn.settings = i == 1 ? "{ \"odd\" : 1 }" : R"({"seed":1,"temperature":0.5})";
        turn.model = "/models/a.gguf";
        if (i == 2)
            turn.attachments = {{"a.txt", "```\ncode\n", 3},
                                {"b.txt", std::string("\xFF\0x", 3), 0},
                                {"", std::string(1'500'000, 'p'), 0}}; // a paste may be larger than a file
        const auto made = side.chats->addTurn(turn, RunId());
        AnswerEnd end;
        end.answer = made->answer->id;
        end.text = i == 0 ? std::string("bytes \xC3 cut") : "```py\nprint('&')\n";
        end.thinking = i == 1 ? "hm, <i>so</i>" : "";
        end.thinkingFacts = {i == 1 ? 1500 : 0, i == 1 ? 12 : 0, false};
        end.status = i == 2 ? MessageStatus::Interrupted : MessageStatus::Complete;
        end.finishReason = i == 2 ? "cancelled" : "stop";
        end.tokens = MessageTokens{"fp", {1, 50000, i}, i == 0 ? std::optional<TokenId>(2) : std::nullopt};
        end.receipt = Receipt{};
        end.receipt->promptTokens = 100 + i;
        end.receipt->ttftMs = 12.25 + i / 3.0;
        end.receipt->cause = "evicted";
        if (i == 1) {
            end.receipt->evictedBy = "Chat \"B\"";
            end.receipt->evictedAgoMs = 240'000;
            end.receipt->divergingTurn = 2;
            end.endedBy = "<|im_end|>";
            end.adaptations = {"system_in_first_message", "messages_joined"};
        }
        (void)side.chats->endAnswer(end);
        parent = made->answer->id;
        if (i == 0)
            firstUser = made->user.id;
    }
    const auto other = side.chats->addAnswer({chat, firstUser, "", ""}, RunId());
    AnswerEnd end;
    end.answer = other->id;
    end.text = "another version";
    (void)side.chats->endAnswer(end);
    (void)side.chats->showVersion(chat, parent);
    (void)side.chats->setDraft(chat, {"unsent", {{"d.txt", "draft file", 2}}});
    (void)side.chats->create({"empty one", "", "", ""});
}

} // namespace

class TestStoreTransfer : public QObject {
    Q_OBJECT
private slots:
    void roundTripIsIdenticalAndTwiceAddsNothing() {
        Side a, b;
        fill(a);
        const std::string first = a.exported(ChatFormat::Json, "a.json");
        QCOMPARE(b.take(contents(first)).added, 2);
        QVERIFY(contents(b.exported(ChatFormat::Json, "b.json")) == contents(first));
        const auto chats = b.chats->list();
        const auto filled = std::find_if(chats->begin(), chats->end(), [](const auto& c) { return c.titleByUser; });
        const auto copy = b.chats->load(filled->id);
        const auto answer = std::find_if(copy->messages.begin(), copy->messages.end(),
                                         [](const Message& m) { return !m.endedBy.empty(); });
        QVERIFY(answer != copy->messages.end());
        QCOMPARE(answer->endedBy, std::string("<|im_end|>"));
        QCOMPARE(answer->adaptations, (std::vector<std::string>{"system_in_first_message", "messages_joined"}));
        QCOMPARE(answer->receipt->evictedBy, std::string("Chat \"B\""));
        QCOMPARE(answer->receipt->evictedAgoMs, std::int64_t(240'000));
        QCOMPARE(answer->receipt->divergingTurn, std::int64_t(2));
        const auto again = b.take(contents(first));
        QCOMPARE(again.added, 0);
        QCOMPARE(again.there, 2);
        QCOMPARE(a.take(contents(first)).there, 2); // its own export
        QCOMPARE(b.only().messages.size() + b.chats->load(b.chats->list()->back().id)->messages.size(), std::size_t(7));
        // Also after the copy went on, and also where the file is an older state of it.
        NewTurn turn;
        const auto all = b.chats->list();
        for (const Conversation& c : *all)
            if (c.activeLeaf.valid()) {
                turn.conversation = c.id;
                turn.parent = c.activeLeaf;
            }
        QVERIFY(b.chats->addTurn(turn, RunId()));
        QCOMPARE(b.take(contents(first)).added, 0);
        // A newer state is more than what is here.
        const std::string newer = contents(b.exported(ChatFormat::Json, "newer.json"));
        QCOMPARE(a.take(newer).added, 1);
        Side c;
        const std::string lines = a.exported(ChatFormat::JsonLines, "a.jsonl");
        QCOMPARE(c.take(contents(lines)).added, 2); // the older state is a part of the newer one
        QCOMPARE(c.take(contents(lines)).added, 0);
        QVERIFY(!std::filesystem::exists(first + ".part"));
    }

    void openAiStyleIsRead() {
        Side side;
        const std::string text = R"([
            {"title":"One","create_time":1700000000.5,"messages":[
                {"role":"system","content":"Be kind."},
                {"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"x"}}]},
                {"role":"assistant","content":"Yes.","reasoning_content":"hm"},
                {"role":"tool","content":"42"},
                {"role":"assistant","content":null,"tool_calls":[]},
                {"role":"user","content":""}]},
            {"messages":[{"role":"user","content":"No title here\nsecond line"}]},
            {"messages":[]},
            {"nothing":1}])";
        const auto outcome = side.take(text);
        QVERIFY(!outcome.error);
        QCOMPARE(outcome.added, 2);
        QCOMPARE(outcome.report.skippedCount, std::int64_t(6)); // image, tool, call, empty; two chats
        QCOMPARE(outcome.report.skippedChats, std::int64_t(2));
        QCOMPARE(outcome.report.skipped[0].what, std::string("chat 1, message 2"));
        QCOMPARE(outcome.report.skipped[1].why, std::string("Messages of 'tool' are not kept."));
        QCOMPARE(side.take(text).added, 0);
        const auto all = side.chats->list();
        for (const Conversation& c : *all) {
            const auto content = side.chats->load(c.id);
            if (c.title == "One") {
                QCOMPARE(content->messages.size(), std::size_t(2));
                QCOMPARE(content->messages[0].text, std::string("Look"));
                QCOMPARE(content->messages[1].thinking, std::string("hm"));
                QCOMPARE(c.systemPrompt, std::string("Be kind."));
                QCOMPARE(c.created, WallMillis(1700000000500));
                QCOMPARE(c.updated, c.created); // no later time is told
            } else {
                QCOMPARE(c.title, std::string("No title here"));
            }
        }
        Side bare;
        QCOMPARE(bare.take(R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}])").added, 1);
        QCOMPARE(bare.only().messages.size(), std::size_t(2));
        QVERIFY(bare.only().conversation.created > 1'600'000'000'000); // the time of the import
        QVERIFY(bare.only().messages[0].created > 1'600'000'000'000);
        QCOMPARE(bare.take("{\"messages\":[{\"role\":\"user\",\"content\":\"1\"}]}\n\n"
                           "{broken}\n{\"messages\":[{\"role\":\"user\",\"content\":\"2\"}]}")
                     .added,
                 2);
    }

    void chatGptsTreeIsRead() {
        Side side;
        const std::string text = R"([{"title":"Tree","create_time":1.7e9,"current_node":"d","mapping":{
            "r":{"id":"r","message":null,"parent":null,"children":["s"]},
            "s":{"message":{"author":{"role":"system"},"content":{"content_type":"text","parts":[""]}},"parent":"r","children":["a"]},
            "a":{"message":{"author":{"role":"user"},"content":{"parts":["Question"]}},"parent":"s","children":["b","c"]},
            "b":{"message":{"author":{"role":"assistant"},"content":{"parts":["Answer 1"]}},"parent":"a","children":[]},
            "c":{"message":{"author":{"role":"tool"},"content":{"parts":["x"]}},"parent":"a","children":["d"]},
            "d":{"message":{"author":{"role":"assistant"},"content":{"parts":["Answer 2"]}},"parent":"c","children":["a"]},
            "lost":{"message":{"author":{"role":"user"},"content":{"parts":["?"]}},"parent":"nowhere","children":[]}}}])";
        const auto outcome = side.take(text);
        QCOMPARE(outcome.added, 1);
        QCOMPARE(outcome.report.skippedCount, std::int64_t(1));
        const auto content = side.only();
        QCOMPARE(content.messages.size(), std::size_t(4));
        QCOMPARE(content.messages[3].text, std::string("?")); // what came before it is not in the file
        QCOMPARE(content.messages[1].parent, content.messages[0].id);
        QCOMPARE(content.messages[2].parent, content.messages[0].id); // what the tool said is left out
        QCOMPARE(content.messages[2].sibling, std::int64_t(1));
        QCOMPARE(content.conversation.activeLeaf, content.messages[2].id);
        QCOMPARE(side.take(text).added, 0);
    }

    void shareGptIsRead() {
        Side side;
        const std::string one = R"({"id":"x1","conversations":[{"from":"system","value":"S"},
            {"from":"human","value":"Hello"},{"from":"gpt","value":"Hi!"},{"from":"human","value":"Bye"}]})";
        QCOMPARE(side.take("[" + one + "]").added, 1);
        QCOMPARE(side.only().messages.size(), std::size_t(3));
        QCOMPARE(int(side.only().messages[1].role), int(Role::Assistant));
        QCOMPARE(side.only().conversation.systemPrompt, std::string("S"));
        QCOMPARE(side.take(one).there, 1); // the same alone
        std::string twin = one;
        twin.replace(twin.find("x1"), 2, "x2"); // another chat with the same words
        QCOMPARE(side.take(twin).added, 1);
    }

    void aDeletedChatComesBackByImporting() {
        Side side;
        const std::string text = R"({"messages":[{"role":"user","content":"again"}]})";
        QCOMPARE(side.take(text).added, 1);
        QVERIFY(side.chats->remove(side.only().conversation.id));
        QCOMPARE(side.take(text).added, 1);
    }

    void whatIsNoFileOfChatsIsRefusedInOneSentence_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("empty") << QByteArray("");
        QTest::newRow("blank") << QByteArray(" \n\t ");
        QTest::newRow("garbage") << QByteArray("\x7F"
                                               "ELF\0\1\2\3",
                                               8);
        QTest::newRow("words") << QByteArray("Dear diary");
        QTest::newRow("number") << QByteArray("42");
        QTest::newRow("other json") << QByteArray(R"({"a":[1,2,{"b":null}]})");
        QTest::newRow("list of numbers") << QByteArray("[1,2,3]");
        QTest::newRow("open") << QByteArray("{");
        QTest::newRow("open list") << QByteArray("[");
        QTest::newRow("cut") << QByteArray("{\"messages\":[{\"role\":\"user\",\"content\":\"hel");
        QTest::newRow("deep") << QByteArray(200'000, '[');
        QTest::newRow("deep inside") << "{\"messages\":[{\"role\":\"user\",\"content\":" + QByteArray(100'000, '[') +
                                            QByteArray(100'000, ']') + "}]}";
        QTest::newRow("huge number") << QByteArray(R"({"messages":[{"role":"user","content":"x","created":1e99999}]})");
        QTest::newRow("wrong types") << QByteArray(R"({"messages":{"role":"user"}})");
        QTest::newRow("newer") << QByteArray(R"({"format":"kvscope-chats","version":99,"conversations":[]})");
        QTest::newRow("ours, odd") << QByteArray(
            R"({"format":"kvscope-chats","version":1,"conversations":[{"messages":3}]})");
    }
    void whatIsNoFileOfChatsIsRefusedInOneSentence() {
        QFETCH(QByteArray, text);
        Side side;
        const auto outcome = side.take(text.toStdString());
        QVERIFY(outcome.error);
        QVERIFY2(outcome.error->message.ends_with('.'), outcome.error->message.c_str());
        QCOMPARE(outcome.added, 0);
        QVERIFY(side.chats->list()->empty());
    }

    void aCutFileGivesTheChatsBeforeTheCut() {
        Side a;
        fill(a);
        (void)a.chats->create({"third", "", "", ""});
        const std::string whole = contents(a.exported(ChatFormat::Json, "a.json"));
        for (std::size_t cut = 1; cut < whole.size(); cut += 1 + whole.size() / 41) {
            Side b;
            const auto outcome = b.take(whole.substr(0, cut));
            QVERIFY(outcome.error || outcome.report.skippedChats > 0 || cut >= whole.size() - 3);
            if (!outcome.error)
                QVERIFY(outcome.added >= 1);
        }
    }

    void aChatThatIsTooLargeIsSkippedAFileRefused() {
        Side side;
        ChatReadOptions options;
        options.mostChatBytes = 1000;
        const std::string big = "{\"messages\":[{\"role\":\"user\",\"content\":\"" + std::string(2000, 'x') + "\"}]}";
        const auto outcome = side.take("[" + big + R"(,{"messages":[{"role":"user","content":"small"}]}])", options);
        QCOMPARE(outcome.added, 1);
        QCOMPARE(outcome.report.skippedChats, std::int64_t(1));
        std::ofstream(side.dir.file("big.json")) << big;
        options.mostFileBytes = 1000;
        const auto take = [](ReadChat&&) -> Result<void> { return {}; };
        QCOMPARE(readChatFile(side.dir.file("big.json"), take, options).error().code, ErrorCode::TooLong);
        QCOMPARE(readChatFile(side.dir.file("none.json"), take).error().code, ErrorCode::NotFound);
        QCOMPARE(readChatFile(side.dir.path(), take).error().code, ErrorCode::Io);
    }

    void hostileFilesCostNeitherMemoryNorTime() {
        Side a;
        // Millions of elements that are nothing, in a list and in a conversation: counted, the first of them named.
        std::string ones = "[";
        for (int i = 0; i < 400'000; ++i)
            ones += "1,";
        auto outcome = a.take(ones + "{\"messages\":[{\"role\":\"user\",\"content\":\"kept\"}]}]");
        QCOMPARE(outcome.added, 1);
        QCOMPARE(outcome.report.skippedCount, std::int64_t(400'000));
        QCOMPARE(outcome.report.skipped.size(), kMostSkippedTold);
        outcome = a.take("{\"messages\":" + ones + "{\"role\":\"user\",\"content\":\"kept too\"}]}");
        QCOMPARE(outcome.added, 1);
        QCOMPARE(outcome.report.skippedCount, std::int64_t(400'000));
        QCOMPARE(outcome.report.skipped.size(), kMostSkippedTold);
        // Where a word should stand there is a deep nest.
        const std::string nest = std::string(300'000, '[') + std::string(300'000, ']');
        QVERIFY(a.take("{\"format\":" + nest + ",\"conversations\":[]}").added == 0);
        QVERIFY(a.take("{\"format\":\"kvscope-chats\",\"version\":" + nest + ",\"conversations\":[]}").error);
        a.database->handle().exec("PRAGMA synchronous = OFF"); // of what is read, not of the disk
        // A thousand chats of one age: each is compared with a few, and none is taken for another.
        std::string lines;
        for (int i = 0; i < 1000; ++i)
            lines += "{\"created\":1700000000,\"messages\":[{\"role\":\"user\",\"content\":\"number " +
                     std::to_string(i) + "\"}]}\n";
        QCOMPARE(a.take(lines).added, 1000);
        QCOMPARE(a.take(lines).there, 1000);
    }

    void aBadByteDoesNotCostTheConversation() {
        Side a;
        const auto outcome = a.take("{\"messages\":[{\"role\":\"user\",\"content\":\"caf\xE9 \xFF!\"}]}");
        QCOMPARE(outcome.added, 1);
        QCOMPARE(outcome.report.skippedCount, std::int64_t(1));
        QCOMPARE(outcome.report.skippedChats, std::int64_t(0));
        QCOMPARE(a.only().messages[0].text, std::string("caf\xEF\xBF\xBD \xEF\xBF\xBD!"));
    }

    void aTreeWhoseBeginningIsMissingIsKept() {
        Side a;
        const auto outcome = a.take(R"({"title":"t","current_node":"b","mapping":{
            "a":{"parent":"gone","children":["b"],"message":{"author":{"role":"user"},"content":{"parts":["q"]}}},
            "b":{"parent":"a","children":["a"],"message":{"author":{"role":"assistant"},"content":{"parts":["r"]}}},
            "x":{"parent":"y","children":["y"],"message":{"author":{"role":"user"},"content":{"parts":["lost"]}}},
            "y":{"parent":"x","children":["x"],"message":null}}})");
        QCOMPARE(outcome.added, 1);
        QCOMPARE(a.only().messages.size(), std::size_t(2)); // and not round the circle
        QCOMPARE(outcome.report.skippedCount, std::int64_t(2));
    }

    void figuresBeyondAllBoundsAreNotTaken() {
        Side a;
        const auto outcome = a.take(R"({"format":"kvscope-chats","version":1,"conversations":[{"title":"t",
            "created":9223372036854775807,"updated":18446744073709551615,"active":-9223372036854775808,"messages":[
            {"id":1,"role":"user","text":"q","status":"complete","created":9000000000000000000,
             "sibling":9223372036854775807,"attachments":[{"name":"a","text":"b","tokens":-5}]},
            {"id":2,"parent":1,"role":"assistant","text":"r","status":"complete","created":-4,"thinking_ms":-1,
             "tokens":{"tokenizer":"x","ids":[1,99999999999]},"receipt":{"prompt_tokens":1e300,"ttft_ms":1e308}}]}]})");
        QCOMPARE(outcome.added, 1);
        const ConversationContent chat = a.only();
        QVERIFY(chat.conversation.created > 0 && chat.conversation.created <= a.now);
        QVERIFY(chat.conversation.updated <= a.now);
        QVERIFY(chat.messages[0].created <= a.now && chat.messages[1].created > 0);
        QCOMPARE(chat.messages[0].sibling, std::int64_t(0));
        QCOMPARE(chat.messages[0].attachments[0].tokens, std::int64_t(0));
        QVERIFY(!chat.messages[1].tokens); // counted anew
        QCOMPARE(chat.conversation.activeLeaf, chat.messages[1].id);
    }

    void htmlIsEscapedAndAlone() {
        Side side;
        fill(side);
        const std::string html = contents(side.exported(ChatFormat::Html, "a.html"));
        QVERIFY(html.find("<script") == std::string::npos);
        QVERIFY(html.find("&lt;script&gt;alert(1)&lt;/script&gt;") != std::string::npos);
        QVERIFY(html.find("<i>") == std::string::npos);
        QVERIFY(html.find("http") == html.find("http-equiv")); // nothing from elsewhere
        QVERIFY(html.find("src=") == std::string::npos && html.find("href=") == std::string::npos);
        QVERIFY(html.find("default-src 'none'") != std::string::npos);
        QVERIFY(html.find('\xFF') == std::string::npos && html.find('\0') == std::string::npos);
        QVERIFY(html.ends_with("</html>\n"));
        QVERIFY(html.find("another version") == std::string::npos); // not on the shown path
    }

    void markdownKeepsTheTextAndClosesItsFences() {
        Side side;
        fill(side);
        const std::string text = contents(side.exported(ChatFormat::Markdown, "a.md"));
        QVERIFY(text.find("# Mine: \xE4\xB8\xAD\n") != std::string::npos);
        QVERIFY(text.find("```py\nprint('&')\n\n```\n") != std::string::npos);
        QVERIFY(text.find("Attached: a.txt\n\n````\n```\ncode\n````\n") != std::string::npos);
        QVERIFY(text.find("question 0 <script>alert(1)</script>") != std::string::npos);
        QVERIFY(text.find("*This answer was interrupted.*") != std::string::npos);
    }

    void aFileThatCannotBeWrittenLeavesTheOldOne() {
        Side side;
        fill(side);
        const std::string path = side.exported(ChatFormat::Json, "a.json");
        const std::string before = contents(path);
        {
            auto writer = ChatWriter::create(path, ChatFormat::Json, "");
            QVERIFY((*writer)->add(side.only())); // and never finished
        }
        QCOMPARE(contents(path), before);
        QVERIFY(!std::filesystem::exists(path + ".part"));
        QCOMPARE(ChatWriter::create(side.dir.file("no/such/a.json"), ChatFormat::Json, "").error().code, ErrorCode::Io);
        auto full = ChatWriter::create("/dev/full", ChatFormat::Markdown, "");
        QVERIFY(full);
        Result<void> state = (*full)->add(side.only());
        if (state)
            state = (*full)->finish();
        QCOMPARE(state.error().code, ErrorCode::Full);
    }
};

QTEST_APPLESS_MAIN(TestStoreTransfer)
#include "test_store_transfer.moc"
