// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/dock_area.h"

#include <QCloseEvent>
#include <QMenu>
#include <QPainter>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "ui/widgets/dock_title.h"
#include "ui/widgets/icon_button.h"

namespace kvscope::ui {
namespace {

constexpr int kHandle = 4;

/// Sizes for a splitter out of wanted ones; those that want "what is left" share it.
QList<int> shares(const std::vector<int>& wanted, int total) {
    const int fixed = std::accumulate(wanted.begin(), wanted.end(), 0);
    const auto open = int(std::count(wanted.begin(), wanted.end(), 0));
    const int left = std::max(80 * open, total - fixed - kHandle * (int(wanted.size()) - 1));
    QList<int> out;
    for (const int size : wanted)
        out << (size > 0 ? size : left / std::max(1, open));
    return out;
}

/// Only what somebody dragged is wanted, not what a small window squeezed. `shown`: before the drag.
void takeDragged(const QSplitter& splitter, int index, QList<int>& shown, int& wanted) {
    const int now = splitter.sizes().value(index);
    if (now == shown.value(index))
        return;
    shown[index] = now;
    if (wanted > 0 && now > 0)
        wanted = now;
}

} // namespace

// ---- one dock ----

Dock::Dock(std::vector<Entry> entries, int current, bool floating, const Theme& theme, QWidget* parent)
    : QWidget(parent, floating ? Qt::Tool : Qt::Widget)
    , m_entries(std::move(entries))
    , m_theme(theme)
    , m_title(new DockTitle(QString(), theme, this))
    , m_stack(new QStackedWidget(this))
    , m_float(new IconButton(Icon::Float, floating ? tr("Dock") : tr("Float"), theme, this))
    , m_floating(floating) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_title);
    column->addWidget(m_stack, 1);
    for (const Entry& entry : m_entries) {
        m_stack->addWidget(entry.panel);
        if (QWidget* actions = entry.panel->actions())
            m_title->addAction(actions);
        connect(entry.panel, &Panel::titleChanged, this, &Dock::showTitle);
    }
    auto* more = new IconButton(Icon::More, tr("More"), theme, this);
    m_title->addAction(m_float);
    m_title->addAction(more);
    connect(m_float, &QAbstractButton::clicked, this,
            [this] { emit floatToggled(m_entries[std::size_t(this->current())].id); });
    connect(more, &QAbstractButton::clicked, this, [this, more] {
        emit menuRequested(m_entries[std::size_t(this->current())].id,
                           more->mapToGlobal(QPoint(0, more->height() + 4)));
    });
    connect(m_title, &DockTitle::currentChanged, this, &Dock::showCurrent);
    showCurrent(current);
    if (floating)
        setWindowTitle(m_entries.front().panel->name());
}

void Dock::releasePanels(QWidget* newParent) {
    for (const Entry& entry : m_entries) {
        entry.panel->disconnect(this);
        if (QWidget* actions = entry.panel->actions())
            actions->setParent(entry.panel);
        m_stack->removeWidget(entry.panel);
        entry.panel->setParent(newParent);
    }
    m_entries.clear();
}

int Dock::current() const {
    return m_stack->currentIndex();
}

void Dock::showCurrent(int index) {
    m_stack->setCurrentIndex(std::clamp<int>(index, 0, int(m_entries.size()) - 1));
    showTitle();
    emit currentChanged();
}

void Dock::showTitle() {
    if (m_entries.empty())
        return;
    QStringList names;
    for (std::size_t i = 0; i < m_entries.size(); ++i) {
        names << m_entries[i].panel->name();
        if (QWidget* actions = m_entries[i].panel->actions())
            actions->setVisible(int(i) == current());
    }
    m_title->setNames(names);
    m_title->setCurrent(current());
    const Panel& panel = *m_entries[std::size_t(current())].panel;
    m_title->setNote(m_entries.size() == 1 ? panel.note() : QString());
    m_title->setTrailingNote(panel.trailingNote());
}

void Dock::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void Dock::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg1);
}

/// Closing a floating dock puts it back: nothing disappears by accident.
void Dock::closeEvent(QCloseEvent* event) {
    event->ignore();
    if (m_floating && !m_entries.empty())
        emit floatToggled(m_entries.front().id);
}

