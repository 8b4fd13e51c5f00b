// SPDX-License-Identifier: GPL-3.0-or-later
//
// The tree of a conversation: versions, copies, removed messages; presets, drafts and attachments.
#include <QTest>

#include "engine/store/conversation_store.h"
#include "engine/store/preset_store.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::store;

namespace {

struct Fixture {
    test::TempDir dir;
    WallMillis now = 1'000'000;
    std::unique_ptr<Database> database;
    std::optional<ConversationStore> chats;
    ConversationId chat;

    Fixture() {
        DatabaseOptions options;
        options.path = dir.file("kvscope.db");
        database = std::move(*Database::open(options));
        chats.emplace(*database, [this] { return ++now; });
        chat = chats->create({"chat", "Be brief.", "{}", ""})->id;
    }
    ConversationStore::Turn turn(const std::string& text, MessageId parent, const std::string& answer) {
        NewTurn turn;
        turn.conversation = chat;
        turn.parent = parent;
        turn.text = text;
        turn.settings = R"({"temperature":0.5})";
        auto made = chats->addTurn(turn, RunId());
        AnswerEnd end;
        end.answer = made->answer->id;
        end.text = answer;
        end.finishReason = "stop";
        end.tokens = MessageTokens{"fp", {1, 2, static_cast<TokenId>(answer.size())}, 7};
        end.receipt = Receipt{};
        if (!chats->endAnswer(end))
            qFatal("cannot end an answer");
        return *made;
    }
    MessageId again(MessageId user, const std::string& text) {
        const auto opened = chats->addAnswer({chat, user, "", ""}, RunId());
        AnswerEnd end;
        end.answer = opened->id;
        end.text = text;
        if (!chats->endAnswer(end))
            qFatal("cannot end an answer");
        return opened->id;
    }
    /// Texts of the shown path.
    std::string shown(ConversationId id) {
        const auto content = chats->load(id);
        std::string all;
        MessageId wanted = content->conversation.activeLeaf;
        for (auto it = content->messages.rbegin(); it != content->messages.rend(); ++it)
            if (it->id == wanted) {
                all = it->text + (all.empty() ? "" : ">" + all);
                wanted = it->parent;
            }
        return all;
    }
    std::string shown() { return shown(chat); }
    /// "text(parent's text)#sibling" of every message.
    std::vector<std::string> tree(ConversationId id) {
        const auto content = chats->load(id);
        std::vector<std::string> all;
        for (const Message& m : content->messages) {
            std::string parent = "-";
            for (const Message& p : content->messages)
                if (p.id == m.parent)
                    parent = p.text;
            all.push_back(m.text + "(" + parent + ")#" + std::to_string(m.sibling));
        }
        return all;
    }
    bool sound() {
        return database->handle().execAndGet("PRAGMA integrity_check").getString() == "ok" &&
               database->handle().execAndGet("SELECT count(*) FROM pragma_foreign_key_check").getInt() == 0;
    }
};

using Strings = std::vector<std::string>;

} // namespace

class TestStoreTree : public QObject {
    Q_OBJECT
private slots:
    void versionsOfBothSidesAreKeptAndSwitched() {
        Fixture f;
        const auto first = f.turn("q1", {}, "a1");
        const auto second = f.turn("q2", first.answer->id, "a2");
        const MessageId other = f.again(first.user.id, "a1'");
        QCOMPARE(f.shown(), std::string("q1>a1'"));
        QVERIFY(f.chats->showVersion(f.chat, first.answer->id)); // down to its newest end
        QCOMPARE(f.shown(), std::string("q1>a1>q2>a2"));
        const auto edited = f.turn("q2 edited", first.answer->id, "a2 of it");
        QCOMPARE(edited.user.sibling, std::int64_t(1));
        QCOMPARE(f.shown(), std::string("q1>a1>q2 edited>a2 of it"));
        NewMessage mine;
        mine.conversation = f.chat;
        mine.parent = second.user.id;
        mine.text = "a2 as I like it";
        const auto rewritten = f.chats->addMessage(mine, RunId());
        QVERIFY(rewritten);
        QCOMPARE(rewritten->sibling, std::int64_t(1));
        QCOMPARE(f.shown(), std::string("q1>a1>q2>a2 as I like it"));
        QVERIFY(f.chats->showVersion(f.chat, other));
        QCOMPARE(f.shown(), std::string("q1>a1'"));
        QCOMPARE(f.chats->load(f.chat)->messages.size(), std::size_t(8));
        QCOMPARE(f.chats->showVersion(f.chats->create({})->id, other).error().code, ErrorCode::NotFound);
    }

