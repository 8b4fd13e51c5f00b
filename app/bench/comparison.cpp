// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/comparison.h"

#include <algorithm>

#include "app/bench/bench_run.h"
#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

std::string percent(double share) {
    return formatted("%.0f %%", share * 100);
}

/// A stage with its row at the highest concurrency that was run.
struct Found {
    const StageFacts* facts = nullptr;
    const Row* row = nullptr;
    explicit operator bool() const { return row != nullptr; }
};

template <class Wanted> Found find(const Report& report, Wanted&& wanted) {
    for (const StageFacts& facts : report.stages) {
        if (!wanted(facts.stage))
            continue;
        Found found{&facts, nullptr};
        for (const Row& row : report.rows)
            if (row.stage == facts.stage.name && !row.partial && row.finished > 0 &&
                (!found.row || row.concurrency > found.row->concurrency))
                found.row = &row;
        if (found.row)
            return found;
    }
    return {};
}

/// The stages that the field's figures speak of, as far as they were run.
struct Steps {
    Found baseline, quantized, prefix, beforePrefix;
};

Steps stepsOf(const Report& report) {
    Steps steps;
    steps.baseline = find(report, [](const Stage& s) { return s.contiguous; });
    steps.quantized =
        find(report, [](const Stage& s) { return !s.contiguous && !s.prefixCaching && s.format.quantized(); });
    steps.prefix = find(report, [](const Stage& s) { return !s.contiguous && s.prefixCaching; });
    if (steps.prefix) {
        const kernels::KvFormat format = steps.prefix.facts->stage.format;
        steps.beforePrefix =
            find(report, [&](const Stage& s) { return !s.contiguous && !s.prefixCaching && s.format == format; });
    }
    return steps;
}

/// As a rule somebody waits for room: what is missing to all that are in flight is more than one that is being read.
bool waits(const Row& row) {
    return row.heldMean < row.concurrency - 1.5;
}

Comparison capacity(const Steps& steps) {
    const Row &from = *steps.baseline.row, &to = *steps.quantized.row;
    Comparison out{"Requests held at once, paging and quantized KV",
                   "4 -> 14",
                   formatted("%.1f", from.heldMean) + " -> " + formatted("%.1f", to.heldMean) + " (peak " +
                       formatted("%.0f", to.heldPeak) + ")",
                   {}};
    out.reason = "The bytes are those of 4 of the longest requests. Held is a mean over time of requests whose whole "
                 "prompt is computed: at the baseline one place is often still being read. Paged, a request takes what "
                 "it is, and " +
                 kvFormatName(steps.quantized.facts->stage.format) + " gives " +
                 formatted("%.2f", steps.quantized.facts->poolGain) + " x the slots.";
    if (to.heldMean > 0.85 * to.concurrency)
        out.reason += " The loop keeps only " + std::to_string(to.concurrency) +
                      " requests in flight, so more cannot be held; bench --capacity sends 64.";
    return out;
}

Comparison firstToken(const Steps& steps) {
    const Row &from = *steps.baseline.row, &to = *steps.prefix.row;
    Comparison out{"First token, baseline to prefix cache (median)",
                   "1.8 -> 0.9 s",
                   formatted("%.2f", from.ttftP50Ms / 1000) + " -> " + formatted("%.2f s", to.ttftP50Ms / 1000),
                   {}};
    out.reason = "With " + std::to_string(from.concurrency) + " requests in flight the baseline holds " +
                 formatted("%.1f", from.heldMean);
    if (waits(from))
        out.reason += "; the others wait for an extent, and that wait is nearly all of their first token";
    out.reason +=
        ". The prefix stage holds " + formatted("%.1f", to.heldMean) + " and finds " + percent(to.hitRate) +
        " of the prompt tokens cached" +
        (to.ttftP50Ms < from.ttftP50Ms ? std::string(", so that little but computing the rest is left.")
                                       : "; what that saves is less than what reading beside more answers costs.");
    return out;
}

