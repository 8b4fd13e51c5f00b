// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "app/bench/bench_run.h"
#include "app/bench/roofline_report.h"
#include "app/cli/bench_options.h"
#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/cli/progress_bar.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

/// A file that is opened before a long run, so that what is wrong with it is found then.
class OutputFile {
public:
    explicit OutputFile(const std::string& path) : m_path(path) {
        if (path.empty())
            return;
        m_out.open(path, std::ios::binary | std::ios::trunc);
        check();
    }
    void write(const std::string& text) {
        if (m_path.empty())
            return;
        m_out << text;
        m_out.flush();
        check();
    }
    bool wanted() const { return !m_path.empty(); }

private:
    void check() {
        if (!m_out)
            throw CommandError("Cannot write '" + m_path + "'; check that its folder exists, may be written to, and " +
                               "that the disk is not full.");
    }
    std::string m_path;
    std::ofstream m_out;
};

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw CommandError(outputFailed());
}

/// When each request was sent and each token came, milliseconds from the start of the run.
std::string tokenTimes(const bench::FinishedRun& run) {
    std::string out;
    for (const bench::RequestRecord& record : run.result.records) {
        json times = json::array();
        for (const Nanos time : record.tokenTimes)
            times.push_back(static_cast<double>(time) / 1e6);
        out += nlohmann::ordered_json{{"stage", run.stage},
                                      {"concurrency", run.concurrency},
                                      {"repetition", run.repetition},
                                      {"request", record.index},
                                      {"kind", bench::requestKindName(record.kind)},
                                      {"turn", record.turn},
                                      {"status", bench::requestStatusName(record.status)},
                                      {"prompt_tokens", record.promptTokens},
                                      {"reused_tokens", record.reusedTokens},
                                      {"computed_tokens", record.computedTokens},
                                      {"preemptions", record.preemptions},
                                      {"sent_ms", static_cast<double>(record.sent) / 1e6},
                                      {"token_ms", std::move(times)}}
                   .dump() +
               '\n';
    }
    return out;
}

int showRoofline(const BenchOptions& o, const BenchModel& model) {
    std::vector<kernels::KvFormat> formats{{}};
    if (!o.stages.empty()) {
        formats.clear();
        auto stages = bench::parseStages(o.stages);
        if (!stages)
            throw UsageError(stages.error().message);
        for (const bench::Stage& stage : *stages)
            if (std::find(formats.begin(), formats.end(), stage.format) == formats.end())
                formats.push_back(stage.format);
    }
    const auto rows = valueOrThrow(bench::rooflineRows(model.device, model.shape, model.weightBytes, formats));
    if (o.asJson)
        printJson(bench::rooflineJson(model.device, model.shape, model.weightBytes, rows));
    else
        print(bench::rooflineTable(model.device, model.shape, model.weightBytes, rows));
    return 0;
}

int showEstimate(const BenchOptions& o, const bench::BenchPlan& plan, double loadSeconds) {
    const auto runs = static_cast<double>(plan.stages.size() * plan.request.concurrency.size() *
                                          static_cast<std::size_t>(plan.request.repeat));
    const double seconds = valueOrThrow(bench::estimateSeconds(plan, Interrupt::flag())) +
                           (plan.request.virtualClock ? 0 : runs * loadSeconds);
    if (o.asJson) {
        json stages = json::array();
        for (const bench::StageFacts& facts : plan.stages)
            stages.push_back({{"stage", facts.stage.name}, {"num_blocks", facts.numBlocks}});
        printJson({{"dry_run", true},
                   {"runs", runs},
                   {"requests", plan.request.workload.requests.size()},
                   {"kv_bytes", plan.kvBytes},
                   {"stages", std::move(stages)},
                   {"estimated_seconds", seconds}});
        return 0;
    }
    print(std::to_string(static_cast<int>(runs)) + " runs of " + std::to_string(plan.request.workload.requests.size()) +
          " requests: about " + durationText(seconds) + ".\n");
    return 0;
}

int runBenchVerb(const BenchOptions& o) {
    checkBenchOptions(o);
    const api::EngineConfig engine = o.engine->fittedTo({}).config(); // forms are those of the stages
    const Interrupt interrupt;
    if (o.roofline)
        return showRoofline(o, benchModel(o, engine, true));
    // What cannot be run is refused before anything is measured.
    const bool measured = o.dryRun || (o.clock == "virtual" && o.device == "this");
    BenchModel model = benchModel(o, engine, false);
    bench::BenchPlan plan = benchPlan(o, engine, model);
    if (measured) {
        model = benchModel(o, engine, true);
        plan.request.device = model.device;
    }
    if (!plan.request.virtualClock)
        for (const bench::StageFacts& facts : plan.stages)
            if (auto ok = api::validate(bench::engineConfigOf(plan, facts, plan.request.concurrency.back())); !ok)
                throw UsageError(ok.error().message);
    if (o.dryRun)
        return showEstimate(o, plan, model.loadSeconds);

    OutputFile csv(o.csvFile), html(o.htmlFile), times(o.tokenTimesFile);
    bench::Report report;
    {
        ProgressBar bar;
        bench::BenchHooks hooks;
        hooks.interrupted = Interrupt::flag();
        hooks.progress = [&bar](const bench::Progress& p) {
            bar.show((p.run + static_cast<double>(p.ended) / p.requests) / p.runs,
                     p.stage + " at " + std::to_string(p.concurrency) + ", " + std::to_string(p.ended) + " of " +
                         std::to_string(p.requests));
        };
        if (times.wanted())
            hooks.finished = [&times](const bench::FinishedRun& run) { times.write(tokenTimes(run)); };
        report = valueOrThrow(bench::runBench(plan, hooks));
    }
    if (o.asJson) // first, so that a full disk takes nothing but the files
        printJson(bench::reportJson(report));
    else
        print(bench::reportTable(report));
    csv.write(bench::reportCsv(report));
    html.write(bench::reportHtml(report));
    interrupt.passOn();
    return 0;
}

} // namespace

Verb addBench(CLI::App& app) {
    auto options = std::make_shared<BenchOptions>();
    Verb verb;
    verb.app = app.add_subcommand(
        "bench", "Measure workloads under several sets of cache options, here or on a simulated device");
    addBenchOptions(*verb.app, *options);
    verb.run = [options] { return runBenchVerb(*options); };
    return verb;
}

} // namespace kvscope::cli
