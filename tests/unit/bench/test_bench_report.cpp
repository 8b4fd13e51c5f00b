// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>

#include "app/bench/report.h"
#include "app/bench/svg_chart.h"

using namespace kvscope;
using namespace kvscope::bench;

namespace {

/// The fields of cli.md, in its order.
constexpr const char* kContract[] = {"stage",
                                     "concurrency",
                                     "throughput_tokens_s",
                                     "ttft_p50_ms",
                                     "ttft_p95_ms",
                                     "itl_p50_ms",
                                     "itl_p95_ms",
                                     "kv_peak_bytes",
                                     "kv_mean_bytes",
                                     "held_requests_mean",
                                     "held_requests_peak",
                                     "waste",
                                     "internal_fragmentation",
                                     "external_fragmentation",
                                     "hit_rate",
                                     "computed_tokens",
                                     "refused",
                                     "preempted"};

Row row(const char* stage, std::int32_t concurrency, double throughput) {
    Row out;
    out.stage = stage;
    out.concurrency = concurrency;
    out.throughput = throughput;
    out.ttftP50Ms = 12.5;
    out.hitRate = 0.25;
    out.finished = out.planned = 3;
    out.counters.computedTokens = 1234;
    return out;
}

Report sample() {
    Report report;
    report.workload = "mix";
    report.clock = "virtual";
    report.kvBytes = 1 << 20;
    report.requests = 3;
    report.complete = true;
    report.setting = {{"device", "A<100> & \"others\""}};
    for (const char* name : {"baseline", "paged+fp8"}) {
        StageFacts facts;
        facts.stage = *parseStage(name);
        facts.numBlocks = 100;
        report.stages.push_back(facts);
    }
    report.rows = {row("baseline", 1, 10), row("baseline", 16, 40), row("paged+fp8", 1, 11), row("paged+fp8", 16, 160)};
    report.rows[0].externalFragmentation = 0.5;
    report.comparisons = {{"First token", "1.8 -> 0.9 s", "2 -> 1 s", "Because <it> waits."}};
    report.listed = {{"baseline", 16, 7, RequestStatus::Failed, "It needs <room>."}};
    report.notes = {"A note."};
    return report;
}

} // namespace

class TestBenchReport : public QObject {
    Q_OBJECT
private slots:
    void jsonHasTheFieldsOfTheContract() {
        const auto json = reportJson(sample());
        for (const char* field : {"workload", "scale", "clock", "kv_bytes", "rows"})
            QVERIFY2(json.contains(field), field);
        QCOMPARE(json["rows"].size(), std::size_t(4));
        for (const auto& each : json["rows"])
            for (const char* field : kContract)
                QVERIFY2(each.contains(field), field);
        QCOMPARE(json["rows"][3]["throughput_tokens_s"].get<double>(), 160.0);
        QCOMPARE(json["rows"][0]["external_fragmentation"].get<double>(), 0.5);
        QVERIFY(json["rows"][1]["external_fragmentation"].is_null()); // paged: there is none, which is not 0
        QCOMPARE(json["not_averaged"][0]["status"].get<std::string>(), std::string("failed"));
    }

    void csvHasTheSameFiguresAsJson() {
        const Report report = sample();
        const std::string csv = reportCsv(report);
        const QStringList lines = QString::fromStdString(csv).split('\n', Qt::SkipEmptyParts);
        QCOMPARE(lines.size(), 5);
        const QStringList names = lines[0].split(',');
        for (const char* field : kContract)
            QVERIFY2(names.contains(field), field);
        const auto json = reportJson(report);
        for (int line = 0; line < 4; ++line) {
            const QStringList cells = lines[line + 1].split(',');
            QCOMPARE(cells.size(), names.size());
            for (int i = 0; i < names.size(); ++i) {
                const auto& value = json["rows"][static_cast<std::size_t>(line)][names[i].toStdString()];
                if (value.is_number())
                    QCOMPARE(cells[i].toDouble(), value.get<double>());
                else if (value.is_null())
                    QVERIFY(cells[i].isEmpty());
            }
        }
    }

    void csvQuotesWhatItMust() {
        Report report = sample();
        report.rows = {row("a,\"b\"", 1, 1)};
        QVERIFY(reportCsv(report).find("\"a,\"\"b\"\"\",1,") != std::string::npos);
    }

