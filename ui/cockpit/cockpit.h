// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "ui/cockpit/cockpit_controller.h"
#include "ui/cockpit/panel.h"

class QSplitter;
class QStackedLayout;

namespace kvscope::ui {

class BlockMapPanel;
class CurvesPanel;
class DockTitle;
class SequencesPanel;

/// One or more panels under one title: a name, or tabs when there are several.
class PanelFrame final : public QWidget, public Themed {
    Q_OBJECT
public:
    PanelFrame(const Theme& theme, QWidget* parent = nullptr);

    /// Takes the panels in; those it held before are set free. The first is shown.
    void setPanels(const std::vector<Panel*>& panels);
    void release();
    void setCurrent(int index);
    DockTitle& title() { return *m_title; }
    void setTheme(const Theme& theme) override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void updateTitle();
    void showCurrent();

    DockTitle* m_title;
    QStackedLayout* m_stack;
    std::vector<Panel*> m_panels;
    QWidget* m_shownActions = nullptr;
    Theme m_theme;
};

/// The whole cockpit as one widget that arranges itself by its size: two columns from 1,300 px, map over curves over
/// sequences from 700, map over tabs from 480, and below that everything as tabs with a line of figures under the map.
class Cockpit final : public QWidget, public Themed {
    Q_OBJECT
public:
    Cockpit(CockpitController& controller, const Theme& theme, QWidget* parent = nullptr);
    ~Cockpit() override;

    BlockMapPanel& map() { return *m_map; }
    CurvesPanel& curves() { return *m_curves; }
    SequencesPanel& sequences() { return *m_sequences; }
    void setReducedMotion(bool on);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override { return {762, 900}; }
    QSize minimumSizeHint() const override { return {388, 400}; }

protected:
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    enum class Arrangement { None, Tabs, MapAndTabs, Stacked, TwoColumns };
    static Arrangement arrangementFor(QSize size);
    void arrange(Arrangement arrangement);

    Theme m_theme;
    BlockMapPanel* m_map;
    CurvesPanel* m_curves;
    SequencesPanel* m_sequences;
    QSplitter* m_columns;
    QSplitter* m_left;
    QSplitter* m_right;
    std::vector<PanelFrame*> m_frames;
    Arrangement m_arrangement = Arrangement::None;
};

} // namespace kvscope::ui
