// SPDX-License-Identifier: GPL-3.0-or-later
//
// Any bytes as a file of conversations: reading them ends without a fault, and what was read is a tree that a database
// takes, comes out as text in every format, and is the same after being written and read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "engine/store/chat_fingerprint.h"
#include "engine/store/chat_reader.h"
#include "engine/store/chat_text.h"
#include "engine/store/fold.h"

using namespace kvscope;
using namespace kvscope::store;

namespace {

void require(bool fact, int line = __builtin_LINE()) {
    if (fact)
        return;
    std::fprintf(stderr, "fuzz_chats.cpp:%d does not hold\n", line);
    std::abort();
}

void checkTree(const ConversationContent& content) {
    std::set<std::int64_t> seen;
    std::set<std::pair<std::int64_t, std::int64_t>> places;
    for (const Message& message : content.messages) {
        require(message.id.valid() && (!message.parent.valid() || seen.count(message.parent.value()) == 1));
        require(seen.insert(message.id.value()).second);
        require(places.insert({message.parent.value(), message.sibling}).second);
        require(message.status != MessageStatus::Generating);
    }
    require(!content.conversation.activeLeaf.valid() || seen.count(content.conversation.activeLeaf.value()) == 1);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)readChats(text, [](ReadChat&& chat) -> Result<void> {
        checkTree(chat.content);
        require(validUtf8(chatToMarkdown(chat.content)) == chatToMarkdown(chat.content));
        const std::string html = chatToHtmlBody(chat.content);
        require(validUtf8(html) == html && html.find("<script") == std::string::npos);
        const std::string once = chatToJson(chat.content).dump();
        SkippedParts skipped;
        const auto back = chatFromJson(nlohmann::json::parse(once), skipped);
        require(back && skipped.empty());
        require(chatToJson(*back).dump() == once);
        require(pathFingerprints(back->messages) == pathFingerprints(chat.content.messages));
        return {};
    });
    return 0;
}
