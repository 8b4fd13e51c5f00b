// SPDX-License-Identifier: GPL-3.0-or-later
//
// Trial U34 on the whole window; run at several scales (QT_SCALE_FACTOR): the pointed block is the right one, cells are
// whole device pixels, nothing is cut off, the theme changes while an answer is written, colours can be read.
#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMouseEvent>
#include <QScrollArea>
#include <QScrollBar>
#include <QSplitter>
#include <map>

#include "tests/support/window_stage.h"
#include "tests/ui/chat/contrast.h"
#include "ui/chat/chat_view.h"
#include "ui/cockpit/block_card.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/look.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/pill.h"
#include "ui/widgets/segmented_control.h"
#include "ui/window/dock_area.h"

using namespace kvscope;
using namespace kvscope::ui;
using Stage = kvscope::test::WindowStage;
using kvscope::ui::test::contrast;

namespace {

constexpr Nanos kSettled = 2'000'000'000; // longer than any glow of a block

void point(QWidget& widget, QPointF at) {
    QMouseEvent event(QEvent::MouseMove, at, widget.mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&widget, &event);
}

/// Whether words fit into what shows them.
bool fits(const QWidget& widget) {
    if (const auto* label = qobject_cast<const QLabel*>(&widget)) {
        if (label->text().isEmpty() || label->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored)
            return true;
        return label->wordWrap()
                   ? label->heightForWidth(label->width()) <= label->height()
                   : label->sizeHint().width() <= label->width() && label->fontMetrics().height() <= label->height();
    }
    const auto* button = qobject_cast<const QAbstractButton*>(&widget);
    if (button && !button->text().isEmpty()) // an icon is drawn as large as it is
        return widget.sizeHint().width() <= widget.width() && widget.sizeHint().height() <= widget.height();
    if (qobject_cast<const QLineEdit*>(&widget))
        return widget.fontMetrics().height() <= widget.height();
    if (qobject_cast<const SegmentedControl*>(&widget) || qobject_cast<const Pill*>(&widget))
        return widget.sizeHint().width() <= widget.width();
    return true;
}

bool hasWords(const QWidget* widget) {
    return qobject_cast<const QLabel*>(widget) || qobject_cast<const QAbstractButton*>(widget) ||
           qobject_cast<const QLineEdit*>(widget) || qobject_cast<const SegmentedControl*>(widget) ||
           qobject_cast<const Pill*>(widget) || qobject_cast<const ElidedLabel*>(widget);
}

QString nameOf(const QWidget* widget) {
    const auto* label = qobject_cast<const QLabel*>(widget);
    return QStringLiteral("%1 \"%2\" %3x%4 wants %5x%6")
        .arg(QLatin1StringView(widget->metaObject()->className()), label ? label->text() : widget->accessibleName())
        .arg(widget->width())
        .arg(widget->height())
        .arg(widget->sizeHint().width())
        .arg(widget->sizeHint().height());
}

bool scrolls(const QWidget* parent) {
    const auto* area = qobject_cast<const QAbstractScrollArea*>(parent->parentWidget());
    return area && area->viewport() == parent && area->verticalScrollBar()->maximum() > 0;
}

/// Everything seen that leaves its parent, lies on its neighbour or is too small for its words.
QStringList faults(const QWidget& root) {
    QStringList out;
    std::map<const QWidget*, std::vector<const QWidget*>> wordsIn;
    for (const QWidget* widget : root.findChildren<QWidget*>()) {
        if (!widget->isVisible() || widget->isWindow() || widget->testAttribute(Qt::WA_TransparentForMouseEvents))
            continue;
        const QWidget* parent = widget->parentWidget();
        if (!scrolls(parent) && !parent->rect().contains(widget->geometry()))
            out << nameOf(widget) + QStringLiteral(" leaves ") + nameOf(parent);
        if (!fits(*widget))
            out << nameOf(widget) + QStringLiteral(" is too small");
        if (!hasWords(widget))
            continue;
        for (const QWidget* other : wordsIn[parent])
            if (other->geometry().intersects(widget->geometry()))
                out << nameOf(widget) + QStringLiteral(" lies on ") + nameOf(other);
        wordsIn[parent].push_back(widget);
    }
    return out;
}

/// A window in the middle of its work.
std::unique_ptr<Stage> busyStage(QSize size, ThemeChoice theme = ThemeChoice::Dark) {
    Stage::Options options;
    options.size = size;
    options.theme = theme;
    options.blocks = 4096;
    options.chats = 6;
    options.loaded = true;
    auto stage = std::make_unique<Stage>(options);
    const api::Request request = stage->ask(QStringLiteral("Why does paging help?"));
    stage->write(request,
                 "A block holds `16` tokens:\n\n```python\ndef f(x):\n    return x  # a comment\n```\n\n- one\n");
    stage->window->chatPanel()->composer()->edit()->setPlainText(QStringLiteral("What I ask next"));
    QCoreApplication::processEvents();
    return stage;
}

} // namespace

