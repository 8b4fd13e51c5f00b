// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/model/chat_template.h"
#include "engine/model/vocabulary.h"

namespace kvscope::model {

/// A chat template that the program brings along, for files without a usable one.
struct KnownTemplate {
    std::string_view name;   ///< shown, and remembered
    std::string_view source; ///< Jinja
    /// Texts of tokens that it writes: a vocabulary that has them all as special tokens was made for it. Empty = it can
    /// only be chosen, not recognised.
    std::span<const std::string_view> marks;
};

/// All of them, in the order in which they are tried. The last, "Plain text", fits any model.
std::span<const KnownTemplate> knownTemplates();
/// nullptr = there is none of this name.
const KnownTemplate* findKnownTemplate(std::string_view name);
/// The first whose marks the vocabulary has, else "Plain text".
const KnownTemplate& guessTemplate(const Vocabulary& vocabulary);

/// The template that chats with a model go through, and how it came to be that one.
struct TemplateChoice {
    std::shared_ptr<const ChatTemplate> chatTemplate; ///< never null
    std::string name;                                 ///< of a known template; empty = the file's own
    std::string problem;                              ///< sentence: why the file's own cannot be used; empty = it can
    bool guessed = false;                             ///< nobody chose it: it was recognised by the vocabulary
};

/// `wanted`: a name of a known template; empty, or one that does not exist = the file's own, or a guess where that is
/// missing or broken. Broken is what does not compile or cannot render one user message.
TemplateChoice chooseTemplate(const Vocabulary& vocabulary, const std::string& wanted);

/// What a template makes of one user message, the next answer opened: for showing.
Result<std::string> templatePreview(const ChatTemplate& chatTemplate, const Vocabulary& vocabulary,
                                    const std::string& userText);

/// bos_token and eos_token as templates know them, where `variables` does not give them.
void addSpecialTexts(const Vocabulary& vocabulary, jinja::Variables& variables);

} // namespace kvscope::model
