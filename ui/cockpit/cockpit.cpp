// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/cockpit.h"

#include <QPainter>
#include <QSplitter>
#include <QStackedLayout>
#include <QVBoxLayout>

#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/sequences_panel.h"
#include "ui/widgets/dock_title.h"

namespace kvscope::ui {
namespace {
constexpr int kGap = 4;
constexpr int kTwoColumnsFrom = 1300;
constexpr int kStackedFrom = 640;
constexpr int kMapAndTabsFrom = 480;
constexpr int kMapHeight = 442, kCurvesHeight = 266; // of the default window
constexpr int kMapOverTabs = 466;

void clear(QSplitter& splitter) {
    while (splitter.count() > 0)
        splitter.widget(0)->setParent(nullptr);
}

} // namespace

PanelFrame::PanelFrame(const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_title(new DockTitle({}, theme, this))
    , m_stack(new QStackedLayout)
    , m_theme(theme) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_title);
    layout->addLayout(m_stack, 1);
    connect(m_title, &DockTitle::currentChanged, this, [this](int index) {
        m_stack->setCurrentIndex(index);
        showCurrent();
    });
}

void PanelFrame::release() {
    for (Panel* panel : m_panels) {
        disconnect(panel, &Panel::titleChanged, this, nullptr);
        m_stack->removeWidget(panel);
    }
    m_panels.clear();
}

void PanelFrame::setPanels(const std::vector<Panel*>& panels) {
    release();
    m_panels = panels;
    QStringList names;
    for (Panel* panel : panels) {
        names << panel->name();
        m_stack->addWidget(panel);
        connect(panel, &Panel::titleChanged, this, &PanelFrame::updateTitle);
    }
    m_title->setNames(names);
    setCurrent(0);
}

void PanelFrame::setCurrent(int index) {
    m_title->setCurrent(index);
    m_stack->setCurrentIndex(index);
    showCurrent();
}

void PanelFrame::showCurrent() {
    Panel* panel = qobject_cast<Panel*>(m_stack->currentWidget());
    QWidget* actions = panel ? panel->actions() : nullptr;
    if (m_shownActions && m_shownActions != actions)
        m_shownActions->hide();
    m_shownActions = actions;
    if (actions) {
        m_title->addAction(actions);
        actions->show();
    }
    updateTitle();
}

void PanelFrame::updateTitle() {
    const Panel* panel = qobject_cast<Panel*>(m_stack->currentWidget());
    m_title->setNote(panel && m_panels.size() == 1 ? panel->note() : QString());
    m_title->setTrailingNote(panel ? panel->trailingNote() : QString());
}

void PanelFrame::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void PanelFrame::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), m_theme.bg1);
}

Cockpit::Cockpit(CockpitController& controller, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_map(new BlockMapPanel(controller, theme, this))
    , m_curves(new CurvesPanel(controller, theme, this))
    , m_sequences(new SequencesPanel(controller, theme, this))
    , m_columns(new QSplitter(Qt::Horizontal, this))
    , m_left(new QSplitter(Qt::Vertical))
    , m_right(new QSplitter(Qt::Vertical)) {
    setAccessibleName(tr("Cockpit"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_columns);
    m_columns->addWidget(m_left);
    m_columns->addWidget(m_right);
    for (QSplitter* splitter : {m_columns, m_left, m_right}) {
        splitter->setHandleWidth(kGap);
        splitter->setChildrenCollapsible(false);
    }
    for (int i = 0; i < 3; ++i)
        m_frames.push_back(new PanelFrame(theme, this));
    arrange(Arrangement::Stacked);
}

Cockpit::~Cockpit() = default;

void Cockpit::setReducedMotion(bool on) {
    m_map->setReducedMotion(on);
}

void Cockpit::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

Cockpit::Arrangement Cockpit::arrangementFor(QSize size) {
    if (size.width() >= kTwoColumnsFrom)
        return Arrangement::TwoColumns;
    if (size.width() >= kStackedFrom)
        return Arrangement::Stacked;
    return size.width() >= kMapAndTabsFrom ? Arrangement::MapAndTabs : Arrangement::Tabs;
}

void Cockpit::arrange(Arrangement arrangement) {
    if (arrangement == m_arrangement)
        return;
    m_arrangement = arrangement;
    for (PanelFrame* frame : m_frames)
        frame->release();
    for (Panel* panel : {static_cast<Panel*>(m_map), static_cast<Panel*>(m_curves), static_cast<Panel*>(m_sequences)})
        panel->setParent(this);
    for (QSplitter* splitter : {m_left, m_right})
        clear(*splitter);
    for (PanelFrame* frame : m_frames) {
        frame->setParent(this);
        frame->hide();
    }
    m_map->setSummaryShown(arrangement == Arrangement::Tabs);
    const auto put = [this](QSplitter* where, std::size_t frame, const std::vector<Panel*>& panels, int stretch) {
        m_frames[frame]->setPanels(panels);
        where->addWidget(m_frames[frame]);
        where->setStretchFactor(where->indexOf(m_frames[frame]), stretch);
        m_frames[frame]->show();
    };
    switch (arrangement) {
    case Arrangement::TwoColumns:
        put(m_left, 0, {m_map}, 3);
        put(m_left, 1, {m_sequences}, 1);
        put(m_right, 2, {m_curves}, 1);
        m_left->setSizes({600, 240});
        m_columns->setSizes({1000, 468});
        break;
    case Arrangement::Stacked:
        put(m_left, 0, {m_map}, 3);
        put(m_left, 1, {m_curves}, 1);
        put(m_left, 2, {m_sequences}, 1);
        m_left->setSizes({kMapHeight, kCurvesHeight, qMax(120, height() - kMapHeight - kCurvesHeight)});
        break;
    case Arrangement::MapAndTabs:
        put(m_left, 0, {m_map}, 2);
        put(m_left, 1, {m_curves, m_sequences}, 1);
        m_left->setSizes({kMapOverTabs, qMax(180, height() - kMapOverTabs)});
        break;
    case Arrangement::Tabs:
        put(m_left, 0, {m_map, m_curves, m_sequences}, 1);
        break;
    case Arrangement::None:
        break;
    }
    m_right->setVisible(m_right->count() > 0);
}

void Cockpit::resizeEvent(QResizeEvent* event) {
    arrange(arrangementFor(event ? size() : QSize()));
    QWidget::resizeEvent(event);
}

void Cockpit::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), m_theme.bg0);
}

} // namespace kvscope::ui
