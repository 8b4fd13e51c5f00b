// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "engine/base/result.h"
#include "ui/models/chat_types.h"

namespace kvscope::ui {

/// Where conversations are kept, as the window sees it. Every call returns at once; the answer arrives later on the
/// GUI thread, after the database has committed. Calls are carried out in the order in which they were made.
class ChatStore {
public:
    template <class T> using Done = std::function<void(Result<T>)>;

    /// The user's message, and the empty answer to it, in one commit.
    struct NewTurn {
        ConversationId conversation = kNoId;
        MessageId parent = kNoId; ///< newest message of the path; kNoId = first
        QString text;
        api::SamplingParams settings;
        QString model; ///< path
    };
    struct TurnIds {
        MessageId user = kNoId;
        MessageId answer = kNoId;
    };

    virtual ~ChatStore() = default;

    /// Not deleted, newest first.
    virtual void listConversations(Done<std::vector<Conversation>> done) = 0;
    /// The shown path from the first message to the newest. Answers that were being written when the program ended are
    /// Interrupted.
    virtual void loadMessages(ConversationId conversation, Done<std::vector<ChatMessage>> done) = 0;
    virtual void createConversation(const Conversation& conversation, Done<ConversationId> done) = 0;
    virtual void renameConversation(ConversationId conversation, const QString& title, Done<void> done) = 0;
    virtual void setSystemPrompt(ConversationId conversation, const QString& prompt, Done<void> done) = 0;
    /// Sampling settings of the next message.
    virtual void setSettings(ConversationId conversation, const api::SamplingParams& settings, Done<void> done) = 0;
    virtual void deleteConversation(ConversationId conversation, Done<void> done) = 0;
    virtual void restoreConversation(ConversationId conversation, Done<void> done) = 0;
    /// When `done` runs without error, the message survives a power cut.
    virtual void addTurn(const NewTurn& turn, Done<TurnIds> done) = 0;
    /// What there is of a running answer; replaces what was saved before.
    virtual void saveProgress(const ChatMessage& answer, Done<void> done) = 0;
    /// Text, tokens, status, receipt of an ended answer.
    virtual void endAnswer(const ChatMessage& answer, Done<void> done) = 0;
};

} // namespace kvscope::ui
