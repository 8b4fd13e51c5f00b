// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/fingerprint.h"
#include "engine/model/gguf_file.h"
#include "engine/model/text_hash.h"

namespace kvscope::model {

/// Takes one tensor. `bytes` are in the block layout of `tensor.type`, aligned to 64, and only valid during the call.
/// An error stops the load and becomes its result.
using TensorSink = std::function<Result<void>(const TensorInfo& tensor, std::span<const std::byte> bytes)>;

struct LoadOptions {
    /// Called from the loading thread, at least once per 8 MiB, last with done == total.
    std::function<void(std::uint64_t doneBytes, std::uint64_t totalBytes)> progress;
    /// Any thread may set it; the load then ends with ErrorCode::Cancelled within one 8 MiB read.
    const std::atomic<bool>* cancel = nullptr;
};

/// A model: one GGUF file, or all shards of one ("NAME-00001-of-00003.gguf"), opened by any of them.
/// Metadata is that of the first shard. Holds open descriptors and the header's bytes, no weights; the engine drops it
/// once weights, config and tokenizer are built. Const calls from any thread, but one `stream` at a time.
class ModelFile {
public:
    /// Reads headers only (milliseconds). Errors as GgufFile::open, plus shards that are missing or do not belong
    /// together.
    static Result<ModelFile> open(const std::string& path);

    const GgufMetadata& metadata() const { return m_shards.front().metadata(); }
    const std::vector<GgufFile>& shards() const { return m_shards; }
    /// Of all shards, in file order.
    const std::vector<TensorInfo>& tensors() const { return m_tensors; }
    const TensorInfo* findTensor(std::string_view name) const;
    /// Sum of the tensors' sizes in the file.
    std::uint64_t tensorBytes() const { return m_tensorBytes; }
    /// Path that was opened.
    const std::string& path() const { return m_path; }
    /// One per shard, for `fileChanged`.
    std::vector<FileIdentity> identities() const;

    /// Reads every byte of the model once, in order: hands each tensor to `sink` and returns the fingerprint of it all.
    /// Memory: one buffer of the largest tensor. A file that is truncated or written to meanwhile ends it with
    /// ErrorCode::Changed and a sentence; it never raises a signal.
    Result<Fingerprint> stream(const TensorSink& sink, const LoadOptions& options = {}) const;

    /// One tensor's bytes, for small ones that are needed apart from the weights (rope_freqs).
    Result<std::vector<std::byte>> readTensor(const TensorInfo& tensor) const;
    /// The same as floats. Only F32 tensors; others are ErrorCode::Unsupported.
    Result<std::vector<float>> readFloats(const TensorInfo& tensor) const;

private:
    ModelFile() = default;
    Result<void> openOtherShards(std::int64_t shardCount);
    Result<void> indexTensors();

    std::string m_path;
    std::vector<GgufFile> m_shards;
    std::vector<TensorInfo> m_tensors;
    std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> m_index;
    std::uint64_t m_tensorBytes = 0;
};

} // namespace kvscope::model
