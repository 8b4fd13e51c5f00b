// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/backend_reason.h"

#include <dlfcn.h>

namespace kvscope::api {

std::string cpuReason(const char* driver) {
    // Asked of the linker itself: only it knows every folder where a driver may be (cache, RUNPATH, LD_LIBRARY_PATH).
    void* const library = dlopen(driver, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return "no CUDA driver found";
    dlclose(library);
    return "this build has no CUDA backend";
}

} // namespace kvscope::api
