// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/chat_json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "engine/base/json_nesting.h"
#include "engine/store/fold.h"

namespace kvscope::store {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMostAttachments = 1000; ///< a window shows all of them at once
constexpr const char* kHexDigits = "0123456789abcdef";

// ---- writing ----

void putText(ordered_json& object, const std::string& key, const std::string& text) {
    const std::string valid = validUtf8(text);
    object[key] = valid;
    if (valid == text)
        return;
    std::string hex;
    for (const char c : text) {
        hex += kHexDigits[static_cast<unsigned char>(c) >> 4];
        hex += kHexDigits[static_cast<unsigned char>(c) & 15];
    }
    object[key + "_hex"] = hex;
}

void putTextIfAny(ordered_json& object, const std::string& key, const std::string& text) {
    if (!text.empty())
        putText(object, key, text);
}

/// Settings are JSON already. Where reading and writing them gives other bytes they stand there as a string.
void putSettings(ordered_json& object, const std::string& settings) {
    if (settings.empty())
        return;
    if (!jsonNestsTooDeep(settings)) {
        const json parsed = json::parse(settings, nullptr, false);
        if (parsed.is_object() && parsed.dump(-1, ' ', false, json::error_handler_t::replace) == settings) {
            object["settings"] = parsed;
            return;
        }
    }
    putText(object, "settings", settings);
}

void putAttachments(ordered_json& object, const char* key, const std::vector<Attachment>& attachments) {
    for (const Attachment& attachment : attachments) {
        ordered_json one;
        putText(one, "name", attachment.name);
        putText(one, "text", attachment.content);
        if (attachment.tokens > 0)
            one["tokens"] = attachment.tokens;
        object[key].push_back(std::move(one));
    }
}

/// Names of the receipt's figures in the file, with where they stand.
template <class Visit, class AnyReceipt> void visitReceipt(AnyReceipt& r, Visit visit) {
    visit("prompt_tokens", r.promptTokens);
    visit("reused_tokens", r.reusedTokens);
    visit("computed_tokens", r.computedTokens);
    visit("answer_tokens", r.answerTokens);
    visit("new_blocks", r.newBlocks);
    visit("preemptions", r.preemptions);
    visit("swapped_blocks", r.swappedBlocks);
    visit("blocks_peak", r.blocksPeak);
    visit("blocks_available_after", r.blocksAvailableAfter);
    visit("blocks_cached_after", r.blocksCachedAfter);
    visit("block_size", r.blockSize);
    visit("diverging_token", r.divergingToken);
    visit("diverging_turn", r.divergingTurn);
    visit("evicted_ago_ms", r.evictedAgoMs);
    visit("queue_ms", r.queueMs);
    visit("prefill_ms", r.prefillMs);
    visit("decode_ms", r.decodeMs);
    visit("ttft_ms", r.ttftMs);
    visit("e2e_ms", r.e2eMs);
}

ordered_json messageToJson(const Message& m, const std::unordered_map<std::int64_t, std::int64_t>& numbers,
                           std::int64_t place) {
    ordered_json object;
    object["id"] = numbers.at(m.id.value());
    if (const auto parent = numbers.find(m.parent.value()); parent != numbers.end())
        object["parent"] = parent->second;
    if (m.sibling != place) // the versions do not stand in the order in which they were made
        object["sibling"] = m.sibling;
    object["role"] = roleName(m.role);
    putText(object, "text", m.text);
    putTextIfAny(object, "thinking", m.thinking);
    if (m.thinkingFacts.ms > 0)
        object["thinking_ms"] = m.thinkingFacts.ms;
    if (m.thinkingFacts.tokens > 0)
        object["thinking_tokens"] = m.thinkingFacts.tokens;
    if (m.thinkingFacts.open)
        object["thinking_open"] = true;
    const bool running = m.status == MessageStatus::Generating;
    object["status"] = messageStatusName(running ? MessageStatus::Interrupted : m.status);
    putTextIfAny(object, "finish_reason", m.finishReason);
    putTextIfAny(object, "error", m.error);
    putTextIfAny(object, "ended_by", m.endedBy);
    for (const std::string& name : m.adaptations)
        object["adaptations"].push_back(validUtf8(name));
    putSettings(object, m.settings);
    putTextIfAny(object, "model", m.model);
    object["created"] = m.created;
    if (m.tokens) {
        ordered_json tokens;
        tokens["tokenizer"] = validUtf8(m.tokens->tokenizer);
        tokens["ids"] = m.tokens->ids;
        if (m.tokens->endToken)
            tokens["end_token"] = *m.tokens->endToken;
        object["tokens"] = std::move(tokens);
    }
    if (m.receipt) {
        ordered_json receipt;
        visitReceipt(*m.receipt, [&](const char* name, auto value) { receipt[name] = value; });
        putText(receipt, "cause", m.receipt->cause);
        putTextIfAny(receipt, "evicted_by", m.receipt->evictedBy);
        object["receipt"] = std::move(receipt);
    }
    putAttachments(object, "attachments", m.attachments);
    return object;
}

// ---- reading ----

std::optional<std::string> fromHex(const std::string& hex) {
    if (hex.size() % 2 != 0)
        return std::nullopt;
    const auto digit = [](char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
    };
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        const int high = digit(hex[i]), low = digit(hex[i + 1]);
        if (high < 0 || low < 0)
            return std::nullopt;
        bytes += static_cast<char>(high * 16 + low);
    }
    return bytes;
}

