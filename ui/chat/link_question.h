// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QMessageBox;
class QWidget;

namespace kvscope::ui {

/// An answer's words can say one thing and its link lead to another place: asks first, with the whole address in view,
/// and opens it in the desktop's browser or mail program only then. Returns at once; null when the address is of a kind
/// that is never opened.
QMessageBox* askToOpen(const QString& address, QWidget* parent);

} // namespace kvscope::ui
