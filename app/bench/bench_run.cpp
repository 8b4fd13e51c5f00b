// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/bench_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "app/bench/comparison.h"
#include "app/bench/real_engine.h"
#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

constexpr std::size_t kMostListed = 1000;

/// All runs of a bench: stage-major rows, filled in whatever order they are run.
class Bench {
public:
    Bench(const BenchPlan& plan, const BenchHooks& hooks)
        : m_plan(plan)
        , m_hooks(hooks)
        , m_cells(plan.stages.size() * plan.request.concurrency.size()) {}

    Result<Report> run() {
        const BenchRequest& request = m_plan.request;
        for (std::int32_t repetition = 0; repetition < request.repeat && !m_interrupted; ++repetition)
            for (std::size_t at = 0; at < request.concurrency.size() && !m_interrupted; ++at)
                for (std::size_t stage = 0; stage < m_plan.stages.size() && !m_interrupted; ++stage)
                    if (auto ok = runOne(stage, at, repetition); !ok)
                        return tl::unexpected(ok.error());
        return report();
    }

private:
    using Cell = std::vector<Row>; ///< one a repetition
    Cell& cell(std::size_t stage, std::size_t at) { return m_cells[stage * m_plan.request.concurrency.size() + at]; }

    DriverOptions driverOptions(const std::string& stage, std::int32_t concurrency) const {
        DriverOptions options;
        options.concurrency = concurrency;
        options.interrupted = m_hooks.interrupted;
        if (m_hooks.progress) {
            Progress progress;
            progress.run = m_run;
            progress.runs = static_cast<std::int32_t>(m_cells.size()) * m_plan.request.repeat;
            progress.stage = stage;
            progress.concurrency = concurrency;
            progress.requests = static_cast<std::int32_t>(m_plan.request.workload.requests.size());
            options.onEnded = [this, progress](std::int32_t ended) mutable {
                progress.ended = ended;
                m_hooks.progress(progress);
            };
        }
        return options;
    }

    Result<RunResult> drive(const StageFacts& facts, std::int32_t concurrency, Row& about) {
        const DriverOptions options = driverOptions(facts.stage.name, concurrency);
        if (m_plan.request.virtualClock) {
            const auto engine = makeVirtualEngine(m_plan, facts, concurrency);
            RunResult result = runWorkload(*engine, m_plan.request.workload, options);
            about.cost = engine->cost();
            about.prefillSeconds = engine->prefillSeconds();
            return result;
        }
        if (!m_real)
            m_real = std::make_unique<RealEngine>();
        if (auto ok = m_real->load(engineConfigOf(m_plan, facts, concurrency), m_hooks.interrupted); !ok)
            return tl::unexpected(ok.error());
        m_backend = m_real->model().backend;
        return runWorkload(*m_real, m_plan.request.workload, options);
    }

    Result<void> runOne(std::size_t stage, std::size_t at, std::int32_t repetition) {
        const StageFacts& facts = m_plan.stages[stage];
        const std::int32_t concurrency = m_plan.request.concurrency[at];
        Row about;
        auto result = drive(facts, concurrency, about);
        if (!result && m_hooks.interrupted && m_hooks.interrupted->load()) { // while the model was loaded
            m_interrupted = true;
            return {};
        }
        if (!result)
            return fail(result.error().code, "Stage '" + facts.stage.name + "': " + result.error().message);
        ++m_run;
        m_interrupted = result->partial;
        if (m_hooks.finished)
            m_hooks.finished({facts.stage.name, concurrency, repetition, *result});
        for (const RequestRecord& record : result->records)
            if (record.status != RequestStatus::Ok && m_listed.size() < kMostListed)
                m_listed.push_back({facts.stage.name, concurrency, record.index, record.status, record.problem});
        if (result->records.empty())
            return {};
        Row row = summarize(result->records, result->pool, result->counters, result->seconds);
        row.stage = facts.stage.name;
        row.concurrency = concurrency;
        row.partial = result->partial;
        row.planned = static_cast<std::int32_t>(m_plan.request.workload.requests.size());
        row.cost = about.cost;
        row.prefillSeconds = about.prefillSeconds;
        cell(stage, at).push_back(std::move(row));
        return {};
    }

    Report report() {
        const BenchRequest& request = m_plan.request;
        Report report;
        report.workload = request.workload.name;
        report.scale = request.workload.scale;
        report.seed = request.workload.seed;
        report.clock = request.virtualClock ? "virtual" : "real";
        report.kvBytes = m_plan.kvBytes;
        report.requests = static_cast<std::int32_t>(request.workload.requests.size());
        report.maxModelLen = m_plan.maxModelLen;
        report.complete = !m_interrupted;
        report.stages = m_plan.stages;
        report.listed = std::move(m_listed);
        report.setting = settingOf(m_plan, m_backend);
        for (std::size_t stage = 0; stage < m_plan.stages.size(); ++stage)
            for (std::size_t at = 0; at < request.concurrency.size(); ++at) {
                const Cell& each = cell(stage, at);
                if (each.empty())
                    continue;
                report.rows.push_back(medianRow(each));
                if (stage > 0)
                    addRatio(report, stage, at);
            }
        addComparisons(report, m_plan);
        return report;
    }

