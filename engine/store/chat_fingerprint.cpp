// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/chat_fingerprint.h"

#include <cstdio>
#include <memory>
#include <unordered_map>

#include <xxhash.h>

namespace kvscope::store {

namespace {

/// Fields with their lengths, so that no two sequences of fields give the same bytes.
class Hash {
public:
    Hash() : m_state(XXH3_createState()) { XXH3_128bits_reset(m_state.get()); }
    void add(const std::string& field) {
        const std::uint64_t size = field.size();
        XXH3_128bits_update(m_state.get(), &size, sizeof size);
        XXH3_128bits_update(m_state.get(), field.data(), field.size());
    }
    std::string text() const {
        const XXH128_hash_t hash = XXH3_128bits_digest(m_state.get());
        char hex[33];
        std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                      static_cast<unsigned long long>(hash.low64));
        return hex;
    }

private:
    struct Free {
        void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
    };
    std::unique_ptr<XXH3_state_t, Free> m_state;
};

} // namespace

std::vector<std::string> pathFingerprints(const std::vector<Message>& messages) {
    std::unordered_map<std::int64_t, std::string> byId;
    std::vector<std::string> all;
    all.reserve(messages.size());
    for (const Message& message : messages) {
        Hash hash;
        const auto parent = byId.find(message.parent.value());
        hash.add(parent == byId.end() ? std::string() : parent->second);
        hash.add(roleName(message.role));
        hash.add(message.text);
        hash.add(message.thinking);
        for (const Attachment& attachment : message.attachments) {
            hash.add(attachment.name);
            hash.add(attachment.content);
        }
        all.push_back(hash.text());
        byId[message.id.value()] = all.back();
    }
    return all;
}

std::string chatFingerprint(const ConversationContent& content, const std::string& source) {
    Hash hash;
    hash.add(source);
    hash.add(content.conversation.title);
    hash.add(content.conversation.systemPrompt);
    for (const std::string& message : pathFingerprints(content.messages))
        hash.add(message);
    return hash.text();
}

} // namespace kvscope::store
