// SPDX-License-Identifier: GPL-3.0-or-later
//
// MainWindow: arrangement by window class and workspace, and the conversations' overlay where there is no room.
#include <QMouseEvent>
#include <QSettings>
#include <QSplitter>
#include <utility>

#include "ui/chat/chat_panel.h"
#include "ui/chat/conversation_panel.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/window/dock_area.h"
#include "ui/window/main_window.h"
#include "ui/window/status_bar.h"
#include "ui/window/top_bar.h"

namespace kvscope::ui {
namespace {

constexpr int kChatAtLeast = 420;
const char* const kWorkspaceNames[] = {"chat", "observe"};

} // namespace

QString MainWindow::arrangementKey() const {
    return QStringLiteral("arrangement/%1-%2")
        .arg(QLatin1StringView(kWorkspaceNames[m_workspace]), QLatin1StringView(windowClassName(m_class)));
}

void MainWindow::loadArrangement() {
    const QByteArray stored = m_parts.settings.value(arrangementKey()).toByteArray();
    m_arrangement = arrangementFromJson(stored).value_or(Arrangement::defaultFor(m_class));
    m_applying = true;
    m_docks->apply(m_arrangement);
    applyWindowClass();
    applyBodySizes();
    m_applying = false;
}

void MainWindow::saveArrangement() {
    m_parts.settings.setValue(QStringLiteral("window/size"), isMaximized() ? normalGeometry().size() : size());
    m_parts.settings.setValue(QStringLiteral("window/workspace"), m_workspace);
    m_parts.settings.setValue(QStringLiteral("window/side"), m_sideShown);
    if (m_applying || !isVisible())
        return;
    Arrangement now = m_docks->current();
    now.sideWidth = m_arrangement.sideWidth;
    now.cockpitWidth = m_arrangement.cockpitWidth;
    m_arrangement = now;
    // Only what differs from the default is kept, so that a better default reaches those who changed nothing.
    if (now == Arrangement::defaultFor(m_class))
        m_parts.settings.remove(arrangementKey());
    else
        m_parts.settings.setValue(arrangementKey(), toJson(now));
}

void MainWindow::applyWindowClass() {
    const bool narrow = m_class == WindowClass::Minimum;
    showSideOverlay(false);
    m_side->setVisible(m_sideShown && !narrow);
    m_docks->setVisible(m_workspace == TopBar::Observe);
    m_top->setNarrow(narrow);
    m_status->setNarrow(narrow);
    m_map->setSummaryShown(narrow);
    m_top->setSideShown(m_side->isVisibleTo(this));
}

void MainWindow::applyBodySizes() {
    const int total = m_body->width();
    const int side = m_side->isVisibleTo(this) ? m_arrangement.sideWidth : 0;
    int cockpit = m_docks->isVisibleTo(this) ? m_arrangement.cockpitWidth : 0;
    cockpit = std::max(0, std::min(cockpit, total - side - kChatAtLeast));
    m_body->setSizes({side, std::max(kChatAtLeast, total - side - cockpit - 2), cockpit});
    m_shownBody = m_body->sizes();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    const WindowClass now = classOfWidth(width());
    if (now != m_class) {
        saveArrangement();
        m_class = now;
        loadArrangement();
    }
    if (m_sideOverlay)
        showSideOverlay(true);
}

void MainWindow::setWorkspace(int workspace) {
    if (workspace == m_workspace || workspace < 0 || workspace >= int(std::size(kWorkspaceNames)))
        return;
    saveArrangement();
    m_workspace = workspace;
    m_top->setWorkspace(workspace);
    loadArrangement();
    m_parts.cockpit.setActive(isVisible() && !isMinimized() && workspace == TopBar::Observe);
    m_saveLayoutTimer.start();
}

void MainWindow::toggleSide() {
    if (m_class == WindowClass::Minimum) {
        showSideOverlay(!m_sideOverlay);
        return;
    }
    saveArrangement();
    m_sideShown = !m_sideShown;
    m_side->setVisible(m_sideShown);
    m_top->setSideShown(m_sideShown);
    applyBodySizes();
    m_saveLayoutTimer.start();
}

void MainWindow::showSideOverlay(bool show) {
    if (!show && !m_sideOverlay)
        return;
    m_sideOverlay = show;
    m_top->setSideShown(show);
    if (!show) {
        m_body->insertWidget(0, m_side);
        m_side->setVisible(m_sideShown && m_class != WindowClass::Minimum);
        return;
    }
    QWidget* content = m_body->parentWidget();
    if (m_side->parentWidget() != content)
        m_side->setParent(content);
    m_side->setGeometry(m_body->x(), m_body->y(), m_arrangement.sideWidth, m_body->height());
    m_side->show();
    m_side->raise();
    m_side->list()->setFocus();
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
    // The chat takes what the window gains or loses; what had to give way comes back.
    if (watched == m_body && event->type() == QEvent::Resize)
        applyBodySizes();
    return QMainWindow::eventFilter(watched, event);
}

/// Only what was dragged is wanted: a small window may have squeezed the other one.
void MainWindow::bodyDragged() {
    const QList<int> before = std::exchange(m_shownBody, m_body->sizes());
    const auto dragged = [&](int index) { return m_shownBody.value(index) != before.value(index); };
    if (m_side->isVisible() && !m_sideOverlay && dragged(m_body->indexOf(m_side)))
        m_arrangement.sideWidth = m_side->width();
    if (m_docks->isVisible() && dragged(m_body->indexOf(m_docks)))
        m_arrangement.cockpitWidth = m_docks->width();
    m_saveLayoutTimer.start();
}

void MainWindow::resetLayout() {
    for (const char* workspace : kWorkspaceNames)
        for (const WindowClass windowClass :
             {WindowClass::Minimum, WindowClass::Compact, WindowClass::Normal, WindowClass::Wide})
            m_parts.settings.remove(
                QStringLiteral("arrangement/%1-%2")
                    .arg(QLatin1StringView(workspace), QLatin1StringView(windowClassName(windowClass))));
    m_sideShown = true;
    loadArrangement();
}

} // namespace kvscope::ui
