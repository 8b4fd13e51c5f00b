// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the tests of single kernels share: the instruction sets of this machine, random input, comparison of bits.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/kernel_table.h"

namespace kvscope::tests {

using kernels::KernelTable;

inline std::vector<const KernelTable*> tablesHere() {
    std::vector<const KernelTable*> out{&kernels::portableKernels()};
#if defined(KVSCOPE_X86_KERNELS)
    if (kernels::cpuFeatures().avx2)
        out.push_back(&kernels::avx2Kernels());
    if (kernels::cpuFeatures().avx512)
        out.push_back(&kernels::avx512Kernels());
    if (kernels::cpuFeatures().avx512Vnni)
        out.push_back(&kernels::avx512VnniKernels());
#endif
    return out;
}

inline std::vector<float> normals(std::mt19937& random, std::size_t count, float deviation = 1) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> out(count);
    for (float& v : out)
        v = normal(random);
    return out;
}

inline bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace kvscope::tests
