// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/foreign_file.h"

#include <algorithm>
#include <array>

#include "engine/model/gguf_types.h"

namespace kvscope::model {
namespace {

using namespace std::string_view_literals;

struct Signature {
    std::string_view bytes;
    std::string_view sentence;
};

constexpr std::string_view kUnpack = " is packed (an archive), not a model. Unpack it and open the .gguf file inside.";
constexpr std::string_view kOldFormat = " is a model in an old format from before GGUF. Convert it, or download the "
                                        "model as GGUF.";
constexpr std::array kSignatures = {
    Signature{"lmgg"sv, kOldFormat},
    Signature{"fmgg"sv, kOldFormat},
    Signature{"tjgg"sv, kOldFormat},
    Signature{"algg"sv, kOldFormat},
    Signature{"PK\x03\x04"sv,
              " is a zip file: a model of PyTorch, or an archive. Download the model in GGUF format, or "
              "unpack the archive."},
    Signature{"\x1F\x8B"sv, kUnpack},
    Signature{"\xFD"
              "7zXZ"sv,
              kUnpack},
    Signature{"\x28\xB5\x2F\xFD"sv, kUnpack},
    Signature{"BZh"sv, kUnpack},
    Signature{"7z\xBC\xAF\x27\x1C"sv, kUnpack},
    Signature{"Rar!"sv, kUnpack},
    Signature{"%PDF"sv, " is a PDF document, not a model. Choose a file in GGUF format."},
    Signature{"\x80\x02"sv, " is a model of PyTorch (pickle). Download the model in GGUF format."},
    Signature{"\x89HDF"sv, " is an HDF5 file, not a GGUF model. Download the model in GGUF format."},
    Signature{"FUGG"sv,
              " is written big-endian. Convert it on a little-endian machine, or download the usual version."},
};

/// A length of 64 bits, then JSON.
bool isSafetensors(std::string_view start) {
    return start.size() >= 10 && start[8] == '{' && start.substr(5, 3) == "\0\0\0"sv;
}

constexpr std::array kEmbeddingArchitectures = {
    "bert"sv,         "modern-bert"sv, "nomic-bert"sv, "nomic-bert-moe"sv,  "neo-bert"sv,   "jina-bert-v2"sv,
    "jina-bert-v3"sv, "eurobert"sv,    "t5encoder"sv,  "gemma-embedding"sv, "llama-embed"sv};
constexpr std::array kImageArchitectures = {"flux"sv, "sd1"sv,     "sdxl"sv,       "sd3"sv,     "wan"sv,   "ltxv"sv,
                                            "aura"sv, "lumina2"sv, "qwen_image"sv, "hidream"sv, "hyvid"sv, "cosmos"sv};
constexpr std::array kSpeechArchitectures = {"whisper"sv, "wavtokenizer-dec"sv, "parler-tts"sv, "kokoro"sv,
                                             "dia"sv,     "orpheus"sv};

template <std::size_t N> bool among(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

std::optional<std::string> foreignFileSentence(std::string_view start) {
    const std::size_t first = start.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first != std::string_view::npos && start[first] == '<')
        return " is a web page, not a model: a page was saved in place of the file. Download the model file itself.";
    if (start.substr(0, 7) == "version" && start.find("git-lfs") != std::string_view::npos)
        return " is a Git LFS pointer, not the model. Fetch the file itself (git lfs pull).";
    for (const Signature& signature : kSignatures)
        if (start.substr(0, signature.bytes.size()) == signature.bytes)
            return std::string(signature.sentence);
    if (isSafetensors(start))
        return " is a model in safetensors format. Convert it, or download the model in GGUF format.";
    if (first != std::string_view::npos && (start[first] == '{' || start[first] == '['))
        return " is a JSON file, not a model. Choose the model file itself (.gguf).";
    if (start.size() >= 4 && start.find_first_not_of('\0') == std::string_view::npos)
        return " begins with nothing but zeros: its download was begun and not finished. Download it again.";
    return std::nullopt;
}

std::optional<std::string> wrongKindSentence(std::string_view type, std::string_view architecture, long poolingType) {
    const std::string named = "'" + forSentence(architecture) + "'";
    if (type == "adapter")
        return " is an adapter (LoRA), which only changes another model. Choose the model itself.";
    if (architecture == "clip" || type == "mmproj")
        return " is the image part (projector) of a model, which cannot chat alone. Choose the model itself.";
    if (type == "imatrix" || architecture == "imatrix")
        return " holds importance statistics of a model, no weights. Choose the model itself.";
    if (type == "control_vector" || architecture == "controlvector")
        return " is a control vector, which only steers another model. Choose the model itself.";
    if (poolingType == 4)
        return " is a reranking model (" + named + "): it rates texts and cannot chat. Choose a chat model.";
    if (among(kEmbeddingArchitectures, architecture) || poolingType > 0)
        return " is an embedding model (" + named +
               "): it turns text into vectors and cannot chat. Choose a chat model.";
    if (architecture == "t5")
        return " is an encoder-decoder model ('t5'), which this program does not run. Choose a chat model.";
    if (among(kImageArchitectures, architecture))
        return " makes images (" + named + ") and cannot chat. Choose a chat model.";
    if (among(kSpeechArchitectures, architecture))
        return " is made for speech (" + named + ") and cannot chat. Choose a chat model.";
    return std::nullopt;
}

} // namespace kvscope::model
