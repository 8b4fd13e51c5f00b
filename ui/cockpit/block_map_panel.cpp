// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/block_map_panel.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <algorithm>

#include "ui/cockpit/legend.h"
#include "ui/cockpit/look.h"
#include "ui/cockpit/memory_bar.h"
#include "ui/models/format.h"
#include "ui/widgets/button.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/icon_button.h"
#include "ui/widgets/segmented_control.h"

namespace kvscope::ui {
namespace {

constexpr int kRefreshMs = 500;
constexpr int kSummary = 24;
constexpr int kColourWordsFrom = 620;  // below it the size of the pool is the better use of the room
constexpr std::size_t kMostOwners = 5; // in the legend, those with the most blocks

/// "Colour by" in the title: a word that follows the theme.
class QuietLabel final : public QLabel, public Themed {
public:
    QuietLabel(const QString& text, const Theme& theme) : QLabel(text) {
        setFont(textFont(TextRole::Table));
        QuietLabel::setTheme(theme);
    }
    void setTheme(const Theme& theme) override {
        setStyleSheet(QStringLiteral("color: %1; background: transparent").arg(theme.text3.name()));
    }
};

} // namespace

BlockMapPanel::BlockMapPanel(CockpitController& controller, const Theme& theme, QWidget* parent)
    : Panel(parent)
    , m_controller(controller)
    , m_theme(theme)
    , m_memory(new MemoryBar(theme, this))
    , m_view(new BlockMapView(controller.clock(), theme, this))
    , m_legend(new Legend(theme, this))
    , m_empty(new EmptyState(Icon::Grid, tr("Send a message and watch its blocks appear"), theme, this)) {
    m_actions = makeActions(theme);
    setAccessibleName(name());
    connect(&controller, &CockpitController::mapChanged, this, &BlockMapPanel::takeMap);
    connect(&controller, &CockpitController::sourceChanged, this, &BlockMapPanel::takeMap);
    connect(&controller, &CockpitController::figuresChanged, this, &BlockMapPanel::updateLegend);
    connect(&controller, &CockpitController::curvesChanged, this, &BlockMapPanel::takeSamples);
    connect(&controller, &CockpitController::titlesChanged, this, &BlockMapPanel::updateLegend);
    connect(&controller, &CockpitController::blockDetail, this, [this](const api::BlockDetailEvent& detail) {
        if (m_view->pointedBlock() != detail.block)
            return; // the pointer has moved on
        m_detail = detail;
        updateCard();
    });
    connect(m_view, &BlockMapView::pointedChanged, this, &BlockMapPanel::updatePointed);
    connect(m_view, &BlockMapView::blockSelected, this, &BlockMapPanel::blockSelected);
    connect(m_view, &BlockMapView::zoomChanged, this, &BlockMapPanel::place);
    connect(m_legend, &Legend::filterChanged, m_view, &BlockMapView::setFilter);
    connect(&m_refresh, &QTimer::timeout, this, [this] {
        if (const auto block = m_view->pointedBlock())
            m_controller.queryBlock(*block);
    });
    takeMap();
}

BlockMapPanel::~BlockMapPanel() {
    delete m_card.data();
}

QWidget* BlockMapPanel::makeActions(const Theme& theme) {
    auto* bar = new QWidget(this);
    bar->hide();
    auto* outer = new QHBoxLayout(bar);
    outer->setContentsMargins(0, 0, 0, 0);
    m_wideActions = new QWidget(bar);
    auto* layout = new QHBoxLayout(m_wideActions);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_colour = new SegmentedControl(tr("Colour by"), {tr("State"), tr("Owner")}, theme, m_wideActions, 20);
    connect(m_colour, &SegmentedControl::currentChanged, this,
            [this](int index) { setColourBy(index == 0 ? ColourBy::State : ColourBy::Owner); });
    m_colourWords = new QuietLabel(tr("Colour by"), theme);
    layout->addWidget(m_colourWords);
    layout->addSpacing(8);
    layout->addWidget(m_colour);
    layout->addSpacing(8);
    const auto button = [&](Icon icon, const QString& name, auto slot) {
        auto* out = new IconButton(icon, name, theme, m_wideActions);
        connect(out, &QAbstractButton::clicked, m_view, slot);
        layout->addWidget(out);
    };
    button(Icon::ZoomOut, tr("Smaller blocks (-)"), &BlockMapView::zoomOut);
    button(Icon::ZoomIn, tr("Larger blocks (+)"), &BlockMapView::zoomIn);
    button(Icon::Fit, tr("Show the whole pool (0)"), &BlockMapView::fit);
    outer->addWidget(m_wideActions);

    m_menu = new Button(tr("State"), Button::Kind::Normal, theme, bar);
    m_menu->setHeight(24);
    m_menu->setTrailingGlyph(Icon::Down);
    m_menu->setAccessibleName(tr("Colour by, and zoom"));
    m_menu->hide();
    connect(m_menu, &QAbstractButton::clicked, this, &BlockMapPanel::showMenu);
    outer->addWidget(m_menu);
    return bar;
}

void BlockMapPanel::showMenu() {
    QMenu menu(this);
    const auto colour = [&](const QString& name, ColourBy by) {
        QAction* action = menu.addAction(name, this, [this, by] { setColourBy(by); });
        action->setCheckable(true);
        action->setChecked(m_view->colourBy() == by);
    };
    colour(tr("Colour by state"), ColourBy::State);
    colour(tr("Colour by owner"), ColourBy::Owner);
    menu.addSeparator();
    menu.addAction(tr("Larger blocks"), m_view, &BlockMapView::zoomIn);
    menu.addAction(tr("Smaller blocks"), m_view, &BlockMapView::zoomOut);
    menu.addAction(tr("Show the whole pool"), m_view, &BlockMapView::fit);
    menu.exec(m_menu->mapToGlobal(QPoint(0, m_menu->height() + 4)));
}

void BlockMapPanel::setColourBy(ColourBy colourBy) {
    m_view->setColourBy(colourBy);
    m_colour->setCurrent(colourBy == ColourBy::State ? 0 : 1);
    m_menu->setText(colourBy == ColourBy::State ? tr("State") : tr("Owner"));
    m_menu->updateGeometry();
    updateLegend();
    place();
}

QString BlockMapPanel::name() const {
    return tr("Block map");
}

QString BlockMapPanel::note() const {
    const metrics::BlockMapSnapshot& map = m_controller.map();
    if (map.cells.empty())
        return {};
    return tr("%1 blocks × %2 tokens").arg(formatNumber(std::int64_t(map.cells.size())), formatNumber(map.blockSize));
}

void BlockMapPanel::setTheme(const Theme& theme) {
    m_theme = theme;
    handDown(*m_actions, theme);
    if (m_card)
        m_card->setTheme(theme);
    update();
}

void BlockMapPanel::setSummaryShown(bool on) {
    m_summaryShown = on;
    m_wideActions->setVisible(!on);
    m_menu->setVisible(on);
    place();
    takeSamples();
}

void BlockMapPanel::select(std::vector<BlockId> blocks, const QString& tag) {
    m_view->setSelection(std::move(blocks), tag);
    updateCard();
}

void BlockMapPanel::takeMap() {
    const metrics::BlockMapSnapshot& map = m_controller.map();
    const bool otherPool = map.cells.size() != m_view->map().cells.size() || map.blockSize != m_view->map().blockSize;
    m_view->setMap(map, m_controller.ownerNumbers());
    updateEmptyState();
    if (otherPool) {
        updateLegend();
        place();
        takeSamples();
        emit titleChanged();
    }
}

void BlockMapPanel::takeSamples() {
    m_memory->setParts(m_controller.memoryParts());
    if (!m_summaryShown)
        return;
    QStringList parts;
    const metrics::StepSample* now = m_controller.latest();
    if (now && (now->presence & metrics::kHasBlocks) && now->numBlocks > 0) {
        const double used = 1 - double(now->blocksByState[std::size_t(kv::BlockState::Empty)]) / now->numBlocks;
        parts << tr("pool %1").arg(formatPercent(used));
    }
    if (now && (now->presence & metrics::kHasPrefix) && now->hitRate() >= 0)
        parts << tr("hits %1").arg(formatPercent(now->hitRate()));
    if (now && (now->presence & metrics::kHasBlocks) && now->internalFragmentation() >= 0)
        parts << tr("fragmentation %1").arg(formatPercent(now->internalFragmentation(), 1));
    if (now && (now->presence & metrics::kHasEngineMemory))
        parts << formatBytes(now->poolBytes);
    const QString summary = parts.join(QStringLiteral(" · "));
    if (summary == m_summary)
        return;
    m_summary = summary;
    update(summaryRect());
}

void BlockMapPanel::updateLegend() {
    const metrics::BlockMapSnapshot& map = m_controller.map();
    std::vector<Legend::Entry> entries;
    if (m_view->colourBy() == ColourBy::State) {
        std::array<std::int64_t, kv::kBlockStateCount> counts{};
        for (const metrics::BlockCell& cell : map.cells)
            ++counts[std::size_t(cell.state)];
        for (const kv::BlockState state : Legend::kOrder) {
            const std::int64_t count = counts[std::size_t(state)];
            // Nothing can be pinned or moved yet in most pools: a state that never occurs is no help to the reader.
            if (count == 0 && (state == kv::BlockState::Pinned || state == kv::BlockState::InTransfer))
                continue;
            entries.push_back({int(state), stateWord(state), count});
        }
    } else {
        std::vector<std::int64_t> counts(std::size_t(m_controller.owners().count()) + 1, 0);
        for (const metrics::BlockCell& cell : map.cells)
            if (cell.state != kv::BlockState::Empty && cell.owner < m_controller.ownerNumbers().size())
                ++counts[std::size_t(m_controller.ownerNumbers()[cell.owner])];
        for (std::size_t number = 1; number < counts.size(); ++number)
            if (counts[number] > 0)
                entries.push_back({int(number), QString::number(number), counts[number]});
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto& a, const auto& b) { return a.count > b.count; });
        if (entries.size() > kMostOwners)
            entries.resize(kMostOwners);
        const QFontMetrics metrics(figureFont(TextRole::Table));
        const int room = entries.empty() ? 0 : qMax(40, (width() - kGutter - kRightMargin) / int(entries.size()) - 68);
        for (Legend::Entry& entry : entries)
            entry.name += u' ' + metrics.elidedText(m_controller.titleOf(m_controller.owners().owner(entry.key)),
                                                    Qt::ElideRight, qMin(room, 160));
    }
    m_legend->setEntries(std::move(entries), m_view->colourBy());
}

