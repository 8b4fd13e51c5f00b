// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <algorithm>
#include <set>

#include "ui/models/block_map_layout.h"
#include "ui/models/block_map_raster.h"
#include "ui/models/block_map_viewport.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

constexpr int kColumnCounts[] = {64, 80, 100, 200, 400, 500, 800, 1000};

/// What the map has of each window of the design, logical pixels.
struct Window {
    const char* name;
    int width, height;
};
constexpr Window kWindows[] = {
    {"2560x1440", 938, 420}, {"1600x1000", 700, 300}, {"1280x800", 484, 318}, {"960x600", 324, 330}};
constexpr int kPools[] = {64, 4096, 65536, 131072};
constexpr double kScales[] = {1, 1.25, 1.5, 2, 3};

BlockPalette plainPalette() {
    BlockPalette p;
    p.well = 0xff000001;
    p.empty = 0xff000002;
    p.filling = 0xff000003;
    p.active = 0xff000004;
    p.shared = 0xff000005;
    p.cachedRing = 0xff000006;
    p.cachedInside = 0xff000007;
    p.pinned = 0xff000008;
    p.transfer = 0xff000009;
    p.mark = 0xff00000a;
    for (std::size_t i = 0; i < p.owners.size(); ++i)
        p.owners[i] = 0xff0000f0 + QRgb(i);
    return p;
}

} // namespace

