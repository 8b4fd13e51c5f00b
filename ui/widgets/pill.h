// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// A short fact on its own ground, 20 px high (24 in the top bar).
class Pill final : public QWidget, public Themed {
    Q_OBJECT
public:
    enum class Kind { Neutral, Ok, Warn, Danger, Accent };
    Pill(const QString& text, Kind kind, const Theme& theme, QWidget* parent = nullptr);

    void setText(const QString& text);
    void setKind(Kind kind);
    void setDot(bool on); ///< a filled dot before the text, as in "Live"
    void setHeight(int pixels);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString m_text;
    Kind m_kind;
    bool m_dot = false;
    int m_height = 20;
    Theme m_theme;
};

} // namespace kvscope::ui
