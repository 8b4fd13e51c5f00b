// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to engine/model: turns the bytes of a window into a GgufFile, distrusting every number in them.
#pragma once

#include "engine/model/gguf_file.h"

namespace kvscope::model {

class GgufParser {
public:
    explicit GgufParser(GgufFile& file) : m_file(file), m_window(file.m_window) {}
    Result<void> parse();

private:
    Result<void> magicAndVersion();
    Result<void> counts();
    Result<void> metadata();
    Result<void> metadataEntry(std::uint64_t number);
    Result<void> value(std::string_view key, GgufValue& out);
    Result<void> arrayValue(std::string_view key, GgufValue& out);
    Result<void> alignment();
    Result<void> tensorTable();
    Result<void> tensorEntry(std::uint64_t number);
    Result<void> tensorShape(TensorInfo& tensor);
    Result<void> tensorSize(TensorInfo& tensor);
    Result<void> dataSection();

    /// Makes the next `bytes` readable and moves past them; `what` names them in the sentence.
    Result<const std::byte*> take(std::uint64_t bytes, const std::string& what);
    template <class T> Result<T> number(const std::string& what);
    Result<std::string_view> text(const std::string& what, std::uint64_t longest);

    std::uint64_t remaining() const { return m_window.size() - m_at; }
    /// "FILE: SENTENCE. The file is damaged; download it again."
    tl::unexpected<Error> damaged(const std::string& sentence) const;
    tl::unexpected<Error> tooShort(const std::string& what, std::uint64_t needs) const;

    GgufFile& m_file;
    FileWindow& m_window;
    std::uint64_t m_at = 0;
    std::uint64_t m_tensorCount = 0;
    std::uint64_t m_keyCount = 0;
    std::uint64_t m_alignment = 32;
    std::uint64_t m_dataBytes = 0; ///< padded sizes of the tensors so far = the offset the next one must have
    std::uint64_t m_lastTensorEnd = 0;
};

} // namespace kvscope::model
