// SPDX-License-Identifier: GPL-3.0-or-later
//
// The numbers that a GGUF file is made of: value types of the metadata and element types of the tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::model {

/// Type of a metadata value, as numbered in the file.
enum class ValueType : std::uint32_t {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
};
constexpr std::uint32_t kValueTypeCount = 13;

/// Bytes of one value; 0 for strings and arrays, whose size stands in the file.
std::uint32_t valueTypeBytes(ValueType type);
const char* valueTypeName(ValueType type);

/// Element type of a tensor, as numbered in the file. Only types with a known block size can be constructed from a
/// file; which of them the kernels can compute with is another question (see `isBuiltTensorType`).
enum class TensorType : std::uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q8_1 = 9,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    Q8_K = 15,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
};

/// A row is cut into blocks of `blockValues` values, each `blockBytes` long.
struct TensorTypeTraits {
    const char* name = "";
    std::uint32_t blockValues = 0;
    std::uint32_t blockBytes = 0;
};

/// nullopt: unknown, removed from the format, or of another program's own numbering.
std::optional<TensorType> tensorTypeFromFile(std::uint32_t number);
const TensorTypeTraits& tensorTypeTraits(TensorType type);
inline const char* tensorTypeName(TensorType type) {
    return tensorTypeTraits(type).name;
}
/// True for the types this program can compute with today.
bool isBuiltTensorType(TensorType type);
/// "F32, F16, ...", for sentences.
std::string builtTensorTypes();

/// Text from a file made fit for a sentence: control characters and invalid UTF-8 replaced, at most so many characters.
std::string forSentence(std::string_view text, std::size_t most = 80);

} // namespace kvscope::model
