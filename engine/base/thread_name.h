// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <pthread.h>

namespace kvscope {

/// Names the calling thread for `top -H`, debuggers and profilers; the system shows at most 15 characters. The window's
/// thread keeps the name of the program.
inline void nameThisThread(const char* name) {
    pthread_setname_np(pthread_self(), name);
}

} // namespace kvscope
