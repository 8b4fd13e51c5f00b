// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "app/bench/random.h"

namespace kvscope::bench {

namespace {

struct Lengths {
    std::int64_t prompt, answer;
};
constexpr Lengths kShort{500, 100}, kLongForm{2000, 1000}, kLongDoc{7500, 500};
constexpr std::int64_t kSystem = 200, kQuestion = 100;
constexpr std::int32_t kSystems = 4;

constexpr std::int32_t kUsers = 16, kTurns = 8, kTurnsBeforeFlood = 4, kFlood = 64, kFloodRoom = 8;
constexpr std::int64_t kUserSystem = 400, kUserTurn = 60, kUserAnswer = 100;
constexpr Lengths kFloodPrompt{500, 20};

constexpr std::int32_t kDefaultRequests = 60;
constexpr std::int32_t kMostRequests = 1'000'000;
/// Of 20 requests of `mix`.
constexpr std::array<std::pair<RequestKind, int>, 3> kDeck{
    {{RequestKind::Short, 12}, {RequestKind::LongForm, 5}, {RequestKind::LongDoc, 3}}};

std::int64_t scaled(std::int64_t tokens, double scale) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(tokens) * scale));
}

Lengths lengthsOf(RequestKind kind, double scale) {
    const Lengths& whole = kind == RequestKind::Short ? kShort : kind == RequestKind::LongForm ? kLongForm : kLongDoc;
    return {std::max<std::int64_t>(3, scaled(whole.prompt, scale)), scaled(whole.answer, scale)};
}

/// Whose tokens: the first part of the stream's number.
enum class Part : std::uint64_t { System = 1, Document, Question, UserSystem, UserTurn, Flood };

class Writer {
public:
    Writer(const WorkloadSpec& spec) : m_spec(spec) {}

    /// `count` tokens that only this part with this number has.
    void append(std::vector<TokenId>& out, Part part, std::int64_t number, std::int64_t count) const {
        const std::uint64_t stream =
            mix(mix(m_spec.seed, static_cast<std::uint64_t>(part)), static_cast<std::uint64_t>(number));
        for (std::int64_t i = 0; i < count; ++i)
            out.push_back(static_cast<TokenId>(mix(stream, static_cast<std::uint64_t>(i)) %
                                               static_cast<std::uint64_t>(m_spec.vocab)));
    }
    std::int64_t length(std::int64_t tokens) const { return scaled(tokens, m_spec.scale); }

    PlannedRequest single(RequestKind kind, std::int32_t number, std::int32_t system) const {
        const Lengths lengths = lengthsOf(kind, m_spec.scale);
        const std::int64_t head = std::min(length(kSystem), lengths.prompt - 2);
        const std::int64_t document =
            kind == RequestKind::LongDoc ? std::max<std::int64_t>(1, lengths.prompt - head - length(kQuestion)) : 0;
        PlannedRequest request;
        request.kind = kind;
        request.owner = number;
        request.answerTokens = lengths.answer;
        append(request.tokens, Part::System, system, head);
        append(request.tokens, Part::Document, system, document);
        append(request.tokens, Part::Question, number, lengths.prompt - head - document);
        return request;
    }

    /// Turn `turn` of a user; `before` = index of the one before it in `requests`.
    PlannedRequest turnOf(std::int32_t user, std::int32_t turn, std::int32_t before,
                          const std::vector<PlannedRequest>& requests) const {
        PlannedRequest request;
        request.kind = RequestKind::Turn;
        request.owner = user;
        request.turn = turn;
        request.answerTokens = length(kUserAnswer);
        if (turn == 1)
            append(request.tokens, Part::UserSystem, 0, length(kUserSystem));
        append(request.tokens, Part::UserTurn, user * 1000 + turn, length(kUserTurn));
        request.follows = before;
        if (before >= 0)
            request.historyTokens = requests[static_cast<std::size_t>(before)].length();
        return request;
    }

private:
    const WorkloadSpec& m_spec;
};

void addSingles(Workload& out, const WorkloadSpec& spec, const Writer& writer) {
    std::vector<RequestKind> deck;
    Random random(mix(spec.seed, 0x6B696E64));
    const std::int32_t count = spec.requests > 0 ? spec.requests : kDefaultRequests;
    for (std::int32_t number = 0; number < count; ++number) {
        if (deck.empty()) {
            for (const auto& [kind, cards] : kDeck)
                deck.insert(deck.end(), static_cast<std::size_t>(cards), kind);
            for (std::size_t i = deck.size() - 1; i > 0; --i)
                std::swap(deck[i], deck[random.below(i + 1)]);
        }
        const RequestKind drawn = deck.back();
        deck.pop_back();
        const RequestKind kind = spec.name == "short"       ? RequestKind::Short
                                 : spec.name == "long-form" ? RequestKind::LongForm
                                 : spec.name == "long-doc"  ? RequestKind::LongDoc
                                                            : drawn;
        out.requests.push_back(writer.single(kind, number, static_cast<std::int32_t>(random.below(kSystems))));
    }
}

