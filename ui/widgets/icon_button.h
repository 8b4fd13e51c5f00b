// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>

#include "ui/theme/apply_theme.h"
#include "ui/theme/icons.h"

namespace kvscope::ui {

/// A button that is only an icon, 28 x 28. The name is its tooltip and what a screen reader says; it is required.
class IconButton final : public QAbstractButton, public Themed {
    Q_OBJECT
public:
    /// `iconSize` 16 in bars of a dock, 20 in the bars of the window.
    IconButton(Icon icon, const QString& name, const Theme& theme, QWidget* parent = nullptr, int iconSize = 16);

    void setGlyph(Icon icon);
    void setName(const QString& name);
    void setSide(int pixels); ///< 28 unless told
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override { return {m_side, m_side}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    Icon m_icon;
    int m_iconSize;
    int m_side = 28;
    Theme m_theme;
};

} // namespace kvscope::ui
