// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/model_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <sys/mman.h>

#include "engine/model/shard_names.h"

namespace kvscope::model {
namespace {

constexpr std::int64_t kMostShards = 1000; // each holds a descriptor open
constexpr std::uint64_t kChunk = 8 * 1024 * 1024;

/// One tensor's bytes on their way from the file to the sink: anonymous pages, given back at the end.
class BounceBuffer {
public:
    BounceBuffer() = default;
    BounceBuffer(const BounceBuffer&) = delete;
    BounceBuffer& operator=(const BounceBuffer&) = delete;
    ~BounceBuffer() {
        if (m_data)
            ::munmap(m_data, m_bytes);
    }

    bool allocate(std::uint64_t bytes) {
        void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED)
            return false;
        ::madvise(data, bytes, MADV_HUGEPAGE); // fewer faults while the bytes stream through; it may be refused
        m_data = static_cast<std::byte*>(data);
        m_bytes = bytes;
        return true;
    }
    std::span<std::byte> first(std::uint64_t bytes) { return {m_data, static_cast<std::size_t>(bytes)}; }

private:
    std::byte* m_data = nullptr;
    std::uint64_t m_bytes = 0;
};

/// Reads, hashes and counts in one pass.
class Streamer {
public:
    Streamer(const LoadOptions& options, std::uint64_t total) : m_options(options), m_total(total) {}

    Result<void> header(const GgufFile& shard) {
        m_hash.add(shard.headerBytes());
        return advance(shard.dataStart());
    }

    Result<void> body(const GgufFile& shard, std::uint64_t offset, std::span<std::byte> out) {
        for (std::uint64_t at = 0; at < out.size(); at += kChunk) {
            const auto piece = out.subspan(at, std::min<std::uint64_t>(kChunk, out.size() - at));
            if (auto ok = shard.read(offset + at, piece); !ok)
                return ok;
            m_hash.add(piece);
            if (auto ok = advance(piece.size()); !ok)
                return ok;
        }
        return {};
    }

    /// Alignment bytes between two tensors: part of the fingerprint, of no interest to anybody.
    Result<void> padding(const GgufFile& shard, std::uint64_t from, std::uint64_t to) {
        std::vector<std::byte> gap(static_cast<std::size_t>(to - from));
        return gap.empty() ? Result<void>() : body(shard, from, gap);
    }

    Fingerprint fingerprint() const { return m_hash.finish(); }

private:
    Result<void> advance(std::uint64_t bytes) {
        m_done += bytes;
        if (m_options.progress)
            m_options.progress(m_done, m_total);
        if (m_options.cancel && m_options.cancel->load(std::memory_order_relaxed))
            return fail(ErrorCode::Cancelled, "Loading the model was cancelled.");
        return {};
    }

    const LoadOptions& m_options;
    std::uint64_t m_total = 0;
    std::uint64_t m_done = 0;
    FingerprintBuilder m_hash;
};

std::string fileName(const std::string& path) {
    return std::filesystem::path(path).filename().string();
}

} // namespace

Result<ModelFile> ModelFile::open(const std::string& path) {
    auto opened = GgufFile::open(path);
    if (!opened)
        return tl::unexpected(opened.error());
    const std::int64_t shardCount = opened->metadata().integer("split.count").value_or(1);
    ModelFile model;
    model.m_path = path;
    model.m_shards.push_back(std::move(*opened));
    if (shardCount > 1)
        if (auto ok = model.openOtherShards(shardCount); !ok)
            return tl::unexpected(ok.error());
    if (auto ok = model.indexTensors(); !ok)
        return tl::unexpected(ok.error());
    return model;
}

Result<void> ModelFile::openOtherShards(std::int64_t shardCount) {
    if (shardCount > kMostShards)
        return fail(ErrorCode::Corrupt, m_path + " claims to be one of " + std::to_string(shardCount) +
                                            " parts; at most " + std::to_string(kMostShards) + " can be read.");
    const auto name = ShardName::parse(m_path);
    if (!name || name->count != shardCount)
        return fail(ErrorCode::InvalidArgument,
                    m_path + " is one of " + std::to_string(shardCount) +
                        " parts of a model, but its name does not tell where the others are. Give the parts their "
                        "names back (MODEL-00001-of-" +
                        ShardName{"", 1, shardCount}.pathOf(1).substr(10) + " and so on), in one folder.");
    std::vector<GgufFile> shards;
    std::string missing;
    for (std::int64_t number = 1; number <= shardCount; ++number) {
        const std::string path = name->pathOf(number);
        auto shard = number == name->number ? Result<GgufFile>(std::move(m_shards.front())) : GgufFile::open(path);
        if (!shard && shard.error().code != ErrorCode::NotFound)
            return tl::unexpected(shard.error());
        if (!shard) {
            missing += (missing.empty() ? "" : ", ") + fileName(path);
            continue;
        }
        const auto count = shard->metadata().integer("split.count");
        const auto no = shard->metadata().integer("split.no");
        if (count != shardCount || no != number - 1)
            return fail(ErrorCode::Corrupt, path + " does not hold part " + std::to_string(number) + " of " +
                                                std::to_string(shardCount) +
                                                ", as its name says: parts were mixed up. Download the parts again, "
                                                "and do not rename them.");
        shards.push_back(std::move(*shard));
    }
    if (!missing.empty())
        return fail(ErrorCode::NotFound, m_path + " is one of " + std::to_string(shardCount) +
                                             " parts of a model; missing beside it: " + missing +
                                             ". Download the missing parts into the same folder.");
    m_shards = std::move(shards);
    return {};
}

