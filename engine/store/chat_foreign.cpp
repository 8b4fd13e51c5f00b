// SPDX-License-Identifier: GPL-3.0-or-later
//
// Conversations as other programs write them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/store/chat_reader.h"
#include "engine/store/fold.h"

namespace kvscope::store {

namespace {

using nlohmann::json;

constexpr std::size_t kTitleCharacters = 60;

std::string textAt(const json& object, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (const auto found = object.find(name); found != object.end() && found->is_string())
            return found->get<std::string>();
    return {};
}

const json* childAt(const json& object, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (const auto found = object.find(name); found != object.end() && !found->is_null())
            return &*found;
    return nullptr;
}

/// Seconds or milliseconds since 1970, as a number; 0 = unknown.
WallMillis timeAt(const json& object, std::initializer_list<const char*> names) {
    const json* found = childAt(object, names);
    if (!found || !found->is_number())
        return 0;
    const double value = found->get<double>();
    const double millis = value > 1e11 ? value : value * 1000;
    return millis > 0 && millis < 4e15 ? static_cast<WallMillis>(std::llround(millis)) : 0;
}

std::optional<Role> roleOf(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const char* user : {"user", "human", "prompter"})
        if (name == user)
            return Role::User;
    for (const char* assistant : {"assistant", "gpt", "chatgpt", "bot", "model", "ai", "bing", "bard"})
        if (name == assistant)
            return Role::Assistant;
    for (const char* system : {"system", "developer"})
        if (name == system)
            return Role::System;
    return std::nullopt;
}

std::string roleNameOf(const json& message) {
    if (const json* author = childAt(message, {"author"}); author && author->is_object())
        return textAt(*author, {"role"});
    return textAt(message, {"role", "from"});
}

/// The text of a content: a string, or parts of which the texts count. `left` tells what else there was.
std::string contentOf(const json& content, std::string& left) {
    if (content.is_string())
        return content.get<std::string>();
    const json* parts = content.is_object() ? childAt(content, {"parts"}) : &content;
    if (content.is_object() && !parts)
        return textAt(content, {"text", "result"});
    if (!parts->is_array())
        return {};
    std::string all;
    for (const json& part : *parts) {
        const std::string text = part.is_string()   ? part.get<std::string>()
                                 : part.is_object() ? textAt(part, {"text"})
                                                    : std::string();
        if (text.empty() && part.is_object() && left.empty())
            left = textAt(part, {"type", "content_type"});
        if (!text.empty())
            all += (all.empty() ? "" : "\n\n") + text;
    }
    return all;
}

/// Why it is left out, or nothing and `m` is filled.
std::optional<std::string> readForeign(const json& value, Message& m, SkippedParts& skipped, const std::string& what) {
    if (!value.is_object())
        return "It is not a message.";
    const std::string name = roleNameOf(value);
    const auto role = roleOf(name);
    if (!role)
        return name.empty() ? "It does not say who wrote it."
                            : "Messages of '" + validUtf8(name.substr(0, 40)) + "' are not kept.";
    m.role = *role;
    const json* content = childAt(value, {"content", "value", "text"});
    std::string left;
    if (content)
        m.text = contentOf(*content, left);
    m.thinking = textAt(value, {"reasoning_content", "reasoning", "thinking"});
    if (m.text.empty() && m.thinking.empty())
        return left.empty() ? childAt(value, {"tool_calls", "function_call"}) ? "It only calls a tool." : "It is empty."
                            : "Its '" + validUtf8(left.substr(0, 40)) + "' is not kept, and it has no text.";
    if (!left.empty())
        skipped.push_back({what, "Its '" + validUtf8(left.substr(0, 40)) + "' is not kept."});
    m.created = timeAt(value, {"create_time", "created_at", "created", "timestamp"});
    if (m.role == Role::Assistant)
        m.model = textAt(value, {"model"});
    return std::nullopt;
}

/// Collects messages; system text goes to the conversation's prompt while nothing else has been said.
class Collector {
public:
    Collector(ConversationContent& content, SkippedParts& skipped) : m_content(content), m_skipped(skipped) {}

