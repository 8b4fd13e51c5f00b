// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kvscope::model {

/// XXH3-128 over header and tensor bytes of all files of a model, in order. Equal fingerprints mean equal weights,
/// vocabulary and settings: what a cached block's key and a saved conversation refer to.
struct Fingerprint {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
    /// 32 hexadecimal digits, most significant first (as `xxh128sum` prints).
    std::string text() const;
};

/// Streaming XXH3-128.
class FingerprintBuilder {
public:
    FingerprintBuilder();
    ~FingerprintBuilder();
    FingerprintBuilder(const FingerprintBuilder&) = delete;
    FingerprintBuilder& operator=(const FingerprintBuilder&) = delete;

    void add(std::span<const std::byte> bytes);
    Fingerprint finish() const;

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace kvscope::model
