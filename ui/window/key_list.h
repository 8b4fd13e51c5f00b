// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "ui/models/command_registry.h"
#include "ui/models/send_key.h"

namespace kvscope::ui {

/// All keys of the window, by group, in two columns.
class KeyList final : public QDialog {
    Q_OBJECT
public:
    KeyList(const CommandRegistry& commands, SendKey sendKey, QWidget* parent);
};

} // namespace kvscope::ui
