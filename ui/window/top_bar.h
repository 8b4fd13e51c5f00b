// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>
#include <QWidget>

#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

class Button;
class IconButton;
class Pill;
class SegmentedControl;

/// The loaded model, or how far loading is; opens the picker.
class ModelButton final : public QAbstractButton, public Themed {
    Q_OBJECT
public:
    explicit ModelButton(const Theme& theme, QWidget* parent = nullptr);
    /// Empty name = no model.
    void setModelName(const QString& name, const QString& quantization);
    void setLoading(double fraction); ///< < 0 = not loading
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString shownName() const;

    Theme m_theme;
    QString m_name, m_quantization;
    double m_loading = -1;
};

/// 44 px: sidebar, model, backend at the left; workspaces in the middle; theme and menu at the right.
class TopBar final : public QWidget, public Themed {
    Q_OBJECT
public:
    enum Workspace { Chat, Observe };
    explicit TopBar(const Theme& theme, QWidget* parent = nullptr);

    ModelButton* model() const { return m_model; }
    void setBackend(const QString& backend); ///< "CPU, 2 threads, AVX-512": shown without its last part
    void setWorkspace(int workspace);
    void setSideShown(bool shown);
    void setNarrow(bool narrow); ///< no room for the backend
    QWidget* menuButton() const;
    void setTheme(const Theme& theme) override;

signals:
    void sideToggled();
    void modelRequested();
    void workspaceChanged(int workspace);
    void themeToggled();
    void menuRequested();
    void findRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool event(QEvent* event) override;

private:
    void place();

    Theme m_theme;
    IconButton* m_side;
    ModelButton* m_model;
    Pill* m_backend;
    SegmentedControl* m_workspaces;
    Button* m_find;
    IconButton* m_findSmall;
    IconButton* m_themeButton;
    IconButton* m_menu;
    bool m_narrow = false, m_sideShown = true, m_hasBackend = false;
};

} // namespace kvscope::ui