Comparison prefixGain(const Steps& steps) {
    const Row &from = *steps.beforePrefix.row, &to = *steps.prefix.row;
    const double gain = to.throughput / from.throughput - 1;
    Comparison out{"Tokens per second, prefix cache alone", "+40 to 60 %", formatted("%+.0f %%", gain * 100), {}};
    const double share = from.cost.seconds() > 0 ? from.prefillSeconds / from.cost.seconds() : 0;
    if (share > 0) {
        const double bound = 1 / (1 - share * to.hitRate) - 1;
        out.reason = "Reading prompts takes " + percent(share) + " of the time of the stage before, and " +
                     percent(to.hitRate) + " of the prompt tokens are found: a hit that cost nothing would give " +
                     formatted("%+.0f %%", bound * 100) + " in the same batches." +
                     (gain > bound ? " More room for answers in each batch adds to it." : "") +
                     (gain * 100 < 40 ? " The field's figure needs a load that reads more and writes less." : "");
    } else {
        out.reason = percent(to.hitRate) + " of the prompt tokens were found in the cache.";
    }
    return out;
}

Comparison memory(const Steps& steps, const StageFacts& plain) {
    const StageFacts& facts = *steps.quantized.facts;
    const double perToken = 1 - facts.bytesPerToken / plain.bytesPerToken;
    Comparison out{"KV memory of " + kvFormatName(facts.stage.format) + " against 16 bits",
                   "-40 to 45 % (fp8)",
                   formatted("-%.1f %% a token", perToken * 100) +
                       formatted(", -%.1f %% with tails", (1 - 1 / facts.poolGain) * 100),
                   {}};
    if (facts.stage.format.keys == kernels::KvDType::Fp8E4M3 && facts.stage.format.values == kernels::KvDType::Fp8E4M3)
        out.reason = "fp8 needs no scales in a block (one per layer and head), so a sealed token takes half. ";
    out.reason += "The blocks being filled stay 16-bit: their tails take " + sizeText(facts.tailBytes) +
                  " of the pool. Every stage has the same bytes, so the saving shows as " +
                  formatted("%.2f", facts.poolGain) + " x the slots.";
    return out;
}

/// Every stage against the first one, at the highest concurrency.
void addAgainstFirst(Report& report) {
    const auto named = [&](const StageFacts& facts) {
        return find(report, [&](const Stage& stage) { return stage.name == facts.stage.name; });
    };
    if (report.stages.empty())
        return;
    const Found first = named(report.stages.front());
    if (!first || first.row->throughput <= 0 || first.row->heldMean <= 0)
        return;
    for (std::size_t i = 1; i < report.stages.size(); ++i) {
        const Found each = named(report.stages[i]);
        if (!each || each.row->concurrency != first.row->concurrency)
            continue;
        report.notes.push_back("At concurrency " + std::to_string(each.row->concurrency) + " " + each.row->stage +
                               " writes " + formatted("%.2f", each.row->throughput / first.row->throughput) +
                               " x the tokens per second of " + first.row->stage + " and holds " +
                               formatted("%.2f", each.row->heldMean / first.row->heldMean) + " x the requests, with " +
                               percent(each.row->kvMeanBytes / static_cast<double>(report.kvBytes)) +
                               " of the bytes in use on average" +
                               (waits(*each.row) ? ": a prompt that waits for room lets what is free lie idle." : "."));
    }
}

/// What the stages of a workload with several eviction policies found again.
void addReturning(Report& report) {
    for (const Row& row : report.rows) {
        const auto last = std::find_if(row.kinds.rbegin(), row.kinds.rend(),
                                       [](const KindFigures& kind) { return kind.kind == RequestKind::Turn; });
        if (last == row.kinds.rend() || last->turn < 2)
            continue;
        report.notes.push_back("Stage " + row.stage + " at " + std::to_string(row.concurrency) + ": in turn " +
                               std::to_string(last->turn) + " the users found " + percent(last->hitRate()) +
                               " of their prompts cached and computed " + countText(last->computedTokens) + " of " +
                               countText(last->promptTokens) + " prompt tokens.");
    }
}

} // namespace