    void tableNamesStagesAndWhatIsLeftOut() {
        const std::string table = reportTable(sample());
        for (const char* part : {"baseline", "paged+fp8", "160.0", "1.8 -> 0.9 s", "request 7, failed", "A note."})
            QVERIFY2(table.find(part) != std::string::npos, part);
        Report cut = sample();
        cut.complete = false;
        cut.rows[3].partial = true;
        QVERIFY(reportTable(cut).find("paged+fp8 (cut)") != std::string::npos);
        QVERIFY(reportTable(cut).find("interrupted") != std::string::npos);
        QVERIFY(table.find("interrupted") == std::string::npos);
    }

    void thePageLoadsNothingAndFollowsTheReader() {
        const std::string html = reportHtml(sample());
        for (const char* outside : {"http:", "https:", "src=", "url(", "@import", "<script", "<link"})
            QVERIFY2(html.find(outside) == std::string::npos, outside);
        QVERIFY(html.find("prefers-color-scheme:dark") != std::string::npos);
        QVERIFY(html.find("A&lt;100&gt; &amp; &quot;others&quot;") != std::string::npos);
        QVERIFY(html.find("<it>") == std::string::npos && html.find("<room>") == std::string::npos);
        QCOMPARE(QString::fromStdString(html).count("<figure"), 8);
        QVERIFY(html.find("interrupted") == std::string::npos);
    }

    void anEmptyReportIsAPageToo() {
        Report report = sample();
        report.rows.clear();
        report.complete = false;
        const std::string html = reportHtml(report);
        QVERIFY(html.find("No run has ended.") != std::string::npos);
        QVERIFY(html.find("interrupted") != std::string::npos);
    }

    void chartsDrawEveryValueOnce() {
        const Chart lines{"t", "x", {"1", "2", "4"}, {{"a", {1, 2, 3}}, {"b", {4, std::nan(""), 6}}}};
        const QString svg = QString::fromStdString(svgChart(lines));
        QCOMPARE(svg.count("<circle"), 5);
        QCOMPARE(svg.count("<path class=\"line"), 2);
        QCOMPARE(svg.count("nan"), 0);
        const Chart bars{"t", "x", {"16"}, {{"a", {1}}, {"b", {0}}, {"c", {std::nan("")}}}};
        const QString barSvg = QString::fromStdString(svgChart(bars));
        QCOMPARE(barSvg.count("<rect class=\"bar"), 2);
        QVERIFY(barSvg.contains(">none<"));
    }

    void axesEndAtRoundNumbers() {
        QCOMPARE(niceCeiling(0), 1.0);
        QCOMPARE(niceCeiling(1), 1.0);
        QCOMPARE(niceCeiling(1.01), 1.2);
        QCOMPARE(niceCeiling(23), 24.0);
        QCOMPARE(niceCeiling(26), 30.0);
        QCOMPARE(niceCeiling(880), 1000.0);
        QCOMPARE(QString::fromStdString(axisText(1234)), QString("1234"));
        QCOMPARE(QString::fromStdString(axisText(12500)), QString("12.5k"));
        QCOMPARE(QString::fromStdString(axisText(2.5)), QString("2.5"));
        QCOMPARE(QString::fromStdString(axisText(3e6)), QString("3M"));
    }

    void stagesAreWhatTheirNamesSay() {
        const auto baseline = parseStage("baseline");
        QVERIFY(baseline && baseline->contiguous && !baseline->reserveRequest && baseline->blockSize == 16 &&
                !baseline->prefixCaching && baseline->format == kernels::KvFormat{});
        const auto last = parseStage("paged+k8v4+block32+prefix+lfu+short-first");
        QVERIFY(last && !last->contiguous && last->blockSize == 32 && last->prefixCaching);
        QCOMPARE(kvFormatName(last->format), std::string("k8v4"));
        QCOMPARE(last->eviction, kv::EvictionKind::Lfu);
        QCOMPARE(last->scheduling, sched::SchedulingPolicy::ShortFirst);
        QVERIFY(parseStage("contiguous+reserve-request")->reserveRequest);
        for (const char* wrong : {"", "page", "paged+", "paged+fp4", "paged+block24", "baseline+prefix"})
            QVERIFY2(!parseStage(wrong), wrong);
        QVERIFY(!parseStages("paged,paged"));
        QCOMPARE(parseStages(kDefaultStages)->size(), std::size_t(4));
        QCOMPARE(parseStages(kCapacityStages)->size(), std::size_t(4));
    }
};

QTEST_APPLESS_MAIN(TestBenchReport)
#include "test_bench_report.moc"
