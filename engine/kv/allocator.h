// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvscope::kv {

/// How a sequence gets its blocks.
enum class AllocatorKind : std::uint8_t {
    Paged,      ///< any blocks, one at a time, as tokens come
    Contiguous, ///< one extent of neighbouring blocks, as long as the sequence may become, best fit; no prefix cache
};
inline constexpr std::array<const char*, 2> kAllocatorNames{"paged", "contiguous"};
inline const char* allocatorName(AllocatorKind kind) {
    return kAllocatorNames[static_cast<std::size_t>(kind)];
}
std::optional<AllocatorKind> allocatorOf(std::string_view name);

/// How long a sequence may become, in the eyes of the contiguous allocator.
enum class ContiguousReserve : std::uint8_t {
    Model,   ///< max-model-len for every request, as early frameworks did
    Request, ///< prompt + max-tokens
};
inline constexpr std::array<const char*, 2> kContiguousReserveNames{"model", "request"};
inline const char* contiguousReserveName(ContiguousReserve reserve) {
    return kContiguousReserveNames[static_cast<std::size_t>(reserve)];
}
std::optional<ContiguousReserve> contiguousReserveOf(std::string_view name);

} // namespace kvscope::kv