// ---- all docks ----

DockArea::DockArea(const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_columns(new QSplitter(Qt::Horizontal, this))
    , m_parking(new QWidget(this)) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_columns);
    m_columns->setHandleWidth(kHandle);
    m_columns->setChildrenCollapsible(false);
    m_parking->hide();
    connect(m_columns, &QSplitter::splitterMoved, this, &DockArea::userResized);
}

DockArea::~DockArea() = default; // docks and panels die with the window that they are children of

void DockArea::addPanel(const QString& id, Panel* panel) {
    m_ids << id;
    m_panels.insert(id, panel);
    panel->setParent(m_parking);
}

QStringList DockArea::panelNames() const {
    QStringList names;
    for (const QString& id : m_ids)
        names << m_panels.value(id)->name();
    return names;
}

Dock* DockArea::makeDock(const DockCell& cell) {
    std::vector<Dock::Entry> entries;
    for (const QString& id : cell.panels)
        entries.push_back({id, m_panels.value(id)});
    auto* dock = new Dock(std::move(entries), cell.current, false, m_theme);
    connect(dock, &Dock::menuRequested, this, &DockArea::showMenu);
    connect(dock, &Dock::floatToggled, this, &DockArea::toggleFloat);
    connect(dock, &Dock::currentChanged, this, &DockArea::changed);
    return dock;
}

void DockArea::clear() {
    const auto drop = [this](Dock* dock) {
        dock->releasePanels(m_parking);
        dock->hide();
        dock->deleteLater(); // it may be the one whose menu asked for this
    };
    for (QSplitter* rows : m_rows) {
        for (int i = rows->count() - 1; i >= 0; --i) {
            auto* dock = static_cast<Dock*>(rows->widget(i));
            dock->setParent(nullptr);
            drop(dock);
        }
        delete rows;
    }
    m_rows.clear();
    for (Dock* dock : std::exchange(m_floating, {}))
        drop(dock);
}

void DockArea::apply(Arrangement arrangement) {
    arrangement.complete(m_ids);
    clear();
    m_arrangement = std::move(arrangement);
    for (const DockColumn& column : m_arrangement.columns) {
        auto* rows = new QSplitter(Qt::Vertical);
        rows->setHandleWidth(kHandle);
        rows->setChildrenCollapsible(false);
        for (const DockCell& cell : column.cells)
            rows->addWidget(makeDock(cell));
        m_columns->addWidget(rows);
        connect(rows, &QSplitter::splitterMoved, this, &DockArea::userResized);
        m_rows.push_back(rows);
    }
    applySizes();
    for (const FloatingPanel& f : m_arrangement.floating) {
        auto* dock = new Dock({{f.panel, m_panels.value(f.panel)}}, 0, true, m_theme, window());
        connect(dock, &Dock::menuRequested, this, &DockArea::showMenu);
        connect(dock, &Dock::floatToggled, this, &DockArea::toggleFloat);
        dock->setGeometry(f.geometry);
        dock->show();
        m_floating.push_back(dock);
    }
}

void DockArea::applySizes() {
    std::vector<int> widths;
    m_shownHeights.clear();
    for (std::size_t column = 0; column < m_rows.size(); ++column) {
        std::vector<int> heights;
        for (const DockCell& cell : m_arrangement.columns[column].cells)
            heights.push_back(cell.height);
        QSplitter* rows = m_rows[column];
        rows->resize(rows->width(), height()); // a new one has not been laid out yet; sizes are shares of what it has
        rows->setSizes(shares(heights, height()));
        // When the window grows, docks without a height of their own take it, or else the last one.
        const bool open = std::count(heights.begin(), heights.end(), 0) > 0;
        for (int i = 0; i < rows->count(); ++i)
            rows->setStretchFactor(i, open ? heights[std::size_t(i)] == 0 : i + 1 == rows->count());
        m_shownHeights.push_back(rows->sizes());
        widths.push_back(m_arrangement.columns[column].width);
    }
    m_columns->setSizes(shares(widths, width()));
    for (int i = 0; i < m_columns->count(); ++i)
        m_columns->setStretchFactor(i, widths[std::size_t(i)] == 0);
    m_shownWidths = m_columns->sizes();
}

