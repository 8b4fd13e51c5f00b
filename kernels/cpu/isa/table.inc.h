// SPDX-License-Identifier: GPL-3.0-or-later
// Included last by each instruction set's file, which has defined KVSCOPE_TABLE (the function) and KVSCOPE_TABLE_NAME.
#pragma once

namespace kvscope::kernels {

const KernelTable& KVSCOPE_TABLE() {
    static constexpr KernelTable kTable = {
        KVSCOPE_TABLE_NAME, rmsNorm,      addRmsNorm,   packRow,    matmul,   unpackRow, rope,
        storeKey,           storeValue,   sealKeys,     sealValues, hadamard, activate,  attendPartition,
        combinePartials,    attendTokens, softmaxStats, expScaled,
    };
    return kTable;
}

} // namespace kvscope::kernels
