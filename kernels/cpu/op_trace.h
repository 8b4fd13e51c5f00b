// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/kernel_table.h"

namespace kvscope::kernels {

/// Debug mode of the CPU backend: hears a hash of what each operation computed, to find where two runs part.
class OpTrace {
public:
    virtual ~OpTrace() = default;
    /// After operation `op` of the program, on the thread that awaits the step. `rows` (T): one hash per token of the
    /// step, over the exact bits of its residual stream; for QkvOp over query, key and value; for LogitsOp over its
    /// logits, 0 where none were wanted.
    virtual void opDone(std::size_t op, std::span<const std::uint64_t> rows) = 0;
};

/// FNV-1a over 32-bit words, going on from `hash`. `bytes` is a multiple of 4.
std::uint64_t hashBytes(const void* data, std::size_t bytes, std::uint64_t hash = 0xCBF29CE484222325ull);
/// The same over the 16-bit key, or value, of one slot.
std::uint64_t hashKey(const KvAccess& kv, std::int32_t slot, std::uint64_t hash);
std::uint64_t hashValue(const KvAccess& kv, std::int32_t slot, std::uint64_t hash);

} // namespace kvscope::kernels