    void anInterruptedAnswerIsContinuedAndEndsOnceMore() {
        Fixture f;
        const auto turn = f.turn("q", {}, "half");
        QVERIFY(f.chats->reopenAnswer(turn.answer->id, RunId()));
        QCOMPARE(f.chats->reopenAnswer(turn.answer->id, RunId()).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(f.chats->reopenAnswer(turn.user.id, RunId()).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(f.chats->load(f.chat)->messages[1].text, std::string("half"));
        QCOMPARE(f.chats->load(f.chat)->messages[1].tokens->ids.size(), std::size_t(3));
        AnswerEnd end;
        end.answer = turn.answer->id;
        end.text = "half and whole";
        end.receipt = Receipt{};
        end.receipt->promptTokens = 5;
        QVERIFY(f.chats->endAnswer(end));
        QCOMPARE(f.chats->load(f.chat)->messages[1].receipt->promptTokens, std::int64_t(5));
        QVERIFY(!f.chats->endAnswer(end));
    }

    void aRemovedMessageLeavesTheRestInPlace() {
        Fixture f;
        const auto first = f.turn("q1", {}, "a1");
        const MessageId other = f.again(first.user.id, "a1'");
        const auto second = f.turn("q2", first.answer->id, "a2");
        const auto edited = f.turn("q2'", first.answer->id, "a2'");
        QVERIFY(f.chats->removeMessage(f.chat, first.answer->id)); // in the middle: its children move up, in its place
        QCOMPARE(f.tree(f.chat), (Strings{"q1(-)#0", "a1'(q1)#2", "q2(q1)#0", "a2(q2)#0", "q2'(q1)#1", "a2'(q2')#0"}));
        QCOMPARE(f.shown(), std::string("q1>q2'>a2'"));
        QVERIFY(f.chats->removeMessage(f.chat, edited.answer->id)); // the end of what is shown
        QCOMPARE(f.shown(), std::string("q1>q2'"));
        QVERIFY(f.chats->removeMessage(f.chat, edited.user.id)); // a version beside it is shown
        QVERIFY(f.shown() == "q1>q2>a2" || f.shown() == "q1>a1'");
        QVERIFY(f.chats->removeMessage(f.chat, first.user.id)); // the first one
        QVERIFY(f.chats->removeMessage(f.chat, other));
        QVERIFY(f.chats->removeMessage(f.chat, second.user.id));
        QVERIFY(f.chats->removeMessage(f.chat, second.answer->id));
        QVERIFY(f.chats->load(f.chat)->messages.empty());
        QVERIFY(!f.chats->load(f.chat)->conversation.activeLeaf.valid());
        QVERIFY(f.sound());
        QCOMPARE(f.chats->removeMessage(f.chat, other).error().code, ErrorCode::NotFound);
        f.turn("begun anew", {}, "yes");
        NewTurn running;
        running.conversation = f.chat;
        const auto open = f.chats->addTurn(running, RunId());
        QCOMPARE(f.chats->removeMessage(f.chat, open->answer->id).error().code, ErrorCode::InvalidArgument);
    }

    void aRemovedMessageComesBackWhereItStood() {
        Fixture f;
        const auto first = f.turn("q1", {}, "a1");
        f.again(first.user.id, "a1'");
        f.turn("q2", first.answer->id, "a2");
        NewTurn turn;
        turn.conversation = f.chat;
        turn.parent = first.answer->id;
        turn.text = "q2'";
        turn.attachments = {{"a.txt", "one", 1}};
        const auto edited = f.chats->addTurn(turn, RunId());
        AnswerEnd end;
        end.answer = edited->answer->id;
        end.text = "a2'";
        end.tokens = MessageTokens{"fp", {1, 2, 3}, 4};
        end.receipt = Receipt{};
        QVERIFY(f.chats->endAnswer(end));
        const auto before = f.chats->load(f.chat);
        const auto wholeTree = f.tree(f.chat);
        const std::string shown = f.shown();
        for (const Message& message : before->messages) { // each of them alone
            const auto removed = f.chats->removeMessage(f.chat, message.id);
            QVERIFY(removed);
            QVERIFY(f.tree(f.chat) != wholeTree);
            QVERIFY(f.chats->restoreMessage(*removed));
            QCOMPARE(f.tree(f.chat), wholeTree);
            QCOMPARE(f.shown(), shown);
            const auto after = f.chats->load(f.chat);
            for (std::size_t i = 0; i < before->messages.size(); ++i) {
                const Message &a = before->messages[i], &b = after->messages[i];
                QVERIFY(a.id == b.id && a.attachments == b.attachments && a.status == b.status &&
                        a.tokens.has_value() == b.tokens.has_value() && a.receipt.has_value() == b.receipt.has_value());
                QVERIFY(!a.tokens || (a.tokens->ids == b.tokens->ids && a.tokens->endToken == b.tokens->endToken));
            }
            QVERIFY(f.sound());
        }
        // All of them, and back in the other order; a second time changes nothing.
        std::vector<RemovedMessage> all;
        for (const Message& message : before->messages)
            all.push_back(*f.chats->removeMessage(f.chat, message.id));
        QVERIFY(f.chats->load(f.chat)->messages.empty());
        for (auto removed = all.rbegin(); removed != all.rend(); ++removed)
            (void)f.chats->restoreMessage(*removed);
        for (const RemovedMessage& removed : all)
            (void)f.chats->restoreMessage(removed);
        QCOMPARE(f.chats->load(f.chat)->messages.size(), before->messages.size());
        QVERIFY(f.sound());
        const auto below = f.chats->removeMessage(f.chat, edited->answer->id);
        const auto above = f.chats->removeMessage(f.chat, edited->user.id);
        QCOMPARE(f.chats->restoreMessage(*below).error().code, ErrorCode::NotFound); // first the one before it
        QVERIFY(f.chats->restoreMessage(*above) && f.chats->restoreMessage(*below));
        // What came since stays, behind the versions that were there.
        const auto removed = f.chats->removeMessage(f.chat, first.answer->id);
        f.again(first.user.id, "since");
        QVERIFY(f.chats->restoreMessage(*removed));
        QVERIFY(f.sound());
        std::string last;
        const auto now = f.chats->load(f.chat);
        for (const Message& m : now->messages)
            if (m.parent == first.user.id && m.sibling == 2)
                last = m.text;
        QCOMPARE(last, std::string("since"));
    }

    void aMessageThatWaitsIsSentOrComesBack() {
        Fixture f;
        const auto turn = f.turn("q", {}, "a");
        const Draft waiting{"next", {{"w.txt", "file", 2}}};
        QVERIFY(f.chats->setDraft(f.chat, {"begun", {{"d.txt", "draft", 1}}}));
        QVERIFY(f.chats->setWaiting(f.chat, waiting));
        QVERIFY(f.chats->load(f.chat)->conversation.waiting == waiting);
        QVERIFY(f.chats->list()->front().waiting == waiting);
        const auto copy = f.chats->duplicate(f.chat, "copy");
        QVERIFY(f.chats->load(copy->id)->conversation.waiting.isEmpty()); // it is sent once
        QCOMPARE(*f.chats->giveBackWaiting(), 1);
        const auto back = f.chats->load(f.chat)->conversation;
        QVERIFY(back.waiting.isEmpty());
        QCOMPARE(back.draft, std::string("next\n\nbegun"));
        QVERIFY(back.draftAttachments == (std::vector<Attachment>{{"w.txt", "file", 2}, {"d.txt", "draft", 1}}));
        QCOMPARE(*f.chats->giveBackWaiting(), 0);
        QVERIFY(f.chats->setWaiting(f.chat, {"", {{"", "only a paste", 0}}}));
        QCOMPARE(*f.chats->giveBackWaiting(), 1);
        QVERIFY(f.chats->setWaiting(f.chat, waiting));
        f.turn("next", turn.answer->id, "sent");
        QVERIFY(f.chats->load(f.chat)->conversation.waiting.isEmpty());
        QCOMPARE(f.chats->setWaiting(ConversationId(999), waiting).error().code, ErrorCode::NotFound);
        QVERIFY(f.sound());
    }

    void aUsersMessageMayFollowAnother() {
        Fixture f;
        const auto first = f.turn("q1", {}, "stopped");
        QVERIFY(f.chats->removeMessage(f.chat, first.answer->id));
        f.turn("q2", first.user.id, "a2");
        QCOMPARE(f.shown(), std::string("q1>q2>a2"));
    }

    void aDuplicateIsTheWholeTreeOfItsOwn() {
        Fixture f;
        const auto first = f.turn("q1", {}, "a1");
        f.again(first.user.id, "a1'");
        f.turn("q2", first.answer->id, "a2");
        NewTurn running;
        running.conversation = f.chat;
        running.parent = first.answer->id;
        running.text = "q3";
        running.attachments = {{"notes.txt", std::string("line\0two", 8), 4}};
        const auto open = f.chats->addTurn(running, RunId());
        const auto copy = f.chats->duplicate(f.chat, "copy");
        QVERIFY(copy);
        QCOMPARE(f.tree(copy->id), f.tree(f.chat));
        QCOMPARE(f.shown(copy->id), f.shown());
        QCOMPARE(f.chats->list()->front().title, std::string("copy"));
        const auto content = f.chats->load(copy->id), original = f.chats->load(f.chat);
        for (std::size_t i = 0; i < content->messages.size(); ++i) {
            const Message &a = content->messages[i], &b = original->messages[i];
            QVERIFY(a.id != b.id);
            QCOMPARE(a.tokens.has_value(), b.tokens.has_value());
            if (a.tokens)
                QCOMPARE(a.tokens->ids, b.tokens->ids);
            QCOMPARE(a.receipt.has_value(), b.receipt.has_value());
            QCOMPARE(a.settings, b.settings);
            QCOMPARE(a.created, b.created);
            QVERIFY(a.attachments == b.attachments);
        }
        QCOMPARE(content->conversation.systemPrompt, std::string("Be brief."));
        QCOMPARE(int(content->messages.back().status), int(MessageStatus::Interrupted)); // nobody writes the copy
        QCOMPARE(int(f.chats->load(f.chat)->messages.back().status), int(MessageStatus::Generating));
        AnswerEnd end;
        end.answer = open->answer->id;
        QVERIFY(f.chats->endAnswer(end));
        QVERIFY(f.sound());
    }

    void aBranchIsOnePath() {
        Fixture f;
        const auto first = f.turn("q1", {}, "a1");
        const MessageId other = f.again(first.user.id, "a1'");
        f.turn("q2", first.answer->id, "a2");
        const auto branch = f.chats->duplicate(f.chat, "branch", other);
        QCOMPARE(f.tree(branch->id), (Strings{"q1(-)#0", "a1'(q1)#0"}));
        QCOMPARE(f.shown(branch->id), std::string("q1>a1'"));
        QCOMPARE(f.chats->duplicate(f.chat, "x", MessageId(999)).error().code, ErrorCode::NotFound);
        QCOMPARE(f.chats->list()->size(), std::size_t(2));
    }

    void draftsKeepTheirAttachmentsUntilTheyAreSent() {
        Fixture f;
        const Draft draft{"half a th", {{"a.txt", "one", 1}, {"b.txt", "", 0}}};
        QVERIFY(f.chats->setDraft(f.chat, draft));
        QVERIFY(f.chats->setDraft(ConversationId(), {"for a new chat", {{"c.txt", "three", 3}}}));
        QCOMPARE(f.chats->list()->front().draft, std::string("half a th"));
        QVERIFY(f.chats->list()->front().draftAttachments == draft.attachments);
        QCOMPARE(f.chats->newChatDraft()->text, std::string("for a new chat"));
        QCOMPARE(f.chats->newChatDraft()->attachments.size(), std::size_t(1));
        NewTurn turn;
        turn.conversation = f.chat;
        turn.attachments = draft.attachments;
        QVERIFY(f.chats->addTurn(turn, RunId()));
        QVERIFY(f.chats->list()->front().draft.empty());
        QVERIFY(f.chats->list()->front().draftAttachments.empty());
        QVERIFY(f.chats->load(f.chat)->messages[0].attachments == draft.attachments);
        QCOMPARE(f.chats->newChatDraft()->text, std::string("for a new chat"));
        turn.attachments = {{"big.txt", std::string(kMostAttachmentBytes + 1, 'x'), 0}};
        const auto refused = f.chats->addTurn(turn, RunId());
        QCOMPARE(refused.error().code, ErrorCode::TooLong);
        QVERIFY(refused.error().message.find("big.txt") != std::string::npos);
        turn.attachments = {{"fits.txt", std::string(kMostAttachmentBytes, 'x'), 0}};
        QVERIFY(f.chats->addTurn(turn, RunId()));
    }

    void presetsAreKeptByName() {
        Fixture f;
        PresetStore presets(*f.database, [&] { return ++f.now; });
        const auto poet = presets.save({PresetId(), "poet", "Rhyme.", R"({"temperature":1.2})"});
        const auto exact = presets.save({PresetId(), "Exact", "", R"({"temperature":0})"});
        QVERIFY(poet && exact);
        QCOMPARE(presets.list()->front().name, std::string("Exact")); // upper and lower case alike
        QCOMPARE(presets.save({PresetId(), "poet", "", ""}).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(presets.save({*exact, "poet", "", ""}).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(presets.save({PresetId(), "  ", "", ""}).error().code, ErrorCode::InvalidArgument);
        QVERIFY(presets.save({*poet, "poet", "Rhyme twice.", "{}"}));
        QCOMPARE(presets.list()->back().systemPrompt, std::string("Rhyme twice."));
        QVERIFY(presets.remove(*poet));
        QCOMPARE(presets.remove(*poet).error().code, ErrorCode::NotFound);
        QCOMPARE(presets.save({*poet, "gone", "", ""}).error().code, ErrorCode::NotFound);
        QCOMPARE(presets.list()->size(), std::size_t(1));
    }
};

QTEST_APPLESS_MAIN(TestStoreTree)
#include "test_store_tree.moc"
