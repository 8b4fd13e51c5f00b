// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "app/bench/report.h"
#include "app/bench/svg_chart.h"
#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

// The colours of the program's window, for both of the reader's settings.
constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--bg:#F6F7F9;--card:#FFF;--text1:#171B21;--text2:#434C59;--text3:#586271;--line:#E1E5EA;
--axis:#7B8796;--warn:#8A5A00;--warnfill:#FBF1DC;--s0:#2F66D8;--s1:#A66C06;--s2:#067A94;--s3:#C2407A;--s4:#2B3442;
--s5:#4E7D12;--s6:#8A4FA0}
@media (prefers-color-scheme:dark){:root{--bg:#0E1013;--card:#14171B;--text1:#E9ECF0;--text2:#B4BCC7;--text3:#97A1AE;
--line:#262C34;--axis:#6F7A89;--warn:#F0B855;--warnfill:#33270F;--s0:#6FA0FF;--s1:#F0B429;--s2:#8EE6FB;--s3:#E77CA5;
--s4:#E9ECF0;--s5:#9CD35B;--s6:#CE9BE0}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text1);font:14px/22px Inter,system-ui,sans-serif}
main{max-width:1240px;margin:0 auto;padding:24px}
h1{font-size:28px;line-height:36px;font-weight:600;margin:0 0 4px}
h2{font-size:16px;line-height:24px;font-weight:600;margin:32px 0 8px}
h3{font-size:13px;line-height:20px;font-weight:600;margin:0 0 4px}
p{margin:0 0 8px;max-width:80ch;color:var(--text2)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0;color:var(--text2)}
dt{color:var(--text3)}dd{margin:0}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px;overflow-x:auto}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:16px}
.legend{display:flex;flex-wrap:wrap;gap:4px 20px;margin:0 0 12px;padding:0;list-style:none;color:var(--text2)}
.legend svg{display:inline-block;width:28px;height:10px;vertical-align:middle;margin-right:6px}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--text3);font-weight:500;vertical-align:bottom}
th:first-child,td:first-child,th.words{text-align:left}
td.words{white-space:normal;text-align:left;color:var(--text2);min-width:24em}
.partial{background:var(--warnfill);color:var(--warn);border-radius:6px;padding:8px 12px;margin:12px 0}
svg{width:100%;height:auto;display:block}
svg .grid{stroke:var(--line)}svg .axis{stroke:var(--axis)}svg .label{fill:var(--text3);font-size:11px}
svg .line{fill:none;stroke-width:1.8}svg .dot{stroke:var(--card);stroke-width:1}
)css";

constexpr std::size_t kColours = 7;

std::string bytes(double value) {
    return sizeText(static_cast<std::uint64_t>(std::max(0.0, value)));
}

std::string percent(double share) {
    return share < 0 ? "" : formatted("%.1f", share * 100);
}

std::string cells(const std::vector<std::string>& values, const char* tag) {
    std::string out = "<tr>";
    for (const std::string& value : values)
        out += std::string("<") + tag + ">" + htmlEscaped(value) + "</" + tag + ">";
    return out + "</tr>\n";
}

std::string colours() {
    std::string out;
    for (std::size_t i = 0; i < kColours; ++i) {
        const std::string n = std::to_string(i);
        out += "svg .line.s" + n + "{stroke:var(--s" + n + ")}svg .dot.s" + n + ",svg .bar.s" + n + "{fill:var(--s" +
               n + ")}\n";
    }
    return out;
}

/// One chart of a figure of the rows, a series a stage, against the concurrency.
std::string chart(const Report& report, const std::string& title, double (*figure)(const Row&)) {
    Chart out;
    out.title = title;
    std::vector<std::int32_t> concurrency;
    for (const Row& row : report.rows)
        if (std::find(concurrency.begin(), concurrency.end(), row.concurrency) == concurrency.end())
            concurrency.push_back(row.concurrency);
    std::sort(concurrency.begin(), concurrency.end());
    for (const std::int32_t each : concurrency)
        out.labels.push_back(std::to_string(each));
    out.xTitle = concurrency.size() > 1 ? "requests in flight" : "by stage, " + out.labels.front() + " in flight";
    for (const StageFacts& facts : report.stages) {
        Series series;
        series.name = facts.stage.name;
        series.values.assign(concurrency.size(), std::nan(""));
        for (const Row& row : report.rows)
            if (row.stage == series.name) {
                const auto at = std::find(concurrency.begin(), concurrency.end(), row.concurrency);
                const double value = figure(row);
                series.values[static_cast<std::size_t>(at - concurrency.begin())] = value < 0 ? std::nan("") : value;
            }
        out.series.push_back(std::move(series));
    }
    return "<figure class=\"card\" style=\"margin:0\"><h3>" + htmlEscaped(title) + "</h3>" + svgChart(out) +
           "</figure>\n";
}

