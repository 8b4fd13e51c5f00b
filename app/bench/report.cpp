// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/report.h"

#include <algorithm>

#include "app/bench/random.h"
#include "engine/base/check.h"
#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

using json = nlohmann::ordered_json;

/// Figures of a row by the names that JSON and CSV share, in their order.
std::vector<std::pair<const char*, json>> fieldsOf(const Row& row) {
    const auto orNull = [](double value) { return value < 0 ? json(nullptr) : json(value); };
    return {
        {"stage", row.stage},
        {"concurrency", row.concurrency},
        {"throughput_tokens_s", row.throughput},
        {"ttft_p50_ms", row.ttftP50Ms},
        {"ttft_p95_ms", row.ttftP95Ms},
        {"itl_p50_ms", row.itlP50Ms},
        {"itl_p95_ms", row.itlP95Ms},
        {"kv_peak_bytes", row.kvPeakBytes},
        {"kv_mean_bytes", row.kvMeanBytes},
        {"held_requests_mean", row.heldMean},
        {"held_requests_peak", row.heldPeak},
        {"waste", row.waste},
        {"internal_fragmentation", row.internalFragmentation},
        {"external_fragmentation", orNull(row.externalFragmentation)},
        {"hit_rate", row.hitRate},
        {"computed_tokens", row.counters.computedTokens},
        {"refused", row.counters.refused},
        {"preempted", row.counters.preemptions},
        {"evicted_blocks", row.counters.evictions},
        {"requests", row.planned},
        {"finished", row.finished},
        {"seconds", row.seconds},
        {"steps", row.counters.steps},
        {"partial", row.partial},
    };
}

json kindsJson(const std::vector<KindFigures>& kinds) {
    json out = json::array();
    for (const KindFigures& kind : kinds)
        out.push_back({{"kind", requestKindName(kind.kind)},
                       {"turn", kind.turn},
                       {"requests", kind.requests},
                       {"prompt_tokens", kind.promptTokens},
                       {"reused_tokens", kind.reusedTokens},
                       {"computed_tokens", kind.computedTokens},
                       {"hit_rate", kind.hitRate()},
                       {"ttft_p50_ms", kind.ttftP50Ms}});
    return out;
}

json costJson(const Row& row) {
    const StepCost& cost = row.cost;
    return {{"weight_bytes", cost.weightBytes},     {"kv_bytes", cost.kvBytes},
            {"matrix_ops", cost.matrixOps},         {"attention_ops", cost.attentionOps},
            {"matrix_seconds", cost.matrixSeconds}, {"attention_seconds", cost.attentionSeconds},
            {"launch_seconds", cost.launchSeconds}, {"prefill_seconds", row.prefillSeconds}};
}

json stageJson(const StageFacts& facts) {
    const Stage& stage = facts.stage;
    return {{"stage", stage.name},
            {"allocator", stage.contiguous ? "contiguous" : "paged"},
            {"reserve", !stage.contiguous ? json(nullptr) : json(stage.reserveRequest ? "request" : "model")},
            {"k_dtype", stage.format.keyName()},
            {"v_dtype", stage.format.valueName()},
            {"block_size", stage.blockSize},
            {"prefix_caching", stage.prefixCaching},
            {"eviction", kv::evictionKindName(stage.eviction)},
            {"scheduling_policy", sched::schedulingPolicyName(stage.scheduling)},
            {"num_blocks", facts.numBlocks},
            {"bytes_per_block", facts.bytesPerBlock},
            {"bytes_per_token", facts.bytesPerToken},
            {"tail_bytes", facts.tailBytes},
            {"pool_gain", facts.poolGain}};
}

std::string csvCell(const json& value) {
    if (value.is_null())
        return {};
    if (!value.is_string())
        return value.dump();
    std::string text = value.get<std::string>();
    if (text.find_first_of(",\"\n") == std::string::npos)
        return text;
    for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
        text.insert(at, 1, '"');
    return '"' + text + '"';
}

std::string milliseconds(double value) {
    return formatted(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
}

std::string percent(double share) {
    return share < 0 ? "-" : formatted("%.1f", share * 100);
}

/// Columns that are as wide as they must be; the first is aligned left.
std::string aligned(const std::vector<std::vector<std::string>>& lines) {
    std::vector<std::size_t> widths;
    for (const auto& line : lines)
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths.resize(std::max(widths.size(), i + 1));
            widths[i] = std::max(widths[i], line[i].size());
        }
    std::string out;
    for (const auto& line : lines) {
        std::string text;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string gap(widths[i] - line[i].size(), ' ');
            text += i == 0 ? line[i] + gap : "  " + gap + line[i];
        }
        out += text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
    }
    return out;
}

void addTables(std::string& out, const Report& report) {
    if (!report.ratios.empty()) {
        out += "\nThroughput against the stage before it, median of pairs and 95 % interval:\n";
        for (const StageRatio& ratio : report.ratios)
            out += "  " + ratio.stage + " / " + ratio.before + " at " + std::to_string(ratio.concurrency) + ": " +
                   formatted("%.3f", ratio.median) + " (" + formatted("%.3f", ratio.low) + " to " +
                   formatted("%.3f", ratio.high) + ", " + std::to_string(ratio.pairs) + " pairs)\n";
    }
    if (!report.comparisons.empty()) {
        out += "\nBeside the field's figures:\n";
        for (const Comparison& each : report.comparisons)
            out += "  " + each.what + ": field " + each.field + ", here " + each.ours + "\n    " + each.reason + "\n";
    }
    if (!report.listed.empty()) {
        out += "\nNot in any average:\n";
        for (const ListedRequest& each : report.listed)
            out += "  " + each.stage + " at " + std::to_string(each.concurrency) + ", request " +
                   std::to_string(each.request) + ", " + requestStatusName(each.status) + ": " + each.problem + "\n";
    }
    for (const std::string& note : report.notes)
        out += "\n" + note + "\n";
}

} // namespace

