// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the cockpit costs: a full repaint of a map of 65,536 blocks (6 ms at most), and the processor time of the GUI
// thread while a session plays at 200 steps a second (30 ms a second at most). Run it alone on a quiet machine, in a
// release build; by default without a display: QT_QPA_PLATFORM=offscreen. Exit status 1 = a budget is broken.
#include <QApplication>
#include <QElapsedTimer>
#include <QPainter>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "engine/api/session_player.h"
#include "tests/support/trace.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/sequences_panel.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

constexpr double kRepaintBudgetMs = 6;
constexpr double kProcessorBudgetMs = 30;

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double threadMilliseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
}

metrics::BlockMapSnapshot randomMap(int blocks) {
    metrics::BlockMapSnapshot map;
    map.blockSize = 16;
    map.cells.resize(std::size_t(blocks));
    std::uint32_t x = 1;
    for (metrics::BlockCell& cell : map.cells) {
        x = x * 1664525u + 1013904223u;
        cell.state = kv::BlockState((x >> 16) % 7);
        cell.fill = std::uint8_t((x >> 8) % 16);
        cell.owner = std::uint16_t((x >> 20) % 9);
        cell.references = std::uint16_t((x >> 24) % 5);
    }
    return map;
}

/// Milliseconds to paint every cell anew and to bring the view into a picture of its size.
double repaint(int blocks, QSize size, ColourBy by) {
    const MonotonicClock clock;
    const Theme dark = Theme::load(ThemeKind::Dark);
    BlockMapView view(clock, dark);
    view.resize(size);
    view.setMap(randomMap(blocks), {0, 1, 2, 3, 4, 5, 6, 7, 8});
    view.relayout();
    view.setColourBy(by);
    QImage target(size, QImage::Format_ARGB32_Premultiplied);
    std::vector<double> times;
    for (int i = 0; i < 60; ++i) {
        QElapsedTimer timer;
        timer.start();
        view.setTheme(dark); // the most thorough repaint there is: tiles, cells, contour
        view.render(&target, {}, {}, QWidget::RenderFlags());
        times.push_back(double(timer.nsecsElapsed()) * 1e-6);
    }
    return median(times);
}

/// Processor milliseconds a second of the GUI thread.
double playSession(int blocks, double seconds) {
    const MonotonicClock clock;
    const Theme dark = Theme::load(ThemeKind::Dark);
    constexpr double kSpeed = 4; // steps of 20 ms: 200 a second
    api::SessionPlayer player(test::makeTrace({.numBlocks = blocks, .steps = int((seconds + 4) * kSpeed * 50)}), clock);
    player.setSpeed(kSpeed);
    CockpitController controller(clock, [](OwnerId owner) { return QStringLiteral("Chat %1").arg(owner.value()); });
    QWidget window;
    auto* map = new BlockMapPanel(controller, dark, &window);
    auto* curves = new CurvesPanel(controller, dark, &window);
    auto* sequences = new SequencesPanel(controller, dark, &window);
    window.resize(762, 900);
    map->setGeometry(0, 34, 762, 378);
    curves->setGeometry(0, 450, 762, 232);
    sequences->setGeometry(0, 720, 762, 180);
    window.show();
    controller.setSource(&player);
    controller.setActive(true);
    player.play();
    const auto run = [](double forSeconds) {
        QEventLoop loop;
        QTimer::singleShot(int(forSeconds * 1000), Qt::PreciseTimer, &loop, &QEventLoop::quit);
        loop.exec();
    };
    run(2); // tiles, fonts, first layout
    const double before = threadMilliseconds();
    run(seconds);
    const double used = (threadMilliseconds() - before) / seconds;
    std::printf("  %zu samples in the history, map of %zu blocks\n", controller.samples().size(),
                controller.map().cells.size());
    controller.setSource(nullptr);
    return used;
}

} // namespace

int main(int argc, char** argv) {
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    applyTheme(application, Theme::load(ThemeKind::Dark));
    const QByteArray only = argc > 1 ? QByteArray(argv[1]) : QByteArray(); // repaint, session, or both
    bool kept = true;
    struct Case {
        int blocks;
        QSize size;
    };
    for (const Case& c :
         {Case{4096, {762, 300}}, Case{65536, {762, 300}}, Case{65536, {1062, 1100}}, Case{131072, {1062, 700}}})
        for (const ColourBy by : {ColourBy::State, ColourBy::Owner}) {
            if (only == "session")
                continue;
            const double ms = repaint(c.blocks, c.size, by);
            std::printf("repaint %6d blocks in %4dx%-4d by %s: %6.2f ms\n", c.blocks, c.size.width(), c.size.height(),
                        by == ColourBy::State ? "state" : "owner", ms);
            kept = kept && (c.blocks > 65536 || ms <= kRepaintBudgetMs);
        }
    for (const int blocks : {4096, 65536}) {
        if (only == "repaint")
            continue;
        const double ms = playSession(blocks, 8);
        std::printf("cockpit at 200 steps/s, %d blocks: %.1f ms of processor time a second\n", blocks, ms);
        kept = kept && (blocks > 4096 || ms <= kProcessorBudgetMs);
    }
    return kept ? 0 : 1;
}