std::string legend(const Report& report) {
    std::string out = "<ul class=\"legend\">";
    for (std::size_t i = 0; i < report.stages.size(); ++i)
        out += "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"line s" +
               std::to_string(i % kColours) + "\" d=\"M0 5L28 5\" stroke-dasharray=\"" + dashes(i) +
               "\"/><circle class=\"dot s" + std::to_string(i % kColours) + "\" cx=\"14\" cy=\"5\" r=\"4\"/></svg>" +
               htmlEscaped(report.stages[i].stage.name) + "</li>";
    return out + "</ul>\n";
}

std::string charts(const Report& report) {
    if (report.rows.empty())
        return "<p>No run has ended.</p>\n";
    std::string out = legend(report) + "<div class=\"charts\">\n";
    out += chart(report, "Throughput, generated tokens per second", [](const Row& r) { return r.throughput; });
    out += chart(report, "Requests held, mean over time", [](const Row& r) { return r.heldMean; });
    out += chart(report, "First token, median, ms", [](const Row& r) { return r.ttftP50Ms; });
    out += chart(report, "First token, 95th percentile, ms", [](const Row& r) { return r.ttftP95Ms; });
    out += chart(report, "Between tokens, 95th percentile, ms", [](const Row& r) { return r.itlP95Ms; });
    out += chart(report, "KV cache allocated, mean over time, MiB",
                 [](const Row& r) { return r.kvMeanBytes / (1024 * 1024); });
    out +=
        chart(report, "Waste: allocated slots that nothing will fill, %", [](const Row& r) { return r.waste * 100; });
    out += chart(report, "Hit rate, % of prompt tokens", [](const Row& r) { return r.hitRate * 100; });
    return out + "</div>\n";
}

std::string rowsTable(const Report& report) {
    std::string out = "<div class=\"card\"><table>\n" +
                      cells({"Stage", "In flight", "Tokens/s", "First token p50 ms", "p95 ms", "Between tokens p50 ms",
                             "p95 ms", "Held mean", "peak", "KV mean", "KV peak", "Waste %", "Internal frag. %",
                             "External frag. %", "Hit rate %", "Computed", "Refused", "Preempted", "Requests"},
                            "th");
    for (const Row& row : report.rows)
        out += cells({row.stage + (row.partial ? " (cut)" : ""), std::to_string(row.concurrency),
                      formatted("%.1f", row.throughput), formatted("%.1f", row.ttftP50Ms),
                      formatted("%.1f", row.ttftP95Ms), formatted("%.2f", row.itlP50Ms),
                      formatted("%.2f", row.itlP95Ms), formatted("%.2f", row.heldMean), formatted("%.0f", row.heldPeak),
                      bytes(row.kvMeanBytes), bytes(row.kvPeakBytes), percent(row.waste),
                      percent(row.internalFragmentation), percent(row.externalFragmentation), percent(row.hitRate),
                      countText(static_cast<std::int64_t>(row.counters.computedTokens)),
                      std::to_string(row.counters.refused), std::to_string(row.counters.preemptions),
                      std::to_string(row.finished) + " of " + std::to_string(row.planned)},
                     "td");
    return out + "</table></div>\n";
}

std::string stagesTable(const Report& report) {
    std::string out =
        "<div class=\"card\"><table>\n" + cells({"Stage", "Allocator", "Keys", "Values", "Block", "Prefix cache",
                                                 "Blocks", "Bytes a token", "Tails", "Slots for the bytes"},
                                                "th");
    for (const StageFacts& facts : report.stages) {
        const Stage& stage = facts.stage;
        out += cells(
            {stage.name,
             stage.contiguous ? (stage.reserveRequest ? "contiguous, prompt + answer" : "contiguous, model") : "paged",
             kernels::kvDTypeName(stage.format.keys), kernels::kvDTypeName(stage.format.values),
             std::to_string(stage.blockSize), stage.prefixCaching ? "on" : "off", countText(facts.numBlocks),
             formatted("%.0f", facts.bytesPerToken), bytes(static_cast<double>(facts.tailBytes)),
             formatted("%.2f x", facts.poolGain)},
            "td");
    }
    return out + "</table></div>\n";
}

