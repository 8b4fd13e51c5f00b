// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>

#include "ui/theme/apply_theme.h"

class QHBoxLayout;

namespace kvscope::ui {

/// The 34 px head of a panel: its name (or tabs), a quieter note, and actions at the right. Use it as the title bar
/// widget of a QDockWidget or on top of a plain panel.
class DockTitle final : public QWidget, public Themed {
    Q_OBJECT
public:
    DockTitle(const QString& name, const Theme& theme, QWidget* parent = nullptr);

    /// Several names make tabs; the current one is underlined in accent. One name is a plain title.
    void setNames(const QStringList& names);
    int current() const { return m_current; }
    void setCurrent(int index);
    /// Beside the name, cut with an ellipsis where there is no room. Figures keep their width.
    void setNote(const QString& note);
    /// A word before the actions, for example "last 10 min".
    void setTrailingNote(const QString& note);
    /// Appends an action at the right end, in order of the calls.
    void addAction(QWidget* widget);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override;

signals:
    void currentChanged(int index);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QRect tabRect(int index) const;

    QStringList m_names;
    QString m_note, m_trailing;
    int m_current = 0;
    QHBoxLayout* m_actions;
    Theme m_theme;
};

} // namespace kvscope::ui
