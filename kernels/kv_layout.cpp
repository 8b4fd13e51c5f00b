// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/kv_layout.h"

#include <algorithm>
#include <array>

namespace kvscope::kernels {

namespace {

struct Named {
    const char* name;
    KvDType type;
};
constexpr std::array kDTypes = {
    Named{"f16", KvDType::F16},   Named{"bf16", KvDType::BF16}, Named{"fp8_e4m3", KvDType::Fp8E4M3},
    Named{"int8", KvDType::Int8}, Named{"int4", KvDType::Int4},
};

KvCode codeOf(KvDType type) {
    switch (type) {
    case KvDType::F16:
        return KvCode::F16;
    case KvDType::BF16:
        return KvCode::BF16;
    case KvDType::Fp8E4M3:
        return KvCode::Fp8;
    case KvDType::Int8:
        return KvCode::Int8;
    case KvDType::Int4:
        return KvCode::Int4;
    }
    return KvCode::F16;
}

bool isQuantizedCode(KvCode code) {
    return code != KvCode::F16 && code != KvCode::BF16;
}

/// 0..layers: how many of the layers before `layer` are kept f16 by `skip`.
std::int32_t skippedBefore(std::int32_t layer, std::int32_t layers, std::int32_t skip) {
    return std::min(layer, skip) + std::max(0, layer - std::max(skip, layers - skip));
}

std::string partName(KvDType type, bool rotated, std::int32_t skip) {
    std::string name = kvDTypeName(type);
    if (rotated)
        name += "/rotated";
    if (isQuantized(type) && skip > 0)
        name += "/skip " + std::to_string(skip);
    return name;
}

} // namespace

const char* kvDTypeName(KvDType type) {
    return kDTypes[static_cast<std::size_t>(type)].name;
}

std::optional<KvDType> kvDTypeByName(std::string_view name) {
    if (name == "fp8")
        return KvDType::Fp8E4M3;
    for (const Named& known : kDTypes)
        if (name == known.name)
            return known.type;
    return std::nullopt;
}

bool isQuantized(KvDType type) {
    return isQuantizedCode(codeOf(type));
}

std::string KvFormat::keyName() const {
    return partName(keys, rotatesKeys(), skipLayers);
}
std::string KvFormat::valueName() const {
    return partName(values, rotatesValues(), skipLayers);
}

std::optional<KvFormat> kvFormatByName(std::string_view name) {
    KvFormat format;
    if (name == "auto")
        return format;
    if (name == "k8v4") {
        format.keys = KvDType::Fp8E4M3;
        format.values = KvDType::Int4;
        return format;
    }
    const std::optional<KvDType> both = kvDTypeByName(name);
    if (!both)
        return std::nullopt;
    format.keys = format.values = *both;
    return format;
}

std::int32_t windowBlocksNeeded(std::int32_t window, std::int32_t sequences, std::int32_t stepTokens,
                                std::int32_t blockSize) {
    const std::int64_t slots = std::int64_t(window) + stepTokens;
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(std::int64_t(sequences) * ((slots + blockSize - 1) / blockSize + 1), INT32_MAX));
}

std::int32_t rotationSpan(std::int32_t headDim) {
    return headDim & -headDim;
}

KvCode KvLayout::keyCode(std::int32_t layer) const {
    const KvCode code = codeOf(format.keys);
    if (isQuantizedCode(code) && (layer < format.skipLayers || layer >= layers - format.skipLayers))
        return KvCode::F16;
    return code == KvCode::Int4 && format.rotation ? KvCode::Codebook4 : code;
}

KvCode KvLayout::valueCode(std::int32_t layer) const {
    const KvCode code = codeOf(format.values);
    const bool kept = layer < format.skipLayers || layer >= layers - format.skipLayers;
    return isQuantizedCode(code) && kept ? KvCode::F16 : code;
}

std::size_t KvLayout::keyBytes(std::int32_t layer) const {
    const auto dims = static_cast<std::size_t>(headDimK), slots = static_cast<std::size_t>(blockSize);
    switch (keyCode(layer)) {
    case KvCode::F16:
    case KvCode::BF16:
        break;
    case KvCode::Fp8:
        return slots * dims;
    case KvCode::Int8:
        return slots * dims + dims * 2;
    case KvCode::Int4:
        return slots / 2 * dims + dims * 4;
    case KvCode::Codebook4:
        return slots / 2 * dims + slots * 2;
    }
    return slots * dims * 2;
}

std::size_t KvLayout::valueBytes(std::int32_t layer) const {
    const auto dims = static_cast<std::size_t>(headDimV), slots = static_cast<std::size_t>(blockSize);
    const std::size_t groups = (dims + kKvGroup - 1) / kKvGroup;
    switch (valueCode(layer)) {
    case KvCode::F16:
    case KvCode::BF16:
    case KvCode::Codebook4: // keys only
        break;
    case KvCode::Fp8:
        return slots * dims;
    case KvCode::Int8:
        return slots * (dims + groups * 2);
    case KvCode::Int4:
        return slots * groups * (kKvGroup / 2 + 4);
    }
    return slots * dims * 2;
}

