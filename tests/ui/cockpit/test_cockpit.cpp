// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cockpit's panels over a simulated cache: what they show, and what pointer and keyboard do.
#include <QAbstractItemModelTester>
#include <QApplication>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <set>

#include "tests/support/synthetic_cache.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/curve_values.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/curves_plot.h"
#include "ui/cockpit/legend.h"
#include "ui/cockpit/memory_bar.h"
#include "ui/cockpit/sequences_panel.h"
#include "ui/models/format.h"
#include "ui/theme/icons.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/segmented_control.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

class TraceClock final : public Clock {
public:
    Nanos time = 1'000'000'000;
    Nanos now() const override { return time; }
};

/// A source that reports nothing but tokens: what a remote server may be.
class SparseCache final : public api::CacheSource {
public:
    int left = 0;
    Nanos time = 1'000'000'000;
    std::uint64_t tokens = 0;
    api::CacheCapabilities capabilities() const override { return {}; }
    bool nextSample(metrics::StepSample& sample) override {
        if (left == 0)
            return false;
        --left;
        sample = {};
        sample.time = time += 100'000'000;
        sample.presence = metrics::kHasTokens;
        sample.totalDecodeTokens = tokens += 5;
        return true;
    }
    bool nextMemorySample(metrics::MemorySample&) override { return false; }
    std::uint64_t droppedSamples() const override { return 0; }
    const metrics::BlockMapSnapshot* takeBlockMap() override { return nullptr; }
    const std::vector<api::SequenceRow>* takeSequences() override { return nullptr; }
    void queryBlock(BlockId) override {}
    void queryOwner(OwnerId) override {}
};

QString titleOf(OwnerId owner) {
    return QStringLiteral("Chat %1").arg(owner.value());
}

} // namespace

class TestCockpit : public QObject {
    Q_OBJECT

    Theme m_theme = Theme::load(ThemeKind::Dark);

    static void drain(CockpitController& controller) {
        for (int i = 0; i < 4; ++i)
            controller.drain(); // curves and tables take every fourth frame
        QApplication::processEvents();
    }

private slots:
    void initTestCase() { applyTheme(*qApp, m_theme); }

    void everyIconAndBothThemesLoad() {
        for (const ThemeKind kind : {ThemeKind::Dark, ThemeKind::Light}) {
            const Theme theme = Theme::load(kind);
            const QString sheet = makeStyleSheet(theme);
            QVERIFY(sheet.contains(theme.bg1.name()) && !sheet.contains(u'@'));
        }
        std::set<QByteArray> seen;
        for (int i = 0; i <= int(Icon::ZoomOut); ++i) {
            const QImage image = iconPixmap(Icon(i), 20, Qt::black, 2).toImage().convertToFormat(QImage::Format_ARGB32);
            QCOMPARE(image.size(), QSize(40, 40));
            const QByteArray bytes(reinterpret_cast<const char*>(image.constBits()), image.sizeInBytes());
            QVERIFY2(bytes.count('\0') < bytes.size(), "an icon is empty");
            QVERIFY2(seen.insert(bytes).second, "two icons are the same picture");
        }
    }

    void valuesStandBesideTheirStripsAndNeverOverEachOther() {
        using Blocks = std::vector<std::pair<int, int>>; // wanted top, height
        QCOMPARE(stacked({{10, 40}, {80, 20}, {120, 50}}, 200), (std::vector<int>{10, 80, 120}));
        QCOMPARE(stacked({{-10, 60}, {45, 20}, {70, 50}}, 200), (std::vector<int>{0, 60, 80}));
        QCOMPARE(stacked({{10, 40}, {60, 30}, {120, 50}}, 150), (std::vector<int>{10, 60, 100}));
        QCOMPARE(stacked({{10, 60}, {60, 30}, {70, 50}}, 150), (std::vector<int>{0, 60, 90}));
        QCOMPARE(stacked({{10, 60}, {60, 30}, {70, 50}}, 100),
                 (std::vector<int>{0, 60, 90})); // the last one is left out
        QVERIFY(stacked(Blocks{}, 10).empty());
    }

