// SPDX-License-Identifier: GPL-3.0-or-later
//
// The whole window without a pointer: everything has a place in the order of Tab, where the keyboard is can be seen,
// F6 goes round, Ctrl+K runs commands, F1 tells all keys.
#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPlainTextEdit>
#include <QShortcut>
#include <QTimer>

#include "tests/support/window_stage.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/conversation_panel.h"
#include "ui/chat/settings_panel.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/curves_plot.h"
#include "ui/cockpit/legend.h"
#include "ui/widgets/line_edit.h"
#include "ui/widgets/segmented_control.h"
#include "ui/window/command_palette.h"
#include "ui/window/dock_area.h"
#include "ui/window/key_list.h"
#include "ui/window/top_bar.h"

using namespace kvscope;
using namespace kvscope::ui;
using Stage = kvscope::test::WindowStage;

namespace {

QString nameOf(const QWidget* widget) {
    return QStringLiteral("%1 \"%2\"")
        .arg(QLatin1StringView(widget->metaObject()->className()), widget->accessibleName());
}

/// Seen, enabled, and does something when it is clicked.
bool takesClicks(const QWidget* widget) {
    if (!widget->isVisible() || !widget->isEnabled())
        return false;
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    const QObject* inside = widget->parent();
    if (button && (qobject_cast<const QLineEdit*>(inside) || inside->inherits("QTableView")))
        return false; // the cross of a field and the corner of a table: Esc and Ctrl+A do the same
    return button || qobject_cast<const QLineEdit*>(widget) || qobject_cast<const QPlainTextEdit*>(widget) ||
           (qobject_cast<const QAbstractItemView*>(widget) && !widget->inherits("QHeaderView")) ||
           qobject_cast<const QComboBox*>(widget) || qobject_cast<const ChatView*>(widget) ||
           qobject_cast<const BlockMapView*>(widget) || qobject_cast<const CurvesPlot*>(widget) ||
           qobject_cast<const Legend*>(widget) || qobject_cast<const SegmentedControl*>(widget);
}

QList<QWidget*> clickable(QWidget* root) {
    QList<QWidget*> out;
    for (QWidget* widget : root->findChildren<QWidget*>())
        if (takesClicks(widget) && widget->window() == root->window())
            out << widget;
    return out;
}

/// Where Tab goes from the focus, once around.
QList<QWidget*> tabOrder() {
    QList<QWidget*> out;
    for (int press = 0; press < 400; ++press) {
        QWidget* now = QApplication::focusWidget();
        if (!now || (out.size() > 1 && now == out.first()))
            break;
        if (!out.contains(now))
            out << now;
        QTest::keyClick(now, Qt::Key_Tab);
    }
    return out;
}

/// Pixels of the ring's colour on and around a widget.
int ringPixels(QWidget* widget, const QColor& ring) {
    QWidget* window = widget->window();
    const QImage picture = window->grab().toImage();
    const double scale = picture.devicePixelRatio();
    QWidget* framed = widget; // a field inside of a box: the box has the ring
    if (qobject_cast<ComposerEdit*>(widget))
        framed = widget->parentWidget();
    const QRect place = QRect(framed->mapTo(window, QPoint()), framed->size()).adjusted(-5, -5, 5, 5);
    const QRect device =
        QRect(QPoint(int(place.left() * scale), int(place.top() * scale)), place.size() * scale) & picture.rect();
    int count = 0;
    for (int y = device.top(); y <= device.bottom(); ++y)
        for (int x = device.left(); x <= device.right(); ++x)
            count += picture.pixelColor(x, y) == ring;
    return count;
}

std::unique_ptr<Stage> openStage() {
    Stage::Options options;
    options.size = {1600, 1000};
    options.blocks = 512;
    options.chats = 4;
    options.loaded = true;
    auto stage = std::make_unique<Stage>(options);
    stage->window->activateWindow();
    if (!QTest::qWaitForWindowActive(stage->window.get()))
        qFatal("the window does not become active");
    stage->window->chatPanel()->composer()->edit()->setFocus();
    return stage;
}

/// What is above the window while a modal dialog or popup runs; told to `look`, then closed by Esc.
template <class Widget, class Look> void inDialog(Look look) {
    QTimer::singleShot(0, qApp, [look] {
        auto* dialog = qobject_cast<Widget*>(QApplication::activeModalWidget());
        if (!dialog)
            qFatal("no dialog came up");
        look(dialog);
        QTest::keyClick(dialog, Qt::Key_Escape);
    });
}

} // namespace

class TestWindowKeys final : public QObject {
    Q_OBJECT

private slots:
    void tabReachesEverything() {
        const auto stage = openStage();
        const QList<QWidget*> reached = tabOrder();
        QStringList missed;
        for (QWidget* widget : clickable(stage->window.get()))
            if (!reached.contains(widget))
                missed << nameOf(widget);
        QVERIFY2(missed.isEmpty(), qPrintable(missed.join(u'\n')));
        QVERIFY(reached.size() > 15);
    }

    void whereTheKeyboardIsCanBeSeen() {
        const auto stage = openStage();
        const QColor ring = Theme::load(ThemeKind::Dark).focus;
        QStringList unseen;
        for (QWidget* widget : tabOrder()) {
            widget->setFocus(Qt::TabFocusReason);
            QCoreApplication::processEvents();
            if (ringPixels(widget, ring) < 24)
                unseen << nameOf(widget);
        }
        QVERIFY2(unseen.isEmpty(), qPrintable(unseen.join(u'\n')));
    }

