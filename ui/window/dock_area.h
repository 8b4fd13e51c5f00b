// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMap>
#include <QSplitter>
#include <QWidget>
#include <functional>
#include <vector>

#include "ui/cockpit/panel.h"
#include "ui/theme/apply_theme.h"
#include "ui/window/arrangement.h"

class QStackedWidget;

namespace kvscope::ui {

class DockTitle;
class IconButton;

/// A frame around one panel or several as tabs: the head shows what the current panel says of itself, its actions, and
/// a menu that moves, floats and hides it, so that all of this also works by keyboard and where a program may not
/// place windows.
class Dock final : public QWidget, public Themed {
    Q_OBJECT
public:
    struct Entry {
        QString id;
        Panel* panel;
    };
    Dock(std::vector<Entry> entries, int current, bool floating, const Theme& theme, QWidget* parent = nullptr);
    /// Takes the panels out, so that they outlive the dock.
    void releasePanels(QWidget* newParent);

    int current() const;
    const std::vector<Entry>& entries() const { return m_entries; }
    void setTheme(const Theme& theme) override;

signals:
    void menuRequested(const QString& panel, const QPoint& globalPos);
    void floatToggled(const QString& panel);
    void currentChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void closeEvent(QCloseEvent* event) override;

private:
    void showTitle();
    void showCurrent(int index);

    std::vector<Entry> m_entries;
    Theme m_theme;
    DockTitle* m_title;
    QStackedWidget* m_stack;
    IconButton* m_float;
    bool m_floating;
};

/// The cockpit: docks in columns. An arrangement is applied as a whole; what the user drags is read back by `current`.
class DockArea final : public QWidget, public Themed {
    Q_OBJECT
public:
    explicit DockArea(const Theme& theme, QWidget* parent = nullptr);
    ~DockArea() override;

    /// Before the first `apply`. The area takes the panel over.
    void addPanel(const QString& id, Panel* panel);
    QStringList panelIds() const { return m_ids; }
    QStringList panelNames() const; ///< in the same order
    void apply(Arrangement arrangement);
    /// As it is now, with the sizes that the user dragged.
    Arrangement current() const;
    bool isShown(const QString& panel) const;
    void setShown(const QString& panel, bool shown);
    /// Brings a panel's tab to the front.
    void raisePanel(const QString& panel);
    void setTheme(const Theme& theme) override;

signals:
    void changed(); ///< the user moved, floated, hid or resized something

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    Dock* makeDock(const DockCell& cell);
    void applySizes();
    void userResized();
    void showMenu(const QString& panel, const QPoint& at);
    void change(const std::function<void(Arrangement&)>& edit);
    void toggleFloat(const QString& panel);
    Dock* dockOf(const QString& panel) const;
    void clear();

    Theme m_theme;
    QStringList m_ids;
    QMap<QString, Panel*> m_panels;
    Arrangement m_arrangement;
    QSplitter* m_columns;
    std::vector<QSplitter*> m_rows;
    std::vector<QList<int>> m_shownHeights; ///< of the rows, until somebody drags them
    QList<int> m_shownWidths;               ///< of the columns
    std::vector<Dock*> m_floating;
    QWidget* m_parking; ///< hidden panels live here
};

} // namespace kvscope::ui