/// "" when it is not there or is no text.
std::string getText(const json& object, const std::string& key) {
    if (const auto hex = object.find(key + "_hex"); hex != object.end() && hex->is_string())
        if (auto bytes = fromHex(hex->get<std::string>()))
            return *bytes;
    const auto text = object.find(key);
    return text != object.end() && text->is_string() ? text->get<std::string>() : std::string();
}

std::int64_t getWhole(const json& object, const char* key, std::int64_t otherwise = 0) {
    const auto number = object.find(key);
    if (number == object.end() || !number->is_number_integer())
        return otherwise;
    if (number->is_number_unsigned() &&
        number->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return otherwise;
    return number->get<std::int64_t>();
}

/// A time that no clock gives would stand at the top of every list for ever.
WallMillis getTime(const json& object, const char* key, WallMillis otherwise) {
    constexpr WallMillis kLatest = 4'000'000'000'000'000;
    const std::int64_t time = getWhole(object, key, otherwise);
    return time > 0 && time < kLatest ? time : otherwise;
}

bool getFlag(const json& object, const char* key) {
    const auto flag = object.find(key);
    return flag != object.end() && flag->is_boolean() && flag->get<bool>();
}

std::string getSettings(const json& object) {
    const auto settings = object.find("settings");
    if (settings == object.end() || !settings->is_object())
        return getText(object, "settings");
    return settings->dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<Attachment> getAttachments(const json& object, const char* key) {
    std::vector<Attachment> all;
    const auto list = object.find(key);
    if (list == object.end() || !list->is_array())
        return all;
    for (const json& one : *list)
        if (one.is_object())
            all.push_back(
                {getText(one, "name"), getText(one, "text"), std::max<std::int64_t>(0, getWhole(one, "tokens"))});
    return all;
}

std::optional<MessageTokens> getTokens(const json& object) {
    const auto tokens = object.find("tokens");
    if (tokens == object.end() || !tokens->is_object())
        return std::nullopt;
    const auto ids = tokens->find("ids");
    if (ids == tokens->end() || !ids->is_array())
        return std::nullopt;
    const auto small = [](const json& id) {
        return id.is_number_integer() && (!id.is_number_unsigned() || id.get<std::uint64_t>() <= 0x7fffffff) &&
               id.get<std::int64_t>() >= std::numeric_limits<TokenId>::min() && id.get<std::int64_t>() <= 0x7fffffff;
    };
    MessageTokens all;
    all.tokenizer = getText(*tokens, "tokenizer");
    for (const json& id : *ids) {
        if (!small(id))
            return std::nullopt; // tokens that cannot be are computed anew from the text
        all.ids.push_back(id.get<TokenId>());
    }
    if (const auto end = tokens->find("end_token"); end != tokens->end() && small(*end))
        all.endToken = end->get<TokenId>();
    return all;
}

std::optional<Receipt> getReceipt(const json& object) {
    const auto found = object.find("receipt");
    if (found == object.end() || !found->is_object())
        return std::nullopt;
    Receipt receipt;
    visitReceipt(receipt, [&](const char* name, auto& value) {
        if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(value)>>) {
            const auto number = found->find(name);
            if (number != found->end() && number->is_number())
                value = number->template get<double>();
        } else {
            value = getWhole(*found, name, value);
        }
    });
    receipt.cause = getText(*found, "cause");
    receipt.evictedBy = getText(*found, "evicted_by");
    return receipt;
}

/// Why it is none, or nothing.
std::optional<std::string> readMessage(const json& object, Message& m) {
    if (!object.is_object())
        return "It is not an object.";
    const std::string role = getText(object, "role"), status = getText(object, "status");
    bool known = false;
    for (const Role one : {Role::System, Role::User, Role::Assistant})
        if (role == roleName(one)) {
            m.role = one;
            known = true;
        }
    if (!known)
        return "Its role is none of system, user, assistant.";
    for (const MessageStatus one : {MessageStatus::Interrupted, MessageStatus::Error})
        if (status == messageStatusName(one))
            m.status = one;
    m.text = getText(object, "text");
    m.thinking = getText(object, "thinking");
    m.thinkingFacts = {std::max<std::int64_t>(0, getWhole(object, "thinking_ms")),
                       std::max<std::int64_t>(0, getWhole(object, "thinking_tokens")),
                       getFlag(object, "thinking_open")};
    m.finishReason = getText(object, "finish_reason");
    m.error = getText(object, "error");
    m.endedBy = getText(object, "ended_by");
    if (const auto names = object.find("adaptations"); names != object.end() && names->is_array())
        for (const json& name : *names)
            if (name.is_string())
                m.adaptations.push_back(name.get<std::string>());
    m.settings = getSettings(object);
    m.model = getText(object, "model");
    m.created = getTime(object, "created", 0);
    m.tokens = getTokens(object);
    m.receipt = getReceipt(object);
    m.attachments = getAttachments(object, "attachments");
    if (m.attachments.size() > kMostAttachments)
        return "It has more than " + std::to_string(kMostAttachments) + " attachments.";
    for (const Attachment& attachment : m.attachments)
        if (attachment.content.size() > mostBytesOf(attachment))
            return attachment.name.empty()
                       ? "Its pasted text is larger than 64 MiB."
                       : "Its attachment '" + validUtf8(attachment.name.substr(0, 80)) + "' is larger than 1 MiB.";
    return std::nullopt;
}

/// Counts the versions of each message from 0, in the order that the file asks for.
void numberSiblings(std::vector<Message>& messages) {
    std::unordered_map<std::int64_t, std::vector<Message*>> versions;
    for (Message& message : messages)
        versions[message.parent.value()].push_back(&message);
    for (auto& [parent, list] : versions) {
        std::stable_sort(list.begin(), list.end(),
                         [](const Message* a, const Message* b) { return a->sibling < b->sibling; });
        for (std::size_t i = 0; i < list.size(); ++i)
            list[i]->sibling = static_cast<std::int64_t>(i);
    }
}

} // namespace