json reportJson(const Report& report) {
    json out;
    out["workload"] = report.workload;
    out["scale"] = report.scale;
    out["clock"] = report.clock;
    out["kv_bytes"] = report.kvBytes;
    out["seed"] = report.seed;
    out["requests"] = report.requests;
    out["max_model_len"] = report.maxModelLen;
    out["complete"] = report.complete;
    json setting = json::object();
    for (const auto& [name, value] : report.setting)
        setting[name] = value;
    out["setting"] = std::move(setting);
    out["stages"] = json::array();
    for (const StageFacts& facts : report.stages)
        out["stages"].push_back(stageJson(facts));
    out["rows"] = json::array();
    for (const Row& row : report.rows) {
        json line = json::object();
        for (auto& [name, value] : fieldsOf(row))
            line[name] = std::move(value);
        line["by_kind"] = kindsJson(row.kinds);
        if (row.cost.seconds() > 0)
            line["steps_cost"] = costJson(row);
        out["rows"].push_back(std::move(line));
    }
    out["ratios"] = json::array();
    for (const StageRatio& ratio : report.ratios)
        out["ratios"].push_back({{"stage", ratio.stage},
                                 {"before", ratio.before},
                                 {"concurrency", ratio.concurrency},
                                 {"pairs", ratio.pairs},
                                 {"median", ratio.median},
                                 {"low", ratio.low},
                                 {"high", ratio.high}});
    out["comparisons"] = json::array();
    for (const Comparison& each : report.comparisons)
        out["comparisons"].push_back(
            {{"what", each.what}, {"field", each.field}, {"here", each.ours}, {"reason", each.reason}});
    out["not_averaged"] = json::array();
    for (const ListedRequest& each : report.listed)
        out["not_averaged"].push_back({{"stage", each.stage},
                                       {"concurrency", each.concurrency},
                                       {"request", each.request},
                                       {"status", requestStatusName(each.status)},
                                       {"problem", each.problem}});
    out["notes"] = report.notes;
    return out;
}

std::string reportCsv(const Report& report) {
    std::string out;
    const auto line = [&](const Row& row, bool names) {
        bool first = true;
        for (const auto& [name, value] : fieldsOf(row)) {
            out += (first ? "" : ",") + (names ? std::string(name) : csvCell(value));
            first = false;
        }
        out += '\n';
    };
    line(Row(), true);
    for (const Row& row : report.rows)
        line(row, false);
    return out;
}

std::string reportTable(const Report& report) {
    std::string out = report.workload + ", scale " + formatted("%g", report.scale) + ", " +
                      std::to_string(report.requests) + " requests, " + sizeText(report.kvBytes) +
                      " of KV cache in every stage, " + report.clock + " clock" +
                      (report.complete ? "" : "; interrupted, so not complete") + "\n";
    for (const auto& [name, value] : report.setting)
        out += "  " + name + ": " + value + "\n";
    out += "\n";
    std::vector<std::vector<std::string>> lines{{"stage", "at", "tokens/s", "TTFT p50", "p95 ms", "ITL p50", "p95 ms",
                                                 "held", "peak", "KV mean", "waste %", "hit %", "computed", "refused",
                                                 "preempted"}};
    for (const Row& row : report.rows)
        lines.push_back({row.stage + (row.partial ? " (cut)" : ""), std::to_string(row.concurrency),
                         formatted("%.1f", row.throughput), milliseconds(row.ttftP50Ms), milliseconds(row.ttftP95Ms),
                         milliseconds(row.itlP50Ms), milliseconds(row.itlP95Ms), formatted("%.2f", row.heldMean),
                         formatted("%.0f", row.heldPeak), sizeText(static_cast<std::uint64_t>(row.kvMeanBytes)),
                         percent(row.waste), percent(row.hitRate),
                         countText(static_cast<std::int64_t>(row.counters.computedTokens)),
                         std::to_string(row.counters.refused), std::to_string(row.counters.preemptions)});
    out += aligned(lines);
    addTables(out, report);
    return out;
}

StageRatio ratioOf(const std::vector<double>& values, const std::vector<double>& before) {
    KV_CHECK(!values.empty() && values.size() == before.size(), "ratios need pairs");
    std::vector<double> ratios;
    for (std::size_t i = 0; i < values.size(); ++i)
        ratios.push_back(before[i] > 0 ? values[i] / before[i] : 0);
    constexpr int kResamples = 2000;
    Random random(0x626F6F74);
    std::vector<double> medians, drawn(ratios.size());
    for (int i = 0; i < kResamples; ++i) {
        for (double& value : drawn)
            value = ratios[random.below(ratios.size())];
        medians.push_back(median(drawn));
    }
    StageRatio out;
    out.pairs = static_cast<int>(ratios.size());
    out.median = median(ratios);
    out.low = percentile(medians, 0.025);
    out.high = percentile(std::move(medians), 0.975);
    return out;
}

} // namespace kvscope::bench
