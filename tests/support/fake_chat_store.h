// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "ui/models/chat_store.h"

namespace kvscope::test {

/// A ChatStore in memory. Answers come only when the test calls `settle` (one) or `settleAll`, in order, as from
/// another thread; `failNext` makes the next answered write fail.
class FakeChatStore final : public ui::ChatStore {
public:
    using Id = ui::ConversationId;

    void settle() {
        auto work = std::move(m_queue.front());
        m_queue.pop_front();
        work();
    }
    void settleAll() {
        while (!m_queue.empty())
            settle();
    }
    std::size_t pending() const { return m_queue.size(); }
    void failNext(Error error) { m_failure = std::move(error); }

    void listConversations(Done<std::vector<ui::Conversation>> done) override {
        m_queue.push_back([this, done] {
            std::vector<ui::Conversation> list;
            for (const auto& [id, c] : conversations)
                if (!deleted.count(id))
                    list.push_back(c);
            done(list);
        });
    }
    void loadMessages(Id id, Done<std::vector<ui::ChatMessage>> done) override {
        m_queue.push_back([this, id, done] { done(messages[id]); });
    }
    void createConversation(const ui::Conversation& conversation, Done<Id> done) override {
        m_queue.push_back([this, conversation, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            const Id id = nextConversation();
            conversations[id] = conversation;
            conversations[id].id = id;
            done(id);
        });
    }
    void renameConversation(Id id, const QString& title, Done<void> done) override {
        write(done, [this, id, title] { conversations[id].title = title; });
    }
    void setSystemPrompt(Id id, const QString& prompt, Done<void> done) override {
        write(done, [this, id, prompt] { conversations[id].systemPrompt = prompt; });
    }
    void setSettings(Id id, const api::SamplingParams& settings, Done<void> done) override {
        write(done, [this, id, settings] { conversations[id].settings = settings; });
    }
    void deleteConversation(Id id, Done<void> done) override {
        write(done, [this, id] { deleted[id] = true; });
    }
    void restoreConversation(Id id, Done<void> done) override {
        write(done, [this, id] { deleted.erase(id); });
    }
    void setAutomaticTitle(Id id, const QString& title, Done<void> done) override {
        write(done, [this, id, title] {
            if (!conversations[id].titleByUser)
                conversations[id].title = title;
        });
    }
    void duplicateConversation(Id id, const QString& title, Done<ui::Conversation> done) override {
        copy(id, ui::kNoId, title, done);
    }
    void branchConversation(Id id, ui::MessageId last, const QString& title, Done<ui::Conversation> done) override {
        copy(id, last, title, done);
    }
    void saveDraft(Id id, const QString& text, const std::vector<ui::Attachment>& attachments) override {
        drafts[id] = {text, attachments};
        if (id != ui::kNoId) {
            conversations[id].draft = text;
            conversations[id].draftAttachments = attachments;
        }
    }
    void saveWaiting(Id id, const QString& text, const std::vector<ui::Attachment>& attachments,
                     Done<void> done) override {
        write(done, [this, id, text, attachments] { waiting[id] = {text, attachments}; });
    }
    void loadNewDraft(Done<std::pair<QString, std::vector<ui::Attachment>>> done) override {
        m_queue.push_back([this, done] { done(drafts[ui::kNoId]); });
    }
    void addTurn(const NewTurn& turn, Done<TurnIds> done) override {
        m_queue.push_back([this, turn, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            turns.push_back(turn);
            ui::ChatMessage user;
            user.id = m_nextMessage++;
            user.parent = turn.parent;
            user.text = turn.text;
            user.attachments = turn.attachments;
            ui::ChatMessage answer;
            answer.id = m_nextMessage++;
            answer.parent = user.id;
            answer.role = ui::MessageRole::Assistant;
            answer.status = ui::MessageStatus::Queued;
            answer.settings = turn.settings;
            answer.model = turn.model;
            const TurnIds ids{user.id, answer.id};
            conversations[turn.conversation].draft.clear();
            waiting.erase(turn.conversation);
            add(turn.conversation, user);
            add(turn.conversation, answer);
            done(ids);
        });
    }
    void addAnswer(const NewAnswer& answer, Done<ui::MessageId> done) override {
        m_queue.push_back([this, answer, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            ui::ChatMessage m;
            m.id = m_nextMessage++;
            m.parent = answer.parent;
            m.role = ui::MessageRole::Assistant;
            m.status = ui::MessageStatus::Queued;
            m.settings = answer.settings;
            m.model = answer.model;
            add(answer.conversation, m);
            done(m.id);
        });
    }
    void addMessage(const NewMessage& message, Done<ui::MessageId> done) override {
        m_queue.push_back([this, message, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            ui::ChatMessage m;
            m.id = m_nextMessage++;
            m.parent = message.parent;
            m.role = message.role;
            m.text = message.text;
            m.thinking = message.thinking;
            m.settings = message.settings;
            m.model = message.model;
            m.attachments = message.attachments;
            add(message.conversation, m);
            done(m.id);
        });
    }
    void saveProgress(const ui::ChatMessage& answer, Done<void> done) override {
        write(done, [this, answer] {
            progressSaves.push_back(answer.text);
            replace(answer);
        });
    }
    void endAnswer(const ui::ChatMessage& answer, Done<void> done) override {
        write(done, [this, answer] { replace(answer); });
    }
    void reopenAnswer(ui::MessageId answer, Done<void> done) override {
        write(done, [this, answer] { reopened.push_back(answer); });
    }
    void showVersion(Id id, ui::MessageId message, Done<std::vector<ui::ChatMessage>> done) override {
        m_queue.push_back([this, id, message, done] {
            absorb(id);
            show(id, newestLeaf(id, message));
            done(messages[id]);
        });
    }
    void deleteMessage(Id id, ui::MessageId message, Done<std::vector<ui::ChatMessage>> done) override {
        m_queue.push_back([this, id, message, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            absorb(id);
            auto& all = tree[id];
            const auto gone = std::find_if(all.begin(), all.end(), [&](const auto& m) { return m.id == message; });
            if (gone == all.end())
                return done(fail(ErrorCode::NotFound, "no such message"));
            const ui::MessageId parent = gone->parent;
            const ui::MessageId leaf = messages[id].back().id;
            Removed& removed = m_removed[message];
            removed = {*gone, {}, leaf};
            for (const ui::ChatMessage& m : all)
                if (m.parent == message)
                    removed.children.push_back(m.id);
            all.erase(gone);
            for (ui::ChatMessage& m : all)
                if (m.parent == message)
                    m.parent = parent;
            show(id, leaf != message ? leaf : parent);
            done(messages[id]);
        });
    }

