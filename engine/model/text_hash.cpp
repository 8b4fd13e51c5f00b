// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/text_hash.h"

#include <cstdint>
#include <random>

#include <xxhash.h>

namespace kvscope::model {

namespace {

std::uint64_t randomSalt() {
    std::random_device device;
    return static_cast<std::uint64_t>(device()) << 32 | device();
}

} // namespace

std::size_t TextHash::operator()(std::string_view text) const {
    static const std::uint64_t kSalt = randomSalt();
    return XXH3_64bits_withSeed(text.data(), text.size(), kSalt);
}

} // namespace kvscope::model
