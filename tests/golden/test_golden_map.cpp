// SPDX-License-Identifier: GPL-3.0-or-later
//
// The block map as pixels: a recorded session is played to a moment, the map of that moment is drawn and compared.
#include <QApplication>
#include <QFontDatabase>
#include <QStyleFactory>
#include <QTest>
#include <memory>

#include "engine/api/session_player.h"
#include "tests/golden/golden_image.h"
#include "tests/support/trace.h"
#include "ui/cockpit/block_map_view.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/cockpit/look.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

constexpr Nanos kMoment = 14'000'000'000;
constexpr QSize kView(762, 190);

struct Played {
    Played()
        : player(test::makeTrace({.numBlocks = 1024, .blockSize = 16, .steps = 900}), clock)
        , controller(clock, [](OwnerId) { return QString(); }) {
        player.seek(kMoment);
        controller.setSource(&player);
        controller.setActive(true);
        controller.drain();
    }
    ~Played() { controller.setSource(nullptr); }
    ManualClock clock;
    api::SessionPlayer player;
    CockpitController controller;
};

} // namespace

class TestGoldenMap : public QObject {
    Q_OBJECT

    std::unique_ptr<Played> m_played;

    struct Picture {
        QImage image;
        QRect map;
    };
    Picture draw(const metrics::BlockMapSnapshot& map, ThemeKind kind, ColourBy by, int zoom) {
        BlockMapView view(m_played->clock, Theme::load(kind));
        view.setReducedMotion(true);
        view.resize(kView);
        view.setMap(map, m_played->controller.ownerNumbers());
        view.relayout();
        view.setColourBy(by);
        for (int i = 0; i < zoom; ++i)
            view.zoomIn();
        QImage image(kView, QImage::Format_RGB32);
        view.render(&image);
        return {image, view.mapRect()};
    }

private slots:
    void initTestCase() {
        QCOMPARE(qApp->devicePixelRatio(), 1.0);
        QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
        for (const char* path : {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
                                 "/usr/share/fonts/truetype/noto/NotoSans-Bold.ttf"})
            QVERIFY2(QFontDatabase::addApplicationFont(QString::fromLatin1(path)) >= 0, path);
        m_played = std::make_unique<Played>();
        QCOMPARE(m_played->controller.map().cells.size(), std::size_t(1024));
    }
    void cleanupTestCase() { m_played.reset(); }

    void map_data() {
        QTest::addColumn<bool>("dark");
        QTest::addColumn<bool>("byOwner");
        QTest::addColumn<int>("zoom");
        for (const bool dark : {true, false})
            for (const bool byOwner : {false, true})
                for (const int zoom : {0, 5})
                    QTest::addRow("map-%s-%s-%s", byOwner ? "owner" : "state", zoom ? "zoomed" : "fit",
                                  dark ? "dark" : "light")
                        << dark << byOwner << zoom;
    }
    void map() {
        QFETCH(bool, dark);
        QFETCH(bool, byOwner);
        QFETCH(int, zoom);
        const Picture picture = draw(m_played->controller.map(), dark ? ThemeKind::Dark : ThemeKind::Light,
                                     byOwner ? ColourBy::Owner : ColourBy::State, zoom);
        QString message;
        QVERIFY2(
            test::matchesGolden(picture.image, QString::fromLatin1(QTest::currentDataTag()), picture.map, &message),
            qPrintable(message));
    }

    void theTraceShowsEveryState() {
        std::array<int, kv::kBlockStateCount> count{};
        for (const metrics::BlockCell& cell : m_played->controller.map().cells)
            ++count[std::size_t(cell.state)];
        for (std::size_t s = 0; s < count.size(); ++s)
            QVERIFY2(count[s] > 0, kv::blockStateName(kv::BlockState(s)));
    }

    void oneOtherCellIsAnotherPicture_data() { map_data(); }
    void oneOtherCellIsAnotherPicture() {
        // A comparison that cannot fail proves nothing: each state in turn becomes another one, in one cell.
        QFETCH(bool, dark);
        QFETCH(bool, byOwner);
        QFETCH(int, zoom);
        if (zoom > 0)
            return; // the changed cell need not be in sight
        const ThemeKind kind = dark ? ThemeKind::Dark : ThemeKind::Light;
        const ColourBy by = byOwner ? ColourBy::Owner : ColourBy::State;
        const metrics::BlockMapSnapshot& original = m_played->controller.map();
        const Picture expected = draw(original, kind, by, 0);
        for (std::size_t from = 0; from < kv::kBlockStateCount; ++from) {
            const auto at = std::find_if(original.cells.begin(), original.cells.end(), [from](const auto& cell) {
                return std::size_t(cell.state) == from && (cell.state == kv::BlockState::Empty || cell.owner != 0);
            });
            if (at == original.cells.end())
                continue;
            for (const kv::BlockState to : {kv::BlockState::Empty, kv::BlockState::Cached, kv::BlockState::Active}) {
                // Colours by owner say whose a block is, and only apart from that whether it is held or cached.
                const bool held =
                    from != std::size_t(kv::BlockState::Empty) && from != std::size_t(kv::BlockState::Cached);
                if (std::size_t(to) == from || (byOwner && to == kv::BlockState::Active && held))
                    continue;
                metrics::BlockMapSnapshot changed = original;
                metrics::BlockCell& cell = changed.cells[std::size_t(at - original.cells.begin())];
                cell.state = to;
                if (cell.owner == 0)
                    cell.owner = 1;
                const Picture actual = draw(changed, kind, by, 0);
                const test::ImageDifference difference =
                    test::compareImages(actual.image, expected.image, expected.map);
                QVERIFY2(!difference.same(),
                         qPrintable(QStringLiteral("%1 became %2 unseen")
                                        .arg(QLatin1StringView(kv::blockStateName(kv::BlockState(from))),
                                             QLatin1StringView(kv::blockStateName(to)))));
                QVERIFY2(difference.pixels <= 100, "one cell changed more than itself");
            }
        }
    }
};

QTEST_MAIN(TestGoldenMap)
#include "test_golden_map.moc"