/// Wanted sizes are kept while the window changes: what had to give way comes back.
void DockArea::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    applySizes();
}

void DockArea::userResized() {
    for (std::size_t column = 0; column < m_rows.size(); ++column) {
        DockColumn& wanted = m_arrangement.columns[column];
        for (std::size_t cell = 0; cell < wanted.cells.size(); ++cell)
            takeDragged(*m_rows[column], int(cell), m_shownHeights[column], wanted.cells[cell].height);
        takeDragged(*m_columns, int(column), m_shownWidths, wanted.width);
    }
    emit changed();
}

Arrangement DockArea::current() const {
    Arrangement a = m_arrangement;
    for (std::size_t column = 0; column < m_rows.size(); ++column)
        for (std::size_t cell = 0; cell < a.columns[column].cells.size(); ++cell)
            a.columns[column].cells[cell].current = static_cast<Dock*>(m_rows[column]->widget(int(cell)))->current();
    for (std::size_t i = 0; i < m_floating.size(); ++i)
        a.floating[i].geometry = m_floating[i]->geometry();
    return a;
}

void DockArea::change(const std::function<void(Arrangement&)>& edit) {
    Arrangement a = current();
    edit(a);
    apply(std::move(a));
    emit changed();
}

bool DockArea::isShown(const QString& panel) const {
    return !m_arrangement.hidden.contains(panel);
}

void DockArea::setShown(const QString& panel, bool shown) {
    if (shown != isShown(panel))
        change([&](Arrangement& a) { shown ? a.dock(panel) : a.hide(panel); });
}

Dock* DockArea::dockOf(const QString& panel) const {
    const auto at = m_arrangement.find(panel);
    return at ? static_cast<Dock*>(m_rows[at->column]->widget(int(at->cell))) : nullptr;
}

void DockArea::raisePanel(const QString& panel) {
    setShown(panel, true);
    const auto at = m_arrangement.find(panel);
    if (!at || m_arrangement.columns[at->column].cells[at->cell].panels.size() < 2)
        return;
    Arrangement a = current();
    if (a.columns[at->column].cells[at->cell].current == at->tab)
        return;
    a.columns[at->column].cells[at->cell].current = at->tab;
    apply(std::move(a));
    emit changed();
}

void DockArea::toggleFloat(const QString& panel) {
    Dock* dock = dockOf(panel);
    if (!dock) {
        change([&](Arrangement& a) { a.dock(panel); });
        return;
    }
    const QRect place(dock->mapToGlobal(QPoint(-40, 40)),
                      QSize(std::max(360, dock->width()), std::max(240, dock->height())));
    change([&](Arrangement& a) { a.makeFloating(panel, place); });
}

void DockArea::showMenu(const QString& panel, const QPoint& at) {
    QMenu menu(this);
    const auto place = m_arrangement.find(panel);
    menu.addAction(place ? tr("Float") : tr("Dock"), this, [this, panel] { toggleFloat(panel); });
    if (place) {
        menu.addAction(tr("Move up"), this, [this, panel] { change([&](Arrangement& a) { a.move(panel, -1); }); });
        menu.addAction(tr("Move down"), this, [this, panel] { change([&](Arrangement& a) { a.move(panel, 1); }); });
        QMenu* tabs = menu.addMenu(tr("Put into the tabs of"));
        for (const QString& other : m_ids)
            if (other != panel && m_arrangement.find(other))
                tabs->addAction(m_panels.value(other)->name(), this,
                                [this, panel, other] { change([&](Arrangement& a) { a.tabWith(panel, other); }); });
        tabs->setEnabled(!tabs->isEmpty());
        if (m_arrangement.columns[place->column].cells[place->cell].panels.size() > 1)
            menu.addAction(tr("Take out of the tabs"), this,
                           [this, panel] { change([&](Arrangement& a) { a.untab(panel); }); });
    }
    menu.addSeparator();
    menu.addAction(tr("Hide"), this, [this, panel] { change([&](Arrangement& a) { a.hide(panel); }); });
    menu.exec(at);
}

void DockArea::setTheme(const Theme& theme) {
    m_theme = theme;
    for (Dock* dock : m_floating)
        handDown(*dock, theme);
    update();
}

} // namespace kvscope::ui
