// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QRect>
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

namespace kvscope::ui {

/// How much room a window has: each class has its own default, and the user's own arrangement is kept per class.
enum class WindowClass { Minimum, Compact, Normal, Wide };
WindowClass classOfWidth(int windowWidth);
const char* windowClassName(WindowClass windowClass); ///< as in the settings file

/// One dock: its panels as tabs (one = a plain title), and its height.
struct DockCell {
    QStringList panels;
    int current = 0;
    int height = 0; ///< logical pixels; 0 = takes what is left
    friend bool operator==(const DockCell&, const DockCell&) = default;
};
struct DockColumn {
    std::vector<DockCell> cells;
    int width = 0; ///< 0 = takes what is left
    friend bool operator==(const DockColumn&, const DockColumn&) = default;
};
struct FloatingPanel {
    QString panel;
    QRect geometry;
    friend bool operator==(const FloatingPanel&, const FloatingPanel&) = default;
};

/// Where the panels of the cockpit are. A plain value: moving a panel is a new arrangement, applied as a whole.
struct Arrangement {
    std::vector<DockColumn> columns;
    std::vector<FloatingPanel> floating;
    QStringList hidden;
    int sideWidth = 248;    ///< conversations
    int cockpitWidth = 762; ///< all columns together

    static Arrangement defaultFor(WindowClass windowClass);
    /// Panel ids that appear nowhere are put behind; unknown ids are dropped.
    void complete(const QStringList& panels);

    struct Place {
        std::size_t column, cell;
        int tab;
    };
    std::optional<Place> find(const QString& panel) const;
    void remove(const QString& panel); ///< from wherever it is
    /// As a dock of its own below the others of the last column.
    void dock(const QString& panel);
    void makeFloating(const QString& panel, const QRect& geometry);
    void hide(const QString& panel);
    /// Up or down by one dock, across columns at their ends. False = it is at the end already.
    bool move(const QString& panel, int by);
    /// Into the dock of another panel as a tab, or out of a tabbed dock into one of its own.
    void tabWith(const QString& panel, const QString& other);
    void untab(const QString& panel);

    friend bool operator==(const Arrangement&, const Arrangement&) = default;
};

/// With a version; reading an unknown version or nonsense gives nothing, and the default is used.
QByteArray toJson(const Arrangement& arrangement);
std::optional<Arrangement> arrangementFromJson(const QByteArray& json);

} // namespace kvscope::ui
