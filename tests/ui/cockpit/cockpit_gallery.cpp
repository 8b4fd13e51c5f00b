// SPDX-License-Identifier: GPL-3.0-or-later
//
// Pictures of the cockpit over a synthetic trace, to be looked at beside the design: cockpit_gallery FOLDER
#include <QApplication>
#include <QDir>
#include <QFile>
#include <QMouseEvent>
#include <cstdio>
#include <functional>
#include <memory>

#include "tests/support/synthetic_cache.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/curves_plot.h"
#include "ui/cockpit/sequences_panel.h"
#include "ui/theme/apply_theme.h"
#include "ui/window/dock_area.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

class TraceClock final : public Clock {
public:
    Nanos time = 0;
    Nanos now() const override { return time; }
};

QString titleOf(OwnerId owner) {
    static const QStringList kTitles = {
        QStringLiteral("Why does paging help?"),  QStringLiteral("Refactor the tokenizer"),
        QStringLiteral("Attention paper, notes"), QStringLiteral("云南旅行"),
        QStringLiteral("Rust lifetimes"),         QStringLiteral("Weekly report"),
        QStringLiteral("Translate: pump manual"), QStringLiteral("SQL window functions")};
    return kTitles.value(int(owner.value() - 100) % kTitles.size());
}

/// The docks as the window arranges them, without the window.
struct Cockpit {
    Cockpit(CockpitController& controller, const Theme& theme, QSize size)
        : area(theme)
        , map(new BlockMapPanel(controller, theme))
        , curves(new CurvesPanel(controller, theme))
        , sequences(new SequencesPanel(controller, theme)) {
        area.addPanel(QStringLiteral("map"), map);
        area.addPanel(QStringLiteral("curves"), curves);
        area.addPanel(QStringLiteral("sequences"), sequences);
        map->setReducedMotion(true);
        area.resize(size);
        area.show();
        const WindowClass kind = size.width() >= 1300  ? WindowClass::Wide
                                 : size.width() >= 640 ? WindowClass::Normal
                                 : size.width() >= 480 ? WindowClass::Compact
                                                       : WindowClass::Minimum;
        area.apply(Arrangement::defaultFor(kind));
        map->setSummaryShown(kind == WindowClass::Minimum);
    }
    DockArea area;
    BlockMapPanel* map; ///< the area owns the panels
    CurvesPanel* curves;
    SequencesPanel* sequences;
};

struct Shot {
    const char* name;
    QSize size;
    int blocks;
    int steps;
    std::function<void(Cockpit&, test::SyntheticCache&)> prepare;
};

void settle() {
    for (int i = 0; i < 5; ++i)
        QApplication::processEvents();
}

void point(Cockpit& cockpit, int block) {
    BlockMapView& view = cockpit.map->view();
    const QPointF at = view.blockRect(BlockId(block)).center();
    QMouseEvent move(QEvent::MouseMove, at, view.mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&view, &move);
}

} // namespace

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    const QDir folder(argc > 1 ? QString::fromLocal8Bit(argv[1]) : QStringLiteral("."));
    folder.mkpath(QStringLiteral("."));
    const auto select = [](Cockpit& c, test::SyntheticCache& cache) {
        auto blocks = cache.blocksOf(OwnerId(102));
        if (blocks.size() > 29)
            blocks.erase(blocks.begin(), blocks.end() - 29);
        c.map->select(blocks, QStringLiteral("This answer, %1 blocks").arg(blocks.size()));
        c.sequences->setCurrentOwner(OwnerId(102));
        point(c, 2591);
    };
    const Shot shots[] = {
        {"default", {762, 900}, 4096, 1500, select},
        {"owner",
         {762, 900},
         4096,
         9000,
         [](Cockpit& c, test::SyntheticCache&) { c.map->setColourBy(ColourBy::Owner); }},
        {"zoomed",
         {762, 900},
         4096,
         9000,
         [](Cockpit& c, test::SyntheticCache&) {
             for (int i = 0; i < 6; ++i)
                 c.map->view().zoomIn();
         }},
        {"dimmed",
         {762, 900},
         4096,
         9000,
         [&](Cockpit& c, test::SyntheticCache& cache) {
             select(c, cache);
             c.map->view().setDimRest(true);
         }},
        {"early", {762, 900}, 4096, 500, {}},
        {"table", {762, 900}, 4096, 9000, [](Cockpit& c, test::SyntheticCache&) { c.curves->setTableShown(true); }},
        {"large", {762, 900}, 65536, 3000, {}},
        {"small", {762, 900}, 64, 3000, {}},
        {"medium", {546, 700}, 4096, 1500, select},
        {"narrow", {388, 530}, 4096, 1500, select},
        {"wide", {1000, 900}, 4096, 9000, {}},
        {"columns", {1472, 1370}, 4096, 9000, {}},
        {"empty", {762, 900}, 4096, 0, {}},
    };
    for (const ThemeKind kind : {ThemeKind::Dark, ThemeKind::Light}) {
        const Theme theme = Theme::load(kind);
        applyTheme(application, theme);
        for (const Shot& shot : shots) {
            if (argc > 2 && QLatin1StringView(argv[2]) != QLatin1StringView(shot.name))
                continue;
            TraceClock clock;
            CockpitController controller(clock, titleOf);
            test::SyntheticCache cache({.blocks = shot.blocks, .pins = true});
            cache.onDetail = [&](const api::BlockDetailEvent& e) { controller.setBlockDetail(e); };
            Cockpit cockpit(controller, theme, shot.size);
            controller.setSource(&cache);
            if (shot.steps > 0)
                cache.run(shot.steps);
            clock.time = cache.now();
            controller.setActive(true);
            for (int i = 0; i < 4; ++i)
                controller.drain();
            settle();
            if (shot.prepare)
                shot.prepare(cockpit, cache);
            settle();
            const QString path =
                folder.filePath(QStringLiteral("%1-%2.png")
                                    .arg(QLatin1StringView(shot.name),
                                         kind == ThemeKind::Dark ? QStringLiteral("dark") : QStringLiteral("light")));
            if (!cockpit.area.grab().save(path)) {
                std::fprintf(stderr, "cockpit_gallery: %s cannot be written\n", qPrintable(path));
                return 1;
            }
            controller.setSource(nullptr);
        }
    }
    return 0;
}