void BlockMapPanel::updateEmptyState() {
    const auto& cells = m_controller.map().cells;
    if (cells.empty())
        m_everUsed = false;
    if (!m_everUsed)
        m_everUsed = std::any_of(cells.begin(), cells.end(),
                                 [](const auto& cell) { return cell.state != kv::BlockState::Empty; });
    m_empty->setVisible(!m_everUsed);
    m_legend->setVisible(!cells.empty());
    m_view->setVisible(!cells.empty());
}

void BlockMapPanel::updatePointed() {
    const auto block = m_view->pointedBlock();
    if (m_detail && block != m_detail->block)
        m_detail.reset();
    if (block) {
        m_controller.queryBlock(*block);
        m_refresh.start(kRefreshMs);
    } else {
        m_refresh.stop();
    }
    updateCard();
}

void BlockMapPanel::updateCard() {
    const auto block = m_view->pointedBlock();
    const QRect cell = block ? m_view->blockRect(*block) : QRect();
    if (cell.isEmpty() || !isVisible()) {
        if (m_card)
            m_card->hide();
        return;
    }
    if (!m_card || m_card->parentWidget() != window()) {
        delete m_card.data();
        m_card = new BlockCard(m_theme, window());
    }
    const auto nameOf = [this](OwnerId owner) { return m_controller.titleOf(owner); };
    const kv::BlockState state = m_view->map().cells[std::size_t(block->value())].state;
    BlockCard::Content content =
        blockCardContent(*block, state, m_detail ? &*m_detail : nullptr, m_controller.capabilities().blockDetail,
                         m_controller.clock().now(), nameOf);
    const BlockMapLayout& layout = m_view->viewport().layout();
    if (layout.blocksPerCell() > 1) {
        const BlockRange range = layout.blocksOf(layout.cellOf(block->value()));
        content.title = tr("Blocks %1–%2").arg(formatNumber(range.begin), formatNumber(range.end - 1));
        content.rows.clear();
        content.quote.clear();
        content.hint = tr("Zoom in for single blocks");
    }
    m_card->setContent(std::move(content));
    const auto inWindow = [this](const QRect& rect) {
        return rect.isEmpty() ? QRect() : QRect(m_view->mapTo(window(), rect.topLeft()), rect.size());
    };
    m_card->showBeside(inWindow(cell), window()->rect().adjusted(8, 8, -8, -8), inWindow(m_view->selectionRect()));
}

