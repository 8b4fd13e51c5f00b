// SPDX-License-Identifier: GPL-3.0-or-later
//
// The two interfaces that the window knows. The engine thread is one implementation; the player of recorded sessions
// implements CacheSource; a remote server will implement both.
//
// Thread: all calls come from one consumer thread (the GUI thread, or the CLI's main thread). Nothing here waits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/api/request.h"
#include "engine/kv/window_policy.h"
#include "engine/metrics/block_map_snapshot.h"
#include "engine/metrics/step_sample.h"

namespace kvscope::api {

// ---- chat events, in order per request: Queued, [Waiting|Prefill|Preemption]*, Tokens*, Finished ----

struct QueuedEvent {
    RequestId id;
    std::int64_t promptTokens = 0;
    /// Where each dialog message lies in the prompt: token range [begin, end) of messages[i], template marks included.
    std::vector<std::pair<std::int64_t, std::int64_t>> messageRanges;
    std::vector<DialogAdaptation> adaptations{}; ///< what was done to a dialog so that the template could take it
    bool opensThought =
        false; ///< the prompt ends inside of a thought (engine/base/thinking.h): the answer begins in it
    /// Of an answer that is written on: what it has. The ids are the end of the prompt, the text is what they decode
    /// to, and TokensEvents bring only what comes after it.
    std::vector<TokenId> givenTokens{};
    std::string givenText{};
    WindowCut cut{}; ///< their ranges are empty
};
struct WaitingEvent {
    RequestId id;
    std::int32_t neededBlocks = 0, availableBlocks = 0; ///< 0/0: waits for a free place, see runningLimit
    std::int32_t runningLimit = 0;                      ///< > 0: all places are taken
    std::int32_t longPrefillLimit = 0;                  ///< > 0: that many long prompts are being read, no more may be
    bool preempted = false;                             ///< it was running and gave its blocks up
    OwnerId lentTo;                                     ///< to whom, when preempted
};
struct PrefillEvent {
    RequestId id;
    std::int64_t reused = 0, done = 0, total = 0; ///< tokens; done includes reused
    double secondsLeft = -1;                      ///< about; -1 = not known yet
};
/// A preemption is over: the sequence has again what it had. Only where there is a host tier.
struct PreemptionEvent {
    RequestId id;
    bool swapped = false;                                 ///< to the host tier and back; else read again
    std::int64_t tokens = 0;                              ///< that it had computed
    std::int32_t blocks = 0;                              ///< of those
    double estimatedSwapMs = 0, estimatedRecomputeMs = 0; ///< what was compared when it was decided
    std::int64_t restored = 0; ///< tokens that had to be loaded or read again; the rest was still cached
    double expectedMs = 0;     ///< estimated when it came back: what was decided, for these tokens alone
    double tookMs = 0;         ///< what was decided
};
/// Text that became certain: whole UTF-8 characters only, nothing that a stop string could still swallow.
struct TokensEvent {
    RequestId id;
    std::string text;
    std::vector<TokenId> tokens;     ///< drawn since the last event (may be ahead of the text)
    std::int64_t sequenceLength = 0; ///< tokens of the sequence: the context meter
};
struct FinishedEvent {
    Answer answer;
};

// ---- model and engine events ----

struct LoadingEvent {
    std::string path;
    double fraction = 0; ///< 0..1
};
/// The template that chats go through, and how it came to be that one.
struct TemplateInfo {
    std::string name;                 ///< of a known template; empty = the file's own
    std::string problem;              ///< sentence: why the file's own cannot be used; empty = it can
    bool guessed = false;             ///< nobody chose it: the vocabulary suggests it
    std::string preview;              ///< the prompt of one user message "Hello"
    std::vector<std::string> choices; ///< names that can be chosen
};
struct ModelInfo {
    std::string path, name, architecture, quantization;
    std::string fingerprint; ///< XXH3-128 hex
    std::int32_t layers = 0;
    std::int64_t contextLength = 0, maxModelLen = 0;
    std::uint64_t weightsBytes = 0, fileBytes = 0;
    std::uint64_t kvBytesPerToken = 0, bytesPerBlock = 0;
    std::uint64_t tailBytes = 0; ///< of the f16 blocks being filled, where the KV cache is quantized
    /// Layers that look back over a window only are a group with blocks of its own; 0 = there is none.
    std::int32_t windowLayers = 0, window = 0, windowBlocks = 0;
    std::uint64_t bytesPerWindowBlock = 0;
    /// Of all blocks and tails.
    std::uint64_t poolBytes() const {
        return tailBytes + bytesPerBlock * static_cast<std::uint64_t>(numBlocks) +
               bytesPerWindowBlock * static_cast<std::uint64_t>(windowBlocks);
    }
    /// The host tier: blocks that it holds, and its memory; 0 = there is none.
    std::int32_t hostBlocks = 0;
    std::uint64_t hostBytes = 0;
    /// "f16", "fp8_e4m3", "int4/rotated", ...: form of cached keys and values.
    std::string keyDtype, valueDtype;
    std::vector<std::string> warnings; ///< sentences about choices that the model takes badly
    std::int32_t blockSize = 0, numBlocks = 0, maxSequences = 0;
    kv::WindowPolicy windowPolicy = kv::WindowPolicy::Stop;
    std::string poolRule;         ///< what decided the number of blocks: "8 x max-model-len", "--num-blocks", ...
    std::string backend;          ///< "CPU, 2 threads, AVX-512 (VNNI)"
    std::string backendReason;    ///< why this one, the rest of "CPU: ...": "no CUDA driver found"
    bool hasChatTemplate = false; ///< chats are possible
    TemplateInfo chatTemplate;    ///< empty where they are not
    double loadMs = 0;
};
struct LoadedEvent {
    ModelInfo info;
};
struct LoadFailedEvent {
    std::string path;
    Error error;
};
struct UnloadedEvent {};
/// A broken invariant: every running request has ended with an error, the engine does nothing until it is restarted.
struct FaultedEvent {
    std::string message;
};
/// The model file was truncated or replaced after loading; answers are not affected (weights were copied).
struct FileChangedEvent {
    std::string path;
    std::string message;
};

/// Answer to `queryBlock`: what the hover card shows.
struct BlockDetailEvent {
    BlockId block;
    kv::BlockState state = kv::BlockState::Empty;
    std::int32_t fill = 0;
    std::vector<OwnerId> owners; ///< sequences that reference it, or the last one that did
    std::int32_t references = 0;
    std::int64_t firstPosition = -1; ///< position of its first token in its sequence
    std::vector<TokenId> tokens;
    std::string text; ///< decoded tokens
    std::string key;  ///< hex of the 128-bit key, empty while unsealed
    Nanos lastRead = 0;
};
/// Answer to `queryOwner`: the blocks of an owner's newest sequence, in order, as far as they are still there.
struct OwnerBlocksEvent {
    OwnerId owner;
    std::int64_t tokens = 0;     ///< length of that sequence
    std::vector<BlockId> blocks; ///< invalid id = evicted
    std::int32_t blockSize = 0;
};

/// Another template was chosen for the loaded model; running answers are not affected.
struct TemplateEvent {
    std::string path; ///< of the model
    TemplateInfo info;
};
/// Answer to `queryPrompt`: the tokens that a dialog becomes, as they would be computed now.
struct PromptTokensEvent {
    struct Token {
        TokenId id = -1;
        std::string piece;    ///< bytes; valid UTF-8 only where a token holds whole characters
        bool special = false; ///< control or unknown token
    };
    std::int64_t key = 0; ///< of the question
    std::vector<Token> tokens;
    std::vector<std::pair<std::int64_t, std::int64_t>> messageRanges; ///< as in QueuedEvent
    std::optional<TokenId> beginToken;                                ///< of the vocabulary
    std::optional<Error> error;                                       ///< then there are no tokens
};
/// A window that would hold a prompt, and what reloading the model for it takes.
struct LargerWindow {
    std::int64_t maxModelLen = 0;
    std::int64_t numBlocks = 0; ///< for EngineConfig; 0 = its rule gives enough
    std::uint64_t poolBytes = 0;
    bool unloadFirst = false; ///< there is no memory for both at once: the old one has to go before
};
/// Answer to `measure`: what a prompt would need now. Nothing was run and nothing has changed.
struct MeasuredEvent {
    RequestId id;
    std::optional<Error> error;              ///< it cannot be encoded; the figures are 0
    std::int64_t promptTokens = 0;           ///< without what would be left out
    WindowCut cut;                           ///< what would be left out if it were sent now
    std::int64_t cachedTokens = 0;           ///< of them, served from the cache if it were sent now
    std::int32_t newBlocks = 0;              ///< for the rest and the first token of the answer
    double seconds = -1;                     ///< about, to read the rest; -1 = not known yet
    std::int64_t window = 0, poolTokens = 0; ///< what limits it: the longest sequence, and all the slots there are
    std::int64_t limit = 0;                  ///< most tokens of a sequence with both
    std::optional<LargerWindow> larger;      ///< where it does not fit, and a reload would help
    std::string whyNotLarger;                ///< where it would not: one sentence
    std::int64_t needed() const { return promptTokens + 1; } ///< with the first token of an answer
    bool fits() const { return error || needed() <= limit; }
};

using Event = std::variant<QueuedEvent, WaitingEvent, PrefillEvent, PreemptionEvent, TokensEvent, FinishedEvent,
                           LoadingEvent, LoadedEvent, LoadFailedEvent, UnloadedEvent, FaultedEvent, FileChangedEvent,
                           BlockDetailEvent, OwnerBlocksEvent, TemplateEvent, PromptTokensEvent, MeasuredEvent>;

/// One row of the live sequence table. Idle: the owner has no sequence now; the blocks of its last one went back to the
/// cache, where the next finds them until they are evicted.
enum class SequenceState { Waiting, Reading, Writing, Idle };
inline constexpr int kSequenceStateCount = 4;
struct SequenceRow {
    RequestId request; ///< invalid when idle
    OwnerId owner;
    SequenceState state = SequenceState::Waiting;
    std::int64_t tokens = 0, promptTokens = 0, computedTokens = 0;
    std::int32_t blocks = 0, sharedBlocks = 0;
    std::int32_t cachedBlocks = 0;  ///< idle: leading ones of `blocks` that are still there
    std::int64_t cachedPrefix = 0;  ///< tokens reused
    double ttftMs = -1, itlMs = -1; ///< -1 = none yet; itl = mean of the last 16
    std::int32_t neededBlocks = 0, availableBlocks = 0, runningLimit = 0, longPrefillLimit = 0; ///< waiting reason
};

/// Answers that a source can give; what is missing is shown as "not reported".
struct CacheCapabilities {
    bool blockMap = false;
    bool sequences = false;
    bool blockDetail = false;
};

/// Somebody who answers chat requests.
class ChatSource {
public:
    virtual ~ChatSource() = default;
    virtual void submit(Request request) = 0;
    /// Idempotent; unknown or ended ids are ignored. The request ends with FinishReason::Cancelled.
    virtual void cancel(RequestId id) = 0;
    /// What the request's prompt would need; answers MeasuredEvent. The id is the caller's, and names nothing else.
    virtual void measure(Request request) = 0;
    /// Next event of any kind, in order; none = nothing new.
    virtual std::optional<Event> nextEvent() = 0;
};

/// Somebody whose KV cache can be watched.
class CacheSource {
public:
    virtual ~CacheSource() = default;
    virtual CacheCapabilities capabilities() const = 0;
    /// Next sample; false = nothing new.
    virtual bool nextSample(metrics::StepSample& sample) = 0;
    virtual bool nextMemorySample(metrics::MemorySample& sample) = 0;
    virtual std::uint64_t droppedSamples() const = 0;
    /// The newest map if there is a newer one than the one returned last, else nullptr. Valid until the next call.
    virtual const metrics::BlockMapSnapshot* takeBlockMap() = 0;
    /// The newest table if there is a newer one, else nullptr. Valid until the next call.
    virtual const std::vector<SequenceRow>* takeSequences() = 0;
    /// Ask for details; the answer comes as BlockDetailEvent / OwnerBlocksEvent through ChatSource::nextEvent.
    virtual void queryBlock(BlockId block) = 0;
    virtual void queryOwner(OwnerId owner) = 0;
};

} // namespace kvscope::api
