// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>

#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// One choice out of a few words. Arrow keys move it; the number keys do not, they belong to the workspaces.
class SegmentedControl final : public QWidget, public Themed {
    Q_OBJECT
public:
    /// `name`: what is chosen, for screen readers ("Colour by"). `segmentHeight` 24 in the top bar, 20 in a dock.
    SegmentedControl(const QString& name, const QStringList& options, const Theme& theme, QWidget* parent = nullptr,
                     int segmentHeight = 24);

    int current() const { return m_current; }
    void setCurrent(int index); ///< emits currentChanged when it differs
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

signals:
    void currentChanged(int index);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    std::vector<int> edges() const; ///< left edge of each segment, and the right edge of the last

    QString m_name;
    QStringList m_options;
    int m_segmentHeight;
    int m_current = 0;
    Theme m_theme;
};

} // namespace kvscope::ui
