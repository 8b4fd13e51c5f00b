// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/model/gguf_types.h"
#include "engine/model/text_hash.h"

namespace kvscope::model {

/// One metadata value: a view into the file's window, already checked to lie inside it. Bytes need not be aligned.
struct GgufValue {
    ValueType type = ValueType::U8;
    ValueType elementType = ValueType::U8; ///< of arrays; else equal to `type`
    std::uint64_t count = 1;               ///< elements of an array; else 1
    const std::byte* data = nullptr;       ///< first element (strings: their length prefix)
    std::uint64_t bytes = 0;               ///< of all elements

    bool isArray() const { return type == ValueType::Array; }
    /// Any integer type (writers disagree on width and sign). nullopt: not an integer, or above INT64_MAX.
    std::optional<std::int64_t> asInteger() const;
    /// f32, f64 or any integer type.
    std::optional<double> asReal() const;
    std::optional<bool> asBool() const;
    std::optional<std::string_view> asString() const;

    // Arrays, whole. nullopt: not an array of that kind.
    std::optional<std::vector<std::int64_t>> asIntegers() const;
    std::optional<std::vector<double>> asReals() const;
    std::optional<std::vector<bool>> asBools() const;
    std::optional<std::vector<std::string_view>> asStrings() const;
};

/// The keys of one file. Lives as long as the file that it was read from; every string_view points into it.
/// The typed getters give nullopt both for an absent key and for one of another type; `find` tells them apart.
class GgufMetadata {
public:
    const GgufValue* find(std::string_view key) const;
    bool contains(std::string_view key) const { return find(key) != nullptr; }
    /// All keys, in file order.
    const std::vector<std::string_view>& keys() const { return m_keys; }

    std::optional<std::int64_t> integer(std::string_view key) const;
    std::optional<double> real(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> string(std::string_view key) const;
    std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
    std::optional<std::vector<double>> reals(std::string_view key) const;
    std::optional<std::vector<std::string_view>> strings(std::string_view key) const;

    /// For the reader: false when the key exists already.
    bool insert(std::string_view key, const GgufValue& value);

private:
    std::vector<std::string_view> m_keys;
    std::unordered_map<std::string_view, GgufValue, TextHash, std::equal_to<>> m_values;
};

} // namespace kvscope::model
