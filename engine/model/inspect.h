// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/kv_size.h"

namespace kvscope::model {

/// How many tensors of one type, and their bytes.
struct TensorTotal {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    friend bool operator==(const TensorTotal&, const TensorTotal&) = default;
};

/// What a file says about itself, read from its header alone (a few milliseconds): for the model picker and `inspect`.
/// Also filled for architectures and tensor types that are not built, and for vocabularies; absent facts are nullopt.
struct ModelSummary {
    std::string path;
    std::string name; ///< general.name, else the file's name
    std::string architecture;
    std::optional<std::int64_t> layers;
    std::vector<std::int64_t> heads;   ///< one entry if the same in all layers; empty = not said
    std::vector<std::int64_t> kvHeads; ///< the same
    std::optional<std::int64_t> headDim;
    std::optional<std::int64_t> contextLength;
    std::optional<std::int64_t> vocab;
    KvShape kv; ///< empty = the keys do not say enough
    std::map<std::string, TensorTotal> tensors;
    std::string quantization; ///< as published ("Q4_K_M"), else the type that holds most bytes; "" without tensors
    std::uint64_t weightsBytes = 0; ///< of all tensors
    std::uint64_t fileBytes = 0;    ///< of all shards
    std::uint32_t shards = 1;
    std::string tokenizer;    ///< tokenizer.ggml.model, "" = none
    std::string preTokenizer; ///< tokenizer.ggml.pre, "" = none
    std::optional<std::string> chatTemplate;
    std::vector<std::string> problems; ///< sentences; the first is why it cannot run, if it cannot
    bool runs = false; ///< `readModelConfig` accepts it; of `inspectModelAndText`: and its vocabulary can be built
};

/// The name under which a mix of types is published, from general.file_type, where the tensors bear it out; else the
/// type that holds most bytes. "" without tensors.
std::string quantizationLabel(const ModelFile& file);

/// Errors as ModelFile::open: only a file that is no readable GGUF file at all.
Result<ModelSummary> inspectModel(const std::string& path);
/// The same, and whether vocabulary and chat template can be used: takes as long as building the vocabulary.
Result<ModelSummary> inspectModelAndText(const std::string& path);

/// {"f16": bytes, ...} of the KV types that fit the head size, in a fixed order.
std::vector<std::pair<std::string, std::uint64_t>> kvBytesByType(const KvShape& shape);

/// The answer of `kvscope-cli inspect`, one JSON object as text.
Result<std::string> inspectJson(const std::string& path);

} // namespace kvscope::model