    /// The message's id, or that of `parent` where it was left out.
    MessageId add(const json& value, MessageId parent, const std::string& what) {
        Message m;
        auto problem = readForeign(value, m, m_skipped, what);
        if (!problem && m.role == Role::System) {
            if (!m_content.messages.empty()) {
                problem = "System text in the middle of a conversation is not kept.";
            } else {
                std::string& prompt = m_content.conversation.systemPrompt;
                prompt += (prompt.empty() ? "" : "\n\n") + m.text;
                return parent;
            }
        }
        if (problem) {
            m_skipped.push_back({what, *problem});
            return parent;
        }
        m.id = MessageId(static_cast<std::int64_t>(m_content.messages.size()) + 1);
        m.parent = parent;
        m.sibling = m_siblings[parent.value()]++;
        m_content.messages.push_back(std::move(m));
        return m_content.messages.back().id;
    }

private:
    ConversationContent& m_content;
    SkippedParts& m_skipped;
    std::unordered_map<std::int64_t, std::int64_t> m_siblings;
};

void readList(const json& messages, Collector& collector, ConversationContent& content) {
    MessageId last;
    for (std::size_t i = 0; i < messages.size(); ++i)
        last = collector.add(messages[i], last, "message " + std::to_string(i + 1));
    content.conversation.activeLeaf = last;
}

bool isEmpty(const json& message) {
    const json* content = childAt(message, {"content"});
    std::string left;
    return !content || contentOf(*content, left).empty();
}

/// ChatGPT's tree: {"mapping": {id: {"message", "parent", "children"}}, "current_node"}.
void readMapping(const json& value, Collector& collector, ConversationContent& content, SkippedParts& skipped) {
    const json& mapping = value["mapping"];
    std::vector<std::pair<std::string, MessageId>> open; // nodes to visit with the message before them
    std::unordered_set<std::string> seen;
    for (const bool whole : {true, false}) // first those that begin, then those whose beginning is not in the file
        for (const auto& [id, node] : mapping.items()) {
            const std::string parent = node.is_object() ? textAt(node, {"parent"}) : id;
            if (whole ? parent.empty() : !parent.empty() && !mapping.contains(parent))
                open.emplace_back(id, MessageId());
        }
    std::reverse(open.begin(), open.end());
    const std::string current = textAt(value, {"current_node"});
    while (!open.empty()) {
        const auto [id, parent] = open.back();
        open.pop_back();
        if (!seen.insert(id).second)
            continue; // a circle, or a node with two parents
        const json& node = mapping[id];
        MessageId here = parent;
        const json* message = childAt(node, {"message"});
        // The empty root and the hidden system node of every chat are no loss.
        const bool hidden = !message || (roleOf(roleNameOf(*message)) == Role::System && isEmpty(*message));
        if (!hidden)
            here = collector.add(*message, parent, "message " + id.substr(0, 40));
        if (id == current)
            content.conversation.activeLeaf = here;
        if (const json* children = childAt(node, {"children"}); children && children->is_array())
            for (auto child = children->rbegin(); child != children->rend(); ++child)
                if (child->is_string() && mapping.contains(child->get<std::string>()))
                    open.emplace_back(child->get<std::string>(), here);
    }
    for (const auto& [id, node] : mapping.items())
        if (seen.count(id) == 0)
            skipped.push_back({"message " + id.substr(0, 40), "It hangs on no other message."});
    if (!content.conversation.activeLeaf.valid() && !content.messages.empty())
        content.conversation.activeLeaf = content.messages.back().id;
}

std::string titleFrom(const ConversationContent& content) {
    for (const Message& message : content.messages) {
        if (message.role != Role::User)
            continue;
        std::string line = validUtf8(message.text.substr(0, message.text.find('\n')));
        std::size_t at = 0, count = 0;
        while (at < line.size() && (count < kTitleCharacters || (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80))
            count += (static_cast<unsigned char>(line[at++]) & 0xC0) == 0x80 ? 0 : 1;
        return at < line.size() ? line.substr(0, at) + "\xE2\x80\xA6" : line;
    }
    return {};
}

} // namespace

bool isForeignMessage(const json& value) {
    return value.is_object() && !roleNameOf(value).empty() &&
           childAt(value, {"content", "value", "text", "tool_calls"});
}

Result<ConversationContent> chatFromForeign(const json& value, SkippedParts& skipped) {
    ConversationContent content;
    Conversation& c = content.conversation;
    Collector collector(content, skipped);
    const json* list = value.is_array() ? &value : nullptr;
    if (value.is_object() && value.contains("mapping") && value["mapping"].is_object()) {
        readMapping(value, collector, content, skipped);
    } else {
        if (value.is_object())
            list = childAt(value, {"messages", "conversations", "conversation", "items", "turns"});
        if (!list || !list->is_array())
            return fail(ErrorCode::Corrupt, "It holds none of messages, conversations, mapping.");
        if (value.is_object())
            c.systemPrompt = textAt(value, {"system", "system_prompt"});
        readList(*list, collector, content);
    }
    if (content.messages.empty())
        return fail(ErrorCode::Corrupt, "It has no message that can be kept.");
    if (value.is_object()) {
        c.title = textAt(value, {"title", "name"});
        c.created = timeAt(value, {"create_time", "created_at", "created", "timestamp"});
        c.updated = timeAt(value, {"update_time", "updated_at", "updated"});
        if (c.updated <= 0) // as our own files are read
            c.updated = c.created;
        if (const std::string model = textAt(value, {"model"}); !model.empty())
            for (Message& message : content.messages)
                if (message.role == Role::Assistant && message.model.empty())
                    message.model = model;
    }
    if (c.title.empty())
        c.title = titleFrom(content);
    return content;
}

} // namespace kvscope::store
