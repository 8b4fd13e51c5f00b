// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/requests_file.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "app/bench/random.h"
#include "engine/base/json_nesting.h"

namespace kvscope::bench {

namespace {

using nlohmann::json;

constexpr std::int64_t kMostTokens = 10'000'000; ///< of one request
constexpr std::int64_t kHashedTokens = 512;      ///< of a trace's hash id

json parse(const std::string& text) {
    return jsonNestsTooDeep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
}

std::optional<std::string> textAt(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

std::optional<double> numberAt(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<std::int64_t> countAt(const json& object, const char* key) {
    const auto value = numberAt(object, key);
    if (!value || *value < 1 || *value > static_cast<double>(kMostTokens))
        return std::nullopt;
    return static_cast<std::int64_t>(*value);
}

TokenId idOf(std::uint64_t hash, std::int32_t vocab) {
    return static_cast<TokenId>(hash % static_cast<std::uint64_t>(vocab));
}

class Reader {
public:
    Reader(const TextTokens& tokens, std::int32_t vocab, std::int32_t limit)
        : m_tokens(tokens)
        , m_vocab(vocab)
        , m_limit(limit > 0 ? static_cast<std::size_t>(limit) : ~std::size_t(0)) {}

    bool full() const { return m_out.requests.size() >= m_limit; }
    Workload take() { return std::move(m_out); }

    /// An entry of a list of conversations; false when it is none.
    bool addConversation(const json& entry) {
        const json* messages = nullptr;
        for (const char* key : {"conversations", "messages", "conversation"})
            if (const auto found = entry.find(key); found != entry.end() && found->is_array())
                messages = &*found;
        if (!messages)
            return false;
        const std::int32_t owner = m_owners++;
        std::int32_t before = -1, turn = 0;
        std::vector<TokenId> pending;
        for (const json& message : *messages) {
            if (!message.is_object())
                return false;
            auto role = textAt(message, "from"), content = textAt(message, "value");
            role = role ? role : textAt(message, "role");
            content = content ? content : textAt(message, "content");
            if (!role || !content)
                return false;
            const std::vector<TokenId> tokens = m_tokens(*content);
            if (*role != "gpt" && *role != "assistant" && *role != "chatgpt") {
                pending.insert(pending.end(), tokens.begin(), tokens.end());
                continue;
            }
            if (pending.empty() || full())
                continue; // an answer to nothing
            PlannedRequest request = logged(owner, ++turn);
            request.tokens = std::exchange(pending, {});
            request.answerTokens = std::max<std::int64_t>(1, static_cast<std::int64_t>(tokens.size()));
            request.follows = before;
            if (before >= 0)
                request.historyTokens = m_out.requests[static_cast<std::size_t>(before)].length();
            before = static_cast<std::int32_t>(m_out.requests.size());
            m_out.requests.push_back(std::move(request));
        }
        return true;
    }

    /// A line; empty when it was understood, else what is wrong.
    std::string addLine(const json& line) {
        if (addConversation(line))
            return {};
        PlannedRequest request = logged(m_owners++, 1);
        if (const auto arrival = numberAt(line, "arrival"))
            request.arrival = *arrival;
        else if (const auto stamp = numberAt(line, "timestamp"))
            request.arrival = *stamp / 1000;
        if (line.contains("arrival") && !(request.arrival >= 0 && request.arrival < 1e8))
            return "'arrival' is a number of seconds of at least 0.";
        auto answer = countAt(line, "max_tokens");
        answer = answer ? answer : countAt(line, "output_length");
        if (!answer)
            return "it has no 'max_tokens' of at least 1.";
        request.answerTokens = *answer;
        if (!addPrompt(line, request))
            return "it has none of 'prompt', 'prompt_ids' (below the model's vocabulary), 'prompt_tokens' and "
                   "'input_length', or an empty one.";
        m_out.requests.push_back(std::move(request));
        return {};
    }

private:
    static PlannedRequest logged(std::int32_t owner, std::int32_t turn) {
        PlannedRequest request;
        request.kind = RequestKind::Logged;
        request.owner = owner;
        request.turn = turn;
        return request;
    }

    bool addPrompt(const json& line, PlannedRequest& request) {
        if (const auto text = textAt(line, "prompt"))
            request.tokens = m_tokens(*text);
        else if (const auto ids = line.find("prompt_ids"); ids != line.end())
            return addIds(*ids, request.tokens);
        else if (const auto count = countAt(line, "prompt_tokens"))
            madeUp(request, *count, json());
        else if (const auto length = countAt(line, "input_length"))
            madeUp(request, *length, line.value("hash_ids", json()));
        return !request.tokens.empty();
    }

    bool addIds(const json& ids, std::vector<TokenId>& out) const {
        if (!ids.is_array())
            return false;
        for (const json& id : ids) {
            if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= m_vocab)
                return false;
            out.push_back(id.get<TokenId>());
        }
        return !out.empty();
    }

    /// Tokens that are this request's alone, but for those that a trace names by hash.
    void madeUp(PlannedRequest& request, std::int64_t count, const json& hashes) const {
        for (std::int64_t i = 0; i < count; ++i) {
            const auto part = static_cast<std::size_t>(i / kHashedTokens);
            const bool named = hashes.is_array() && part < hashes.size() && hashes[part].is_number_integer();
            const std::uint64_t stream =
                named ? mix(1, hashes[part].get<std::uint64_t>()) : mix(2, static_cast<std::uint64_t>(request.owner));
            const std::int64_t place = named ? i % kHashedTokens : i;
            request.tokens.push_back(idOf(mix(stream, static_cast<std::uint64_t>(place)), m_vocab));
        }
    }

    const TextTokens& m_tokens;
    std::int32_t m_vocab;
    std::size_t m_limit;
    std::int32_t m_owners = 0;
    Workload m_out;
};

std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

Result<void> readLines(Reader& reader, const std::string& text, const std::string& name) {
    std::size_t number = 0;
    for (const std::string& line : linesOf(text)) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos)
            continue;
        if (reader.full())
            return {};
        const json value = parse(line);
        const std::string wrong = value.is_object() ? reader.addLine(value) : "it is not a JSON object.";
        if (!wrong.empty())
            return fail(ErrorCode::Corrupt,
                        "Line " + std::to_string(number) + " of '" + name + "' is no request: " + wrong);
    }
    return {};
}

Result<void> readList(Reader& reader, const json& list, const std::string& name) {
    std::size_t number = 0;
    for (const json& entry : list) {
        ++number;
        if (reader.full())
            return {};
        if (!entry.is_object() || !reader.addConversation(entry))
            return fail(ErrorCode::Corrupt,
                        "Entry " + std::to_string(number) + " of '" + name +
                            "' is no conversation: it needs 'conversations' with 'from' and 'value', or 'messages' "
                            "with 'role' and 'content'.");
    }
    return {};
}

} // namespace

