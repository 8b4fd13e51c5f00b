// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/roofline_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

constexpr std::int64_t kBatches[] = {1, 4, 16, 64};
constexpr std::int64_t kContexts[] = {512, 4096, 32768};
constexpr std::int64_t kPrompt = 512;
constexpr std::int32_t kBlock = 16;

RooflineRow rowOf(const Roofline& roofline, const kernels::KvFormat& format, bool writes, std::int64_t batch,
                  std::int64_t context) {
    RooflineRow row;
    row.writes = writes;
    row.format = format;
    row.batch = batch;
    row.context = context;
    std::vector<StepShare> shares;
    if (writes)
        shares.assign(static_cast<std::size_t>(batch), {context, context + 1, true});
    else
        shares.push_back({context, context + batch, true});
    row.cost = roofline.cost(shares);
    return row;
}

} // namespace

const char* RooflineRow::bound(const Device& device) const {
    const double memory = (cost.weightBytes + cost.kvBytes) / device.bytesPerSecond;
    const double compute = (cost.matrixOps + cost.attentionOps) / device.opsPerSecond;
    if (cost.launchSeconds > std::max(memory, compute))
        return "launch";
    return memory >= compute ? "memory" : "compute";
}

Result<std::vector<RooflineRow>> rooflineRows(const Device& device, const ModelShape& shape, double weightBytes,
                                              const std::vector<kernels::KvFormat>& formats) {
    std::vector<RooflineRow> rows;
    for (const kernels::KvFormat& each : formats) {
        auto bytes = kvBlockBytes(shape.kvRows(), each, kBlock);
        if (!bytes)
            return tl::unexpected(bytes.error());
        const Roofline roofline(
            device, {shape, weightBytes, bytes->sealed, plainBlockBytes(shape.kvRows(), kBlock), kBlock, bytes->tail});
        for (const std::int64_t context : kContexts) {
            if (context >= shape.context)
                break;
            for (const std::int64_t batch : kBatches)
                rows.push_back(rowOf(roofline, each, true, batch, context));
        }
        rows.push_back(rowOf(roofline, each, false, std::min(kPrompt, shape.context), 0));
    }
    return rows;
}

nlohmann::ordered_json rooflineJson(const Device& device, const ModelShape& shape, double weightBytes,
                                    const std::vector<RooflineRow>& rows) {
    nlohmann::ordered_json out;
    out["device"] = {{"name", device.name},
                     {"bytes_per_second", device.bytesPerSecond},
                     {"ops_per_second", device.opsPerSecond},
                     {"launch_seconds", device.launchSeconds},
                     {"launches_per_layer", device.launchesPerLayer},
                     {"ridge_ops_per_byte", device.opsPerSecond / device.bytesPerSecond}};
    out["model"] = {{"name", shape.name},
                    {"parameters", shape.parameters()},
                    {"weight_bytes", weightBytes},
                    {"kv_bytes_per_token", plainBlockBytes(shape.kvRows(), kBlock) / kBlock}};
    out["rows"] = nlohmann::ordered_json::array();
    for (const RooflineRow& row : rows)
        out["rows"].push_back({{"step", row.writes ? "decode" : "prefill"},
                               {"kv_dtype", kvFormatName(row.format)},
                               {"batch", row.writes ? row.batch : 1},
                               {"tokens", row.batch},
                               {"context", row.context},
                               {"weight_bytes", row.cost.weightBytes},
                               {"kv_bytes", row.cost.kvBytes},
                               {"ops", row.cost.matrixOps + row.cost.attentionOps},
                               {"ops_per_byte", row.opsPerByte()},
                               {"matrix_ms", row.cost.matrixSeconds * 1e3},
                               {"attention_ms", row.cost.attentionSeconds * 1e3},
                               {"launch_ms", row.cost.launchSeconds * 1e3},
                               {"step_ms", row.cost.seconds() * 1e3},
                               {"tokens_s", row.tokensPerSecond()},
                               {"bound", row.bound(device)}});
    return out;
}

std::string rooflineTable(const Device& device, const ModelShape& shape, double weightBytes,
                          const std::vector<RooflineRow>& rows) {
    std::string out = shape.name + " on " + device.name + ": " +
                      formatted("%.4g TB/s, ", device.bytesPerSecond / 1e12) +
                      formatted("%.4g TFLOPS, ", device.opsPerSecond / 1e12) + std::to_string(device.launchesPerLayer) +
                      formatted(" launches a layer of %.3g us; ", device.launchSeconds * 1e6) +
                      sizeText(static_cast<std::uint64_t>(weightBytes)) + " of weights.\n" +
                      formatted("Below %.0f operations a byte the memory is the limit.\n\n",
                                device.opsPerSecond / device.bytesPerSecond);
    out += "step     KV     tokens  context  matrices ms  attention ms  launches ms   step ms   tokens/s  ops/byte  "
           "limit\n";
    for (const RooflineRow& row : rows) {
        std::array<char, 160> line{};
        std::snprintf(line.data(), line.size(), "%-8s %-6s %6lld %8lld %12.3f %13.3f %12.3f %9.3f %10.1f %9.1f  %s\n",
                      row.writes ? "decode" : "prefill", kvFormatName(row.format).c_str(),
                      static_cast<long long>(row.batch), static_cast<long long>(row.context),
                      row.cost.matrixSeconds * 1e3, row.cost.attentionSeconds * 1e3, row.cost.launchSeconds * 1e3,
                      row.cost.seconds() * 1e3, row.tokensPerSecond(), row.opsPerByte(), row.bound(device));
        out += line.data();
    }
    return out;
}

} // namespace kvscope::bench
