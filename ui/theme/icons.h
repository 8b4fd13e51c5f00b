// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QIcon>
#include <QPixmap>

namespace kvscope::ui {

/// Our own icons: resources/icons, drawn on a 20-unit grid with a stroke of 1.5 and round caps, one colour each.
enum class Icon {
    Again,
    Attach,
    Brain,
    Branch,
    Check,
    Chip,
    Close,
    Copy,
    Down,
    Edit,
    Export,
    Fit,
    Float,
    Folder,
    Gear,
    Grid,
    Info,
    Left,
    Menu,
    Monitor,
    Moon,
    More,
    Pause,
    Pin,
    Play,
    Plus,
    Restart,
    Right,
    Save,
    Scissors,
    Search,
    Send,
    Sidebar,
    Sliders,
    Stop,
    Sun,
    Table,
    Target,
    Trash,
    Up,
    Warn,
    ZoomIn,
    ZoomOut,
};

/// The icon in one colour, `size` logical pixels square, sharp at `devicePixelRatio`. Cached.
QPixmap iconPixmap(Icon icon, int size, const QColor& color, qreal devicePixelRatio);
/// For menus and actions of Qt's own widgets.
QIcon makeIcon(Icon icon, const QColor& color, const QColor& disabled);

} // namespace kvscope::ui
