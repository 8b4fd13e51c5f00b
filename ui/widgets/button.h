// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>
#include <optional>

#include "ui/theme/apply_theme.h"
#include "ui/theme/icons.h"

namespace kvscope::ui {

/// The program's button: optional icon, text, optional key hint. 28 px high, 24 in a message, 32 as a main action.
class Button final : public QAbstractButton, public Themed {
    Q_OBJECT
public:
    enum class Kind { Normal, Primary, Ghost, Danger };
    Button(const QString& text, Kind kind, const Theme& theme, QWidget* parent = nullptr);

    void setGlyph(std::optional<Icon> icon);
    void setTrailingGlyph(std::optional<Icon> icon); ///< for example the arrow of a button that opens a menu
    void setKeyHint(const QString& key);             ///< "Esc": drawn as a key; does not create the shortcut
    void setHeight(int pixels);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    QFont labelFont() const;
    int padding() const;

    Kind m_kind;
    std::optional<Icon> m_icon, m_trailing;
    QString m_key;
    int m_height = 28;
    Theme m_theme;
};

} // namespace kvscope::ui
