// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "ui/theme/apply_theme.h"
#include "ui/theme/icons.h"

namespace kvscope::ui {

/// What an empty panel says: an icon and one sentence that tells what fills it, in a dashed frame.
class EmptyState final : public QWidget, public Themed {
    Q_OBJECT
public:
    EmptyState(Icon icon, const QString& text, const Theme& theme, QWidget* parent = nullptr);

    void setText(const QString& text);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override { return {240, 100}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Icon m_icon;
    QString m_text;
    Theme m_theme;
};

} // namespace kvscope::ui