std::size_t KvLayout::headOffset(std::int32_t layer, std::int32_t kvHead) const {
    std::size_t before = 0;
    for (std::int32_t other = 0; other < layer; ++other)
        if (inWindowGroup(other) == inWindowGroup(layer))
            before += static_cast<std::size_t>(kvHeads) * (keyBytes(other) + valueBytes(other));
    return before + static_cast<std::size_t>(kvHead) * (keyBytes(layer) + valueBytes(layer));
}

std::size_t KvLayout::groupBytes(bool ofWindowGroup) const {
    std::size_t bytes = 0;
    for (std::int32_t layer = 0; layer < layers; ++layer)
        if (inWindowGroup(layer) == ofWindowGroup)
            bytes += static_cast<std::size_t>(kvHeads) * (keyBytes(layer) + valueBytes(layer));
    return bytes;
}

std::size_t KvLayout::openKeyBytes(std::int32_t layer) const {
    return isQuantizedCode(keyCode(layer))
               ? static_cast<std::size_t>(blockSize) * static_cast<std::size_t>(headDimK) * 2
               : 0;
}

std::size_t KvLayout::openHeadBytes(std::int32_t layer) const {
    return openKeyBytes(layer) + (isQuantizedCode(valueCode(layer))
                                      ? static_cast<std::size_t>(blockSize) * static_cast<std::size_t>(headDimV) * 2
                                      : 0);
}

std::size_t KvLayout::openHeadOffset(std::int32_t layer, std::int32_t kvHead) const {
    const std::int32_t before = layer - skippedBefore(layer, layers, format.skipLayers);
    const std::size_t quantizedHead = format.skipLayers < layers ? openHeadBytes(format.skipLayers) : 0;
    return static_cast<std::size_t>(before) * static_cast<std::size_t>(kvHeads) * quantizedHead +
           static_cast<std::size_t>(kvHead) * openHeadBytes(layer);
}

std::size_t KvLayout::bytesPerTail() const {
    return hasTails() ? openHeadOffset(layers, 0) : 0;
}

std::size_t KvLayout::partBytes(KvPart part) const {
    return part == KvPart::Block         ? bytesPerBlock()
           : part == KvPart::WindowBlock ? bytesPerWindowBlock()
                                         : bytesPerTail();
}

std::int32_t KvLayout::partCount(KvPart part) const {
    return part == KvPart::Block ? numBlocks : part == KvPart::WindowBlock ? windowBlocks : tailSlots;
}

std::size_t KvLayout::partOffset(KvPart part) const {
    return part == KvPart::Block ? 0 : part == KvPart::WindowBlock ? windowOffset() : tailOffset();
}

std::size_t KvLayout::poolBytes() const {
    return tailOffset() + static_cast<std::size_t>(tailSlots) * bytesPerTail();
}

std::string checkKvFormat(const KvLayout& kv) {
    const KvFormat& f = kv.format;
    if (!f.quantized() && (f.rotation || f.skipLayers != 0))
        return f.rotation ? "--kv-rotation on needs keys or values of int8 or int4."
                          : "--kv-skip-layers needs keys or values of fp8, int8 or int4.";
    if (f.skipLayers < 0 || 2 * f.skipLayers >= kv.layers)
        if (f.quantized())
            return "--kv-skip-layers " + std::to_string(f.skipLayers) + " leaves none of the " +
                   std::to_string(kv.layers) + " layers to quantize; give less.";
    const auto integer = [](KvDType type) { return type == KvDType::Int8 || type == KvDType::Int4; };
    if ((integer(f.keys) && kv.headDimK > kMostQuantizedDims) ||
        (integer(f.values) && kv.headDimV > kMostQuantizedDims))
        return "int8 and int4 hold heads of at most " + std::to_string(kMostQuantizedDims) +
               " values, which this model's are not; choose f16, bf16 or fp8.";
    if (f.keys == KvDType::Int4 && kv.blockSize < 16)
        return "int4 keys need blocks of at least 16 tokens (better 32): their scales are shared by a block.";
    if (!f.rotation)
        return {};
    if (!f.rotatesKeys() && !f.rotatesValues())
        return "--kv-rotation on needs keys or values of int8 or int4.";
    if ((f.rotatesKeys() && rotationSpan(kv.headDimK) < 8) || (f.rotatesValues() && rotationSpan(kv.headDimV) < 8))
        return "--kv-rotation needs heads whose size is a multiple of 8.";
    return {};
}

} // namespace kvscope::kernels
