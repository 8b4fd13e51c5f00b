// SPDX-License-Identifier: GPL-3.0-or-later
//
// The real program under an X server of its own, driven by keyboard, judged by its database and its screen.
#include <QElapsedTimer>
#include <QFile>
#include <QGuiApplication>
#include <QImage>
#include <QProcess>
#include <QRandomGenerator>
#include <QStandardPaths>
#include <QTest>
#include <SQLiteCpp/SQLiteCpp.h>
#include <csignal>

#include "tests/support/default_model.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;

namespace {

constexpr int kPatienceMs = 60'000;

/// An X server with a window manager, as far as one is installed.
class Screen {
public:
    bool start() {
        m_server.setProgram(QStringLiteral("Xvfb"));
        m_server.setArguments({QStringLiteral("-displayfd"), QStringLiteral("1"), QStringLiteral("-screen"),
                               QStringLiteral("0"), QStringLiteral("1280x800x24"), QStringLiteral("-nolisten"),
                               QStringLiteral("tcp")});
        m_server.start();
        if (!m_server.waitForReadyRead(10'000))
            return false;
        m_environment = QProcessEnvironment::systemEnvironment();
        m_environment.insert(QStringLiteral("DISPLAY"),
                             QStringLiteral(":") + QString::fromLatin1(m_server.readAllStandardOutput().trimmed()));
        m_environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("xcb"));
        m_environment.remove(QStringLiteral("WAYLAND_DISPLAY"));
        if (!QStandardPaths::findExecutable(QStringLiteral("openbox")).isEmpty()) {
            m_manager.setProcessEnvironment(m_environment);
            m_manager.start(QStringLiteral("openbox"), {});
            m_manager.waitForStarted();
        }
        return true;
    }
    ~Screen() {
        for (QProcess* process : {&m_manager, &m_server}) {
            process->terminate();
            process->waitForFinished(3000);
        }
    }
    const QProcessEnvironment& environment() const { return m_environment; }
    void press(const QStringList& what) const {
        QProcess tool;
        tool.setProcessEnvironment(m_environment);
        tool.start(QStringLiteral("xdotool"), what);
        tool.waitForFinished(30'000);
    }
    QImage picture(const QString& path) const {
        QProcess tool;
        tool.setProcessEnvironment(m_environment);
        tool.start(QStringLiteral("import"), {QStringLiteral("-window"), QStringLiteral("root"), path});
        tool.waitForFinished(30'000);
        return QImage(path);
    }

private:
    QProcess m_server, m_manager;
    QProcessEnvironment m_environment;
};

class RunningProgram {
public:
    RunningProgram(const Screen& screen, const QString& dataDir, const std::string& model) {
        m_process.setProcessEnvironment(screen.environment());
        m_process.setProcessChannelMode(QProcess::ForwardedChannels);
        m_process.start(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope"),
                        {QStringLiteral("--data-dir"), dataDir, QStringLiteral("--model"),
                         QString::fromStdString(model), QStringLiteral("--num-blocks"), QStringLiteral("512")});
        m_process.waitForStarted();
    }
    ~RunningProgram() {
        if (m_process.state() == QProcess::NotRunning)
            return;
        m_process.terminate();
        if (!m_process.waitForFinished(10'000))
            m_process.kill();
        m_process.waitForFinished();
    }
    void killNow() {
        ::kill(pid_t(m_process.processId()), SIGKILL);
        m_process.waitForFinished();
    }
    QProcess& process() { return m_process; }

private:
    QProcess m_process;
};

/// One figure out of the program's database; -1 while there is none.
std::int64_t figure(const QString& dataDir, const char* sql) {
    try {
        const SQLite::Database database((dataDir + QStringLiteral("/kvscope.db")).toStdString(), SQLite::OPEN_READONLY,
                                        2000);
        SQLite::Statement query(database, sql);
        return query.executeStep() ? query.getColumn(0).getInt64() : -1;
    } catch (const SQLite::Exception&) {
        return -1;
    }
}
QString textOf(const QString& dataDir, const char* sql) {
    try {
        const SQLite::Database database((dataDir + QStringLiteral("/kvscope.db")).toStdString(), SQLite::OPEN_READONLY,
                                        2000);
        SQLite::Statement query(database, sql);
        return query.executeStep() ? QString::fromStdString(query.getColumn(0).getString()) : QString();
    } catch (const SQLite::Exception& error) {
        return QString::fromLatin1(error.what());
    }
}

constexpr const char* kUserMessages = "SELECT count(*) FROM message WHERE role = 'user'";

} // namespace

class TestDesktopProgram final : public QObject {
    Q_OBJECT
    test::TempDir m_dir;
    QString m_data;
    std::unique_ptr<Screen> m_screen;

    /// Types a message and sends it, as soon as the program takes it: Enter does nothing while the model loads.
    bool sendByKeyboard(const QString& text) {
        const std::int64_t before = std::max<std::int64_t>(0, figure(m_data, kUserMessages));
        QTest::qWait(1500);
        m_screen->press({QStringLiteral("type"), QStringLiteral("--delay"), QStringLiteral("8"), text});
        return QTest::qWaitFor(
            [&] {
                m_screen->press({QStringLiteral("key"), QStringLiteral("Return")});
                QTest::qWait(250);
                return figure(m_data, kUserMessages) > before;
            },
            kPatienceMs);
    }

private slots:
    void initTestCase() {
        for (const char* tool : {"Xvfb", "xdotool", "import"})
            if (QStandardPaths::findExecutable(QLatin1StringView(tool)).isEmpty())
                QSKIP(qPrintable(QStringLiteral("%1 is not installed (packages xvfb, xdotool, imagemagick)")
                                     .arg(QLatin1StringView(tool))));
        if (!test::defaultModel())
            QSKIP(test::kNoDefaultModel);
        m_data = QString::fromStdString(m_dir.file("data"));
        m_screen = std::make_unique<Screen>();
        QVERIFY(m_screen->start());
    }

    void aMessageByKeyboard() {
        RunningProgram program(*m_screen, m_data, *test::defaultModel());
        QVERIFY(sendByKeyboard(QStringLiteral("Say hello in one short sentence.")));
        QCOMPARE(textOf(m_data, "SELECT text FROM message WHERE role = 'user'"),
                 QStringLiteral("Say hello in one short sentence."));
        QTRY_COMPARE_WITH_TIMEOUT(textOf(m_data, "SELECT status FROM message WHERE role = 'assistant'"),
                                  QStringLiteral("complete"), kPatienceMs);
        QVERIFY(!textOf(m_data, "SELECT text FROM message WHERE role = 'assistant'").isEmpty());
        // The receipt's figures agree with each other and with the pool.
        const std::int64_t prompt = figure(m_data, "SELECT prompt_tokens FROM receipt");
        const std::int64_t answer = figure(m_data, "SELECT answer_tokens FROM receipt");
        const std::int64_t blocks = figure(m_data, "SELECT new_blocks FROM receipt");
        QVERIFY(prompt > 20 && answer > 0);
        QCOMPARE(figure(m_data, "SELECT reused_tokens + computed_tokens FROM receipt"), prompt);
        QVERIFY(blocks == (prompt + answer + 15) / 16 || blocks == (prompt + answer - 1 + 15) / 16);
        QCOMPARE(figure(m_data, "SELECT blocks_available_after FROM receipt"), std::int64_t(512));
        QTest::qWait(800);
        const QImage picture = m_screen->picture(QString::fromStdString(m_dir.file("screen.png")));
        QVERIFY(picture.width() == 1280);
        QSet<QRgb> colours;
        for (int y = 0; y < picture.height(); y += 3)
            for (int x = 0; x < picture.width(); x += 3)
                colours.insert(picture.pixel(x, y));
        QVERIFY2(colours.size() > 60, qPrintable(QString::number(colours.size()))); // a window, not a blank screen
    }

    /// A second start for the same folder raises the first and ends at once.
    void aSecondStartRaisesTheFirst() {
        RunningProgram first(*m_screen, m_data, *test::defaultModel());
        QTest::qWait(2500);
        RunningProgram second(*m_screen, m_data, *test::defaultModel());
        QVERIFY(second.process().waitForFinished(10'000));
        QCOMPARE(second.process().exitCode(), 0);
        QCOMPARE(first.process().state(), QProcess::Running);
    }

    void killedWhileAnswering() {
        const int kills = qMax(2, qEnvironmentVariableIntValue("KVSCOPE_KILLS"));
        std::int64_t caught = 0; // answers that a kill surely fell into
        for (int kill = 0; kill < kills; ++kill) {
            const std::int64_t before = std::max<std::int64_t>(0, figure(m_data, kUserMessages));
            RunningProgram program(*m_screen, m_data, *test::defaultModel());
            QVERIFY(sendByKeyboard(QStringLiteral("Count from one to one thousand, take %1.").arg(kill)));
            QTest::qWait(QRandomGenerator::global()->bounded(0, kill == 0 ? 1 : 2500));
            program.killNow();
            QCOMPARE(textOf(m_data, "PRAGMA integrity_check"), QStringLiteral("ok"));
            QCOMPARE(figure(m_data, kUserMessages), before + 1); // no committed message is lost
            caught += figure(m_data, "SELECT count(*) FROM message WHERE status = 'generating'");
        }
        QVERIFY(caught > 0 || kills < 20); // some answers are short; twenty of them are not
        RunningProgram program(*m_screen, m_data, *test::defaultModel());
        QTRY_COMPARE_WITH_TIMEOUT(figure(m_data, "SELECT count(*) FROM message WHERE status = 'generating'"),
                                  std::int64_t(0), kPatienceMs);
        const std::int64_t ended = figure(m_data, "SELECT count(*) FROM message WHERE role = 'assistant' AND status IN "
                                                  "('interrupted', 'complete')");
        QCOMPARE(ended, figure(m_data, kUserMessages));
        QCOMPARE(figure(m_data, "SELECT count(*) FROM message WHERE status = 'interrupted'"), caught);
        QCOMPARE(textOf(m_data, "PRAGMA integrity_check"), QStringLiteral("ok"));
    }

    void cleanupTestCase() { m_screen.reset(); }
};

QTEST_GUILESS_MAIN(TestDesktopProgram)
#include "test_desktop_program.moc"
