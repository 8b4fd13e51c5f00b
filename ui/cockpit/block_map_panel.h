// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QTimer>
#include <optional>
#include <vector>

#include "ui/cockpit/block_card.h"
#include "ui/cockpit/block_map_view.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/cockpit/panel.h"

namespace kvscope::ui {

class Button;
class EmptyState;
class IconButton;
class Legend;
class MemoryBar;
class SegmentedControl;

/// Block map with memory bar above, legend below and the card of the pointed block.
class BlockMapPanel final : public Panel {
    Q_OBJECT
public:
    BlockMapPanel(CockpitController& controller, const Theme& theme, QWidget* parent = nullptr);
    ~BlockMapPanel() override;

    QString name() const override;
    QString note() const override;
    QWidget* actions() override { return m_actions; }
    void setTheme(const Theme& theme) override;
    void setReducedMotion(bool on) { m_view->setReducedMotion(on); }
    /// For windows where the curves stand behind a tab: one line of figures under the map, and what the title offers
    /// as one menu.
    void setSummaryShown(bool on);
    void setColourBy(ColourBy colourBy);

    BlockMapView& view() { return *m_view; }
    /// Lights blocks up: "This answer, 29 blocks".
    void select(std::vector<BlockId> blocks, const QString& tag);
    void clearSelection() { select({}, {}); }

signals:
    /// The user chose a block, to see its text in the chat.
    void blockSelected(kvscope::BlockId block);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void place();
    void takeMap();
    void takeSamples();
    void updateLegend();
    void updateEmptyState();
    void updatePointed();
    void updateCard();
    QWidget* makeActions(const Theme& theme);
    void showMenu();
    QRect summaryRect() const;

    CockpitController& m_controller;
    Theme m_theme;
    MemoryBar* m_memory;
    BlockMapView* m_view;
    Legend* m_legend;
    EmptyState* m_empty;
    QWidget* m_actions = nullptr;
    QWidget* m_wideActions = nullptr;
    QWidget* m_colourWords = nullptr;
    Button* m_menu = nullptr;
    SegmentedControl* m_colour = nullptr;
    QPointer<BlockCard> m_card; ///< a child of the window, which may go first
    std::optional<api::BlockDetailEvent> m_detail;
    QTimer m_refresh; ///< asks again while a block is pointed at
    bool m_summaryShown = false;
    bool m_everUsed = false;
    QString m_summary;
    int m_summaryTop = 0;
};

} // namespace kvscope::ui
