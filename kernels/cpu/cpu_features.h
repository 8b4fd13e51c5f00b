// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace kvscope::kernels {

/// What this processor and its operating system can run together (cpuid and xgetbv). All false on other processors.
struct CpuFeatures {
    bool avx2 = false;       ///< AVX2, FMA and F16C
    bool avx512 = false;     ///< AVX-512 F, DQ, BW and VL
    bool avx512Vnni = false; ///< the above with VNNI
};

const CpuFeatures& cpuFeatures();

} // namespace kvscope::kernels
