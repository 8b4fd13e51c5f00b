// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// A card above the window that closes with a click elsewhere or Esc. Its corners are cut off the window itself, since
/// a desktop without a compositor shows what is transparent as black. GUI thread.
class Popup : public QFrame, public Themed {
    Q_OBJECT
public:
    Popup(const Theme& theme, QWidget* parent);
    void setTheme(const Theme& theme) override;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    Theme m_theme;
};

} // namespace kvscope::ui
