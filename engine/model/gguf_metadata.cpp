// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/gguf_metadata.h"

#include <cstring>
#include <limits>

namespace kvscope::model {
namespace {

template <class T> T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

std::optional<std::int64_t> integerAt(ValueType type, const std::byte* at) {
    switch (type) {
    case ValueType::U8:
        return load<std::uint8_t>(at);
    case ValueType::I8:
        return load<std::int8_t>(at);
    case ValueType::U16:
        return load<std::uint16_t>(at);
    case ValueType::I16:
        return load<std::int16_t>(at);
    case ValueType::U32:
        return load<std::uint32_t>(at);
    case ValueType::I32:
        return load<std::int32_t>(at);
    case ValueType::I64:
        return load<std::int64_t>(at);
    case ValueType::U64: {
        const auto value = load<std::uint64_t>(at);
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return std::nullopt;
        return static_cast<std::int64_t>(value);
    }
    default:
        return std::nullopt;
    }
}

std::optional<double> realAt(ValueType type, const std::byte* at) {
    if (type == ValueType::F32)
        return load<float>(at);
    if (type == ValueType::F64)
        return load<double>(at);
    if (auto integer = integerAt(type, at))
        return static_cast<double>(*integer);
    return std::nullopt;
}

std::optional<bool> boolAt(ValueType type, const std::byte* at) {
    if (type != ValueType::Bool)
        return std::nullopt;
    return load<std::uint8_t>(at) != 0;
}

std::string_view stringAt(const std::byte* at) {
    const auto length = load<std::uint64_t>(at);
    return {reinterpret_cast<const char*>(at + sizeof(std::uint64_t)), static_cast<std::size_t>(length)};
}

template <class T, class Read> std::optional<std::vector<T>> collect(const GgufValue& value, Read read) {
    const std::uint32_t step = valueTypeBytes(value.elementType);
    if (!value.isArray() || step == 0)
        return std::nullopt;
    std::vector<T> all;
    all.reserve(value.count);
    for (std::uint64_t i = 0; i < value.count; ++i) {
        const auto element = read(value.elementType, value.data + i * step);
        if (!element)
            return std::nullopt;
        all.push_back(*element);
    }
    return all;
}

} // namespace

std::optional<std::int64_t> GgufValue::asInteger() const {
    return integerAt(type, data);
}

std::optional<double> GgufValue::asReal() const {
    return realAt(type, data);
}

std::optional<bool> GgufValue::asBool() const {
    return boolAt(type, data);
}

std::optional<std::string_view> GgufValue::asString() const {
    if (type != ValueType::String)
        return std::nullopt;
    return stringAt(data);
}

std::optional<std::vector<std::int64_t>> GgufValue::asIntegers() const {
    return collect<std::int64_t>(*this, integerAt);
}

std::optional<std::vector<double>> GgufValue::asReals() const {
    return collect<double>(*this, realAt);
}

std::optional<std::vector<bool>> GgufValue::asBools() const {
    return collect<bool>(*this, boolAt);
}

std::optional<std::vector<std::string_view>> GgufValue::asStrings() const {
    if (!isArray() || elementType != ValueType::String)
        return std::nullopt;
    std::vector<std::string_view> all;
    all.reserve(count);
    const std::byte* at = data;
    for (std::uint64_t i = 0; i < count; ++i) {
        all.push_back(stringAt(at));
        at += sizeof(std::uint64_t) + all.back().size();
    }
    return all;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
    const auto it = m_values.find(key);
    return it == m_values.end() ? nullptr : &it->second;
}

std::optional<std::int64_t> GgufMetadata::integer(std::string_view key) const {
    const GgufValue* value = find(key);
    return value ? value->asInteger() : std::nullopt;
}

std::optional<double> GgufMetadata::real(std::string_view key) const {
    const GgufValue* value = find(key);
    return value ? value->asReal() : std::nullopt;
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
    const GgufValue* value = find(key);
    return value ? value->asBool() : std::nullopt;
}

std::optional<std::string_view> GgufMetadata::string(std::string_view key) const {
    const GgufValue* value = find(key);
    return value ? value->asString() : std::nullopt;
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
    const GgufValue* value = find(key);
    return value ? value->asIntegers() : std::nullopt;
}

std::optional<std::vector<double>> GgufMetadata::reals(std::string_view key) const {
    const GgufValue* value = find(key);
    return value ? value->asReals() : std::nullopt;
}

std::optional<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
    const GgufValue* value = find(key);
    return value ? value->asStrings() : std::nullopt;
}

bool GgufMetadata::insert(std::string_view key, const GgufValue& value) {
    if (!m_values.emplace(key, value).second)
        return false;
    m_keys.push_back(key);
    return true;
}

} // namespace kvscope::model