class TestWindowScale final : public QObject {
    Q_OBJECT

private slots:
    void hoveredBlockIsTheRightOne_data() {
        QTest::addColumn<int>("blocks");
        for (const int blocks : {512, 4096, 16384})
            QTest::addRow("%d", blocks) << blocks;
    }
    void hoveredBlockIsTheRightOne() {
        QFETCH(int, blocks);
        Stage::Options options;
        options.size = {1280, 720};
        options.blocks = blocks;
        Stage stage(options);
        BlockMapView& view = stage.window->blockMap()->view();
        view.fit();
        stage.clock.time += kSettled;
        QTest::qWait(80); // the timer of the glows
        const QImage picture = view.grab().toImage();
        const double scale = picture.devicePixelRatio();
        QCOMPARE(scale, qApp->devicePixelRatio());
        QCOMPARE(view.viewport().layout().blocksPerCell(), 1);
        const BlockPalette palette = blockPalette(Theme::load(ThemeKind::Dark));
        int active = 0, empty = 0;
        for (int block = 0; block < blocks; ++block) {
            const kv::BlockState state = view.map().cells[std::size_t(block)].state;
            const QPointF centre = QRectF(view.blockRect(BlockId(block))).center();
            if (state != kv::BlockState::Active && state != kv::BlockState::Empty)
                continue; // the others have a mark in the middle
            const QRgb pixel = picture.pixel(QPoint(int(centre.x() * scale), int(centre.y() * scale)));
            QVERIFY2((pixel | 0xff000000) == (palette.stateColor(state) | 0xff000000),
                     qPrintable(QStringLiteral("block %1 is drawn elsewhere").arg(block)));
            ++(state == kv::BlockState::Active ? active : empty);
        }
        QVERIFY2(active > 4 && empty > 4, "there is something to tell apart");
        for (const int block : {0, 1, 63, 64, 65, blocks / 3, blocks / 2, blocks - 2, blocks - 1}) {
            point(view, QRectF(view.blockRect(BlockId(block))).center());
            QCOMPARE(view.pointedBlock(), std::optional<BlockId>(BlockId(block)));
            auto* card = stage.window->findChild<BlockCard*>();
            QVERIFY(card && card->isVisible());
            QVERIFY2(card->parentWidget()->rect().contains(card->geometry()), "the card is cut off");
        }
        point(view, QPointF(1, 1)); // the ruler
        QVERIFY(!view.pointedBlock());
    }

