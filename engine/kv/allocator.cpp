// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/allocator.h"

#include <algorithm>

namespace kvscope::kv {

namespace {

template <class Kind, std::size_t Count>
std::optional<Kind> named(const std::array<const char*, Count>& names, std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        return std::nullopt;
    return static_cast<Kind>(found - names.begin());
}

} // namespace

std::optional<AllocatorKind> allocatorOf(std::string_view name) {
    return named<AllocatorKind>(kAllocatorNames, name);
}

std::optional<ContiguousReserve> contiguousReserveOf(std::string_view name) {
    return named<ContiguousReserve>(kContiguousReserveNames, name);
}

} // namespace kvscope::kv
