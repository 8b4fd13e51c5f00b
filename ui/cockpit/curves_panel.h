// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/cockpit/cockpit_controller.h"
#include "ui/cockpit/panel.h"
#include "ui/models/curve_table_model.h"
#include "ui/models/curve_window.h"

class QTableView;

namespace kvscope::ui {

class CurvesPlot;
class CurveValues;
class IconButton;
class QuietDelegate;
class QuietHeader;

/// The four strips with the values at the cursor, or the same as a table.
class CurvesPanel final : public Panel {
    Q_OBJECT
public:
    CurvesPanel(CockpitController& controller, const Theme& theme, QWidget* parent = nullptr);

    QString name() const override;
    QString trailingNote() const override;
    QWidget* actions() override { return m_actions; }
    void setTheme(const Theme& theme) override;

    CurvesPlot& plot() { return *m_plot; }
    CurveWindow& window() { return m_window; }
    void setTableShown(bool on);
    bool tableShown() const { return m_tableShown; }
    /// What the values column says, for tests and for export.
    QString valueText(const QString& seriesName) const;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    QWidget* makeActions(const Theme& theme);
    void takeSamples();
    void updateValues();
    void togglePause();
    void exportImage();
    void exportTable();

    CockpitController& m_controller;
    Theme m_theme;
    CurveWindow m_window;
    CurveTableModel m_table;
    CurvesPlot* m_plot;
    CurveValues* m_values;
    QTableView* m_tableView;
    QuietHeader* m_header;
    QuietDelegate* m_delegate;
    QWidget* m_actions = nullptr;
    IconButton* m_pause = nullptr;
    IconButton* m_asTable = nullptr;
    IconButton* m_export = nullptr;
    bool m_tableShown = false;
    QString m_note; ///< what the title was last told
};

} // namespace kvscope::ui
