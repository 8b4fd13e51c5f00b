// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QFont>
#include <QString>
#include <array>
#include <vector>

namespace kvscope::ui {

enum class ThemeKind { Dark, Light };

/// Every colour of the program, by the names of resources/tokens.json. One value object, handed down; nobody reads a
/// colour from anywhere else.
struct Theme {
    ThemeKind kind = ThemeKind::Dark;
    QColor bg0, bg1, bg2, bg3, bg4, well;
    QColor line1, line2, line3;
    QColor text1, text2, text3, textOff;
    QColor accent, accentFill, accentHover, onAccent, accentSoft, focus;
    QColor ok, okFill, warn, warnFill, danger, dangerFill, dangerButton;
    QColor bubble, sel;
    QColor stateEmpty, stateFilling, stateActive, stateShared, stateCached, stateCachedRing, statePinned, stateTransfer,
        stateMark;
    QColor memoryWeights, memoryKv, memoryActivations, memoryDriver, memoryOther, memoryFree;
    std::array<QColor, 5> plotLines;
    std::array<QColor, 12> owners;
    std::array<QColor, 9> age;
    std::array<QColor, 7> uses;

    /// Reads the tokens compiled into the program; a missing token is a programming error and aborts with its name.
    static Theme load(ThemeKind kind);
};

/// The type scale: pixel sizes and line heights of look.md.
enum class TextRole { Axis, Table, Control, Chat, Dialog, Headline, BigHeadline };
int lineHeight(TextRole role);
/// Words: Inter (CJK: Noto Sans CJK SC).
QFont textFont(TextRole role, int weight = QFont::Normal);
/// Labels whose figures change: Noto Sans, whose digits have equal widths.
QFont figureFont(TextRole role, int weight = QFont::Normal);
/// Code, keys, options: JetBrains Mono.
QFont monoFont(TextRole role);

} // namespace kvscope::ui
