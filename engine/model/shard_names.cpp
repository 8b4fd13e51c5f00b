// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/shard_names.h"

#include <cstdio>
#include <string_view>

namespace kvscope::model {
namespace {

constexpr std::string_view kPattern = "-NNNNN-of-NNNNN.gguf";

} // namespace

std::string ShardName::pathOf(std::int64_t otherNumber) const {
    char suffix[64];
    std::snprintf(suffix, sizeof suffix, "-%05lld-of-%05lld.gguf", static_cast<long long>(otherNumber),
                  static_cast<long long>(count));
    return prefix + suffix;
}

std::optional<ShardName> ShardName::parse(const std::string& path) {
    if (path.size() <= kPattern.size())
        return std::nullopt;
    ShardName name;
    name.prefix = path.substr(0, path.size() - kPattern.size());
    std::int64_t numbers[2] = {0, 0};
    int filled = 0;
    for (std::size_t i = 0; i < kPattern.size(); ++i) {
        const char c = path[name.prefix.size() + i];
        if (kPattern[i] == 'N') {
            if (c < '0' || c > '9')
                return std::nullopt;
            numbers[filled] = numbers[filled] * 10 + (c - '0');
        } else if (c != kPattern[i]) {
            return std::nullopt;
        } else if (c == 'o') {
            filled = 1;
        }
    }
    name.number = numbers[0];
    name.count = numbers[1];
    if (name.number < 1 || name.number > name.count)
        return std::nullopt;
    return name;
}

} // namespace kvscope::model
