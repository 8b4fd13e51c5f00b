// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvscope::model {

/// What a file that is no GGUF file is instead, told by its first bytes (512 are enough): the rest of a sentence that
/// begins with its path, what to do included. nullopt = not recognised.
std::optional<std::string> foreignFileSentence(std::string_view start);

/// The same for GGUF files that hold no language model, told by `general.type` and `general.architecture`; and by
/// `poolingType` (<architecture>.pooling_type, 0 = none), which only models that make vectors have.
std::optional<std::string> wrongKindSentence(std::string_view type, std::string_view architecture, long poolingType);

} // namespace kvscope::model
