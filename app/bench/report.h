// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a benchmark found, and how it is written down: table, JSON, CSV, one HTML page. A report that was interrupted is
// a valid one: `complete` says so, and so does each row that was cut.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/bench/measure.h"
#include "app/bench/stage.h"

namespace kvscope::bench {

/// A stage as it was laid out.
struct StageFacts {
    Stage stage;
    std::int64_t numBlocks = 0;
    std::uint64_t bytesPerBlock = 0; ///< sealed
    std::int32_t tailSlots = 0;      ///< blocks being filled, where the dtypes are quantized: one a sequence
    std::uint64_t tailBytes = 0;     ///< of all of them together, part of the pool
    double bytesPerToken = 0;        ///< sealed, scales counted
    double poolGain = 1;             ///< slots for the same bytes against 16-bit, tails and scales counted
};

/// A request that is in no average, and why.
struct ListedRequest {
    std::string stage;
    std::int32_t concurrency = 0, request = 0;
    RequestStatus status = RequestStatus::Failed;
    std::string problem;
};

/// Throughput of a stage against the one before it, over interleaved repetitions at one concurrency.
struct StageRatio {
    std::string stage, before;
    std::int32_t concurrency = 0;
    int pairs = 0;
    double median = 0, low = 0, high = 0; ///< with a bootstrap 95 % interval
};

/// What a stage adds, beside the field's figure.
struct Comparison {
    std::string what, field, ours, reason;
};

struct Report {
    std::string workload;
    double scale = 1;
    std::uint64_t seed = 0;
    std::string clock; ///< "real", "virtual"
    std::uint64_t kvBytes = 0;
    std::int32_t requests = 0;
    std::int64_t maxModelLen = 0;
    bool complete = false;
    std::vector<std::pair<std::string, std::string>> setting; ///< model, device, backend ... as name and figure
    std::vector<StageFacts> stages;
    std::vector<Row> rows;
    std::vector<StageRatio> ratios;
    std::vector<Comparison> comparisons;
    std::vector<ListedRequest> listed;
    std::vector<std::string> notes; ///< sentences
};

nlohmann::ordered_json reportJson(const Report& report);
std::string reportCsv(const Report& report);   ///< rows, first line = names as in the JSON
std::string reportTable(const Report& report); ///< for a terminal
/// One page, nothing loaded from elsewhere, light or dark as the reader's desktop is.
std::string reportHtml(const Report& report);

/// The ratios of paired values, their median and a bootstrap 95 % interval of it (2,000 resamples, fixed seed).
/// `values` and `before` have the same length, at least one.
StageRatio ratioOf(const std::vector<double>& values, const std::vector<double>& before);

} // namespace kvscope::bench