void BlockMapPanel::resizeEvent(QResizeEvent*) {
    m_colourWords->setVisible(width() >= kColourWordsFrom);
    place();
    updateLegend();
}

bool BlockMapPanel::event(QEvent* event) {
    if (event->type() == QEvent::LayoutRequest)
        place();
    return Panel::event(event);
}

void BlockMapPanel::hideEvent(QHideEvent* event) {
    if (m_card)
        m_card->hide();
    m_refresh.stop();
    Panel::hideEvent(event);
}

void BlockMapPanel::place() {
    const int top = m_memory->sizeHint().height();
    m_memory->setGeometry(0, 0, width(), top);
    const int legend = m_legend->heightForWidth(width());
    const int below = 2 + (m_summaryShown ? kSummary : 0) + legend + 4;
    const int room = qMax(0, height() - top - below);
    // Whole pixels a cell leave a rest below the map; what belongs to the map stays close to it.
    const int tall = m_view->zoomed() ? room : qMin(room, m_view->heightFor({width(), room}));
    m_view->setGeometry(0, top, width(), tall);
    m_view->relayout();
    const QRect map = m_view->mapRect();
    int y = top + tall + 2;
    m_summaryTop = y;
    if (m_summaryShown)
        y += kSummary;
    m_legend->setGeometry(0, y, width(), legend);
    m_legend->raise();
    m_memory->setMapRight(m_controller.map().cells.empty() ? 0 : map.right() + 1);
    // Over the cells, never over the figures of the ruler beside them.
    const bool hasMap = !m_controller.map().cells.empty();
    m_empty->setGeometry(hasMap ? map.left() : 0, top, hasMap ? map.width() : width(),
                         qMax(tall > 60 ? tall : room, 60));
    m_empty->raise();
    update();
}

QRect BlockMapPanel::summaryRect() const {
    return {0, m_summaryTop, width(), kSummary};
}

void BlockMapPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg1);
    if (!m_summaryShown || m_summary.isEmpty())
        return;
    painter.setFont(figureFont(TextRole::Table));
    painter.setPen(m_theme.text2);
    painter.drawText(summaryRect().adjusted(kGutter, 0, -kRightMargin, 0), Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(m_summary, Qt::ElideRight, width() - kGutter - kRightMargin));
}

} // namespace kvscope::ui