TextTokens approximateTokens(std::int32_t vocab) {
    return [vocab](const std::string& text) {
        std::vector<TokenId> out;
        std::uint64_t hash = 0;
        for (std::size_t at = 0; at < text.size(); at += 4) {
            for (std::size_t i = at; i < std::min(at + 4, text.size()); ++i)
                hash = mix(hash, static_cast<unsigned char>(text[i]));
            out.push_back(idOf(hash, vocab));
        }
        return out;
    };
}

Result<Workload> readRequests(const std::string& text, const std::string& name, const TextTokens& tokens,
                              std::int32_t vocab, std::int32_t limit) {
    Reader reader(tokens, vocab, limit);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const json whole = first != std::string::npos && text[first] == '[' ? parse(text) : json();
    if (auto ok = whole.is_array() ? readList(reader, whole, name) : readLines(reader, text, name); !ok)
        return tl::unexpected(ok.error());
    Workload out = reader.take();
    out.name = name;
    if (out.requests.empty())
        return fail(ErrorCode::Corrupt, "'" + name +
                                            "' has no request; give a list of conversations or one JSON object "
                                            "a line.");
    const auto timed = std::count_if(out.requests.begin(), out.requests.end(),
                                     [](const PlannedRequest& request) { return request.arrival >= 0; });
    if (timed != 0 && timed != static_cast<std::ptrdiff_t>(out.requests.size()))
        return fail(ErrorCode::Corrupt, "Some requests of '" + name +
                                            "' have a time of arrival and some have none; "
                                            "give it on every line or on none.");
    std::stable_sort(out.requests.begin(), out.requests.end(), [&](const PlannedRequest& a, const PlannedRequest& b) {
        return timed > 0 && a.arrival < b.arrival;
    });
    return out;
}

} // namespace kvscope::bench