    void addRatio(Report& report, std::size_t stage, std::size_t at) {
        std::vector<double> here, before;
        const std::size_t pairs = std::min(cell(stage, at).size(), cell(stage - 1, at).size());
        if (pairs < 2)
            return;
        for (std::size_t i = 0; i < pairs; ++i) {
            here.push_back(cell(stage, at)[i].throughput);
            before.push_back(cell(stage - 1, at)[i].throughput);
        }
        StageRatio ratio = ratioOf(here, before);
        ratio.stage = m_plan.stages[stage].stage.name;
        ratio.before = m_plan.stages[stage - 1].stage.name;
        ratio.concurrency = m_plan.request.concurrency[at];
        report.ratios.push_back(std::move(ratio));
    }

    const BenchPlan& m_plan;
    const BenchHooks& m_hooks;
    std::vector<Cell> m_cells;
    std::vector<ListedRequest> m_listed;
    std::unique_ptr<RealEngine> m_real;
    std::string m_backend;
    std::int32_t m_run = 0;
    bool m_interrupted = false;
};

kv::AllocatorKind allocatorOf(const Stage& stage) {
    return stage.contiguous ? kv::AllocatorKind::Contiguous : kv::AllocatorKind::Paged;
}

kv::ContiguousReserve reserveOf(const Stage& stage) {
    return stage.reserveRequest ? kv::ContiguousReserve::Request : kv::ContiguousReserve::Model;
}

/// Wall time of simulating part of the workload.
double timeOf(const BenchPlan& plan, const StageFacts& facts, const Workload& part, std::int32_t concurrency,
              const std::atomic<bool>* interrupted) {
    const auto start = std::chrono::steady_clock::now();
    DriverOptions options;
    options.concurrency = concurrency;
    options.interrupted = interrupted;
    runWorkload(*makeVirtualEngine(plan, facts, concurrency), part, options);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The first requests: at least 8, about a twentieth.
Workload beginning(const Workload& whole) {
    Workload part = whole;
    part.requests.resize(std::min(whole.requests.size(), std::max<std::size_t>(8, whole.requests.size() / 20)));
    return part;
}

} // namespace

std::unique_ptr<VirtualEngine> makeVirtualEngine(const BenchPlan& plan, const StageFacts& facts,
                                                 std::int32_t concurrency) {
    const BenchRequest& request = plan.request;
    VirtualParts parts(Roofline(request.device, deployed(plan, facts)));
    parts.seed = request.workload.seed;
    parts.cache.numBlocks = static_cast<std::int32_t>(facts.numBlocks);
    parts.cache.blockSize = facts.stage.blockSize;
    parts.cache.prefixCaching = facts.stage.prefixCaching;
    parts.cache.allocator = allocatorOf(facts.stage);
    parts.cache.eviction = facts.stage.eviction;
    parts.cache.attentionPerToken = request.model.attentionOpsPerPair() / (2 * request.model.activeParameters());
    parts.cache.tailSlots = facts.stage.format.quantized() ? sequencesAt(request, concurrency) : 0;
    parts.cache.keys.salt = 0; // keys that are the same in every run
    parts.scheduler.tokenBudget =
        request.engine.maxBatchedTokens > 0 ? request.engine.maxBatchedTokens : kVirtualStepTokens;
    parts.scheduler.maxSequences = sequencesAt(request, concurrency);
    parts.scheduler.maxLength = plan.maxModelLen;
    parts.scheduler.watermark = request.engine.watermark;
    parts.scheduler.reserve = reserveOf(facts.stage);
    parts.scheduler.policy = facts.stage.scheduling;
    parts.scheduler.longPrefillThreshold = request.engine.longPrefillThreshold;
    parts.scheduler.maxLongPartialPrefills = request.engine.maxLongPartialPrefills;
    return std::make_unique<VirtualEngine>(std::move(parts));
}

api::EngineConfig engineConfigOf(const BenchPlan& plan, const StageFacts& facts, std::int32_t concurrency) {
    const Stage& stage = facts.stage;
    api::EngineConfig config = plan.request.engine;
    config.allocator = allocatorOf(stage);
    config.contiguousReserve = reserveOf(stage);
    if (config.allocator == kv::AllocatorKind::Contiguous) // an extent is never moved
        config.hostCacheBytes = 0;
    config.kvFormat = stage.format;
    config.blockSize = stage.blockSize;
    config.prefixCaching = stage.prefixCaching;
    config.eviction = stage.eviction;
    config.schedulingPolicy = stage.scheduling;
    config.numBlocks = facts.numBlocks;
    config.kvCacheMemoryBytes = 0;
    config.memoryUtilization.reset();
    config.maxModelLen = plan.maxModelLen;
    config.maxSequences = sequencesAt(plan.request, concurrency);
    return config;
}

Result<Report> runBench(const BenchPlan& plan, const BenchHooks& hooks) {
    return Bench(plan, hooks).run();
}

Result<double> estimateSeconds(const BenchPlan& plan, const std::atomic<bool>* interrupted) {
    const BenchRequest& request = plan.request;
    double seconds = 0;
    for (const StageFacts& facts : plan.stages)
        for (const std::int32_t concurrency : request.concurrency) {
            if (request.virtualClock) {
                const Workload part = beginning(request.workload);
                seconds += timeOf(plan, facts, part, concurrency, interrupted) *
                           static_cast<double>(request.workload.answerTokens()) /
                           static_cast<double>(part.answerTokens());
            } else {
                DriverOptions options;
                options.concurrency = concurrency;
                options.interrupted = interrupted;
                seconds += runWorkload(*makeVirtualEngine(plan, facts, concurrency), request.workload, options).seconds;
            }
        }
    return seconds * request.repeat;
}

} // namespace kvscope::bench
