// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"

namespace kvscope::kernels {

/// Whether every weight, shape and rope that a program names exists and fits. Empty string, or the sentence that says
/// what does not. `names` are those of the weights.
std::string checkProgram(const Program& program, const std::vector<PackedWeight>& weights,
                         const std::vector<std::string>& names);
/// Whether the program's layers and heads fit the KV cache.
std::string checkProgramAgainstKv(const Program& program, const KvLayout& kv);
/// Whether the CPU kernels can hold such a cache.
std::string checkKvLayout(const KvLayout& kv);

} // namespace kvscope::kernels
