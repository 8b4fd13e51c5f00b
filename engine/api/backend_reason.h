// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace kvscope::api {

/// The library that NVIDIA's driver brings along; every program that uses CUDA opens it by this name.
inline constexpr const char* kCudaDriver = "libcuda.so.1";

/// Why a model is computed on the CPU, as the rest of "CPU: ...": "no CUDA driver found" where the dynamic linker does
/// not find `driver`, otherwise "this build has no CUDA backend". The library is closed again; any thread.
std::string cpuReason(const char* driver = kCudaDriver);

} // namespace kvscope::api