ordered_json chatToJson(const ConversationContent& content) {
    const Conversation& c = content.conversation;
    std::unordered_map<std::int64_t, std::int64_t> numbers;
    for (const Message& message : content.messages)
        numbers.emplace(message.id.value(), static_cast<std::int64_t>(numbers.size()) + 1);
    ordered_json object;
    putText(object, "title", c.title);
    object["title_by_user"] = c.titleByUser;
    object["created"] = c.created;
    object["updated"] = c.updated;
    putTextIfAny(object, "system_prompt", c.systemPrompt);
    putSettings(object, c.settings);
    putTextIfAny(object, "model", c.model);
    const Draft begun = draftWithWaiting(c); // what waits for an answer here waits for its reader there
    putTextIfAny(object, "draft", begun.text);
    putAttachments(object, "draft_attachments", begun.attachments);
    if (const auto active = numbers.find(c.activeLeaf.value()); active != numbers.end())
        object["active"] = active->second;
    object["messages"] = ordered_json::array();
    std::unordered_map<std::int64_t, std::int64_t> places;
    for (const Message& message : content.messages)
        object["messages"].push_back(messageToJson(message, numbers, places[message.parent.value()]++));
    return object;
}

Result<ConversationContent> chatFromJson(const json& value, SkippedParts& skipped) {
    const auto messages = value.find("messages");
    if (!value.is_object() || messages == value.end() || !messages->is_array())
        return fail(ErrorCode::Corrupt, "It has no list of messages.");
    ConversationContent content;
    Conversation& c = content.conversation;
    c.title = getText(value, "title");
    c.titleByUser = getFlag(value, "title_by_user");
    c.created = getTime(value, "created", 0);
    c.updated = getTime(value, "updated", c.created);
    c.systemPrompt = getText(value, "system_prompt");
    c.settings = getSettings(value);
    c.model = getText(value, "model");
    c.draft = getText(value, "draft");
    c.draftAttachments = getAttachments(value, "draft_attachments");

    std::unordered_map<std::int64_t, MessageId> ids; // of the file -> ours
    std::unordered_map<std::int64_t, std::int64_t> siblings;
    for (std::size_t i = 0; i < messages->size(); ++i) {
        const json& one = (*messages)[i];
        Message m;
        auto problem = readMessage(one, m);
        const std::int64_t number = problem ? 0 : getWhole(one, "id");
        if (!problem && (number <= 0 || ids.count(number) > 0))
            problem = "Its id is missing or is that of another message.";
        if (!problem && one.contains("parent")) {
            const auto parent = ids.find(getWhole(one, "parent"));
            if (parent == ids.end())
                problem = "The message before it is not in the file.";
            else
                m.parent = parent->second;
        }
        if (problem) {
            skipped.push_back({"message " + std::to_string(i + 1), *problem});
            continue;
        }
        m.id = MessageId(static_cast<std::int64_t>(content.messages.size()) + 1);
        m.sibling = getWhole(one, "sibling", siblings[m.parent.value()]++);
        ids[number] = m.id;
        content.messages.push_back(std::move(m));
    }
    numberSiblings(content.messages);
    const auto active = ids.find(getWhole(value, "active"));
    if (active != ids.end())
        c.activeLeaf = active->second;
    else if (!content.messages.empty())
        c.activeLeaf = content.messages.back().id;
    return content;
}

} // namespace kvscope::store
