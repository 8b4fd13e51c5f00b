// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/cockpit/cockpit_controller.h"
#include "ui/cockpit/panel.h"

class QTableView;

namespace kvscope::ui {

class EmptyState;
class QuietHeader;
class SequenceDelegate;

/// The live sequences as a table.
class SequencesPanel final : public Panel {
    Q_OBJECT
public:
    SequencesPanel(CockpitController& controller, const Theme& theme, QWidget* parent = nullptr);

    QString name() const override;
    QString note() const override;
    void setTheme(const Theme& theme) override;
    /// The chat on screen: its row is marked.
    void setCurrentOwner(OwnerId owner);

signals:
    /// The user chose a row.
    void ownerActivated(kvscope::OwnerId owner);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void takeRows();
    void updateSpans();
    void fitColumns();

    CockpitController& m_controller;
    Theme m_theme;
    QTableView* m_table;
    QuietHeader* m_header;
    SequenceDelegate* m_delegate;
    EmptyState* m_empty;
    QString m_note;
    QSize m_fittedFor; ///< width and number of rows that the columns were laid out for
};

} // namespace kvscope::ui
