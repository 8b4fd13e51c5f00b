// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/curves_panel.h"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QMenu>
#include <QMessageBox>
#include <QPainter>
#include <QSaveFile>
#include <QTableView>

#include "ui/cockpit/curve_values.h"
#include "ui/cockpit/curves_plot.h"
#include "ui/cockpit/look.h"
#include "ui/cockpit/quiet_header.h"
#include "ui/models/format.h"
#include "ui/widgets/icon_button.h"

namespace kvscope::ui {
namespace {
constexpr int kTop = 8;
constexpr int kWideValues = 246, kNarrowValues = 230;
constexpr int kWideFrom = 640;
constexpr int kBottom = 4;
} // namespace

CurvesPanel::CurvesPanel(CockpitController& controller, const Theme& theme, QWidget* parent)
    : Panel(parent)
    , m_controller(controller)
    , m_theme(theme)
    , m_window(controller.samples(), controller.memory())
    , m_table(m_window)
    , m_plot(new CurvesPlot(m_window, theme, this))
    , m_values(new CurveValues(theme, this))
    , m_tableView(new QTableView(this))
    , m_header(new QuietHeader(theme, m_tableView))
    , m_delegate(new QuietDelegate(theme, this)) {
    setAccessibleName(name());
    setMinimumHeight(120);
    m_actions = makeActions(theme);
    m_tableView->setModel(&m_table);
    m_tableView->setAccessibleName(tr("Curves as a table"));
    m_tableView->verticalHeader()->hide();
    m_tableView->verticalHeader()->setDefaultSectionSize(24);
    m_tableView->setHorizontalHeader(m_header);
    m_header->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_tableView->setShowGrid(false);
    m_tableView->setItemDelegate(m_delegate);
    m_tableView->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_tableView->hide();
    connect(&controller, &CockpitController::curvesChanged, this, &CurvesPanel::takeSamples);
    connect(&controller, &CockpitController::sourceChanged, this, [this] {
        m_window.reset();
        takeSamples();
    });
    connect(m_plot, &CurvesPlot::cursorMoved, this, &CurvesPanel::updateValues);
    connect(m_plot, &CurvesPlot::windowMoved, this, [this] {
        m_pause->setGlyph(m_window.live() ? Icon::Pause : Icon::Play);
        m_pause->setName(m_window.live() ? tr("Pause the curves") : tr("Follow the newest sample"));
        updateValues();
        emit titleChanged();
    });
}

QWidget* CurvesPanel::makeActions(const Theme& theme) {
    auto* bar = new QWidget(this);
    bar->hide();
    auto* layout = new QHBoxLayout(bar);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_pause = new IconButton(Icon::Pause, tr("Pause the curves"), theme, bar);
    m_asTable = new IconButton(Icon::Table, tr("Show as table"), theme, bar);
    m_asTable->setCheckable(true);
    m_export = new IconButton(Icon::Export, tr("Export the curves"), theme, bar);
    for (IconButton* button : {m_pause, m_asTable, m_export})
        layout->addWidget(button);
    connect(m_pause, &QAbstractButton::clicked, this, &CurvesPanel::togglePause);
    connect(m_asTable, &QAbstractButton::toggled, this, &CurvesPanel::setTableShown);
    connect(m_export, &QAbstractButton::clicked, this, [this] {
        QMenu menu(this);
        menu.addAction(tr("Image (PNG)…"), this, &CurvesPanel::exportImage);
        menu.addAction(tr("Values (CSV)…"), this, &CurvesPanel::exportTable);
        menu.exec(m_export->mapToGlobal(QPoint(0, m_export->height())));
    });
    return bar;
}

QString CurvesPanel::name() const {
    return tr("Curves");
}

QString CurvesPanel::trailingNote() const {
    const double seconds = double(m_window.span()) * 1e-9;
    if (seconds <= 0)
        return {};
    const QString length =
        seconds >= 60 ? formatNumber(std::llround(seconds / 60)) + kNarrowSpace + tr("min") : formatSeconds(seconds);
    return m_window.live() ? tr("last %1").arg(length) : tr("paused, %1").arg(length);
}

void CurvesPanel::setTheme(const Theme& theme) {
    m_theme = theme;
    handDown(*m_actions, theme);
    m_header->setTheme(theme);
    m_delegate->setTheme(theme);
    update();
}

void CurvesPanel::togglePause() {
    if (m_window.live())
        m_window.pause();
    else
        m_window.resume();
    m_plot->refresh(m_controller.sessionStart());
    emit m_plot->windowMoved();
}

void CurvesPanel::setTableShown(bool on) {
    m_tableShown = on;
    m_asTable->setChecked(on);
    m_tableView->setVisible(on);
    m_plot->setVisible(!on);
    m_values->setVisible(!on);
    takeSamples();
}

void CurvesPanel::takeSamples() {
    if (!isVisible())
        return;
    m_plot->refresh(m_controller.sessionStart());
    if (m_tableShown)
        m_table.refresh(m_controller.sessionStart());
    else
        updateValues();
    if (const QString note = trailingNote(); note != m_note) {
        m_note = note;
        emit titleChanged();
    }
}

void CurvesPanel::updateValues() {
    const StripPainter painter(m_window, m_plot->scales(), m_theme);
    std::vector<CurveValues::Group> groups;
    for (int i = 0; i < m_plot->strips(); ++i) {
        const Strip strip = kStrips[std::size_t(i)];
        const QRect rect = m_plot->stripRect(i);
        groups.push_back({rect.top() + m_plot->y() - m_values->y(), rect.height(),
                          strip == Strip::Percent || strip == Strip::Rates,
                          painter.values(strip, m_plot->cursorColumn())});
    }
    m_values->setGroups(std::move(groups));
}

QString CurvesPanel::valueText(const QString& seriesName) const {
    const StripPainter painter(m_window, m_plot->scales(), m_theme);
    for (const Strip strip : kStrips)
        for (const CurveValue& value : painter.values(strip, m_plot->cursorColumn()))
            if (value.name == seriesName)
                return value.value;
    return {};
}

void CurvesPanel::resizeEvent(QResizeEvent*) {
    const int values = width() >= kWideFrom ? kWideValues : kNarrowValues;
    const int tall = height() - kTop - kBottom;
    m_plot->setGeometry(0, kTop, width() - values, tall);
    m_values->setGeometry(width() - values, kTop, values, tall);
    m_tableView->setGeometry(rect());
    m_plot->replot(QCustomPlot::rpImmediateRefresh); // the strips' rectangles, which the values stand beside
    updateValues();
}

void CurvesPanel::showEvent(QShowEvent* event) {
    takeSamples();
    Panel::showEvent(event);
}

void CurvesPanel::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), m_theme.bg1);
}

void CurvesPanel::exportImage() {
    const QString path =
        QFileDialog::getSaveFileName(this, tr("Export the curves"), QStringLiteral("curves.png"), tr("Images (*.png)"));
    if (path.isEmpty())
        return;
    QPixmap picture(size() * devicePixelRatioF());
    picture.setDevicePixelRatio(devicePixelRatioF());
    render(&picture);
    if (!picture.save(path, "PNG"))
        QMessageBox::warning(this, name(), tr("%1 could not be written. Choose another folder.").arg(path));
}

void CurvesPanel::exportTable() {
    const QString path = QFileDialog::getSaveFileName(this, tr("Export the curves"), QStringLiteral("curves.csv"),
                                                      tr("Comma-separated values (*.csv)"));
    if (path.isEmpty())
        return;
    m_table.refresh(m_controller.sessionStart());
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(m_table.csv()) < 0 || !file.commit())
        QMessageBox::warning(this, name(), tr("%1 could not be written: %2").arg(path, file.errorString()));
}

} // namespace kvscope::ui
