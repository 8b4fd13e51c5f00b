// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/base/ids.h"

namespace kvscope::kv {

/// Name of a full block's content: a 128-bit XXH3 hash chained over everything that the content depends on.
struct BlockKey {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend bool operator==(const BlockKey&, const BlockKey&) = default;
    std::string hex() const; ///< 32 lower-case digits
};

/// What the K/V of a token depends on besides the tokens before it. Two pools whose contexts differ in one field share
/// no key, so that a block in the wrong format is never found.
struct KeyContext {
    std::string modelFingerprint; ///< hash of the weights, not a path or a name
    std::string keyDtype = "f16"; ///< by name: two dtypes of equal row size must not be taken for each other
    std::string valueDtype = "f16";
    std::uint32_t layoutVersion = 0; ///< of the bytes inside a block
    std::uint64_t ropeHash = 0;      ///< hash over all rotary parameters
    /// Makes "no parent" unpredictable, so that nobody can prepare a prompt that collides. None = random for each
    /// process; a given one makes keys repeatable (replay, snapshots).
    std::optional<std::uint64_t> salt;
};

/// Computes keys. An interface only so that tests can make keys collide on purpose.
class BlockHasher {
public:
    virtual ~BlockHasher() = default;
    /// The parent of every first block. `adapter`: which adapter the request computes with, 0 = none.
    virtual BlockKey root(std::uint64_t adapter) const = 0;
    /// Key of a full block that follows the block named `parent`.
    virtual BlockKey block(const BlockKey& parent, std::span<const TokenId> tokens) const = 0;
};

/// XXH3-128 over tagged, length-prefixed fields: (context fields, salt, adapter) for the root, (parent, tokens) for a
/// block. Every key depends on the whole context through its chain of parents.
std::unique_ptr<BlockHasher> makeBlockHasher(const KeyContext& context);

} // namespace kvscope::kv
