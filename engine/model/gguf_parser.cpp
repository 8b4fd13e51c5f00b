// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/model/foreign_file.h"
#include "engine/model/missing_piece.h"

namespace kvscope::model {
namespace {

// Far above any real file (the largest published models have some 2,000 tensors and 100 keys), low enough that the
// index of a hostile header stays small.
constexpr std::uint64_t kMostTensors = 200'000;
constexpr std::uint64_t kMostKeys = 65'536;
constexpr std::uint64_t kLongestKey = 65'535;
constexpr std::uint64_t kLongestString = std::uint64_t(1) << 30;
constexpr std::uint64_t kMostElements = std::uint64_t(1) << 30;
constexpr std::uint64_t kLongestTensorName = 63;
constexpr std::uint64_t kHeaderBytes = 4 + 4 + 8 + 8;
// The least that one record can take: key (length, one character), type, value; name (length), count, one dim, type,
// offset.
constexpr std::uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 8 + 4 + 8;

std::string inQuotes(std::string_view text) {
    return "'" + forSentence(text) + "'";
}

} // namespace

tl::unexpected<Error> GgufParser::damaged(const std::string& sentence) const {
    return fail(ErrorCode::Corrupt, m_file.path() + ": " + sentence + ". The file is damaged; download it again.");
}

tl::unexpected<Error> GgufParser::tooShort(const std::string& what, std::uint64_t needs) const {
    return fail(ErrorCode::Corrupt, m_file.path() + " is cut off or damaged: " + what + " needs at least " +
                                        std::to_string(needs) + " bytes, the file has " +
                                        std::to_string(m_window.size()) + ". Download it again.");
}

Result<const std::byte*> GgufParser::take(std::uint64_t bytes, const std::string& what) {
    if (bytes > remaining()) {
        const bool countable = bytes <= std::numeric_limits<std::uint64_t>::max() - m_at;
        return tooShort(what, countable ? m_at + bytes : bytes);
    }
    if (auto ok = m_window.ensure(m_at + bytes); !ok)
        return tl::unexpected(ok.error());
    const std::byte* at = m_window.data() + m_at;
    m_at += bytes;
    return at;
}

template <class T> Result<T> GgufParser::number(const std::string& what) {
    auto at = take(sizeof(T), what);
    if (!at)
        return tl::unexpected(at.error());
    T value;
    std::memcpy(&value, *at, sizeof value);
    return value;
}

Result<std::string_view> GgufParser::text(const std::string& what, std::uint64_t longest) {
    auto length = number<std::uint64_t>(what);
    if (!length)
        return tl::unexpected(length.error());
    if (*length <= remaining() && *length > longest)
        return damaged(what + " claims to be " + std::to_string(*length) + " bytes long, at most " +
                       std::to_string(longest) + " are allowed");
    auto at = take(*length, what);
    if (!at)
        return tl::unexpected(at.error());
    return std::string_view(reinterpret_cast<const char*>(*at), static_cast<std::size_t>(*length));
}

Result<void> GgufParser::parse() {
    for (auto stage : {&GgufParser::magicAndVersion, &GgufParser::counts, &GgufParser::metadata, &GgufParser::alignment,
                       &GgufParser::tensorTable, &GgufParser::dataSection})
        if (auto ok = (this->*stage)(); !ok)
            return ok;
    return {};
}

Result<void> GgufParser::magicAndVersion() {
    const std::string& path = m_file.path();
    if (m_window.size() == 0)
        return fail(ErrorCode::Corrupt, path + " is empty. Download the model again.");
    const std::uint64_t peek = std::min<std::uint64_t>(m_window.size(), 512);
    if (auto ok = m_window.ensure(peek); !ok)
        return ok;
    const std::string_view start(reinterpret_cast<const char*>(m_window.data()), static_cast<std::size_t>(peek));
    if (start.substr(0, 4) != std::string_view("GGUF").substr(0, std::min<std::size_t>(4, start.size()))) {
        if (const auto sentence = foreignFileSentence(start))
            return fail(ErrorCode::Corrupt, path + *sentence);
        return fail(ErrorCode::Corrupt, path + " is not a GGUF file: it begins with " + inQuotes(start.substr(0, 4)) +
                                            " instead of 'GGUF'. Choose a model in GGUF format.");
    }
    if (m_window.size() < kHeaderBytes)
        return tooShort("the header", kHeaderBytes);
    m_at = 4;
    auto version = number<std::uint32_t>("the header");
    if (!version)
        return tl::unexpected(version.error());
    // A version below 65,536 written big-endian has its low 16 bits zero when read little-endian.
    if (*version != 0 && (*version & 0xFFFF) == 0)
        return fail(ErrorCode::Unsupported, path + " is written big-endian. Convert it on a little-endian machine, or "
                                                   "download the usual version.");
    if (*version == 1)
        return fail(ErrorCode::Unsupported, path + " is a GGUF file of version 1, which is obsolete. Convert the model "
                                                   "again, or download a newer file.");
    if (*version < 1 || *version > 3)
        return fail(ErrorCode::Unsupported, path + " is a GGUF file of version " + std::to_string(*version) +
                                                "; versions 2 and 3 can be read. Download one of these, or a newer "
                                                "KVScope.");
    m_file.m_version = *version;
    return {};
}

Result<void> GgufParser::counts() {
    auto tensors = number<std::uint64_t>("the header");
    auto keys = number<std::uint64_t>("the header");
    if (!tensors || !keys)
        return tl::unexpected(tensors ? keys.error() : tensors.error());
    if (*tensors > kMostTensors)
        return damaged("it claims " + std::to_string(*tensors) + " tensors, more than the " +
                       std::to_string(kMostTensors) + " that any model has");
    if (*keys > kMostKeys)
        return damaged("it claims " + std::to_string(*keys) + " metadata keys, more than the " +
                       std::to_string(kMostKeys) + " that any model has");
    const std::uint64_t least = *keys * kLeastKeyBytes + *tensors * kLeastTensorBytes;
    if (least > remaining())
        return tooShort("a header with " + std::to_string(*keys) + " keys and " + std::to_string(*tensors) + " tensors",
                        m_at + least);
    m_tensorCount = *tensors;
    m_keyCount = *keys;
    return {};
}

Result<void> GgufParser::metadata() {
    for (std::uint64_t i = 0; i < m_keyCount; ++i)
        if (auto ok = metadataEntry(i); !ok)
            return ok;
    return {};
}

Result<void> GgufParser::metadataEntry(std::uint64_t number) {
    auto key = text("the name of metadata key " + std::to_string(number), kLongestKey);
    if (!key)
        return tl::unexpected(key.error());
    if (key->empty())
        return damaged("metadata key " + std::to_string(number) + " has no name");
    GgufValue entry;
    if (auto ok = value(*key, entry); !ok)
        return ok;
    if (!m_file.m_metadata.insert(*key, entry))
        return damaged("the metadata key " + inQuotes(*key) + " stands in it twice");
    return {};
}

Result<void> GgufParser::value(std::string_view key, GgufValue& out) {
    const std::string what = "the value of " + inQuotes(key);
    auto type = number<std::uint32_t>(what);
    if (!type)
        return tl::unexpected(type.error());
    if (*type >= kValueTypeCount)
        return damaged(what + " has type " + std::to_string(*type) + ", which does not exist");
    out.type = out.elementType = static_cast<ValueType>(*type);
    if (out.type == ValueType::Array)
        return arrayValue(key, out);
    const std::uint64_t start = m_at;
    if (out.type == ValueType::String) {
        if (auto ok = text(what, kLongestString); !ok)
            return tl::unexpected(ok.error());
    } else if (auto ok = take(valueTypeBytes(out.type), what); !ok) {
        return tl::unexpected(ok.error());
    }
    out.data = m_window.data() + start;
    out.bytes = m_at - start;
    return {};
}

Result<void> GgufParser::arrayValue(std::string_view key, GgufValue& out) {
    const std::string what = "the array " + inQuotes(key);
    auto element = number<std::uint32_t>(what);
    auto count = number<std::uint64_t>(what);
    if (!element || !count)
        return tl::unexpected(element ? count.error() : element.error());
    if (*element >= kValueTypeCount)
        return damaged(what + " has elements of type " + std::to_string(*element) + ", which does not exist");
    out.elementType = static_cast<ValueType>(*element);
    if (out.elementType == ValueType::Array)
        return damaged(what + " holds arrays, which no reader supports");
    const bool ofStrings = out.elementType == ValueType::String;
    const std::uint64_t least = ofStrings ? sizeof(std::uint64_t) : valueTypeBytes(out.elementType);
    if (*count > kMostElements)
        return damaged(what + " claims " + std::to_string(*count) + " elements");
    if (*count * least > remaining())
        return tooShort(what + " of " + std::to_string(*count) + " elements", m_at + *count * least);
    const std::uint64_t start = m_at;
    out.count = *count;
    if (ofStrings) {
        const std::string elementName = "an element of " + inQuotes(key);
        for (std::uint64_t i = 0; i < *count; ++i)
            if (auto ok = text(elementName, kLongestString); !ok)
                return tl::unexpected(ok.error());
    } else if (auto ok = take(*count * least, what); !ok) {
        return tl::unexpected(ok.error());
    }
    out.data = m_window.data() + start;
    out.bytes = m_at - start;
    return {};
}

Result<void> GgufParser::alignment() {
    const GgufValue* given = m_file.m_metadata.find("general.alignment");
    if (!given)
        return {};
    const auto bytes = given->asInteger();
    if (given->type != ValueType::U32 || !bytes)
        return damaged(std::string("'general.alignment' is of type ") + valueTypeName(given->type) + " instead of u32");
    constexpr std::int64_t kMost = std::int64_t(1) << 24;
    if (*bytes < 8 || *bytes > kMost || !std::has_single_bit(static_cast<std::uint64_t>(*bytes)))
        return damaged("'general.alignment' is " + std::to_string(*bytes) + "; it must be a power of two from 8 to " +
                       std::to_string(kMost));
    m_alignment = static_cast<std::uint64_t>(*bytes);
    return {};
}

Result<void> GgufParser::tensorTable() {
    m_file.m_tensors.reserve(m_tensorCount);
    for (std::uint64_t i = 0; i < m_tensorCount; ++i)
        if (auto ok = tensorEntry(i); !ok)
            return ok;
    return {};
}

Result<void> GgufParser::tensorEntry(std::uint64_t index) {
    const std::string which = "tensor " + std::to_string(index);
    auto name = text("the name of " + which, kLongestTensorName);
    if (!name)
        return tl::unexpected(name.error());
    if (name->empty())
        return damaged(which + " has no name");
    if (!m_file.m_tensorIndex.emplace(*name, m_file.m_tensors.size()).second)
        return damaged("the tensor " + inQuotes(*name) + " stands in it twice");
    TensorInfo tensor;
    tensor.name = *name;
    if (auto ok = tensorShape(tensor); !ok)
        return ok;

    const std::string what = "tensor " + inQuotes(tensor.name);
    auto type = number<std::uint32_t>(what);
    auto offset = number<std::uint64_t>(what);
    if (!type || !offset)
        return tl::unexpected(type ? offset.error() : type.error());
    const auto known = tensorTypeFromFile(*type);
    if (!known)
        return fail(ErrorCode::Unsupported, m_file.path() + ": " + what + " has the type number " +
                                                std::to_string(*type) +
                                                ", which is not part of the GGUF format. Download the model in a "
                                                "common type, for example Q8_0.");
    tensor.type = *known;
    if (auto ok = tensorSize(tensor); !ok)
        return ok;
    if (*offset != m_dataBytes)
        return damaged(what + " begins at " + std::to_string(*offset) + " of the data, expected " +
                       std::to_string(m_dataBytes));
    tensor.offset = *offset; // dataSection() adds where the data starts, not known before the table ends
    m_lastTensorEnd = *offset + tensor.bytes;
    m_dataBytes = (m_lastTensorEnd + m_alignment - 1) / m_alignment * m_alignment;
    m_file.m_tensors.push_back(std::move(tensor));
    return {};
}

Result<void> GgufParser::tensorShape(TensorInfo& tensor) {
    const std::string what = "tensor " + inQuotes(tensor.name);
    auto dimensions = number<std::uint32_t>(what);
    if (!dimensions)
        return tl::unexpected(dimensions.error());
    if (*dimensions < 1 || *dimensions > tensor.dims.size())
        return damaged(what + " has " + std::to_string(*dimensions) + " dimensions; 1 to 4 are possible");
    tensor.dimensions = *dimensions;
    std::int64_t values = 1;
    for (std::uint32_t d = 0; d < *dimensions; ++d) {
        auto size = number<std::int64_t>(what);
        if (!size)
            return tl::unexpected(size.error());
        if (*size <= 0)
            return damaged(what + " has a dimension of " + std::to_string(*size));
        if (*size > std::numeric_limits<std::int64_t>::max() / values)
            return damaged(what + " has more values than can be counted");
        values *= *size;
        tensor.dims[d] = *size;
    }
    return {};
}

Result<void> GgufParser::tensorSize(TensorInfo& tensor) {
    const TensorTypeTraits& traits = tensorTypeTraits(tensor.type);
    const std::string what = "tensor " + inQuotes(tensor.name);
    if (tensor.cols() % traits.blockValues != 0)
        return damaged(what + " has rows of " + std::to_string(tensor.cols()) + " values, which " + traits.name +
                       " cannot hold (blocks of " + std::to_string(traits.blockValues) + ")");
    const auto blocks = static_cast<std::uint64_t>(tensor.values()) / traits.blockValues;
    // Half of the range is left to the running sum of offsets.
    constexpr std::uint64_t kMost = std::uint64_t(1) << 62;
    if (blocks > kMost / traits.blockBytes || m_dataBytes > kMost - blocks * traits.blockBytes)
        return damaged(what + " has more bytes than can be counted");
    tensor.bytes = blocks * traits.blockBytes;
    return {};
}

Result<void> GgufParser::dataSection() {
    // A file without tensors (a vocabulary) may end right after its metadata.
    const std::uint64_t padded = (m_at + m_alignment - 1) / m_alignment * m_alignment;
    const std::uint64_t start = m_tensorCount == 0 ? m_at : padded;
    const std::uint64_t needs = start + m_lastTensorEnd;
    if (needs > m_window.size())
        return fail(ErrorCode::Corrupt, m_file.path() + " is incomplete: it needs " + std::to_string(needs) +
                                            " bytes, the file has " + std::to_string(m_window.size()) + ". " +
                                            missingPieceAdvice(m_file.path(), needs - m_window.size(), m_alignment));
    if (auto ok = m_window.ensure(start); !ok)
        return ok;
    for (TensorInfo& tensor : m_file.m_tensors)
        tensor.offset += start;
    m_file.m_dataStart = start;
    m_file.m_dataEnd = start + m_lastTensorEnd;
    return {};
}

} // namespace kvscope::model