std::string comparisonsTable(const Report& report) {
    if (report.comparisons.empty())
        return {};
    std::string out = "<h2>What the stages add, beside the field's figures</h2>\n<div class=\"card\"><table>\n"
                      "<tr><th>What</th><th>Field</th><th>Here</th><th class=\"words\">Why</th></tr>\n";
    for (const Comparison& each : report.comparisons)
        out += "<tr><td>" + htmlEscaped(each.what) + "</td><td>" + htmlEscaped(each.field) + "</td><td>" +
               htmlEscaped(each.ours) + "</td><td class=\"words\">" + htmlEscaped(each.reason) + "</td></tr>\n";
    return out + "</table></div>\n";
}

std::string ratiosTable(const Report& report) {
    if (report.ratios.empty())
        return {};
    std::string out = "<h2>Throughput against the stage before, median of pairs</h2>\n<div class=\"card\"><table>\n" +
                      cells({"Stage", "Before", "In flight", "Ratio", "95 % from", "to", "Pairs"}, "th");
    for (const StageRatio& each : report.ratios)
        out += cells({each.stage, each.before, std::to_string(each.concurrency), formatted("%.3f", each.median),
                      formatted("%.3f", each.low), formatted("%.3f", each.high), std::to_string(each.pairs)},
                     "td");
    return out + "</table></div>\n";
}

std::string listedTable(const Report& report) {
    if (report.listed.empty())
        return {};
    std::string out =
        "<h2>Not in any average</h2>\n<div class=\"card\"><table>\n"
        "<tr><th>Stage</th><th>In flight</th><th>Request</th><th>Status</th><th class=\"words\">Why</th></tr>\n";
    for (const ListedRequest& each : report.listed)
        out += "<tr><td>" + htmlEscaped(each.stage) + "</td><td>" + std::to_string(each.concurrency) + "</td><td>" +
               std::to_string(each.request) + "</td><td>" + requestStatusName(each.status) +
               "</td><td class=\"words\">" + htmlEscaped(each.problem) + "</td></tr>\n";
    return out + "</table></div>\n";
}

} // namespace

std::string reportHtml(const Report& report) {
    const std::string title = "KVScope bench: " + report.workload;
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                      "content=\"width=device-width,initial-scale=1\">\n<title>" +
                      htmlEscaped(title) + "</title>\n<style>" + kStyle + colours() + "</style></head>\n<body><main>\n";
    out += "<h1>" + htmlEscaped(title) + "</h1>\n<p>" + std::to_string(report.requests) + " requests at scale " +
           formatted("%g", report.scale) + ", seed " + std::to_string(report.seed) + ", " + htmlEscaped(report.clock) +
           " clock; " + bytes(static_cast<double>(report.kvBytes)) + " of KV cache in every stage.</p>\n";
    if (!report.complete)
        out += "<div class=\"partial\">The run was interrupted: rows marked \"cut\" lack requests, and runs that had "
               "not begun are missing.</div>\n";
    out += "<dl>";
    for (const auto& [name, value] : report.setting)
        out += "<dt>" + htmlEscaped(name) + "</dt><dd>" + htmlEscaped(value) + "</dd>";
    out += "</dl>\n<h2>By stage</h2>\n" + charts(report) + comparisonsTable(report) + ratiosTable(report);
    out +=
        "<h2>All figures</h2>\n" + rowsTable(report) + "<h2>How the bytes were laid out</h2>\n" + stagesTable(report);
    out += listedTable(report);
    if (!report.notes.empty()) {
        out += "<h2>Notes</h2>\n";
        for (const std::string& note : report.notes)
            out += "<p>" + htmlEscaped(note) + "</p>\n";
    }
    out += "<h2>How it was measured</h2>\n<p>First token: from sending a request to its first generated token. Between "
           "tokens: every gap, the first token not among them. Percentiles are linear between ranks. Held: requests "
           "whose whole prompt is resident, mean over time. Waste counts allocated slots that no known token will "
           "fill; internal fragmentation counts every allocated slot that is not written yet, a prompt that is being "
           "read included. Requests that failed, were cut or wrote nothing are in no average.</p>\n";
    return out + "</main></body></html>\n";
}

} // namespace kvscope::bench
