// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes GGUF files for tests: good ones by default, and bad ones on purpose (every number of the header can be
// overridden).
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf_types.h"

namespace kvscope::test {

using model::TensorType;
using model::ValueType;

/// Appends little-endian numbers and length-prefixed strings.
class ByteWriter {
public:
    template <class T> ByteWriter& number(T value) {
        const char* at = reinterpret_cast<const char*>(&value);
        m_bytes.append(at, sizeof value);
        return *this;
    }
    ByteWriter& u32(std::uint32_t value) { return number(value); }
    ByteWriter& u64(std::uint64_t value) { return number(value); }
    ByteWriter& text(std::string_view value) {
        u64(value.size());
        m_bytes.append(value);
        return *this;
    }
    ByteWriter& raw(std::string_view bytes) {
        m_bytes.append(bytes);
        return *this;
    }
    void padTo(std::size_t alignment) { m_bytes.resize((m_bytes.size() + alignment - 1) / alignment * alignment); }
    std::string& bytes() { return m_bytes; }

private:
    std::string m_bytes;
};

/// What a tensor's entry says; whatever is not given follows from the others.
struct TensorSpec {
    std::string name;
    std::vector<std::int64_t> dims;
    TensorType type = TensorType::F32;
    std::string data;                        ///< empty: zeros
    std::optional<std::uint32_t> typeNumber; ///< instead of `type`
    std::optional<std::uint32_t> dimensions; ///< instead of dims.size()
    std::optional<std::uint64_t> offset;     ///< instead of the right one
};

class GgufWriter {
public:
    // ---- metadata, in order of the calls
    GgufWriter& u16(std::string_view key, std::uint16_t value) { return scalar(key, ValueType::U16, value); }
    GgufWriter& u32(std::string_view key, std::uint32_t value) { return scalar(key, ValueType::U32, value); }
    GgufWriter& i32(std::string_view key, std::int32_t value) { return scalar(key, ValueType::I32, value); }
    GgufWriter& u64(std::string_view key, std::uint64_t value) { return scalar(key, ValueType::U64, value); }
    GgufWriter& i64(std::string_view key, std::int64_t value) { return scalar(key, ValueType::I64, value); }
    GgufWriter& f32(std::string_view key, float value) { return scalar(key, ValueType::F32, value); }
    GgufWriter& f64(std::string_view key, double value) { return scalar(key, ValueType::F64, value); }
    GgufWriter& boolean(std::string_view key, bool value) {
        return scalar(key, ValueType::Bool, static_cast<std::uint8_t>(value));
    }
    GgufWriter& text(std::string_view key, std::string_view value) {
        return entry(key, ByteWriter().u32(number(ValueType::String)).text(value).bytes());
    }
    GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
        ByteWriter bytes;
        arrayHead(bytes, ValueType::String, values.size());
        for (const std::string& value : values)
            bytes.text(value);
        return entry(key, bytes.bytes());
    }
    GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& v) { return list(key, ValueType::I32, v); }
    GgufWriter& u32s(std::string_view key, const std::vector<std::uint32_t>& v) { return list(key, ValueType::U32, v); }
    GgufWriter& f32s(std::string_view key, const std::vector<float>& v) { return list(key, ValueType::F32, v); }
    GgufWriter& booleans(std::string_view key, const std::vector<std::uint8_t>& v) {
        return list(key, ValueType::Bool, v);
    }
    /// Type number, then the value, as raw bytes; also replaces an entry of the same key.
    GgufWriter& entry(std::string_view key, std::string typeAndValue) {
        for (Entry& old : m_entries)
            if (old.key == key) {
                old.bytes = std::move(typeAndValue);
                return *this;
            }
        return duplicateEntry(key, std::move(typeAndValue));
    }
    GgufWriter& duplicateEntry(std::string_view key, std::string typeAndValue) {
        m_entries.push_back({std::string(key), std::move(typeAndValue)});
        return *this;
    }
    GgufWriter& without(std::string_view key) {
        std::erase_if(m_entries, [&](const Entry& e) { return e.key == key; });
        return *this;
    }

    // ---- tensors
    GgufWriter& tensor(TensorSpec spec) {
        m_tensors.push_back(std::move(spec));
        return *this;
    }
    GgufWriter& withoutTensor(std::string_view name) {
        std::erase_if(m_tensors, [&](const TensorSpec& t) { return t.name == name; });
        return *this;
    }
    TensorSpec* find(std::string_view name) {
        for (TensorSpec& tensor : m_tensors)
            if (tensor.name == name)
                return &tensor;
        return nullptr;
    }
    std::vector<TensorSpec>& tensors() { return m_tensors; }

    // ---- lies
    std::string magic = "GGUF";
    std::uint32_t version = 3;
    std::uint64_t alignment = 32;
    std::optional<std::uint64_t> tensorCount;
    std::optional<std::uint64_t> keyCount;

    std::string build() const {
        ByteWriter out;
        out.raw(magic)
            .u32(version)
            .u64(tensorCount.value_or(m_tensors.size()))
            .u64(keyCount.value_or(m_entries.size()));
        for (const Entry& entry : m_entries)
            out.text(entry.key).raw(entry.bytes);
        std::uint64_t offset = 0;
        for (const TensorSpec& tensor : m_tensors) {
            out.text(tensor.name).u32(tensor.dimensions.value_or(static_cast<std::uint32_t>(tensor.dims.size())));
            for (std::int64_t size : tensor.dims)
                out.number(size);
            out.u32(tensor.typeNumber.value_or(static_cast<std::uint32_t>(tensor.type)));
            out.u64(tensor.offset.value_or(offset));
            offset = (offset + dataBytes(tensor) + alignment - 1) / alignment * alignment;
        }
        if (!m_tensors.empty())
            out.padTo(alignment);
        for (const TensorSpec& tensor : m_tensors) {
            out.raw(tensor.data.empty() ? std::string(dataBytes(tensor), '\0') : tensor.data);
            if (&tensor != &m_tensors.back())
                out.padTo(alignment);
        }
        return out.bytes();
    }
    bool write(const std::string& path) const {
        std::ofstream file(path, std::ios::binary);
        const std::string bytes = build();
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        file.close();
        return file.good();
    }

