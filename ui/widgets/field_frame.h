// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/theme/theme.h"

class QWidget;

namespace kvscope::ui {

/// Paints ground and border of a box that holds a text field: a 2 px ring of the focus colour while the field has the
/// focus, a 1 px line otherwise. From the paint event of `box`. GUI thread.
void paintFieldFrame(QWidget& box, const Theme& theme, bool focused);

} // namespace kvscope::ui
