// SPDX-License-Identifier: GPL-3.0-or-later
//
// The forms that keys and values can have, for tests that go through all of them, and what their codes mean: written
// apart from the kernels, in float64.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/kv_layout.h"
#include "tests/kernels/tiny_model.h"

namespace kvscope::tests {

inline std::string formatLabel(const kernels::KvFormat& format) {
    return "K " + format.keyName() + ", V " + format.valueName();
}

/// Every dtype of each half at least once, mixed with 16 bits, rotated, with layers kept f16.
inline std::vector<kernels::KvFormat> allFormats() {
    using kernels::KvDType;
    return {
        {KvDType::F16, KvDType::F16, false, 0},         {KvDType::BF16, KvDType::BF16, false, 0},
        {KvDType::Fp8E4M3, KvDType::Fp8E4M3, false, 0}, {KvDType::Int8, KvDType::Int8, false, 0},
        {KvDType::Fp8E4M3, KvDType::Int4, false, 0},    {KvDType::Int4, KvDType::Int4, false, 0},
        {KvDType::Int4, KvDType::Int4, true, 0},        {KvDType::Int8, KvDType::Int8, true, 0},
        {KvDType::F16, KvDType::Int4, true, 0},         {KvDType::Int8, KvDType::BF16, false, 0},
        {KvDType::BF16, KvDType::Fp8E4M3, false, 0},    {KvDType::Fp8E4M3, KvDType::Int4, true, 1},
    };
}

inline double valueOfFp8(unsigned code) {
    const double sign = code & 0x80 ? -1 : 1;
    const int exponent = static_cast<int>(code >> 3 & 15), mantissa = static_cast<int>(code & 7);
    return sign * (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
}

/// Reads codes of sealed blocks at one layer and KV head.
class SealedReader {
public:
    explicit SealedReader(const kernels::KvAccess& kv) : m_kv(kv) {}

    double key(int block, int slot, int d) const {
        const std::byte* at = m_kv.pool + static_cast<std::size_t>(block) * m_kv.blockBytes + m_kv.headOffset;
        const int size = m_kv.blockSize, dims = m_kv.headDimK;
        switch (m_kv.keyCode) {
        case kernels::KvCode::F16:
            return half(at + (d * size + slot) * 2);
        case kernels::KvCode::BF16:
            return brain(at + (d * size + slot) * 2);
        case kernels::KvCode::Fp8:
            return valueOfFp8(byte(at + d * size + slot));
        case kernels::KvCode::Int8:
            return signedByte(at + d * size + slot) * half(at + dims * size + d * 2);
        case kernels::KvCode::Int4:
            return nibble(at + d * size / 2, slot) * half(at + dims * size / 2 + d * 4) +
                   half(at + dims * size / 2 + d * 4 + 2);
        case kernels::KvCode::Codebook4:
            break;
        }
        static constexpr std::array<double, 16> kLevels = {-127, -96, -75, -58, -44, -31, -18, -6,
                                                           6,    18,  31,  44,  58,  75,  96,  127};
        return kLevels[static_cast<std::size_t>(nibble(at + d * size / 2, slot))] *
               half(at + dims * size / 2 + slot * 2);
    }

    double value(int block, int slot, int d) const {
        const std::byte* at =
            m_kv.pool + static_cast<std::size_t>(block) * m_kv.blockBytes + m_kv.headOffset + m_kv.valueOffset;
        const int size = m_kv.blockSize, dims = m_kv.headDimV, groups = (dims + 31) / 32,
                  group = slot * groups + d / 32;
        switch (m_kv.valueCode) {
        case kernels::KvCode::F16:
            return half(at + (slot * dims + d) * 2);
        case kernels::KvCode::BF16:
            return brain(at + (slot * dims + d) * 2);
        case kernels::KvCode::Fp8:
            return valueOfFp8(byte(at + slot * dims + d));
        case kernels::KvCode::Int8:
            return signedByte(at + slot * dims + d) * half(at + size * dims + group * 2);
        case kernels::KvCode::Int4:
        case kernels::KvCode::Codebook4:
            break;
        }
        const std::byte* scales = at + size * groups * 16 + group * 4;
        return nibble(at + slot * groups * 16, d) * half(scales) + half(scales + 2);
    }

private:
    static unsigned byte(const std::byte* p) { return static_cast<unsigned>(*p); }
    static int signedByte(const std::byte* p) { return static_cast<std::int8_t>(*p); }
    static double half(const std::byte* p) {
        std::uint16_t bits;
        std::memcpy(&bits, p, 2);
        return halfToFloat(bits);
    }
    static double brain(const std::byte* p) {
        std::uint32_t bits = 0;
        std::memcpy(reinterpret_cast<char*>(&bits) + 2, p, 2);
        float value;
        std::memcpy(&value, &bits, 4);
        return value;
    }
    static int nibble(const std::byte* row, int i) {
        const unsigned both = byte(row + i / 16 * 8 + i % 8);
        return static_cast<int>(i % 16 < 8 ? both & 15u : both >> 4);
    }

    kernels::KvAccess m_kv;
};

} // namespace kvscope::tests
