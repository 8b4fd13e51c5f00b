// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/model/gguf_file.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"

namespace kvscope::test {

inline nlohmann::ordered_json readReference(const std::string& name) {
    std::ifstream file(std::string(KVSCOPE_TEST_DATA) + "/" + name);
    if (!file)
        throw std::runtime_error("no reference data " + name);
    return nlohmann::ordered_json::parse(file);
}

inline std::string fromHex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

/// `name` or `name_hex` of a case.
inline std::string textOf(const nlohmann::ordered_json& object, const std::string& name) {
    if (object.contains(name + "_hex"))
        return fromHex(object.at(name + "_hex").get<std::string>());
    return object.at(name).get<std::string>();
}

/// The tokenizer of a model file; throws what went wrong.
inline std::shared_ptr<const model::Tokenizer> loadTokenizer(const std::string& path) {
    const auto file = model::GgufFile::open(path);
    if (!file)
        throw std::runtime_error(file.error().message);
    auto vocabulary = model::vocabularyFromGguf(file->metadata());
    if (!vocabulary)
        throw std::runtime_error(vocabulary.error().message);
    auto tokenizer = model::Tokenizer::create(std::move(*vocabulary));
    if (!tokenizer)
        throw std::runtime_error(tokenizer.error().message);
    return *tokenizer;
}

inline std::shared_ptr<const model::Tokenizer> tinyTokenizer(const std::string& name) {
    return loadTokenizer(std::string(KVSCOPE_TEST_DATA) + "/pretokenizer/" + name + ".gguf");
}

} // namespace kvscope::test
