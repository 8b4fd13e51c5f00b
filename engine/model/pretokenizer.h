// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/split_rules.h"
#include "engine/model/unicode.h"

namespace kvscope::model {

/// How a byte-level vocabulary splits text before merging: rules applied one after the other, each to every piece that
/// the previous one left.
struct PreTokenizer {
    std::string_view name;              ///< canonical name of the kind
    std::span<const split::Rule> rules; ///< in order
    bool addBosByDefault = false;       ///< where the file does not say
    bool wholePieceFirst = false;       ///< a piece that is a token as a whole is not merged ("ignore_merges")
};

/// The kind behind a name of `tokenizer.ggml.pre`, aliases included. A name that is not built is an error that names
/// it: a guessed rule gives silently wrong ids.
Result<const PreTokenizer*> findPreTokenizer(std::string_view name);

/// Ends of the pieces of the whole text, in code points; empty for an empty text.
std::vector<std::size_t> splitPieces(const PreTokenizer& kind, const CodePoints& text);

} // namespace kvscope::model
