// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPalette>
#include <QString>

#include "ui/theme/theme.h"

class QApplication;
class QWidget;

namespace kvscope::ui {

/// A widget that paints with the tokens itself. It gets its first theme in its constructor and every later one here.
class Themed {
public:
    virtual ~Themed() = default;
    virtual void setTheme(const Theme& theme) = 0;
};

/// The tokens as Qt's roles, for everything that the style sheet does not name.
QPalette makePalette(const Theme& theme);
/// resources/styles/kvscope.qss with its tokens filled in. A token that does not exist aborts with its name.
QString makeStyleSheet(const Theme& theme);

/// Sets Fusion, palette, style sheet, default font and focus ring of the application. Cheap to call again with another
/// theme; call `handDown` for each window afterwards.
void applyTheme(QApplication& application, const Theme& theme);
/// Gives the theme to `root` and every Themed widget below it.
void handDown(QWidget& root, const Theme& theme);

} // namespace kvscope::ui