class TestBlockMap : public QObject {
    Q_OBJECT
private slots:
    void everyWindow_data() {
        QTest::addColumn<int>("blocks");
        QTest::addColumn<QSize>("area");
        QTest::addColumn<double>("scale");
        for (const Window& window : kWindows)
            for (const int blocks : kPools)
                for (const double scale : kScales)
                    QTest::addRow("%s %d blocks x%g", window.name, blocks, scale)
                        << blocks << QSize(int(window.width * scale), int(window.height * scale)) << scale;
    }
    void everyWindow() {
        QFETCH(int, blocks);
        QFETCH(QSize, area);
        QFETCH(double, scale);
        const BlockMapLayout map = BlockMapLayout::fit(blocks, area, scale);
        QVERIFY(std::find(std::begin(kColumnCounts), std::end(kColumnCounts), map.columns()) !=
                std::end(kColumnCounts));
        QVERIFY2(map.size().width() <= area.width() && map.size().height() <= area.height(), "does not fit");
        QCOMPARE(map.gap() > 0, map.pitch() >= 5);
        QCOMPARE(map.showsMarks(), map.pitch() >= 6);
        QCOMPARE(map.showsCounts(), map.pitch() >= 20 * scale);
        QCOMPARE(map.cells(), (blocks + map.blocksPerCell() - 1) / map.blocksPerCell());
        QVERIFY((map.blocksPerCell() & (map.blocksPerCell() - 1)) == 0);

        // No column count does better, and none that does as well is smaller.
        for (const int columns : kColumnCounts) {
            const int rows = (map.cells() + columns - 1) / columns;
            const int pitch = std::min(area.width() / columns, area.height() / rows);
            QVERIFY(pitch < map.pitch() || (pitch == map.pitch() && columns >= map.columns()));
            if (map.blocksPerCell() > 1) { // half as many blocks a cell do not fit at a single pixel
                const int finer = (map.cells() * 2 + columns - 1) / columns;
                QVERIFY(columns > area.width() || finer > area.height());
            }
        }
    }
    void everyCellIsHitWhereItIsDrawn_data() { everyWindow_data(); }
    void everyCellIsHitWhereItIsDrawn() {
        QFETCH(int, blocks);
        QFETCH(QSize, area);
        QFETCH(double, scale);
        const BlockMapLayout map = BlockMapLayout::fit(blocks, area, scale);
        const QRect whole(QPoint(0, 0), map.size());
        for (int cell = 0; cell < map.cells(); cell += 1 + cell % 7) {
            const QRect rect = map.cellRect(cell);
            QVERIFY(whole.contains(rect));
            QCOMPARE(map.cellAt(rect.topLeft()), cell);
            QCOMPARE(map.cellAt(rect.bottomRight()), cell);
            const BlockRange range = map.blocksOf(cell);
            QVERIFY(range.begin < range.end);
            QCOMPARE(map.cellOf(range.begin), cell);
            QCOMPARE(map.cellOf(range.end - 1), cell);
        }
        QCOMPARE(map.blocksOf(map.cells() - 1).end, blocks);
        QCOMPARE(map.cellAt({-1, 0}), -1);
        QCOMPARE(map.cellAt({map.size().width(), 0}), -1);
        QCOMPARE(map.cellAt({0, map.size().height()}), -1);
    }
    void theDesignsOwnLayouts_data() {
        QTest::addColumn<QSize>("area");
        QTest::addColumn<int>("columns");
        QTest::addColumn<int>("pitch");
        QTest::newRow("1600 x 1000") << QSize(700, 300) << 100 << 7;
        QTest::newRow("1280 x 800") << QSize(484, 318) << 80 << 6;
        QTest::newRow("960 x 600") << QSize(324, 330) << 64 << 5;
        QTest::newRow("2560 x 1440") << QSize(938, 420) << 100 << 9;
    }
    void theDesignsOwnLayouts() {
        QFETCH(QSize, area);
        const BlockMapLayout map = BlockMapLayout::fit(4096, area, 1);
        QTEST(map.columns(), "columns");
        QTEST(map.pitch(), "pitch");
        QCOMPARE(map.blocksPerCell(), 1);
    }
    void tooManyBlocksShareACell() {
        const BlockMapLayout map = BlockMapLayout::fit(1'000'000, {324, 330}, 1);
        QVERIFY(map.blocksPerCell() > 1);
        const BlockMapLayout close = map.withPitch(3);
        QCOMPARE(close.blocksPerCell(), 1);
        QCOMPARE(close.blocksPerRow(), map.blocksPerRow()); // rows keep their ids
        QCOMPARE(close.cellAt(close.cellRect(777'777).center()), 777'777);
    }
    void degenerateAreas() {
        for (const QSize area : {QSize(0, 0), QSize(-5, 20), QSize(20, 20), QSize(63, 1)}) {
            const BlockMapLayout map = BlockMapLayout::fit(4096, area, 1);
            QCOMPARE(map.pitch(), 1);
            QVERIFY(map.columns() >= 64);
        }
        QCOMPARE(BlockMapLayout::fit(0, {700, 300}, 1).cells(), 0);
        QCOMPARE(BlockMapLayout::fit(0, {700, 300}, 1).cellAt({0, 0}), -1);
        QCOMPARE(BlockMapLayout::fit(1, {64, 1}, 1).cells(), 1);
    }
    void rulerIdsAreRound() {
        const auto ruler = BlockMapLayout::fit(4096, {700, 300}, 1).ruler();
        std::vector<int> ids;
        for (const RulerLabel& label : ruler)
            ids.push_back(label.block);
        QCOMPARE(ids, (std::vector<int>{0, 1000, 2000, 3000, 4000}));
        QCOMPARE(ruler[1].row, 10);
    }
    void cellsInArea() {
        const BlockMapLayout map = BlockMapLayout::fit(4096, {700, 300}, 1);
        QCOMPARE(map.cellsIn({0, 0, 7, 7}), QRect(QPoint(0, 0), QPoint(0, 0)));
        QCOMPARE(map.cellsIn({6, 6, 2, 2}), QRect(QPoint(0, 0), QPoint(1, 1)));
        QVERIFY(map.cellsIn({5000, 0, 10, 10}).isEmpty());
    }

    void zoomKeepsWhatIsUnderThePointer() {
        for (const int blocks : {64, 4096, 131072, 1'000'000}) {
            BlockMapViewport view;
            view.setArea(blocks, {700, 300}, 1);
            QVERIFY(view.fitted());
            // Not so far right or down that the edge of the larger map stops the view before the anchor does.
            const QPoint anchor(231, std::min(100, view.layout().size().height() - 1));
            const int before = view.layout().blocksOf(view.cellAt(anchor)).begin;
            const int perCell = view.layout().blocksPerCell();
            for (int step = 0; step < 30 && view.canZoomIn(); ++step) {
                view.zoom(1, anchor);
                QCOMPARE(view.layout().blocksPerCell(), 1);
                const int now = view.cellAt(anchor);
                QVERIFY(now >= 0);
                QVERIFY2(std::abs(now - before) <= std::max(1, perCell), "the map slid away under the pointer");
            }
            QVERIFY(view.layout().pitch() >= 40);
            for (int step = 0; step < 60 && !view.fitted(); ++step)
                view.zoom(-1, anchor);
            QVERIFY(view.fitted());
            QCOMPARE(view.origin(), QPoint(0, 0));
        }
    }
    void panningStaysOnTheMap() {
        BlockMapViewport view;
        view.setArea(4096, {700, 300}, 1);
        view.panBy({-50, -50});
        QCOMPARE(view.origin(), QPoint(0, 0)); // all of it is seen
        for (int i = 0; i < 5; ++i)
            view.zoom(1, {350, 150});
        view.panBy({100000, 100000});
        QCOMPARE(view.origin(), QPoint(0, 0));
        view.panBy({-100000, -100000});
        QCOMPARE(view.visible().bottomRight(), QRect(QPoint(0, 0), view.layout().size()).bottomRight());
        view.reveal(0);
        QVERIFY(view.visible().contains(view.layout().cellRect(0)));
        view.reveal(4095);
        QVERIFY(view.visible().contains(view.layout().cellRect(4095)));
        view.setArea(2048, {700, 300}, 1); // another pool: nothing of the old view makes sense
        QVERIFY(view.fitted());
    }

    void everyStateLooksDifferent() {
        const BlockPalette palette = plainPalette();
        const std::vector<int> owners{0, 1};
        for (const int pitch : {7, 24}) {
            BlockMapRaster raster;
            raster.setLook(palette, ColourBy::State);
            raster.setBlockSize(16);
            raster.setLayout(BlockMapLayout::fit(64, {64 * pitch, pitch}, 1));
            QCOMPARE(raster.layout().pitch(), pitch);
            std::vector<QImage> looks;
            for (std::size_t s = 0; s < kv::kBlockStateCount; ++s) {
                const std::vector<metrics::BlockCell> cells(64, {kv::BlockState(s), 9, 1, 2, 0});
                QImage image(64 * pitch, pitch, QImage::Format_RGB32);
                raster.paint(image, {0, 0}, {cells, owners, {}});
                looks.push_back(image.copy(0, 0, pitch, pitch));
            }
            for (std::size_t a = 0; a < looks.size(); ++a)
                for (std::size_t b = 0; b < a; ++b)
                    QVERIFY2(looks[a] != looks[b], qPrintable(QStringLiteral("states %1 and %2").arg(a).arg(b)));
        }
    }
    void fillRisesFromTheBottom() {
        const BlockPalette palette = plainPalette();
        const std::vector<int> owners{0};
        BlockMapRaster raster;
        raster.setLook(palette, ColourBy::State);
        raster.setBlockSize(16);
        raster.setLayout(BlockMapLayout::fit(64, {64 * 24, 24}, 1));
        const int side = raster.layout().side();
        int before = 0;
        for (const std::uint8_t fill : {1, 4, 8, 12, 15}) {
            const std::vector<metrics::BlockCell> cells(64, {kv::BlockState::Filling, fill, 0, 1, 0});
            QImage image(64 * 24, 24, QImage::Format_RGB32);
            raster.paint(image, {0, 0}, {cells, owners, {}});
            int level = 0;
            while (level < side && image.pixel(3, side - 1 - level) == palette.filling)
                ++level;
            QVERIFY(level > before && level < side);
            QCOMPARE(image.pixel(3, 0), palette.empty);
            before = level;
        }
    }
    void ownersKeepTheirNumbers() {
        OwnerNumbers numbers;
        QCOMPARE(numbers.numberOf(OwnerId(77)), 1);
        QCOMPARE(numbers.numberOf(OwnerId(5)), 2);
        QCOMPARE(numbers.numberOf(OwnerId(77)), 1);
        QCOMPARE(numbers.numberOf(OwnerId()), 0);
        QCOMPARE(numbers.owner(2), OwnerId(5));
        QVERIFY(!numbers.owner(3).valid());
        const BlockPalette palette = plainPalette();
        QCOMPARE(palette.ownerColor(13), palette.ownerColor(1));
        std::set<QRgb> distinct(palette.owners.begin(), palette.owners.end());
        QCOMPARE(distinct.size(), palette.owners.size());
    }
    void oneCellAloneEqualsTheWholePainting() {
        std::vector<metrics::BlockCell> cells(4096);
        for (std::size_t i = 0; i < cells.size(); ++i)
            cells[i] = {kv::BlockState(i * 7 % 5), std::uint8_t(i % 16), std::uint16_t(i % 3), 2, 0};
        const std::vector<int> owners{0, 1, 2};
        BlockMapRaster raster;
        raster.setLook(plainPalette(), ColourBy::Owner);
        raster.setBlockSize(16);
        raster.setLayout(BlockMapLayout::fit(4096, {700, 300}, 1));
        // An origin that cuts cells at every edge of the image.
        const QPoint origin(-3, -10);
        QImage whole(401, 203, QImage::Format_RGB32), single(401, 203, QImage::Format_RGB32);
        raster.paint(whole, origin, {cells, owners, {}});
        single.fill(plainPalette().well);
        for (int cell = 0; cell < raster.layout().cells(); ++cell)
            raster.paintCell(single, origin, {cells, owners, {}}, cell);
        QCOMPARE(single, whole);
    }
    void aggregateShowsTheMostFrequentAndMarksTheRare() {
        BlockPalette palette = plainPalette();
        BlockMapRaster raster;
        raster.setLook(palette, ColourBy::State);
        raster.setLayout(BlockMapLayout::fit(256, {64, 1}, 1));
        QCOMPARE(raster.layout().blocksPerCell(), 4);
        std::vector<metrics::BlockCell> cells(256);
        for (int i = 0; i < 3; ++i)
            cells[std::size_t(i)].state = kv::BlockState::Cached;
        for (int i = 4; i < 7; ++i)
            cells[std::size_t(i)].state = kv::BlockState::Cached;
        cells[7].state = kv::BlockState::Pinned;
        QImage image(64, 1, QImage::Format_RGB32);
        const std::vector<int> owners{0};
        raster.paint(image, {0, 0}, {cells, owners, {}});
        QCOMPARE(image.pixel(0, 0), palette.cachedInside);
        QVERIFY(image.pixel(1, 0) != palette.cachedInside);
        QCOMPARE(image.pixel(2, 0), palette.empty);
    }
};

QTEST_MAIN(TestBlockMap)
#include "test_ui-models_block_map.moc"