    void fourStripsAtFirstStart() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        CurvesPanel panel(controller, m_theme);
        panel.resize(762, 232);
        panel.show();
        QCOMPARE(panel.plot().strips(), 4);
        int below = -1;
        for (int i = 0; i < 4; ++i) {
            const QRect strip = panel.plot().stripRect(i);
            QVERIFY2(strip.height() >= 35 && strip.width() > 400, "a strip is too small to be read");
            QVERIFY2(strip.top() > below, "strips overlap");
            below = strip.bottom();
        }
        // Nothing has come yet: no value pretends to be 0.
        for (const char* name : {"cached", "prefix hits", "KV in use", "writing"})
            QCOMPARE(panel.valueText(QString::fromLatin1(name)), QString(kEnDash));
    }

    void valuesMoveWithTheSamples() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        test::SyntheticCache cache({.blocks = 1024});
        CurvesPanel panel(controller, m_theme);
        panel.resize(762, 232);
        panel.show();
        controller.setSource(&cache);
        controller.setActive(true);
        QStringList hits, memory, writing;
        for (int i = 0; i < 6; ++i) {
            cache.run(150);
            drain(controller);
            hits << panel.valueText(QStringLiteral("prefix hits"));
            memory << panel.valueText(QStringLiteral("KV in use"));
            writing << panel.valueText(QStringLiteral("writing"));
        }
        QVERIFY2(std::set<QString>(hits.begin(), hits.end()).size() > 2, qPrintable(hits.join(u' ')));
        QVERIFY2(std::set<QString>(memory.begin(), memory.end()).size() > 2, qPrintable(memory.join(u' ')));
        QVERIFY2(std::set<QString>(writing.begin(), writing.end()).size() > 1, qPrintable(writing.join(u' ')));
        // The column says what the newest sample says.
        const metrics::StepSample& last = *controller.latest();
        QCOMPARE(panel.valueText(QStringLiteral("prefix hits")), formatPercent(last.hitRate()));
        QCOMPARE(panel.valueText(QStringLiteral("empty")), formatNumber(last.blocksByState[0]));
        controller.setSource(nullptr);
    }

    void whatIsNotReportedIsNotZero() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        SparseCache cache;
        cache.left = 20;
        CurvesPanel panel(controller, m_theme);
        panel.resize(762, 232);
        panel.show();
        controller.setSource(&cache);
        controller.setActive(true);
        drain(controller);
        QVERIFY(panel.valueText(QStringLiteral("writing")).toDouble() > 0);
        for (const char* name : {"cached", "empty", "prefix hits", "fragmentation", "KV in use", "weights", "other"})
            QCOMPARE(panel.valueText(QString::fromLatin1(name)), QString(kEnDash));
        const StripPainter painter(panel.window(), panel.plot().scales(), m_theme);
        QVERIFY(!painter.reported(Strip::Blocks));
        QVERIFY(!painter.reported(Strip::Memory));
        QVERIFY(painter.reported(Strip::Rates));
        controller.setSource(nullptr);
    }

    void pausedCurvesStandStill() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        test::SyntheticCache cache({.blocks = 1024});
        CurvesPanel panel(controller, m_theme);
        panel.resize(762, 232);
        panel.show();
        controller.setSource(&cache);
        controller.setActive(true);
        cache.run(500);
        drain(controller);
        QTest::keyClick(&panel.plot(), Qt::Key_Space);
        QVERIFY(!panel.window().live());
        const QString before = panel.valueText(QStringLiteral("empty"));
        const Nanos end = panel.window().end();
        cache.run(500);
        drain(controller);
        QCOMPARE(panel.window().end(), end);
        QCOMPARE(panel.valueText(QStringLiteral("empty")), before);
        QTest::keyClick(&panel.plot(), Qt::Key_End);
        QVERIFY(panel.window().live());
        QVERIFY(panel.window().end() > end);
        QVERIFY(panel.valueText(QStringLiteral("empty")) != before);
        // The cursor reads older values, and zooming changes the span.
        const QString now = panel.valueText(QStringLiteral("cached"));
        for (int i = 0; i < 6; ++i)
            QTest::keyClick(&panel.plot(), Qt::Key_Left, Qt::ShiftModifier);
        QVERIFY(panel.valueText(QStringLiteral("cached")) != now);
        const Nanos span = panel.window().span();
        QTest::keyClick(&panel.plot(), Qt::Key_Plus);
        QVERIFY(panel.window().span() < span);
        controller.setSource(nullptr);
    }

    void curvesAreATableToo() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        test::SyntheticCache cache({.blocks = 1024});
        CurvesPanel panel(controller, m_theme);
        panel.resize(762, 232);
        panel.show();
        controller.setSource(&cache);
        controller.setActive(true);
        auto* table = panel.findChild<QTableView*>();
        QVERIFY(table && !table->isVisible());
        const QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        panel.setTableShown(true);
        for (int i = 0; i < 40; ++i) { // long enough for the live span to grow once
            cache.run(100);
            drain(controller);
        }
        QVERIFY(table->isVisible());
        QVERIFY(table->model()->rowCount() > 20);
        const QString inUse = table->model()->index(0, CurveTableModel::InUse).data().toString();
        const metrics::StepSample& last = *controller.latest();
        const auto& n = last.blocksByState;
        QCOMPARE(inUse, formatNumber(last.numBlocks - n[std::size_t(kv::BlockState::Empty)] -
                                     n[std::size_t(kv::BlockState::Cached)]));
        controller.setSource(nullptr);
    }

    void mapShowsCountsSelectionAndFilter() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        test::SyntheticCache cache({.blocks = 4096});
        BlockMapPanel panel(controller, m_theme);
        panel.setReducedMotion(true);
        panel.resize(762, 380);
        panel.show();
        auto* empty = panel.findChild<EmptyState*>();
        QVERIFY(empty && empty->isVisible());
        controller.setSource(&cache);
        controller.setActive(true);
        cache.run(700);
        drain(controller);
        QVERIFY(!empty->isVisible());
        QCOMPARE(panel.note(), QStringLiteral("4,096 blocks × 16 tokens"));
        BlockMapView& view = panel.view();
        QCOMPARE(view.viewport().layout().columns(), 100);
        QCOMPARE(view.viewport().layout().pitch(), 7);

        QSignalSpy selected(&panel, &BlockMapPanel::blockSelected);
        const QImage plain = view.grab().toImage();
        const auto first = std::find_if(cache.snapshot().cells.begin(), cache.snapshot().cells.end(),
                                        [](const auto& cell) { return cell.state == kv::BlockState::Active; });
        const BlockId block(std::int32_t(first - cache.snapshot().cells.begin()));
        QTest::mouseMove(&view, view.blockRect(block).center());
        QTest::mouseClick(&view, Qt::LeftButton, {}, view.blockRect(block).center());
        QCOMPARE(selected.size(), 1);
        QCOMPARE(selected[0][0].value<BlockId>(), block);

        panel.select({block}, QStringLiteral("This answer, 1 block"));
        QVERIFY(view.selectionRect().contains(view.blockRect(block)));
        QVERIFY(view.grab().toImage() != plain);
        QTest::keyClick(&view, Qt::Key_D);
        QVERIFY(view.dimRest());
        const QPoint other = view.blockRect(BlockId(block.value() + 1)).topLeft() + QPoint(1, 1);
        const QColor dimmed = view.grab().toImage().pixelColor(other);
        QVERIFY(dimmed != plain.pixelColor(other));
        QTest::keyClick(&view, Qt::Key_D);
        panel.clearSelection();
        QVERIFY(view.selectionRect().isEmpty());

        // A click on a count leaves only its blocks in colour, another click all.
        auto* legend = panel.findChild<Legend*>();
        QVERIFY(legend);
        legend->setFocus();
        QTest::keyClick(legend, Qt::Key_Return);
        QCOMPARE(legend->filter(), std::optional<int>(int(kv::BlockState::Active)));
        QTest::keyClick(legend, Qt::Key_Return);
        QVERIFY(!legend->filter());
        controller.setSource(nullptr);
    }

    void keysMoveOverTheMap() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        test::SyntheticCache cache({.blocks = 4096});
        BlockMapPanel panel(controller, m_theme);
        panel.resize(762, 380);
        panel.show();
        controller.setSource(&cache);
        controller.setActive(true);
        cache.run(300);
        drain(controller);
        BlockMapView& view = panel.view();
        view.setFocus();
        QTest::keyClick(&view, Qt::Key_Right); // enters the map at its first block
        QCOMPARE(view.pointedBlock(), std::optional(BlockId(0)));
        QTest::keyClick(&view, Qt::Key_Down);
        QTest::keyClick(&view, Qt::Key_Right);
        QCOMPARE(view.pointedBlock(), std::optional(BlockId(101)));
        QVERIFY(view.accessibleDescription().contains(QStringLiteral("Block 101")));
        QSignalSpy selected(&view, &BlockMapView::blockSelected);
        QTest::keyClick(&view, Qt::Key_Return);
        QCOMPARE(selected.size(), 1);
        QTest::keyClick(&view, Qt::Key_Plus);
        QVERIFY(view.zoomed());
        QTest::keyClick(&view, Qt::Key_End);
        QCOMPARE(view.pointedBlock(), std::optional(BlockId(4095)));
        QVERIFY(!view.blockRect(BlockId(4095)).isEmpty()); // scrolled into sight
        QTest::keyClick(&view, Qt::Key_0);
        QVERIFY(!view.zoomed());
        controller.setSource(nullptr);
    }

    void cardSaysWhatTheSourceAnswers() {
        api::BlockDetailEvent detail;
        detail.block = BlockId(2591);
        detail.fill = 16;
        detail.references = 2;
        detail.owners = {OwnerId(7), OwnerId(8)};
        detail.firstPosition = 5984;
        detail.text = "a\ttable\nof merges";
        detail.key = "9f3a10b277d94e02a6c1884200e3c41e";
        detail.lastRead = 980'000'000;
        const auto content =
            blockCardContent(detail.block, kv::BlockState::Shared, &detail, true, 1'000'000'000, titleOf);
        QCOMPARE(content.title, QStringLiteral("Block 2,591"));
        QCOMPARE(content.state, QStringLiteral("shared"));
        QCOMPARE(content.quote, QStringLiteral("a table of merges"));
        const auto row = [&](const char* name) {
            for (const BlockCard::Row& r : content.rows)
                if (r.name == QLatin1StringView(name))
                    return r.value;
            return QString();
        };
        QCOMPARE(row("Tokens"), QStringLiteral("5,984–5,999"));
        QCOMPARE(row("Owner"), QStringLiteral("Chat 7 +1"));
        QCOMPARE(row("Used by"), QStringLiteral("2 sequences"));
        QCOMPARE(row("Last read"), QStringLiteral("0.02\u202fs ago"));
        QCOMPARE(row("Key"), QStringLiteral("9f3a…c41e"));
        QVERIFY(!blockCardContent(detail.block, kv::BlockState::Shared, nullptr, false, 0, titleOf).hint.isEmpty());
    }

    void cardStandsBesideItsCellAndOffTheSelection() {
        QWidget window;
        window.resize(800, 500);
        window.show();
        BlockCard card(m_theme, &window);
        card.setContent(blockCardContent(BlockId(1), kv::BlockState::Empty, nullptr, true, 0, titleOf));
        const QRect room(0, 0, 800, 500);
        for (const QRect cell : {QRect(10, 10, 7, 7), QRect(780, 480, 7, 7), QRect(400, 250, 7, 7)}) {
            const QRect selection(cell.left() - 300, cell.top() - 10, 290, 20);
            card.showBeside(cell, room, selection);
            const QRect shown = card.geometry().adjusted(16, 16, -16, -16); // its shadow may lie anywhere
            QVERIFY(room.contains(shown));
            QVERIFY(!shown.intersects(cell));
            QVERIFY(!shown.intersects(selection & room));
        }
    }

    void freshBlocksGlowAndSettle() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        test::SyntheticCache cache({.blocks = 4096});
        BlockMapView view(clock, m_theme);
        view.resize(762, 300);
        view.show();
        cache.run(200);
        view.setMap(cache.snapshot(), {0, 1, 2, 3, 4, 5, 6, 7, 8});
        metrics::BlockMapSnapshot next = cache.snapshot();
        const auto empty = std::find_if(next.cells.begin(), next.cells.end(),
                                        [](const auto& c) { return c.state == kv::BlockState::Empty; });
        const BlockId block(std::int32_t(empty - next.cells.begin()));
        *empty = {kv::BlockState::Active, 16, 1, 1, 0};
        view.setMap(next, {0, 1, 2, 3, 4, 5, 6, 7, 8});
        const QPoint at = view.blockRect(block).center();
        const auto color = [&] { return view.grab().toImage().pixelColor(at); };
        clock.time += 50'000'000;
        QTRY_VERIFY_WITH_TIMEOUT(color() != m_theme.stateActive, 500); // on its way
        clock.time += 600'000'000;
        QTRY_COMPARE_WITH_TIMEOUT(color(), m_theme.stateActive, 500); // settled
    }

    void everyControlCanBeReachedAndNamed() {
        TraceClock clock;
        CockpitController controller(clock, titleOf);
        BlockMapPanel map(controller, m_theme);
        CurvesPanel curves(controller, m_theme);
        SequencesPanel sequences(controller, m_theme);
        for (Panel* panel :
             {static_cast<Panel*>(&map), static_cast<Panel*>(&curves), static_cast<Panel*>(&sequences)}) {
            QVERIFY(!panel->accessibleName().isEmpty());
            int reachable = 0;
            for (const QWidget* widget : panel->findChildren<QWidget*>()) {
                const bool scrollPart = QByteArray(widget->metaObject()->className()).contains("ScrollBar") ||
                                        widget->objectName().startsWith(QLatin1StringView("qt_"));
                if (!(widget->focusPolicy() & Qt::TabFocus) || scrollPart ||
                    QByteArray(widget->metaObject()->className()) == "QTableCornerButton")
                    continue;
                ++reachable;
                QVERIFY2(!widget->accessibleName().isEmpty(), widget->metaObject()->className());
            }
            QVERIFY(reachable > 0);
        }
    }

    void segmentsAnswerToArrows() {
        SegmentedControl control(QStringLiteral("Colour by"), {QStringLiteral("State"), QStringLiteral("Owner")},
                                 m_theme);
        QSignalSpy spy(&control, &SegmentedControl::currentChanged);
        QTest::keyClick(&control, Qt::Key_Right);
        QCOMPARE(control.current(), 1);
        QTest::keyClick(&control, Qt::Key_Right); // ends, does not go round
        QCOMPARE(control.current(), 1);
        QCOMPARE(spy.size(), 1);
        QCOMPARE(control.accessibleName(), QStringLiteral("Colour by: Owner"));
    }
};

QTEST_MAIN(TestCockpit)
#include "test_cockpit.moc"
