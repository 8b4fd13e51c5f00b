// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the window says when something failed, and that its buttons ask for what they name.
#include <QAbstractButton>
#include <QApplication>
#include <QFileDialog>
#include <QLineEdit>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>

#include "tests/support/fake_chat_source.h"
#include "tests/support/fake_chat_store.h"
#include "ui/chat/chat_panel.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/window/appearance.h"
#include "ui/window/main_window.h"
#include "ui/window/status_bar.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

/// A whole window over an engine and a database that do only what the test says.
struct Stage {
    QTemporaryDir folder;
    QSettings settings{folder.filePath(QStringLiteral("window.ini")), QSettings::IniFormat};
    ManualClock clock;
    test::FakeChatSource engine;
    test::FakeChatStore store;
    Appearance appearance{settings};
    ChatController chat{engine, store, clock, [] { return std::int64_t(0); }};
    CockpitController cockpit{clock, [](OwnerId) { return QString(); }};
    ModelListModel models{folder.path(), [](const std::string&) -> Result<api::ModelProbe> {
                              return fail(ErrorCode::NotFound, "no file here");
                          }};
    MainWindow window{WindowParts{chat, cockpit, models, appearance, settings, [](BlockId) {}, [](OwnerId) {}}};

    Stage() {
        window.resize(1280, 800);
        window.show();
    }
    void say(const api::Event& event) {
        chat.handleEvent(event);
        window.handleEvent(event);
        QCoreApplication::processEvents();
    }
    MessageBox* box(const QString& start) const {
        for (MessageBox* candidate : window.findChildren<MessageBox*>())
            if (candidate->isVisible() && candidate->sentence().startsWith(start))
                return candidate;
        return nullptr;
    }
    static QAbstractButton* button(const MessageBox* box, const QString& text) {
        for (QAbstractButton* candidate : box->findChildren<QAbstractButton*>())
            if (candidate->text() == text)
                return candidate;
        return nullptr;
    }
    /// For a look at it: KVSCOPE_TEST_PICTURES names a folder.
    void picture(const QString& name) {
        const QString folderName = qEnvironmentVariable("KVSCOPE_TEST_PICTURES");
        if (!folderName.isEmpty())
            QVERIFY(window.grab().save(folderName + QLatin1Char('/') + name + QStringLiteral(".png")));
    }
};

const QString kStopped = QStringLiteral("The engine stopped");

} // namespace

class TestWindowNotices final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }

    void stoppedEngineOffersARestart() {
        Stage stage;
        api::LoadedEvent loaded = test::FakeChatSource::loaded();
        loaded.info.loadMs = 1200;
        stage.say(loaded);
        stage.say(api::FaultedEvent{"a block was counted twice"});
        const MessageBox* box = stage.box(kStopped);
        QVERIFY(box);
        QCOMPARE(box->sentence(), QStringLiteral("The engine stopped: a block was counted twice"));
        stage.picture(QStringLiteral("engine-stopped"));
        QSignalSpy restarts(&stage.window, &MainWindow::restartEngineRequested);
        QTest::mouseClick(Stage::button(box, QStringLiteral("Restart")), Qt::LeftButton);
        QCOMPARE(restarts.count(), 1);
        stage.say(loaded);
        QVERIFY2(!stage.box(kStopped), "the engine runs again");
    }

    void reportGoesWhereTheUserSays() {
        Stage stage;
        stage.say(test::FakeChatSource::loaded());
        stage.say(api::FaultedEvent{"a block was counted twice"});
        QSignalSpy reports(&stage.window, &MainWindow::saveReportRequested);
        const QString path = stage.folder.filePath(QStringLiteral("report.txt"));
        QTimer::singleShot(100, qApp, [path] {
            auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
            QVERIFY(dialog);
            dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"))->setText(path);
            QMetaObject::invokeMethod(dialog, "accept");
        });
        QTest::mouseClick(Stage::button(stage.box(kStopped), QStringLiteral("Save report")), Qt::LeftButton);
        QCOMPARE(reports.count(), 1);
        QCOMPARE(reports.at(0).at(0).toString(), path);
        QCOMPARE(reports.at(0).at(1).toString(), QStringLiteral("a block was counted twice"));
    }

    void refusedModelSaysWhyAndCanBeTriedAgain() {
        Stage stage;
        QSignalSpy loads(&stage.window, &MainWindow::loadModelRequested);
        stage.say(api::LoadFailedEvent{"/models/x.gguf", Error{ErrorCode::Corrupt, "It is cut off."}});
        const MessageBox* box = stage.box(QStringLiteral("x.gguf cannot be loaded"));
        QVERIFY(box);
        QTest::mouseClick(Stage::button(box, QStringLiteral("Try again")), Qt::LeftButton);
        QCOMPARE(loads.count(), 1);
        QCOMPARE(loads.at(0).at(0).toString(), QStringLiteral("/models/x.gguf"));
        stage.say(api::LoadingEvent{"/models/x.gguf", 0.5});
        QVERIFY2(!stage.box(QStringLiteral("x.gguf cannot be loaded")), "it is being loaded");
    }

    void databaseTroubleStaysUntilItIsOver() {
        Stage stage;
        QSignalSpy retries(&stage.window, &MainWindow::storeRetryRequested);
        stage.window.setStoreTrouble(QStringLiteral("The disk is full"), {});
        QCoreApplication::processEvents();
        const MessageBox* box = stage.box(QStringLiteral("The disk is full"));
        QVERIFY(box);
        QTest::mouseClick(Stage::button(box, QStringLiteral("Retry")), Qt::LeftButton);
        QCOMPARE(retries.count(), 1);
        QVERIFY(stage.box(QStringLiteral("The disk is full")));
        stage.window.setStoreTrouble({}, {});
        QVERIFY(!stage.box(QStringLiteral("The disk is full")));
    }

    void statusSaysWhyTheCpu() {
        Stage stage;
        api::LoadedEvent loaded = test::FakeChatSource::loaded();
        loaded.info.backend = "CPU, 2 threads, AVX2";
        loaded.info.backendReason = "no CUDA driver found";
        stage.say(loaded);
        const QString said = stage.window.status()->accessibleDescription();
        QVERIFY2(said.contains(QStringLiteral("CPU: no CUDA driver found")), qPrintable(said));
    }
};

QTEST_MAIN(TestWindowNotices)
#include "test_window_notices.moc"
