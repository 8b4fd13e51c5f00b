// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace kvscope::api {

/// Sentences for the user about a KV format that this model takes badly. `parameters`: values in all its weights.
std::vector<std::string> kvWarnings(const kernels::KvLayout& layout, const std::string& architecture,
                                    std::uint64_t parameters);

} // namespace kvscope::api
