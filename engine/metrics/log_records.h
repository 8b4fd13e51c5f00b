// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a recorded session consists of. One schema for memory, disk, export and player; log_fields.h names the fields
// of each record once for all formats. All times are monotonic nanoseconds of the session's clock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/metrics/block_map_snapshot.h"
#include "engine/metrics/step_sample.h"

namespace kvscope::metrics {

/// Version of the schema that this program writes. A reader refuses a newer major version by name and ignores fields
/// and record types that it does not know.
inline constexpr int kLogVersionMajor = 1;
inline constexpr int kLogVersionMinor = 0;
inline constexpr const char* kLogFormat = "kvscope-log";

/// A JSON object as text; written into logs as JSON, not as a string.
struct JsonText {
    std::string text;
    bool operator==(const JsonText&) const = default;
};

/// The first record of every log.
struct LogHeader {
    int versionMajor = kLogVersionMajor;
    int versionMinor = kLogVersionMinor;
    std::string program; ///< "KVScope 0.1.0"
    std::string session; ///< id of the session, unique in its data folder
    std::string modelName;
    std::string modelFingerprint;
    std::string backend;
    JsonText configuration;      ///< the engine options as they were in force
    Nanos clockOrigin = 0;       ///< monotonic time at which the session began
    std::int64_t wallOrigin = 0; ///< the same moment as milliseconds since the Unix epoch

    bool operator==(const LogHeader&) const = default;
};

/// A request as submitted, with every sampling setting. Its text is a TextRecord, which logs leave out by default.
struct RequestRecord {
    Nanos time = 0;
    RequestId request;
    OwnerId owner;
    std::string prompt;        ///< "dialog", "text", "tokens", "fork"
    std::int32_t messages = 0; ///< of a dialog
    RequestId forkOf;
    std::int64_t forkAt = -1;
    std::uint64_t adapter = 0;
    double temperature = 0;
    std::int32_t topK = 0;
    double topP = 1;
    double minP = 0;
    double repeatPenalty = 1;
    double presencePenalty = 0;
    double frequencyPenalty = 0;
    std::uint64_t seed = 0;
    std::int32_t maxTokens = 0;
    std::int32_t logprobs = 0;
    bool ignoreEos = false;
    std::vector<std::string> stop;
    std::vector<std::pair<TokenId, double>> logitBias;

    bool operator==(const RequestRecord&) const = default;
};

enum class EventKind : std::uint8_t {
    Queued,
    Waiting,
    Prefill,
    Faulted,
    FileChanged,
    SessionEnded,
    Preemption,
};
inline constexpr int kEventKindCount = 7;
const char* eventKindName(EventKind kind); ///< "queued", "waiting", ... as written

/// Something that happened to a request or to the engine. Single tokens are left out: the step samples count them and
/// the sequence tables say whose they were.
/// -1, 0 or "" = does not apply to this kind.
struct EventRecord {
    Nanos time = 0;
    EventKind kind = EventKind::Queued;
    RequestId request;
    std::int64_t promptTokens = 0;                                                              ///< queued
    std::int32_t neededBlocks = 0, availableBlocks = 0, runningLimit = 0, longPrefillLimit = 0; ///< waiting, and why
    bool preempted = false;
    OwnerId lentTo;
    std::int64_t reusedTokens = 0, doneTokens = 0, totalTokens = 0; ///< prefill
    std::string message;                                            ///< faulted, file_changed
    bool swapped = false;                                           ///< preemption, and all that follows
    std::int32_t blocks = 0;
    std::int64_t tokens = 0;
    double estimatedSwapMs = 0, estimatedRecomputeMs = 0;
    std::int64_t restored = 0;
    double expectedMs = 0, tookMs = 0;

    bool operator==(const EventRecord&) const = default;
};

/// The end of a request: what it came to, what the cache did for it and how long it took.
struct ReceiptRecord {
    Nanos time = 0;
    RequestId request;
    OwnerId owner;
    std::string reason; ///< "stop", "length", "cancelled", "error"
    std::string error;  ///< code, when reason is "error"
    std::int64_t promptTokens = 0, reusedTokens = 0, computedTokens = 0, answerTokens = 0;
    std::int32_t newBlocks = 0, preemptions = 0, swappedBlocks = 0, loadedBlocks = 0, blocksPeak = 0;
    std::int32_t blocksAvailableAfter = 0, blocksCachedAfter = 0, blockSize = 0;
    std::string missReason;
    std::int64_t divergingToken = -1;
    double queueMs = 0, prefillMs = 0, decodeMs = 0, ttftMs = 0, e2eMs = 0;

    bool operator==(const ReceiptRecord&) const = default;
};

/// `count` consecutive blocks that look the same.
struct CellRun {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    BlockCell cell;
};

/// A change of the block map. A key frame covers every block and stands on its own; the others hold what changed since
/// the record before.
struct BlockRecord {
    Nanos time = 0;
    std::uint64_t epoch = 0;
    bool key = false;
    std::int32_t blockSize = 0;
    std::uint32_t numBlocks = 0;
    bool ownersChanged = false;  ///< always in a key frame
    std::vector<OwnerId> owners; ///< when they changed: resolves the cells' small owner numbers
    std::vector<CellRun> runs;
};

/// One row of the sequence table.
struct SequenceEntry {
    RequestId request;
    OwnerId owner;
    std::int32_t state = 0; ///< api::SequenceState
    std::int64_t tokens = 0, promptTokens = 0, computedTokens = 0;
    std::int32_t blocks = 0, sharedBlocks = 0, cachedBlocks = 0;
    std::int64_t cachedPrefix = 0;
    double ttftMs = -1, itlMs = -1;
    std::int32_t neededBlocks = 0, availableBlocks = 0, runningLimit = 0, longPrefillLimit = 0;

    bool operator==(const SequenceEntry&) const = default;
};

/// The whole table at one moment, written when it changed.
struct SequencesRecord {
    Nanos time = 0;
    std::vector<SequenceEntry> rows;

    bool operator==(const SequencesRecord&) const = default;
};

/// What was said. Kept in memory only, written to a file only where the user asked for it: token ids count as text.
struct TextRecord {
    Nanos time = 0;
    RequestId request;
    std::string part; ///< "system", "user", "assistant", "prompt" (raw), "answer"
    std::string text;
    std::vector<TokenId> tokens;

    bool operator==(const TextRecord&) const = default;
};

using LogRecord = std::variant<StepSample, MemorySample, RequestRecord, EventRecord, ReceiptRecord, BlockRecord,
                               SequencesRecord, TextRecord>;

inline Nanos timeOf(const LogRecord& record) {
    return std::visit([](const auto& r) { return r.time; }, record);
}

} // namespace kvscope::metrics
