// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/backend.h"

namespace kvscope::kernels {

struct CpuOptions {
    int threads = 0;             ///< kernel team size; 0 = all cores this process may use
    std::optional<Isa> forceIsa; ///< none = best the processor has
};

/// Whether this processor can run `isa`, decided by cpuid (and the OS's saved register state).
bool cpuSupports(Isa isa);
Isa bestIsa();

/// Fails with a sentence when the forced instruction set is not available here.
BackendResult<std::unique_ptr<Backend>> makeCpuBackend(const CpuOptions& options);

} // namespace kvscope::kernels