std::vector<std::pair<std::string, std::string>> settingOf(const BenchPlan& plan, const std::string& backend) {
    const BenchRequest& request = plan.request;
    const KvRows rows = request.model.kvRows();
    std::vector<std::pair<std::string, std::string>> out;
    out.emplace_back("model", request.model.name + ", " + sizeText(static_cast<std::uint64_t>(request.weightBytes)) +
                                  " of weights, " +
                                  countText(static_cast<std::int64_t>(plainBlockBytes(rows, 16) / 16)) +
                                  " KV bytes a token in 16 bits");
    out.emplace_back("max_model_len", countText(plan.maxModelLen) + " tokens");
    if (request.virtualClock) {
        const Device& device = request.device;
        out.emplace_back("device", device.name + ", effective " + formatted("%.4g TB/s", device.bytesPerSecond / 1e12) +
                                       ", " + formatted("%.4g TFLOPS", device.opsPerSecond / 1e12) + ", " +
                                       std::to_string(device.launchesPerLayer) + " launches a layer of " +
                                       formatted("%.3g us", device.launchSeconds * 1e6));
        out.emplace_back(
            "step_tokens",
            std::to_string(request.engine.maxBatchedTokens > 0 ? request.engine.maxBatchedTokens : kVirtualStepTokens) +
                " at most");
    } else if (!backend.empty()) {
        out.emplace_back("backend", backend);
    }
    out.emplace_back("watermark", formatted("%g", request.engine.watermark));
    if (request.repeat > 1)
        out.emplace_back("repetitions", std::to_string(request.repeat) + ", stages interleaved; rows are medians");
    return out;
}

Row medianRow(const std::vector<Row>& rows) {
    Row out = rows.front();
    const auto of = [&](auto member) {
        std::vector<double> values;
        for (const Row& row : rows)
            values.push_back(static_cast<double>(row.*member));
        return median(std::move(values));
    };
    for (double Row::*member : {&Row::seconds, &Row::throughput, &Row::ttftP50Ms, &Row::ttftP95Ms, &Row::itlP50Ms,
                                &Row::itlP95Ms, &Row::kvPeakBytes, &Row::kvMeanBytes, &Row::heldMean, &Row::heldPeak,
                                &Row::waste, &Row::internalFragmentation, &Row::externalFragmentation, &Row::hitRate})
        out.*member = of(member);
    for (std::uint64_t RunCounters::*member :
         {&RunCounters::promptTokens, &RunCounters::reusedTokens, &RunCounters::computedTokens,
          &RunCounters::preemptions, &RunCounters::evictions, &RunCounters::refused, &RunCounters::steps}) {
        std::vector<double> values;
        for (const Row& row : rows)
            values.push_back(static_cast<double>(row.counters.*member));
        out.counters.*member = static_cast<std::uint64_t>(median(std::move(values)));
    }
    for (const Row& row : rows) {
        out.partial = out.partial || row.partial;
        out.finished = std::min(out.finished, row.finished);
    }
    return out;
}

void addComparisons(Report& report, const BenchPlan& plan) {
    if (!plan.request.model.note.empty())
        report.notes.push_back(plan.request.model.note);
    const Steps steps = stepsOf(report);
    if (steps.baseline && steps.quantized)
        report.comparisons.push_back(capacity(steps));
    if (steps.baseline && steps.prefix)
        report.comparisons.push_back(firstToken(steps));
    if (steps.beforePrefix && steps.prefix && steps.beforePrefix.row->concurrency == steps.prefix.row->concurrency)
        report.comparisons.push_back(prefixGain(steps));
    const Found plain = find(report, [](const Stage& s) { return !s.format.quantized() && s.blockSize == 16; });
    if (steps.quantized && plain)
        report.comparisons.push_back(memory(steps, *plain.facts));
    addAgainstFirst(report);
    addReturning(report);
}

} // namespace kvscope::bench
