// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/backend.h"

namespace kvscope::kernels {

const char* isaName(Isa isa) {
    switch (isa) {
    case Isa::Portable:
        return "portable";
    case Isa::Avx2:
        return "AVX2";
    case Isa::Avx512:
        return "AVX-512";
    }
    return "unknown";
}

} // namespace kvscope::kernels