    /// Every pixel of the map is a colour of the palette: a picture that was stretched or blurred has others.
    void mapIsWholeDevicePixels() {
        Stage::Options options;
        options.size = {1280, 720};
        options.blocks = 4096;
        Stage stage(options);
        BlockMapView& view = stage.window->blockMap()->view();
        view.fit();
        stage.clock.time += kSettled;
        QTest::qWait(80);
        const QImage picture = view.grab().toImage();
        const double scale = picture.devicePixelRatio();
        const QRect map = view.mapRect();
        const BlockPalette p = blockPalette(Theme::load(ThemeKind::Dark));
        const std::vector<QRgb> known{p.well,       p.empty,        p.filling, p.active,   p.shared,
                                      p.cachedRing, p.cachedInside, p.pinned,  p.transfer, p.mark};
        qint64 strange = 0, all = 0;
        for (int y = int(map.top() * scale) + 1; y < int((map.bottom() + 1) * scale) - 1; ++y)
            for (int x = int(map.left() * scale) + 1; x < int((map.right() + 1) * scale) - 1; ++x, ++all)
                strange += std::find(known.begin(), known.end(), picture.pixel(x, y) | 0xff000000) == known.end();
        QVERIFY(all > 10'000);
        // What remains are the counts of shared blocks, which are text.
        QVERIFY2(strange * 200 < all, qPrintable(QStringLiteral("%1 of %2").arg(strange).arg(all)));
    }

    void nothingIsCutOff_data() {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<int>("points");
        QTest::addColumn<int>("text");
        for (const QSize size : {QSize(960, 600), QSize(1280, 720), QSize(1600, 1000)})
            for (const auto& [points, text] : {std::pair(8, 12), std::pair(11, 14), std::pair(24, 20)})
                QTest::addRow("%dx%d, %d pt, text %d", size.width(), size.height(), points, text)
                    << size << points << text;
    }
    void nothingIsCutOff() {
        QFETCH(QSize, size);
        QFETCH(int, points);
        QFETCH(int, text);
        QFont font(QStringLiteral("Noto Sans"));
        font.setPointSize(points);
        QApplication::setFont(font); // the desktop's; the window has its own sizes
        const auto stage = busyStage(size);
        stage->appearance.setTextSize(text);
        stage->window->setStoreTrouble(QStringLiteral("The disk that holds the database is full; free some space, "
                                                      "saving goes on by itself then."),
                                       QStringLiteral("3 changes wait and are tried again by themselves."));
        QCoreApplication::processEvents();
        QTest::qWait(50);
        stage->picture(QStringLiteral("whole-%1-%2").arg(size.width()).arg(text));
        const QStringList found = faults(*stage->window);
        QVERIFY2(found.isEmpty(), qPrintable(found.join(u'\n')));
    }

    /// From any size to any other in one go, as a tiling desktop does it.
    void docksHaveTheirSizesAfterEveryJump() {
        const auto stage = busyStage({1600, 1000});
        const auto heights = [&] {
            return std::pair(stage->window->findChild<BlockMapPanel*>()->height(),
                             stage->window->findChild<CurvesPanel*>()->height());
        };
        const auto wanted = heights();
        for (const QSize size : {QSize(960, 600), QSize(1280, 720), QSize(960, 1200), QSize(2300, 1300)}) {
            stage->window->resize(size);
            QCoreApplication::processEvents();
            stage->window->resize(1600, 1000);
            QCoreApplication::processEvents();
            QVERIFY2(heights() == wanted, qPrintable(QString::number(heights().second)));
        }
    }

    void aDragInALowWindowIsAllThatIsKept() {
        const auto stage = busyStage({1600, 1000});
        const int map = stage->window->findChild<BlockMapPanel*>()->height();
        stage->window->resize(1600, 780);
        QCoreApplication::processEvents();
        const auto* curves = stage->window->findChild<CurvesPanel*>();
        QVERIFY(stage->window->findChild<BlockMapPanel*>()->height() < map);
        const auto all = stage->window->docks()->findChildren<QSplitter*>();
        const auto rows = std::find_if(all.begin(), all.end(), [](QSplitter* s) { return s->count() == 3; });
        QVERIFY(rows != all.end());
        const int before = curves->height();
        QSplitterHandle* const handle = (*rows)->handle(2); // below the curves
        const QPoint middle = handle->rect().center();
        QTest::mousePress(handle, Qt::LeftButton, {}, middle);
        QTest::mouseMove(handle, middle + QPoint(0, -20));
        QTest::mouseRelease(handle, Qt::LeftButton, {}, middle + QPoint(0, -20));
        const int after = curves->height();
        QVERIFY(after != before);
        stage->window->resize(1600, 1000);
        QCoreApplication::processEvents();
        QCOMPARE(stage->window->findChild<BlockMapPanel*>()->height(), map);
        QCOMPARE(curves->height(), after);
    }

    /// No part of the window keeps the colours of the other theme, and the answer goes on.
    void themeSwitchesWhileAnAnswerIsWritten() {
        const auto stage = busyStage({1280, 720});
        const api::Request request = stage->engine.submitted.back();
        const Theme themes[] = {Theme::load(ThemeKind::Dark), Theme::load(ThemeKind::Light)};
        int pieces = 0;
        for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark, ThemeChoice::System, ThemeChoice::Light,
                                         ThemeChoice::System, ThemeChoice::Dark}) {
            stage->appearance.setChoice(choice);
            stage->write(request, " word" + std::to_string(++pieces));
            stage->runCache(20);
            QTest::qWait(20);
            const bool dark = stage->appearance.kind() == ThemeKind::Dark;
            const Theme &now = themes[dark ? 0 : 1], &other = themes[dark ? 1 : 0];
            const QImage picture = stage->window->grab().toImage().convertToFormat(QImage::Format_RGB32);
            std::map<QRgb, qint64> count;
            for (int y = 0; y < picture.height(); ++y)
                for (int x = 0; x < picture.width(); ++x)
                    ++count[picture.pixel(x, y)];
            const qint64 all = qint64(picture.width()) * picture.height();
            QVERIFY2(count[now.bg1.rgb()] * 5 > all, "the ground of chat and panels");
            for (const QColor& ground : {other.bg0, other.bg1, other.bg2, other.bg3, other.well, other.bubble})
                QVERIFY2(count[ground.rgb()] * 1000 < all, qPrintable(QStringLiteral("%1 is left").arg(ground.name())));
            stage->picture(QStringLiteral("switch-%1").arg(pieces));
        }
        QVERIFY(stage->chat.messages()
                    ->at(stage->chat.messages()->size() - 1)
                    .text.endsWith(QStringLiteral("word%1").arg(pieces)));
        QVERIFY(stage->chat.answering());
    }

    void coloursCanBeRead() {
        for (const ThemeKind kind : {ThemeKind::Dark, ThemeKind::Light}) {
            const Theme t = Theme::load(kind);
            const auto read = [&](const char* what, const QColor& text, std::initializer_list<QColor> grounds) {
                for (const QColor& ground : grounds)
                    QVERIFY2(contrast(text, ground) >= 4.5,
                             qPrintable(QStringLiteral("%1: %2 on %3 is %4")
                                            .arg(QLatin1StringView(what), text.name(), ground.name())
                                            .arg(contrast(text, ground))));
            };
            const std::initializer_list<QColor> grounds{t.bg0, t.bg1, t.bg2, t.bg3, t.bg4, t.well, t.sel};
            read("text1", t.text1, grounds);
            read("text2", t.text2, grounds);
            read("text3", t.text3, grounds);
            read("link", t.accent, {t.bg1, t.bg2, t.bg3, t.sel});
            read("good", t.ok, {t.bg1, t.bg3, t.okFill});
            read("warning", t.warn, {t.bg1, t.bg3, t.bg4, t.warnFill});
            read("danger", t.danger, {t.bg1, t.bg3, t.dangerFill});
            read("button", t.onAccent, {t.accentFill, t.accentHover, t.dangerButton});
            for (const QColor& line : t.plotLines)
                read("curve", line, {t.well});
        }
    }
};

QTEST_MAIN(TestWindowScale)
#include "test_window_scale.moc"
