// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the window says when something failed, and that its buttons ask for what they name.
#include <QAbstractButton>
#include <QApplication>
#include <QFileDialog>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

#include "tests/support/window_stage.h"
#include "ui/window/status_bar.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

using Stage = kvscope::test::WindowStage;

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
        QSignalSpy restarts(stage.window.get(), &MainWindow::restartEngineRequested);
        QTest::mouseClick(Stage::button(box, QStringLiteral("Restart")), Qt::LeftButton);
        QCOMPARE(restarts.count(), 1);
        stage.say(loaded);
        QVERIFY2(!stage.box(kStopped), "the engine runs again");
    }

    void reportGoesWhereTheUserSays() {
        Stage stage;
        stage.say(test::FakeChatSource::loaded());
        stage.say(api::FaultedEvent{"a block was counted twice"});
        QSignalSpy reports(stage.window.get(), &MainWindow::saveReportRequested);
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
        QSignalSpy loads(stage.window.get(), &MainWindow::loadModelRequested);
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
        QSignalSpy retries(stage.window.get(), &MainWindow::storeRetryRequested);
        stage.window->setStoreTrouble(QStringLiteral("The disk is full"), {});
        QCoreApplication::processEvents();
        const MessageBox* box = stage.box(QStringLiteral("The disk is full"));
        QVERIFY(box);
        QTest::mouseClick(Stage::button(box, QStringLiteral("Retry")), Qt::LeftButton);
        QCOMPARE(retries.count(), 1);
        QVERIFY(stage.box(QStringLiteral("The disk is full")));
        stage.window->setStoreTrouble({}, {});
        QVERIFY(!stage.box(QStringLiteral("The disk is full")));
    }

    void statusSaysWhyTheCpu() {
        Stage stage;
        api::LoadedEvent loaded = test::FakeChatSource::loaded();
        loaded.info.backend = "CPU, 2 threads, AVX2";
        loaded.info.backendReason = "no CUDA driver found";
        stage.say(loaded);
        const QString said = stage.window->status()->accessibleDescription();
        QVERIFY2(said.contains(QStringLiteral("CPU: no CUDA driver found")), qPrintable(said));
    }
};

QTEST_MAIN(TestWindowNotices)
#include "test_window_notices.moc"
