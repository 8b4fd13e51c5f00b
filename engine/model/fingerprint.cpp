// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/fingerprint.h"

#include <cstdio>

#include <xxhash.h>

#include "engine/base/check.h"

namespace kvscope::model {

std::string Fingerprint::text() const {
    char digits[33];
    std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(high),
                  static_cast<unsigned long long>(low));
    return digits;
}

struct FingerprintBuilder::State {
    XXH3_state_t* xxh = XXH3_createState(); // aligned by the library; the type asks for 64 bytes
    State() {
        KV_CHECK(xxh != nullptr, "no memory for a hash state");
        XXH3_128bits_reset(xxh);
    }
    ~State() { XXH3_freeState(xxh); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
};

FingerprintBuilder::FingerprintBuilder() : m_state(std::make_unique<State>()) {}
FingerprintBuilder::~FingerprintBuilder() = default;

void FingerprintBuilder::add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(m_state->xxh, bytes.data(), bytes.size());
}

Fingerprint FingerprintBuilder::finish() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(m_state->xxh);
    return {hash.high64, hash.low64};
}

} // namespace kvscope::model
