// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/config_reader.h"

#include <cmath>

namespace kvscope::model {
namespace {

std::string list(std::initializer_list<std::int64_t> shape) {
    std::string text = "[";
    for (std::int64_t size : shape)
        text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + "]";
}

} // namespace

ConfigReader::ConfigReader(const ModelFile& file, std::string architecture)
    : m_file(file)
    , m_architecture(std::move(architecture)) {}

void ConfigReader::failCorrupt(const std::string& sentence) {
    if (!m_error)
        m_error = Error{ErrorCode::Corrupt, m_file.path() + ": " + sentence +
                                                ". The model was converted wrongly or is damaged; download another "
                                                "version of it."};
}

void ConfigReader::failUnsupported(const std::string& sentence) {
    if (!m_error)
        m_error = Error{ErrorCode::Unsupported, m_file.path() + ": " + sentence};
}

const GgufValue* ConfigReader::requiredValue(std::string_view key) {
    const GgufValue* value = m_file.metadata().find(full(key));
    if (!value)
        failCorrupt("the key '" + full(key) + "' is missing");
    return value;
}

std::int64_t ConfigReader::checked(std::string_view key, std::optional<std::int64_t> value, IntRange range) {
    if (!value) {
        failCorrupt("'" + full(key) + "' is not a whole number");
    } else if (*value < range.least || *value > range.most) {
        failCorrupt("'" + full(key) + "' is " + std::to_string(*value) + "; it must be from " +
                    std::to_string(range.least) + " to " + std::to_string(range.most));
    } else {
        return *value;
    }
    return range.least;
}

std::int64_t ConfigReader::required(std::string_view key, IntRange range) {
    const GgufValue* value = requiredValue(key);
    return value ? checked(key, value->asInteger(), range) : range.least;
}

std::int64_t ConfigReader::optional(std::string_view key, IntRange range, std::int64_t otherwise) {
    const GgufValue* value = m_file.metadata().find(full(key));
    return value ? checked(key, value->asInteger(), range) : otherwise;
}

std::vector<std::int64_t> ConfigReader::perLayer(std::string_view key, std::int64_t layers, IntRange range) {
    const std::vector<std::int64_t> least(static_cast<std::size_t>(layers), range.least);
    const GgufValue* value = requiredValue(key);
    return value ? perLayer(key, layers, range, least) : least;
}

std::vector<std::int64_t> ConfigReader::perLayer(std::string_view key, std::int64_t layers, IntRange range,
                                                 const std::vector<std::int64_t>& otherwise) {
    const GgufValue* value = m_file.metadata().find(full(key));
    if (!value)
        return otherwise;
    if (!value->isArray())
        return std::vector<std::int64_t>(static_cast<std::size_t>(layers), checked(key, value->asInteger(), range));
    if (value->count != static_cast<std::uint64_t>(layers)) {
        failCorrupt("'" + full(key) + "' has " + std::to_string(value->count) + " entries for " +
                    std::to_string(layers) + " layers");
        return otherwise;
    }
    const auto numbers = value->asIntegers();
    if (!numbers) {
        failCorrupt("'" + full(key) + "' does not hold whole numbers");
        return otherwise;
    }
    for (std::int64_t number : *numbers)
        checked(key, number, range);
    return failed() ? otherwise : *numbers;
}

double ConfigReader::checkedPositive(std::string_view key, std::optional<double> value) {
    if (value && std::isfinite(*value) && *value > 0)
        return *value;
    failCorrupt("'" + full(key) + "' is not a finite number above 0");
    return 1;
}

double ConfigReader::requiredPositive(std::string_view key) {
    const GgufValue* value = requiredValue(key);
    return value ? checkedPositive(key, value->asReal()) : 1;
}

double ConfigReader::optionalPositive(std::string_view key, double otherwise) {
    const GgufValue* value = m_file.metadata().find(full(key));
    return value ? checkedPositive(key, value->asReal()) : otherwise;
}

std::vector<bool> ConfigReader::layerPattern(std::string_view key, std::int64_t layers, std::int64_t otherwise) {
    std::vector<bool> out(static_cast<std::size_t>(layers));
    const GgufValue* value = m_file.metadata().find(full(key));
    if (value && value->isArray()) {
        const auto flags = value->asBools();
        if (flags && flags->size() == out.size())
            return *flags;
        failCorrupt("'" + full(key) + "' does not hold one yes or no for each of the " + std::to_string(layers) +
                    " layers");
        return out;
    }
    const std::int64_t period = optional(key, {1, 1 << 20}, otherwise);
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = (static_cast<std::int64_t>(i) + 1) % period != 0;
    return out;
}

std::string ConfigReader::optionalText(std::string_view key, std::string otherwise) {
    const GgufValue* value = m_file.metadata().find(full(key));
    if (!value)
        return otherwise;
    if (const auto text = value->asString())
        return std::string(*text);
    failCorrupt("'" + full(key) + "' is not a text");
    return otherwise;
}

const TensorInfo* ConfigReader::shapedTensor(const std::string& name, std::initializer_list<std::int64_t> shape) {
    const TensorInfo* tensor = m_file.findTensor(name);
    if (!tensor) {
        failCorrupt("the tensor '" + name + "' is missing");
        return nullptr;
    }
    m_used.insert(tensor->name);
    bool same = true;
    std::size_t d = 0;
    for (std::int64_t size : shape)
        same &= tensor->dims[d++] == size;
    for (; d < tensor->dims.size(); ++d)
        same &= tensor->dims[d] == 1;
    if (!same) {
        failCorrupt("the tensor '" + name + "' has the shape " + tensor->shape() + ", expected " + list(shape));
        return nullptr;
    }
    return tensor;
}

void ConfigReader::needTensor(const std::string& name, std::initializer_list<std::int64_t> shape) {
    const TensorInfo* tensor = shapedTensor(name, shape);
    if (tensor && !isBuiltTensorType(tensor->type))
        failUnsupported(std::string("the tensor '") + name + "' is of type " + tensorTypeName(tensor->type) +
                        ", which this version cannot compute with. Download the model in one of the types " +
                        builtTensorTypes() + ".");
}

void ConfigReader::needFloats(const std::string& name, std::initializer_list<std::int64_t> shape) {
    const TensorInfo* tensor = shapedTensor(name, shape);
    if (tensor && tensor->type != TensorType::F32)
        failUnsupported("the tensor '" + name + "' is of type " + tensorTypeName(tensor->type) +
                        "; norms, biases and factors are read as F32 only. Convert the model again with a current "
                        "converter.");
}

void ConfigReader::ignoreTensor(std::string_view name) {
    if (const TensorInfo* tensor = m_file.findTensor(name))
        m_used.insert(tensor->name);
}

void ConfigReader::refuseUnusedTensors() {
    for (const TensorInfo& tensor : m_file.tensors())
        if (!m_used.contains(tensor.name))
            return failUnsupported("it has the tensor '" + forSentence(tensor.name) + "', which is not known in '" +
                                   m_architecture +
                                   "' models: answers without it would be wrong. Download another "
                                   "version of the model.");
}

} // namespace kvscope::model