    void settingsByKeyboard() {
        const auto stage = openStage();
        QTest::keyClick(stage->window.get(), Qt::Key_Comma, Qt::ControlModifier);
        SettingsPanel* panel = stage->window->chatPanel()->settings();
        QVERIFY(panel->isVisible());
        QVERIFY(panel->isAncestorOf(QApplication::focusWidget()));
        const QColor ring = Theme::load(ThemeKind::Dark).focus;
        const QList<QWidget*> reached = tabOrder();
        for (QWidget* widget : clickable(panel)) {
            QVERIFY2(reached.contains(widget), qPrintable(nameOf(widget)));
            widget->setFocus(Qt::TabFocusReason);
            QCoreApplication::processEvents();
            QVERIFY2(ringPixels(widget, ring) >= 24, qPrintable(nameOf(widget)));
        }
        QVERIFY(reached.size() >= 12);
        QTest::keyClick(panel, Qt::Key_Escape);
        QVERIFY(!panel->isVisible());
    }

    void f6GoesRoundTheParts() {
        const auto stage = openStage();
        MainWindow& window = *stage->window;
        QWidget* const parts[] = {window.docks(), window.topBar(), window.conversationPanel(),
                                  window.chatPanel()->view(), window.chatPanel()->composer()};
        for (QWidget* part : parts) {
            QTest::keyClick(&window, Qt::Key_F6);
            QWidget* now = QApplication::focusWidget();
            QVERIFY2(now && (part == now || part->isAncestorOf(now)), qPrintable(nameOf(part)));
        }
        QTest::keyClick(&window, Qt::Key_F6, Qt::ShiftModifier);
        QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(window.chatPanel()->view()));
    }

    void paletteRunsWhatItFinds() {
        const auto stage = openStage();
        MainWindow& window = *stage->window;
        const auto choose = [&](const QString& words) {
            window.activateWindow(); // a desktop does so when a popup has closed
            QVERIFY(QTest::qWaitForWindowActive(&window));
            QTest::keyClick(&window, Qt::Key_K, Qt::ControlModifier);
            auto* palette = window.findChild<CommandPalette*>();
            QVERIFY(palette && palette->isVisible());
            QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(palette->field()));
            QTest::keyClicks(palette->field(), words);
            QTest::keyClick(palette->field(), Qt::Key_Return);
            QVERIFY(!palette->isVisible());
            QCoreApplication::processEvents();
            stage->store.settleAll();
            QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        };
        choose(QStringLiteral("light theme"));
        QCOMPARE(stage->appearance.choice(), ThemeChoice::Light);
        choose(QStringLiteral("workspace chat"));
        QCOMPARE(window.workspace(), int(TopBar::Chat));
        choose(QStringLiteral("chat 3 pages"));
        QCOMPARE(stage->chat.current().conversation.id, ConversationId(3));
        choose(QStringLiteral("new chat"));
        QCOMPARE(stage->chat.current().conversation.id, kNoId);
    }

    /// Every command of the window is in the palette or has a key; every key is told, and bound.
    void everyCommandHasAWay() {
        const auto stage = openStage();
        int bound = 0;
        for (const Command& command : stage->window->commands().all()) {
            QVERIFY2(command.inPalette || !keysText(command).isEmpty(), qPrintable(command.id));
            if (command.keys == Command::Keys::Window)
                bound += int(command.shortcuts.size());
        }
        for (const QShortcut* shortcut :
             stage->window->findChildren<QShortcut*>(QString(), Qt::FindDirectChildrenOnly)) {
            const bool known =
                shortcut->key() == QKeySequence(Qt::Key_Escape) ||
                std::any_of(stage->window->commands().all().begin(), stage->window->commands().all().end(),
                            [&](const Command& command) { return command.shortcuts.contains(shortcut->key()); });
            QVERIFY2(known, qPrintable(shortcut->key().toString()));
            --bound;
        }
        QCOMPARE(bound, -1); // Esc
    }

    void f1TellsAllKeys() {
        const auto stage = openStage();
        QStringList missing;
        bool seen = false;
        inDialog<KeyList>([&](KeyList* list) {
            seen = true;
            QStringList told;
            for (const QLabel* label : list->findChildren<QLabel*>())
                told << label->text();
            for (const Command& command : stage->window->commands().all())
                if (!keysText(command).isEmpty() &&
                    (!told.contains(command.title) || !told.contains(keysText(command))))
                    missing << command.id;
            // What the messages and the curves do by keyboard, too.
            for (const char* keys :
                 {"Ctrl+Up, Ctrl+Down", "Tab, Left, Right", "E", "R", "N", "<, >", "Ctrl+Z", "T", "Space"})
                if (!told.contains(QLatin1StringView(keys)))
                    missing << QLatin1StringView(keys);
        });
        QTest::keyClick(stage->window.get(), Qt::Key_F1);
        QVERIFY(seen);
        QVERIFY2(missing.isEmpty(), qPrintable(missing.join(u' ')));
    }
};

QTEST_MAIN(TestWindowKeys)
#include "test_window_keys.moc"
