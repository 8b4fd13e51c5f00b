// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/theme/theme.h"

namespace kvscope::ui {

/// The monospaced font for text that is looked at character by character, such as what stands in a prompt: the font
/// would draw "<|" or "!=" as one sign. Skipping the shaping is the one way to switch that off that this Qt has: its
/// signs are no ligatures of the kind that letter spacing turns off. Scripts that need shaping still get it.
inline QFont literalFont(TextRole role) {
    QFont font = monoFont(role);
    font.setStyleStrategy(QFont::StyleStrategy(font.styleStrategy() | QFont::PreferNoShaping));
    return font;
}

} // namespace kvscope::ui
