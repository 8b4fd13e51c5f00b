// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/gguf_types.h"

#include <array>

namespace kvscope::model {
namespace {

struct NumberedTraits {
    TensorType type;
    TensorTypeTraits traits;
};

// Block sizes as the format fixes them. Q1_0 and Q2_0 (41, 42) are left out: no published file uses them.
constexpr std::array<NumberedTraits, 33> kTraits{{
    {TensorType::F32, {"F32", 1, 4}},
    {TensorType::F16, {"F16", 1, 2}},
    {TensorType::Q4_0, {"Q4_0", 32, 18}},
    {TensorType::Q4_1, {"Q4_1", 32, 20}},
    {TensorType::Q5_0, {"Q5_0", 32, 22}},
    {TensorType::Q5_1, {"Q5_1", 32, 24}},
    {TensorType::Q8_0, {"Q8_0", 32, 34}},
    {TensorType::Q8_1, {"Q8_1", 32, 36}},
    {TensorType::Q2_K, {"Q2_K", 256, 84}},
    {TensorType::Q3_K, {"Q3_K", 256, 110}},
    {TensorType::Q4_K, {"Q4_K", 256, 144}},
    {TensorType::Q5_K, {"Q5_K", 256, 176}},
    {TensorType::Q6_K, {"Q6_K", 256, 210}},
    {TensorType::Q8_K, {"Q8_K", 256, 292}},
    {TensorType::IQ2_XXS, {"IQ2_XXS", 256, 66}},
    {TensorType::IQ2_XS, {"IQ2_XS", 256, 74}},
    {TensorType::IQ3_XXS, {"IQ3_XXS", 256, 98}},
    {TensorType::IQ1_S, {"IQ1_S", 256, 50}},
    {TensorType::IQ4_NL, {"IQ4_NL", 32, 18}},
    {TensorType::IQ3_S, {"IQ3_S", 256, 110}},
    {TensorType::IQ2_S, {"IQ2_S", 256, 82}},
    {TensorType::IQ4_XS, {"IQ4_XS", 256, 136}},
    {TensorType::I8, {"I8", 1, 1}},
    {TensorType::I16, {"I16", 1, 2}},
    {TensorType::I32, {"I32", 1, 4}},
    {TensorType::I64, {"I64", 1, 8}},
    {TensorType::F64, {"F64", 1, 8}},
    {TensorType::IQ1_M, {"IQ1_M", 256, 56}},
    {TensorType::BF16, {"BF16", 1, 2}},
    {TensorType::TQ1_0, {"TQ1_0", 256, 54}},
    {TensorType::TQ2_0, {"TQ2_0", 256, 66}},
    {TensorType::MXFP4, {"MXFP4", 32, 17}},
    {TensorType::NVFP4, {"NVFP4", 64, 36}},
}};

constexpr std::array<TensorType, 6> kBuilt{TensorType::F32,  TensorType::F16,  TensorType::BF16,
                                           TensorType::Q8_0, TensorType::Q4_0, TensorType::Q4_1};

const NumberedTraits* lookUp(std::uint32_t number) {
    for (const NumberedTraits& entry : kTraits)
        if (static_cast<std::uint32_t>(entry.type) == number)
            return &entry;
    return nullptr;
}

/// Length of the valid UTF-8 sequence at the start of `text`, 0 when there is none.
std::size_t validUtf8Length(std::string_view text) {
    const auto byteAt = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byteAt(0);
    std::size_t length = 0;
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        length = 2;
    else if (first >= 0xE0 && first <= 0xEF)
        length = 3;
    else if (first >= 0xF0 && first <= 0xF4)
        length = 4;
    else
        return 0;
    if (text.size() < length)
        return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byteAt(i) & 0xC0) != 0x80)
            return 0;
    // Overlong forms, surrogates and code points beyond U+10FFFF differ from good ones in the second byte only.
    const unsigned char second = byteAt(1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
        return 0;
    return length;
}

} // namespace

std::uint32_t valueTypeBytes(ValueType type) {
    switch (type) {
    case ValueType::U8:
    case ValueType::I8:
    case ValueType::Bool:
        return 1;
    case ValueType::U16:
    case ValueType::I16:
        return 2;
    case ValueType::U32:
    case ValueType::I32:
    case ValueType::F32:
        return 4;
    case ValueType::U64:
    case ValueType::I64:
    case ValueType::F64:
        return 8;
    case ValueType::String:
    case ValueType::Array:
        return 0;
    }
    return 0;
}

const char* valueTypeName(ValueType type) {
    switch (type) {
    case ValueType::U8:
        return "u8";
    case ValueType::I8:
        return "i8";
    case ValueType::U16:
        return "u16";
    case ValueType::I16:
        return "i16";
    case ValueType::U32:
        return "u32";
    case ValueType::I32:
        return "i32";
    case ValueType::F32:
        return "f32";
    case ValueType::Bool:
        return "bool";
    case ValueType::String:
        return "string";
    case ValueType::Array:
        return "array";
    case ValueType::U64:
        return "u64";
    case ValueType::I64:
        return "i64";
    case ValueType::F64:
        return "f64";
    }
    return "unknown";
}

std::optional<TensorType> tensorTypeFromFile(std::uint32_t number) {
    const NumberedTraits* entry = lookUp(number);
    return entry ? std::optional(entry->type) : std::nullopt;
}

const TensorTypeTraits& tensorTypeTraits(TensorType type) {
    static constexpr TensorTypeTraits kUnknown{"unknown", 1, 0};
    const NumberedTraits* entry = lookUp(static_cast<std::uint32_t>(type));
    return entry ? entry->traits : kUnknown;
}

bool isBuiltTensorType(TensorType type) {
    for (TensorType built : kBuilt)
        if (built == type)
            return true;
    return false;
}

std::string builtTensorTypes() {
    std::string list;
    for (TensorType type : kBuilt) {
        if (!list.empty())
            list += ", ";
        list += tensorTypeName(type);
    }
    return list;
}

std::string forSentence(std::string_view text, std::size_t most) {
    std::string out;
    std::size_t characters = 0;
    while (!text.empty()) {
        if (characters++ == most)
            return out + "...";
        const std::size_t length = validUtf8Length(text);
        const bool printable = length > 1 || (length == 1 && text[0] >= 0x20 && text[0] != 0x7F);
        out += printable ? std::string(text.substr(0, length)) : "\xEF\xBF\xBD";
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

} // namespace kvscope::model
