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

namespace {
std::size_t kvElementBytes(DType type) {
    return type == DType::F32 ? 4 : 2;
}
} // namespace

std::size_t KvLayout::bytesPerBlock() const {
    const std::size_t perHead = static_cast<std::size_t>(headDimK) * kvElementBytes(dtypeK) +
                                static_cast<std::size_t>(headDimV) * kvElementBytes(dtypeV);
    return static_cast<std::size_t>(layers) * static_cast<std::size_t>(blockSize) * static_cast<std::size_t>(kvHeads) *
           perHead;
}

} // namespace kvscope::kernels
