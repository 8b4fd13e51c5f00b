// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/bench/bench_plan.h"
#include "app/bench/report.h"

namespace kvscope::bench {

/// Model, device and options as lines of name and figure.
std::vector<std::pair<std::string, std::string>> settingOf(const BenchPlan& plan, const std::string& backend);

/// Every figure the median of the repetitions; counters too. Partial when one of them is.
Row medianRow(const std::vector<Row>& rows);

/// Sets what each stage adds beside the figures that the field reports (4 -> 14 requests with paging and quantized KV,
/// first token 1.8 -> 0.9 s, prefix +40 to 60 %, fp8 -40 to 45 % of memory), with the reason where ours differ, as far
/// as the stages that this needs were run; and notes. Uses rows and stages of the report.
void addComparisons(Report& report, const BenchPlan& plan);

} // namespace kvscope::bench
