// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/block_key.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/base/check.h"

namespace kvscope::kv {

namespace {

/// One byte before each field says which it is. Values are part of the key: never renumber, only add.
enum class Field : unsigned char {
    Parent = 1,
    Tokens = 2,
    Model = 3,
    KeyDtype = 4,
    ValueDtype = 5,
    Layout = 6,
    Rope = 7,
    Salt = 8,
    Adapter = 9,
};

/// Appends tag, length (32 bits) and bytes. Numbers are written as they lie in memory: keys stay on one machine.
class FieldWriter {
public:
    explicit FieldWriter(std::vector<std::byte>& out) : m_out(out) {}
    void add(Field field, const void* data, std::size_t bytes) {
        const auto length = static_cast<std::uint32_t>(bytes);
        m_out.push_back(static_cast<std::byte>(field));
        append(&length, sizeof length);
        append(data, bytes);
    }
    void add(Field field, std::string_view text) { add(field, text.data(), text.size()); }
    void add(Field field, std::uint64_t number) { add(field, &number, sizeof number); }

private:
    void append(const void* data, std::size_t bytes) {
        const auto* first = static_cast<const std::byte*>(data);
        m_out.insert(m_out.end(), first, first + bytes);
    }
    std::vector<std::byte>& m_out;
};

BlockKey hashBytes(const void* data, std::size_t bytes) {
    const XXH128_hash_t hash = XXH3_128bits(data, bytes);
    return {hash.high64, hash.low64};
}

std::uint64_t randomSalt() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

class Xxh3BlockHasher final : public BlockHasher {
public:
    explicit Xxh3BlockHasher(const KeyContext& context) {
        FieldWriter writer(m_context);
        writer.add(Field::Model, context.modelFingerprint);
        writer.add(Field::KeyDtype, context.keyDtype);
        writer.add(Field::ValueDtype, context.valueDtype);
        writer.add(Field::Layout, context.layoutVersion);
        writer.add(Field::Rope, context.ropeHash);
        writer.add(Field::Salt, context.salt ? *context.salt : randomSalt());
    }

    BlockKey root(std::uint64_t adapter) const override {
        std::vector<std::byte> bytes = m_context;
        FieldWriter(bytes).add(Field::Adapter, adapter);
        return hashBytes(bytes.data(), bytes.size());
    }

    BlockKey block(const BlockKey& parent, std::span<const TokenId> tokens) const override {
        // On the stack: this runs for every block of every prompt.
        std::array<unsigned char, 2 * kHead + sizeof(BlockKey) + kMaxTokens * sizeof(TokenId)> bytes;
        KV_CHECK(tokens.size() <= kMaxTokens, "a block has more tokens than the largest block size");
        std::size_t used = 0;
        const auto add = [&](Field field, const void* data, std::size_t size) {
            const auto length = static_cast<std::uint32_t>(size);
            bytes[used] = static_cast<unsigned char>(field);
            std::memcpy(&bytes[used + 1], &length, sizeof length);
            std::memcpy(&bytes[used + kHead], data, size);
            used += kHead + size;
        };
        add(Field::Parent, &parent, sizeof parent);
        add(Field::Tokens, tokens.data(), tokens.size_bytes());
        return hashBytes(bytes.data(), used);
    }

private:
    static constexpr std::size_t kHead = 1 + sizeof(std::uint32_t); ///< tag and length
    static constexpr std::size_t kMaxTokens = 64;
    std::vector<std::byte> m_context;
};

} // namespace

std::string BlockKey::hex() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text(32, '0');
    for (int i = 0; i < 16; ++i) {
        text[static_cast<std::size_t>(15 - i)] = kDigits[(high >> (4 * i)) & 15];
        text[static_cast<std::size_t>(31 - i)] = kDigits[(low >> (4 * i)) & 15];
    }
    return text;
}

std::unique_ptr<BlockHasher> makeBlockHasher(const KeyContext& context) {
    return std::make_unique<Xxh3BlockHasher>(context);
}

} // namespace kvscope::kv
