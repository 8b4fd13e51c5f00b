// SPDX-License-Identifier: GPL-3.0-or-later
//
// store_writer DATABASE: chats as fast as the disk allows until it is killed. Prints "turn N", "progress N LENGTH" and
// "end N", "edit N" (an answer as the user edited it) and "import N" (a conversation) after the store has confirmed
// each, so that whoever kills it knows what must be there. The text of every message follows from its number.
#include <cstdio>
#include <string>
#include <thread>

#include "engine/store/store_thread.h"

using namespace kvscope;
using namespace kvscope::store;

namespace {

std::string answerText(std::int64_t number, std::size_t length) {
    std::string text = "answer " + std::to_string(number) + " ";
    while (text.size() < length)
        text += static_cast<char>('a' + (text.size() * 7 + static_cast<std::size_t>(number)) % 26);
    return text.substr(0, length);
}

template <class Wanted> Wanted wait(StoreThread& store) {
    for (;;) {
        const auto event = store.nextEvent();
        if (!event) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        } else if (const auto* wanted = std::get_if<Wanted>(&*event)) {
            return *wanted;
        } else if (const auto* failed = std::get_if<FailedEvent>(&*event)) {
            std::fprintf(stderr, "%s\n", failed->error.message.c_str());
            std::exit(1);
        } else if (const auto* trouble = std::get_if<TroubleEvent>(&*event)) {
            std::fprintf(stderr, "%s\n", trouble->error.message.c_str());
            std::exit(1);
        }
    }
}

void say(const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}

/// A conversation from outside that is different for every number.
ConversationContent imported(std::int64_t number) {
    ConversationContent content;
    content.conversation.title = "imported " + std::to_string(number);
    for (int i = 1; i <= 4; ++i) {
        Message message;
        message.id = MessageId(i);
        if (i > 1)
            message.parent = MessageId(i - 1);
        message.role = i % 2 == 1 ? Role::User : Role::Assistant;
        message.text = "imported " + std::to_string(number) + " " + std::to_string(i);
        content.messages.push_back(message);
    }
    content.conversation.activeLeaf = MessageId(4);
    return content;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2)
        return 2;
    MonotonicClock clock;
    StoreOptions options;
    options.database.path = argv[1];
    options.progressInterval = 0;
    StoreThread store(clock, options);
    wait<OpenedEvent>(store);
    store.createConversation({"killed", "", "", ""});
    const ConversationId chat = wait<ConversationCreatedEvent>(store).conversation.id;
    MessageId parent;
    for (;;) {
        NewTurn turn;
        turn.conversation = chat;
        turn.parent = parent;
        turn.text = "question";
        store.addUserMessage(turn);
        const Message answer = *wait<TurnCommittedEvent>(store).answer;
        const std::int64_t number = answer.id.value();
        say("turn " + std::to_string(number) + "\n");
        for (std::size_t length = 100; length <= 400; length += 100) {
            store.saveProgress({answer.id, answerText(number, length), "", {}});
            while (store.unsavedWrites() > 0)
                std::this_thread::yield();
            say("progress " + std::to_string(number) + " " + std::to_string(length) + "\n");
        }
        AnswerEnd end;
        end.answer = answer.id;
        end.text = answerText(number, 500);
        end.finishReason = "stop";
        store.endAnswer(end);
        wait<DoneEvent>(store);
        say("end " + std::to_string(number) + "\n");
        NewMessage edited;
        edited.conversation = chat;
        edited.parent = answer.parent;
        edited.text = "edited";
        store.addMessage(edited);
        say("edit " + std::to_string(wait<MessageAddedEvent>(store).message.id.value()) + "\n");
        store.adoptConversations({{imported(number), "fingerprint " + std::to_string(number)}});
        say("import " + std::to_string(wait<AdoptedEvent>(store).outcomes.front().id.value()) + "\n");
        parent = answer.id;
    }
}