    void restoreMessage(Id id, ui::MessageId message, Done<std::vector<ui::ChatMessage>> done) override {
        m_queue.push_back([this, id, message, done] {
            const auto removed = m_removed.find(message);
            if (removed == m_removed.end())
                return done(fail(ErrorCode::NotFound, "not deleted"));
            auto& all = tree[id];
            for (ui::ChatMessage& m : all)
                if (std::count(removed->second.children.begin(), removed->second.children.end(), m.id))
                    m.parent = message;
            const auto after = std::find_if(all.begin(), all.end(), [&](const auto& m) { return m.id > message; });
            all.insert(after, removed->second.message);
            show(id, removed->second.leaf);
            m_removed.erase(removed);
            done(messages[id]);
        });
    }

    /// Answers with the first of what the test put into `found`.
    void search(const QString& query, int mostHits, Done<SearchResult> done) override {
        m_queue.push_back([this, query, mostHits, done] {
            searches.push_back(query);
            SearchResult result = found;
            result.query = query;
            if (int(result.hits.size()) > mostHits)
                result.hits.resize(std::size_t(mostHits));
            done(result);
        });
    }
    void listPresets(Done<std::vector<Preset>> done) override {
        m_queue.push_back([this, done] { done(presets); });
    }
    void savePreset(const Preset& preset, Done<std::int64_t> done) override {
        m_queue.push_back([this, preset, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            for (const Preset& other : presets)
                if (other.name == preset.name && other.id != preset.id)
                    return done(fail(ErrorCode::InvalidArgument, "There is a preset of this name already."));
            Preset stored = preset;
            std::erase_if(presets, [&](const Preset& p) { return p.id == preset.id; });
            if (stored.id == ui::kNoId)
                stored.id = m_nextPreset++;
            presets.push_back(stored);
            std::sort(presets.begin(), presets.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
            done(stored.id);
        });
    }
    void deletePreset(std::int64_t preset, Done<void> done) override {
        write(done, [this, preset] { std::erase_if(presets, [&](const Preset& p) { return p.id == preset; }); });
    }
    void exportChats(const std::vector<Id>& ids, ExportFormat format, const QString& path,
                     Done<ExportReport> done) override {
        m_queue.push_back([this, ids, format, path, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            exports.emplace_back(ids, format, path);
            done(ExportReport{path, int(ids.empty() ? conversations.size() : ids.size()), 0});
        });
    }
    /// Answers with what the test put into `imported`.
    void importChats(const QString& path, Done<ImportReport> done) override {
        m_queue.push_back([this, path, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            imports.push_back(path);
            ImportReport report = imported;
            report.path = path;
            done(report);
        });
    }
    void backUp(const QString& path, Done<void> done) override {
        write(done, [this, path] { backups.push_back(path); });
    }
    void restoreBackup(const QString& path, Done<QString> done) override {
        m_queue.push_back([this, path, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            restored.push_back(path);
            done(QStringLiteral("kept.bak"));
        });
    }

    std::map<Id, ui::Conversation> conversations;
    std::map<Id, bool> deleted;
    std::map<Id, std::vector<ui::ChatMessage>> messages; ///< the shown path
    std::map<Id, std::vector<ui::ChatMessage>> tree;     ///< all of them, parents first
    std::map<Id, std::pair<QString, std::vector<ui::Attachment>>> drafts;
    std::map<Id, std::pair<QString, std::vector<ui::Attachment>>> waiting;
    std::vector<ui::MessageId> reopened;
    std::vector<Preset> presets;
    SearchResult found;
    std::vector<QString> searches, backups, restored, imports;
    std::vector<std::tuple<std::vector<Id>, ExportFormat, QString>> exports;
    ImportReport imported;
    std::vector<NewTurn> turns;
    std::vector<QString> progressSaves;

private:
    void write(Done<void> done, std::function<void()> change) {
        m_queue.push_back([this, done, change] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            change();
            done({});
        });
    }
    void replace(const ui::ChatMessage& answer) {
        for (auto* lists : {&messages, &tree})
            for (auto& [id, list] : *lists)
                for (ui::ChatMessage& m : list)
                    if (m.id == answer.id) {
                        const ui::MessageId parent = m.parent;
                        m = answer;
                        m.parent = parent;
                    }
    }
    /// Takes what a test put into `messages` into the tree.
    void absorb(Id id) {
        auto& all = tree[id];
        ui::MessageId parent = ui::kNoId;
        for (ui::ChatMessage& m : messages[id]) {
            if (std::none_of(all.begin(), all.end(), [&](const auto& known) { return known.id == m.id; })) {
                m.parent = parent;
                all.push_back(m);
                m_nextMessage = std::max(m_nextMessage, m.id + 1);
            }
            parent = m.id;
        }
    }
    void add(Id id, const ui::ChatMessage& message) {
        absorb(id);
        tree[id].push_back(message);
        show(id, message.id);
    }
    void show(Id id, ui::MessageId leaf) {
        std::vector<ui::ChatMessage> path;
        const auto& all = tree[id];
        for (auto it = all.rbegin(); it != all.rend(); ++it) {
            if (it->id != leaf)
                continue;
            ui::ChatMessage m = *it;
            m.siblings.clear();
            for (const ui::ChatMessage& other : all)
                if (other.parent == m.parent) {
                    m.siblings.push_back(other.id);
                    if (other.id == m.id)
                        m.version = int(m.siblings.size());
                }
            m.versions = int(m.siblings.size());
            path.insert(path.begin(), m);
            leaf = m.parent;
        }
        messages[id] = path;
    }
    ui::MessageId newestLeaf(Id id, ui::MessageId from) {
        const auto& all = tree[id];
        for (;;) {
            const auto child = std::find_if(all.rbegin(), all.rend(), [&](const auto& m) { return m.parent == from; });
            if (child == all.rend())
                return from;
            from = child->id;
        }
    }
    void copy(Id from, ui::MessageId last, const QString& title, Done<ui::Conversation> done) {
        m_queue.push_back([this, from, last, title, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            const Id id = nextConversation();
            conversations[id] = conversations[from];
            conversations[id].id = id;
            conversations[id].title = title;
            absorb(from);
            std::map<ui::MessageId, ui::MessageId> ids{{ui::kNoId, ui::kNoId}};
            const ui::MessageId shown = messages[from].empty() ? ui::kNoId : messages[from].back().id;
            for (ui::ChatMessage m : tree[from]) {
                m.parent = ids[m.parent];
                m.id = ids[m.id] = m_nextMessage++;
                tree[id].push_back(m);
            }
            show(id, ids[last == ui::kNoId ? shown : last]);
            if (last != ui::kNoId)
                tree[id] = messages[id];
            done(conversations[id]);
        });
    }
    /// Behind those that a test put there itself.
    Id nextConversation() {
        if (!conversations.empty())
            m_nextConversation = std::max(m_nextConversation, conversations.rbegin()->first + 1);
        return m_nextConversation++;
    }
    std::optional<Error> takeFailure() { return std::exchange(m_failure, std::nullopt); }

    struct Removed {
        ui::ChatMessage message;
        std::vector<ui::MessageId> children;
        ui::MessageId leaf = ui::kNoId;
    };
    std::map<ui::MessageId, Removed> m_removed;
    std::deque<std::function<void()>> m_queue;
    std::optional<Error> m_failure;
    Id m_nextConversation = 1;
    ui::MessageId m_nextMessage = 1;
    std::int64_t m_nextPreset = 1;
};

} // namespace kvscope::test
