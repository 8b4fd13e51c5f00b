// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/kv_warnings.h"

#include <cstdio>

namespace kvscope::api {

namespace {

/// Below so many parameters few layers have room to make up for coarse keys.
constexpr std::uint64_t kSmallModel = 4'000'000'000;

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
            "int4 keys ruin qwen2 models: a few of their key channels are very large. Choose --k-dtype fp8 or "
            "int8.");
    else if (parameters < kSmallModel)
        out.emplace_back(
            "int4 keys cost a model of " + billions(parameters) +
            " billion parameters much of its quality; below about 4 billion choose --k-dtype fp8 or int8.");
    if (layout.blockSize < 32 && !layout.format.rotation)
        out.emplace_back(
            "The scales of int4 keys are shared by a block; with --block-size 32 they take half the memory.");
    return out;
}

} // namespace kvscope::api
