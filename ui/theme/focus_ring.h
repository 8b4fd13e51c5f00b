// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QObject>
#include <QPointer>
#include <QWidget>

#include "ui/theme/theme.h"

class QApplication;

namespace kvscope::ui {

/// The one focus ring of the program: 2 px wide, 2 px outside of the widget that has the keyboard. A style sheet cannot
/// paint outside of its widget, so the ring is a child of the window that follows the focus.
///
/// A widget that shows the focus inside itself (a text field with its own ring, a view with a cell cursor) sets the
/// dynamic property `kFocusInside` to true.
class FocusRing final : public QObject {
    Q_OBJECT
public:
    static constexpr const char* kFocusInside = "kvscopeFocusInside";
    /// A widget of which only a part takes input names that part: a QRect in its own coordinates.
    static constexpr const char* kFocusRect = "kvscopeFocusRect";
    /// Creates the ring of the application, or gives the one that is there another theme.
    static void install(QApplication& application, const Theme& theme);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    explicit FocusRing(QApplication& application);
    void follow(QWidget* target);
    void place();

    Theme m_theme;
    QPointer<QWidget> m_ring; ///< lives and dies with the window it is in
    QPointer<QWidget> m_target;
    QList<QPointer<QWidget>> m_watched; ///< the target and its ancestors: any of them can move it
};

} // namespace kvscope::ui
