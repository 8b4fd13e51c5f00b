// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvscope::model {

/// A path of the form "PREFIX-00002-of-00003.gguf", taken apart.
struct ShardName {
    std::string prefix;
    std::int64_t number = 0; ///< from 1
    std::int64_t count = 0;

    std::string pathOf(std::int64_t otherNumber) const;
    static std::optional<ShardName> parse(const std::string& path);
};

} // namespace kvscope::model
