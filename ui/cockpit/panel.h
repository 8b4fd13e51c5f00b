// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// The content of a dock: what its title shows is asked from here, so that the same content can stand alone or as one
/// of several tabs.
class Panel : public QWidget, public Themed {
    Q_OBJECT
public:
    using QWidget::QWidget;
    virtual QString name() const = 0;
    virtual QString note() const { return {}; }         ///< beside the name
    virtual QString trailingNote() const { return {}; } ///< before the actions
    virtual QWidget* actions() { return nullptr; }      ///< at the right end of the title; owned by the panel

signals:
    void titleChanged();
};

} // namespace kvscope::ui
