// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/file_window.h"
#include "engine/model/gguf_metadata.h"
#include "engine/model/gguf_types.h"
#include "engine/model/text_hash.h"

namespace kvscope::model {

/// Where a tensor lies. dims[0] ("ne0", in features) is contiguous: a matrix of dims {cols, rows} is row-major.
struct TensorInfo {
    std::string name;
    TensorType type = TensorType::F32;
    std::uint32_t dimensions = 1;                 ///< 1..4
    std::array<std::int64_t, 4> dims{1, 1, 1, 1}; ///< unused ones are 1; the product fits int64
    std::uint64_t offset = 0;                     ///< from the start of its file
    std::uint64_t bytes = 0;
    std::uint32_t shard = 0; ///< which file of the model; 0 for a model in one file

    std::int64_t cols() const { return dims[0]; }
    std::int64_t rows() const { return dims[1] * dims[2] * dims[3]; }
    std::int64_t values() const { return cols() * rows(); }
    std::uint64_t rowBytes() const { return rows() > 0 ? bytes / static_cast<std::uint64_t>(rows()) : 0; }
    /// "[576, 49152]"
    std::string shape() const;
};

/// One GGUF file (version 2 or 3, little-endian) with header, metadata and tensor table read and checked; tensor bytes
/// are not touched. Memory: the header's bytes plus an index of the same order, whatever the file claims.
///
/// Every file that opens has: unique keys and tensor names, values inside the file, known tensor types, tensors one
/// after another without overlap, and all their bytes present. Whether it makes sense as a model is `readModelConfig`'s
/// question. Errors (each its own sentence): NotFound, Io, Corrupt, Unsupported, Changed, OutOfMemory. Thread: none of
/// its own; const calls from any thread.
class GgufFile {
public:
    static Result<GgufFile> open(const std::string& path);

    const std::string& path() const { return m_window.identity().path; }
    const FileIdentity& identity() const { return m_window.identity(); }
    std::uint32_t version() const { return m_version; }
    const GgufMetadata& metadata() const { return m_metadata; }
    /// In file order, which is the order of their bytes.
    const std::vector<TensorInfo>& tensors() const { return m_tensors; }
    const TensorInfo* findTensor(std::string_view name) const;

    /// Header, metadata and tensor table with the padding behind it: bytes [0, dataStart).
    std::uint64_t dataStart() const { return m_dataStart; }
    /// End of the last tensor; what may follow in the file belongs to nobody.
    std::uint64_t dataEnd() const { return m_dataEnd; }
    /// The bytes of the header, in the window. (dataStart)
    std::span<const std::byte> headerBytes() const { return {m_window.data(), static_cast<std::size_t>(m_dataStart)}; }

    /// Copies file bytes; see FileWindow::read.
    Result<void> read(std::uint64_t offset, std::span<std::byte> out) const { return m_window.read(offset, out); }

private:
    friend class GgufParser;
    explicit GgufFile(FileWindow window) : m_window(std::move(window)) {}

    FileWindow m_window;
    std::uint32_t m_version = 0;
    GgufMetadata m_metadata;
    std::vector<TensorInfo> m_tensors;
    std::unordered_map<std::string_view, std::size_t, TextHash, std::equal_to<>>
        m_tensorIndex; ///< keys point into the window
    std::uint64_t m_dataStart = 0;
    std::uint64_t m_dataEnd = 0;
};

} // namespace kvscope::model
