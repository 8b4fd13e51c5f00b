// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/cpu_features.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kvscope::kernels {

#if defined(__x86_64__)

namespace {

struct Registers {
    unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
    Registers r;
    if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d))
        return {};
    return r;
}

/// Which register state the operating system saves on a context switch. Without it AVX instructions fault although
/// cpuid lists them.
std::uint64_t savedState() {
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (std::uint64_t(high) << 32) | low;
}

CpuFeatures detect() {
    CpuFeatures f;
    const Registers one = cpuid(1, 0);
    const auto bit = [](unsigned value, int n) { return ((value >> n) & 1u) != 0; };
    const bool osxsave = bit(one.c, 27);
    if (!osxsave)
        return f;
    const std::uint64_t state = savedState();
    const bool ymm = (state & 0x6) == 0x6;
    const bool zmm = (state & 0xe6) == 0xe6;
    const Registers seven = cpuid(7, 0);
    f.avx2 = ymm && bit(one.c, 28) && bit(one.c, 12) && bit(one.c, 29) && bit(seven.b, 5);
    f.avx512 = zmm && f.avx2 && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) && bit(seven.b, 31);
    f.avx512Vnni = f.avx512 && bit(seven.c, 11);
    return f;
}

} // namespace

#else

namespace {
CpuFeatures detect() {
    return {};
}
} // namespace

#endif

const CpuFeatures& cpuFeatures() {
    static const CpuFeatures features = detect();
    return features;
}

} // namespace kvscope::kernels
