// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/kv_warnings.h"

#include <cstdio>

namespace kvscope::api {

namespace {

/// Below so many parameters few layers have room to make up for coarse keys.
constexpr std::uint64_t kSmallModel = 4'000'000'000;

// bench_kv_formats quality, blocks of 32.
constexpr const char* kMeasured =
    "on SmolLM2-135M the divergence from f16 (KL) was 0.0038 with int4, beside 0.0027 with k8v4 and 0.00005 with int8.";
constexpr const char* kMeasuredRotated = "on SmolLM2-135M the divergence from f16 (KL) was 0.0097 with rotated int4 "
                                         "keys, 0.0038 without rotation and 0.0027 "
                                         "with k8v4.";

std::string billions(std::uint64_t parameters) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", static_cast<double>(parameters) / 1e9);
    return text;
}

} // namespace

std::vector<std::string> kvWarnings(const kernels::KvLayout& layout, const std::string& architecture,
                                    std::uint64_t parameters) {
    std::vector<std::string> out;
    if (layout.format.keys != kernels::KvDType::Int4)
        return out;
    if (architecture == "qwen2")
        out.emplace_back(
            "int4 keys ruin qwen2 models: a few of their key channels are very large. Choose --k-dtype fp8 "
            "or int8.");
    else if (parameters < kSmallModel)
        out.emplace_back("int4 keys are a risk for a model of " + billions(parameters) +
                         " billion parameters: " + (layout.format.rotation ? kMeasuredRotated : kMeasured) +
                         " Below about 4 billion --k-dtype fp8 or int8 is the safe choice.");
    if (layout.blockSize < 32 && !layout.format.rotation)
        out.emplace_back(
            "The scales of int4 keys are shared by a block; with --block-size 32 they take half the memory.");
    return out;
}

} // namespace kvscope::api