/// Turn by turn, so that with fewer places than users everybody's turn comes before anybody's next one.
void addTurns(Workload& out, const Writer& writer, std::int32_t from, std::int32_t to, std::int32_t phase,
              std::vector<std::int32_t>& newest) {
    for (std::int32_t turn = from; turn <= to; ++turn)
        for (std::int32_t user = 0; user < kUsers; ++user) {
            auto& before = newest[static_cast<std::size_t>(user)];
            PlannedRequest request = writer.turnOf(user, turn, before, out.requests);
            request.phase = phase;
            before = static_cast<std::int32_t>(out.requests.size());
            out.requests.push_back(std::move(request));
        }
}

void addFlood(Workload& out, const Writer& writer) {
    for (std::int32_t number = 0; number < kFlood; ++number) {
        PlannedRequest request;
        request.kind = RequestKind::Flood;
        request.owner = kUsers + number;
        request.phase = 1;
        request.answerTokens = writer.length(kFloodPrompt.answer);
        writer.append(request.tokens, Part::Flood, number, writer.length(kFloodPrompt.prompt));
        out.requests.push_back(std::move(request));
    }
}

std::int64_t blocks16(std::int64_t tokens) {
    return (tokens + 15) / 16;
}

bool isConversation(std::string_view name) {
    return name == "multi-turn" || name == "stampede";
}

Result<void> check(const WorkloadSpec& spec) {
    const auto& names = workloadNames();
    if (std::find(names.begin(), names.end(), spec.name) == names.end())
        return fail(ErrorCode::InvalidArgument,
                    "There is no workload '" + spec.name +
                        "'; choose short, long-form, long-doc, mix, multi-turn or stampede.");
    if (!(spec.scale >= 0.001 && spec.scale <= 1000))
        return fail(ErrorCode::InvalidArgument, "--scale must be from 0.001 to 1000.");
    if (spec.requests < 0 || spec.requests > kMostRequests)
        return fail(ErrorCode::InvalidArgument, "--requests must be from 1 to 1,000,000.");
    if (spec.requests > 0 && isConversation(spec.name))
        return fail(ErrorCode::InvalidArgument,
                    "The number of requests of " + spec.name + " is part of its definition; leave --requests out.");
    return {};
}

} // namespace

const char* requestKindName(RequestKind kind) {
    constexpr std::array kNames{"short", "long-form", "long-doc", "turn", "flood", "logged"};
    return kNames[static_cast<std::size_t>(kind)];
}

std::int64_t Workload::longestSequence() const {
    std::int64_t longest = 0;
    for (const PlannedRequest& request : requests)
        longest = std::max(longest, request.length());
    return longest;
}

std::int64_t Workload::answerTokens() const {
    return std::accumulate(requests.begin(), requests.end(), std::int64_t(0),
                           [](std::int64_t sum, const PlannedRequest& r) { return sum + r.answerTokens; });
}

bool Workload::openLoop() const {
    return !requests.empty() && requests.front().arrival >= 0;
}

const std::vector<std::string>& workloadNames() {
    static const std::vector<std::string> kNames{"short", "long-form", "long-doc", "mix", "multi-turn", "stampede"};
    return kNames;
}

Result<Workload> makeWorkload(const WorkloadSpec& spec) {
    if (auto ok = check(spec); !ok)
        return tl::unexpected(ok.error());
    Workload out;
    out.name = spec.name;
    out.scale = spec.scale;
    out.seed = spec.seed;
    const Writer writer(spec);
    if (!isConversation(spec.name)) {
        addSingles(out, spec, writer);
        return out;
    }
    std::vector<std::int32_t> newest(kUsers, -1);
    if (spec.name == "multi-turn") {
        addTurns(out, writer, 1, kTurns, 0, newest);
        return out;
    }
    addTurns(out, writer, 1, kTurnsBeforeFlood, 0, newest);
    const std::int64_t system = writer.length(kUserSystem);
    const std::int64_t own = out.requests.back().length() - system;
    addFlood(out, writer);
    const std::int64_t flood = out.requests.back().length();
    addTurns(out, writer, kTurnsBeforeFlood + 1, kTurnsBeforeFlood + 1, 2, newest);
    out.poolBlocks16 = blocks16(system) + kUsers * blocks16(own) + kFloodRoom * blocks16(flood);
    return out;
}

std::int64_t longestAt(std::string_view name, double scale) {
    if (isConversation(name)) {
        const std::int32_t turns = name == "multi-turn" ? kTurns : kTurnsBeforeFlood + 1;
        const std::int64_t conversation =
            scaled(kUserSystem, scale) + turns * (scaled(kUserTurn, scale) + scaled(kUserAnswer, scale));
        return name == "multi-turn"
                   ? conversation
                   : std::max(conversation, scaled(kFloodPrompt.prompt, scale) + scaled(kFloodPrompt.answer, scale));
    }
    const RequestKind kind = name == "short"       ? RequestKind::Short
                             : name == "long-form" ? RequestKind::LongForm
                                                   : RequestKind::LongDoc;
    const Lengths lengths = lengthsOf(kind, scale);
    return lengths.prompt + lengths.answer;
}

double largestScale(std::string_view name, std::int64_t tokens) {
    // Rounding makes the longest request a staircase of the scale, but never a falling one.
    std::int64_t low = 0, high = 1'000'000;
    while (low < high) {
        const std::int64_t middle = (low + high + 1) / 2;
        if (longestAt(name, static_cast<double>(middle) / 1000) <= tokens)
            low = middle;
        else
            high = middle - 1;
    }
    return static_cast<double>(low) / 1000;
}

} // namespace kvscope::bench