Result<void> ModelFile::indexTensors() {
    for (std::size_t s = 0; s < m_shards.size(); ++s) {
        for (const TensorInfo& tensor : m_shards[s].tensors()) {
            if (!m_index.emplace(tensor.name, m_tensors.size()).second)
                return fail(ErrorCode::Corrupt, m_shards[s].path() + ": the tensor '" + forSentence(tensor.name) +
                                                    "' also stands in another part: parts of different models were "
                                                    "mixed up. Download the parts again.");
            m_tensors.push_back(tensor);
            m_tensors.back().shard = static_cast<std::uint32_t>(s);
            m_tensorBytes += tensor.bytes;
        }
    }
    const auto promised = metadata().integer("split.tensors.count");
    if (m_shards.size() > 1 && promised && *promised != static_cast<std::int64_t>(m_tensors.size()))
        return fail(ErrorCode::Corrupt, m_path + ": the parts hold " + std::to_string(m_tensors.size()) +
                                            " tensors together, the model has " + std::to_string(*promised) +
                                            ": parts of different models were mixed up. Download the parts again.");
    return {};
}

const TensorInfo* ModelFile::findTensor(std::string_view name) const {
    const auto it = m_index.find(name);
    return it == m_index.end() ? nullptr : &m_tensors[it->second];
}

std::vector<FileIdentity> ModelFile::identities() const {
    std::vector<FileIdentity> all;
    for (const GgufFile& shard : m_shards)
        all.push_back(shard.identity());
    return all;
}

Result<Fingerprint> ModelFile::stream(const TensorSink& sink, const LoadOptions& options) const {
    std::uint64_t largest = 1;
    std::uint64_t total = 0;
    for (const TensorInfo& tensor : m_tensors)
        largest = std::max(largest, tensor.bytes);
    for (const GgufFile& shard : m_shards)
        total += shard.dataEnd();
    BounceBuffer buffer;
    if (!buffer.allocate(largest))
        return fail(ErrorCode::OutOfMemory, m_path + ": no memory for its largest tensor (" + std::to_string(largest) +
                                                " bytes). Close other programs or choose a smaller model.");
    Streamer streamer(options, total);
    std::size_t next = 0;
    for (std::size_t s = 0; s < m_shards.size(); ++s) {
        const GgufFile& shard = m_shards[s];
        if (auto ok = streamer.header(shard); !ok)
            return tl::unexpected(ok.error());
        std::uint64_t at = shard.dataStart();
        for (; next < m_tensors.size() && m_tensors[next].shard == s; ++next) {
            const TensorInfo& tensor = m_tensors[next];
            const auto bytes = buffer.first(tensor.bytes);
            auto ok = streamer.padding(shard, at, tensor.offset);
            if (ok)
                ok = streamer.body(shard, tensor.offset, bytes);
            if (ok)
                ok = sink(tensor, bytes);
            if (!ok)
                return tl::unexpected(ok.error());
            at = tensor.offset + tensor.bytes;
        }
        // Written to in place while it was read: the weights would be a mixture of two files.
        if (auto change = fileChanged(shard.identity()))
            return fail(ErrorCode::Changed, *change);
    }
    return streamer.fingerprint();
}

Result<std::vector<std::byte>> ModelFile::readTensor(const TensorInfo& tensor) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
    if (auto ok = m_shards[tensor.shard].read(tensor.offset, bytes); !ok)
        return tl::unexpected(ok.error());
    return bytes;
}

Result<std::vector<float>> ModelFile::readFloats(const TensorInfo& tensor) const {
    if (tensor.type != TensorType::F32)
        return fail(ErrorCode::Unsupported, m_path + ": the tensor '" + forSentence(tensor.name) + "' is " +
                                                tensorTypeName(tensor.type) + "; it must be F32.");
    auto bytes = readTensor(tensor);
    if (!bytes)
        return tl::unexpected(bytes.error());
    std::vector<float> values(static_cast<std::size_t>(tensor.values()));
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
}

} // namespace kvscope::model
