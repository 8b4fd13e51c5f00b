// SPDX-License-Identifier: GPL-3.0-or-later
//
// libFuzzer target: the bytes are a model file. Seeds come from fuzz_gguf_seeds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/gguf_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // A file in memory: the reader wants a path, and a disk would make this thousands of times slower.
    static const int descriptor = ::memfd_create("fuzz.gguf", MFD_CLOEXEC);
    static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size))
        std::abort();
    kvscope::test::exerciseModelFile(path);
    return 0;
}
