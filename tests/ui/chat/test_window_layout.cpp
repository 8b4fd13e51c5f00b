// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include "ui/models/chat_link.h"
#include "ui/window/arrangement.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

const QStringList kPanels{QStringLiteral("map"), QStringLiteral("curves"), QStringLiteral("sequences")};

/// Every panel stands in exactly one place.
void checkWhole(const Arrangement& a) {
    QStringList seen = a.hidden;
    for (const DockColumn& column : a.columns) {
        QVERIFY(!column.cells.empty());
        for (const DockCell& cell : column.cells) {
            QVERIFY(!cell.panels.isEmpty());
            QVERIFY(cell.current >= 0 && cell.current < cell.panels.size());
            seen << cell.panels;
        }
    }
    for (const FloatingPanel& f : a.floating)
        seen << f.panel;
    seen.sort();
    QStringList all = kPanels;
    all.sort();
    QCOMPARE(seen, all);
}

} // namespace

class TestWindowLayout final : public QObject {
    Q_OBJECT

private slots:
    void eachClassHasItsDefault() {
        QCOMPARE(classOfWidth(2560), WindowClass::Wide);
        QCOMPARE(classOfWidth(1600), WindowClass::Normal);
        QCOMPARE(classOfWidth(1280), WindowClass::Compact);
        QCOMPARE(classOfWidth(960), WindowClass::Minimum);
        QCOMPARE(Arrangement::defaultFor(WindowClass::Normal).cockpitWidth, 762);
        // look.md gives the map 442: 30 of them are strips of host memory and disk, which come with their tiers.
        QCOMPARE(Arrangement::defaultFor(WindowClass::Normal).columns[0].cells[0].height, 412);
        QCOMPARE(Arrangement::defaultFor(WindowClass::Wide).columns.size(), std::size_t(2));
        QCOMPARE(Arrangement::defaultFor(WindowClass::Minimum).columns[0].cells[0].panels, kPanels);
        for (const WindowClass c : {WindowClass::Wide, WindowClass::Normal, WindowClass::Compact, WindowClass::Minimum})
            checkWhole(Arrangement::defaultFor(c));
    }

    void survivesTheSettingsFile() {
        Arrangement a = Arrangement::defaultFor(WindowClass::Wide);
        a.makeFloating(QStringLiteral("curves"), QRect(10, 20, 640, 480));
        a.hide(QStringLiteral("sequences"));
        QCOMPARE(arrangementFromJson(toJson(a)).value(), a);
        QVERIFY(!arrangementFromJson("{\"version\": 99, \"columns\": []}"));
        QVERIFY(!arrangementFromJson("nonsense"));
        QVERIFY(!arrangementFromJson({}));
    }

    /// Whatever is done, no panel is lost or doubled.
    void nothingLosesAPanel() {
        std::uint32_t random = 7;
        const auto next = [&random](std::uint32_t n) {
            random = random * 1664525U + 1013904223U;
            return (random >> 10) % n;
        };
        Arrangement a = Arrangement::defaultFor(WindowClass::Normal);
        for (int step = 0; step < 2000; ++step) {
            const QString panel = kPanels[next(3)];
            switch (next(7)) {
            case 0:
                a.move(panel, next(2) ? 1 : -1);
                break;
            case 1:
                a.hide(panel);
                break;
            case 2:
                a.dock(panel);
                break;
            case 3:
                a.makeFloating(panel, QRect(0, 0, 400, 300));
                break;
            case 4:
                a.tabWith(panel, kPanels[next(3)]);
                break;
            case 5:
                a.untab(panel);
                break;
            default:
                a.complete(kPanels);
                break;
            }
            checkWhole(a);
        }
    }

    void unknownPanelsAreDroppedAndMissingOnesAppear() {
        Arrangement a = arrangementFromJson("{\"version\":1,\"side_width\":248,\"cockpit_width\":700,\"columns\":[{"
                                            "\"cells\":[{\"panels\":[\"gone\",\"curves\"],\"current\":1}]}]}")
                            .value();
        a.complete(kPanels);
        checkWhole(a);
        QCOMPARE(a.columns[0].cells[0].panels, QStringList{QStringLiteral("curves")});
    }

    void blocksOfAMessage() {
        api::OwnerBlocksEvent owner;
        owner.blockSize = 16;
        owner.tokens = 70;
        owner.blocks = {BlockId(9), BlockId(4), BlockId(), BlockId(7), BlockId(2)};
        QCOMPARE(blocksOfTokens(owner, {0, 16}), std::vector<BlockId>{BlockId(9)});
        QCOMPARE(blocksOfTokens(owner, {15, 17}), (std::vector<BlockId>{BlockId(9), BlockId(4)}));
        QCOMPARE(blocksOfTokens(owner, {20, 70}), (std::vector<BlockId>{BlockId(4), BlockId(7), BlockId(2)}));
        QVERIFY(blocksOfTokens(owner, {5, 5}).empty());
        QCOMPARE(blocksOfTokens(owner, {64, 900}), std::vector<BlockId>{BlockId(2)});
    }

    void warmthCountsStates() {
        api::OwnerBlocksEvent owner;
        owner.blockSize = 16;
        owner.tokens = 64;
        owner.blocks = {BlockId(0), BlockId(1), BlockId(), BlockId(2)};
        metrics::BlockMapSnapshot map;
        map.cells.resize(3);
        map.cells[0].state = kv::BlockState::Cached;
        map.cells[1].state = kv::BlockState::Shared;
        map.cells[2].state = kv::BlockState::Cached;
        const Warmth warmth = warmthOf(owner, map);
        QVERIFY(warmth.known);
        QCOMPARE(warmth.cached, 0.25F); // what lies behind the one that is gone must be computed again
        QCOMPARE(warmth.inUse, 0.25F);
        owner.blocks = {BlockId(0), BlockId(1), BlockId(2)};
        QCOMPARE(warmthOf(owner, map).cached, 0.5F);
    }

    void charactersOfABlock_data() {
        QTest::addColumn<QString>("message");
        QTest::addColumn<QString>("block");
        QTest::addColumn<double>("share");
        QTest::addColumn<QString>("lit");
        QTest::newRow("inside") << "one two three four"
                                << "two three" << 0.2 << "two three";
        QTest::newRow("begins before") << "Hello there, friend"
                                       << "<|im_start|>user\nHello there" << 0.0 << "Hello there";
        QTest::newRow("ends behind") << "See you then"
                                     << " then<|im_end|>\n"
                                     << 0.7 << " then";
        QTest::newRow("whole message inside") << " Hi "
                                              << "user\nHi<|im_end|>" << 0.0 << "Hi";
        QTest::newRow("nearest of two") << "ab xx ab xx ab"
                                        << "ab" << 0.9 << "ab";
        QTest::newRow("nothing in common") << "abc"
                                           << "xyz" << 0.5 << "";
        QTest::newRow("empty") << ""
                               << "xyz" << 0.5 << "";
    }
    void charactersOfABlock() {
        QFETCH(QString, message);
        QFETCH(QString, block);
        QFETCH(double, share);
        QFETCH(QString, lit);
        const auto [from, to] = charactersOfBlock(message, block, share);
        QCOMPARE(message.mid(from, to - from), lit);
        if (share == 0.9)
            QCOMPARE(from, 12);
    }
};

QTEST_GUILESS_MAIN(TestWindowLayout)
#include "test_window_layout.moc"
