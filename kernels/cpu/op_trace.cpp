// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/op_trace.h"

#include <cstring>

namespace kvscope::kernels {

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint32_t word) {
    return (hash ^ word) * 0x100000001B3ull;
}

std::uint64_t mixHalf(std::uint64_t hash, const std::byte* half) {
    std::uint16_t value;
    std::memcpy(&value, half, 2);
    return mix(hash, value);
}

} // namespace

std::uint64_t hashBytes(const void* data, std::size_t bytes, std::uint64_t hash) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
        std::uint32_t word;
        std::memcpy(&word, at + i, 4);
        hash = mix(hash, word);
    }
    return hash;
}

std::uint64_t hashKey(const KvAccess& kv, std::int32_t slot, std::uint64_t hash) {
    const auto size = static_cast<std::size_t>(kv.blockSize), in = static_cast<std::size_t>(slot) % size;
    const std::byte* block = kv.pool + static_cast<std::size_t>(slot) / size * kv.blockBytes + kv.headOffset;
    for (std::size_t d = 0; d < static_cast<std::size_t>(kv.headDimK); ++d)
        hash = mixHalf(hash, block + (d * size + in) * 2);
    return hash;
}

std::uint64_t hashValue(const KvAccess& kv, std::int32_t slot, std::uint64_t hash) {
    const auto size = static_cast<std::size_t>(kv.blockSize), in = static_cast<std::size_t>(slot) % size;
    const std::byte* values = kv.pool + static_cast<std::size_t>(slot) / size * kv.blockBytes + kv.headOffset +
                              kv.valueOffset + in * static_cast<std::size_t>(kv.headDimV) * 2;
    for (std::size_t d = 0; d < static_cast<std::size_t>(kv.headDimV); ++d)
        hash = mixHalf(hash, values + d * 2);
    return hash;
}

} // namespace kvscope::kernels