private:
    struct Entry {
        std::string key;
        std::string bytes;
    };

    static std::uint32_t number(ValueType type) { return static_cast<std::uint32_t>(type); }
    static void arrayHead(ByteWriter& bytes, ValueType element, std::size_t count) {
        bytes.u32(number(ValueType::Array)).u32(number(element)).u64(count);
    }
    template <class T> GgufWriter& scalar(std::string_view key, ValueType type, T value) {
        return entry(key, ByteWriter().u32(number(type)).number(value).bytes());
    }
    template <class T> GgufWriter& list(std::string_view key, ValueType type, const std::vector<T>& values) {
        ByteWriter bytes;
        arrayHead(bytes, type, values.size());
        for (T value : values)
            bytes.number(value);
        return entry(key, bytes.bytes());
    }
    /// Bytes of a tensor as its true type and dims say; 0 where the dims are lies that no size follows from.
    static std::uint64_t dataBytes(const TensorSpec& tensor) {
        if (!tensor.data.empty())
            return tensor.data.size();
        const model::TensorTypeTraits& traits = model::tensorTypeTraits(tensor.type);
        std::uint64_t values = 1;
        for (std::int64_t size : tensor.dims) {
            if (size <= 0 || size > (1 << 20))
                return 0;
            values *= static_cast<std::uint64_t>(size);
        }
        return values / traits.blockValues * traits.blockBytes;
    }

    std::vector<Entry> m_entries;
    std::vector<TensorSpec> m_tensors;
};

} // namespace kvscope::test
