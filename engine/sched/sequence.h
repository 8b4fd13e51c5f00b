// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv/block_table.h"
#include "engine/kv/host_tier.h"
#include "engine/kv/miss_cause.h"

namespace kvscope::sched {

/// What the scheduler must know of a request: token ids and limits, no text and no sampling.
struct SequenceSpec {
    RequestId request;
    OwnerId owner;
    std::vector<TokenId> tokens;     ///< the prompt; at least one
    std::int64_t maxNewTokens = 128; ///< at least one
    std::uint64_t adapter = 0;       ///< part of every block key
    SequenceId forkOf;               ///< share the blocks of this live or retained sequence as far as the tokens agree
    bool retain = false;             ///< keep the table after the end for forks, until room is needed or it is dropped
    bool scores = false;    ///< only its prompt's logits are wanted: the prompt may be as long as a whole sequence
    bool pinPrompt = false; ///< pin the prompt's full blocks, once computed, until releasePins()
};

/// Waiting -> Reading -> Writing -> ended; Reading and Writing -> Waiting by preemption.
enum class SequencePhase : std::uint8_t {
    Waiting, ///< has no blocks
    Reading, ///< has blocks; known tokens are still being computed
    Writing, ///< everything known is computed up to the last token: one new token a step
};

enum class WaitingKind : std::uint8_t {
    None,
    Blocks,       ///< the next to be admitted, but needs more blocks than are available
    Places,       ///< all places of the batch are taken
    LongPrefills, ///< as many long prompts as may be are being read already
    Source,       ///< the sequence it forks from is still reading the part that they share
    Queue,        ///< others are before it, or this step's token budget is spent
};

struct WaitingReason {
    WaitingKind kind = WaitingKind::None;
    std::int32_t neededBlocks = 0; ///< Blocks: what stays back included
    std::int32_t availableBlocks = 0;
    std::int32_t places = 0;       ///< Places: how many there are
    std::int32_t longPrefills = 0; ///< LongPrefills: how many there may be
    bool fragmented = false;       ///< Blocks: enough are free, but they do not lie together (contiguous only)
    bool preempted = false;        ///< it was running and gave its blocks up ...
    OwnerId lentTo;                ///< ... to this owner; invalid when it gave way by itself
};

/// Every sequence ends exactly once, with one of these.
enum class EndReason : std::uint8_t {
    Stopped,   ///< the engine said so: end token or stop string
    MaxTokens, ///< maxNewTokens were drawn
    MaxLength, ///< the longest sequence that the model or the configuration allows
    PoolFull,  ///< it was alone, and the pool has no block left for its next token
    TooLong,   ///< the prompt can never be held; nothing was computed
    Cancelled,
    Failed, ///< the engine gave up (a step failed)
};
inline constexpr std::size_t kEndReasonCount = 7;
const char* endReasonName(EndReason reason); ///< "stopped", "max_tokens", ...
std::optional<EndReason> endReasonOf(std::string_view name);

/// What the cache did for one sequence. promptTokens = reusedTokens + computedTokens once the prompt is read.
struct SequenceUsage {
    std::int64_t reusedTokens = 0;     ///< prompt tokens served from existing blocks and never computed
    std::int64_t computedTokens = 0;   ///< prompt tokens computed, each once
    std::int64_t recomputedTokens = 0; ///< tokens computed again after a preemption
    std::int32_t newBlocks = 0;        ///< taken over its life
    std::int32_t blocksPeak = 0;
    std::int32_t preemptions = 0;
    std::int32_t swappedBlocks = 0; ///< given to the host tier by preemptions
    std::int32_t loadedBlocks = 0;  ///< filled from the host tier, by whoever they came there
    kv::MissCause cause;            ///< why not more was reused, at the first admission
};

/// Monotonic; -1 = has not happened.
struct SequenceTimes {
    Nanos arrival = -1;
    Nanos firstScheduled = -1;
    Nanos firstToken = -1;
    Nanos lastToken = -1;
    Nanos ended = -1;
};

/// Mean of the last 16 intervals between tokens; a preemption counts in the interval that it stretches.
class TokenIntervals {
public:
    void add(Nanos interval);
    Nanos mean() const; ///< -1 = none yet

private:
    std::array<Nanos, 16> m_ring{};
    std::uint32_t m_count = 0;
    Nanos m_sum = 0;
};

/// What the cache holds of a waiting sequence, as far as the order of admission wants to know (AdmissionOrder).
struct PrefixLookup {
    std::uint64_t version = 0; ///< of the cache when it was asked; 0 = never
    std::int64_t cached = 0;   ///< tokens
    std::int64_t rank = 0;     ///< smaller is admitted earlier
};

/// One preemption where there is a host tier: what was decided by which estimates, and what it came to.
struct Preemption {
    SequenceId sequence;
    RequestId request;
    bool swaps = false;        ///< else its tokens are read again
    std::int64_t tokens = 0;   ///< that it had computed
    std::int32_t blocks = 0;   ///< of those
    Nanos estimatedStore = 0;  ///< to store
    Nanos estimatedSwap = 0;   ///< to store and to load
    Nanos estimatedRead = 0;   ///< without a swap (SwapEstimate::withoutNanos); 0 = the rates were not known yet
    std::int64_t restored = 0; ///< tokens that were loaded, or read again; the rest was still cached
    Nanos expected = 0;        ///< estimated when it came back: what was decided, for these tokens alone
    Nanos took = 0;            ///< storing and loading, or loading and its share of the steps that read again
};

/// The state of one request. Only Scheduler changes it.
struct Sequence {
    SequenceId id; ///< ascending in order of arrival
    SequenceSpec spec;
    SequencePhase phase = SequencePhase::Waiting;
    std::vector<TokenId> tokens; ///< prompt and drawn tokens: everything known
    std::int64_t promptTokens = 0;
    std::int64_t computed = 0;     ///< leading tokens whose K/V is in the table's blocks
    std::int64_t everComputed = 0; ///< the most that `computed` ever was
    kv::BlockTable table;
    WaitingReason waiting;
    bool admittedBefore = false;
    kv::SwappedTable swapped;             ///< waiting: what it left in the host tier
    std::optional<Preemption> preemption; ///< its last one, until all is as it was before
    bool cancelled = false;               ///< ends at the next step boundary
    bool pinned = false;
    bool longPrefill = false;        ///< admitted with more tokens to read than the threshold of long prompts
    std::int64_t clockAtArrival = 0; ///< tokens that the scheduler had computed when it came
    PrefixLookup lookup;
    std::uint64_t lastTurn = 0; ///< ascending over all shares of all steps
    SequenceUsage usage;
    SequenceTimes times;
    TokenIntervals intervals;

    std::int64_t known() const { return static_cast<std::int64_t>(tokens.size()); }
    std::int64_t generated() const { return known() - promptTokens; }
    std::int64_t uncomputed() const { return known() - computed; }
};

/// How a sequence ended.
struct EndedSequence {
    SequenceId id;
    RequestId request;
    OwnerId owner;
    EndReason reason = EndReason::Failed;
    std::int64_t neededTokens = 0;    ///< TooLong, PoolFull: tokens that would have to be held ...
    std::int64_t availableTokens = 0; ///< ... and how many can be
    std::int64_t promptTokens = 0;
    std::int64_t generatedTokens = 0;
    SequenceUsage usage;
    SequenceTimes times;
    std::int32_t blocksAvailableAfter = 0;
    std::int32_t blocksCachedAfter = 0;
};

} // namespace kvscope::sched
