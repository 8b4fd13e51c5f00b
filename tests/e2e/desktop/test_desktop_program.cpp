// SPDX-License-Identifier: GPL-3.0-or-later
//
// The real program under an X server of its own, driven by keyboard, judged by its database and its screen.
#include <QDir>
#include <QFile>
#include <QImage>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QProcess>
#include <QRandomGenerator>
#include <QSettings>
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
    /// Without a window manager nobody gives a window the keyboard, and its shortcuts sleep.
    void focusWindow() const {
        press({QStringLiteral("search"), QStringLiteral("--sync"), QStringLiteral("--onlyvisible"),
               QStringLiteral("--name"), QStringLiteral("KVScope"), QStringLiteral("windowfocus"),
               QStringLiteral("--sync")});
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
    /// Without a model ("") it shows what a first start shows.
    RunningProgram(const Screen& screen, const QString& dataDir, const std::string& model) {
        QStringList arguments{QStringLiteral("--data-dir"), dataDir, QStringLiteral("--num-blocks"),
                              QStringLiteral("512")};
        if (!model.empty())
            arguments << QStringLiteral("--model") << QString::fromStdString(model);
        m_process.setProcessEnvironment(screen.environment());
        m_process.setProcessChannelMode(QProcess::ForwardedChannels);
        m_process.start(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope"), arguments);
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

/// What the database has promised to keep: messages of the user, and answers that have ended.
QMap<qint64, QString> committed(const QString& dataDir) {
    QMap<qint64, QString> out;
    try {
        const SQLite::Database database((dataDir + QStringLiteral("/kvscope.db")).toStdString(), SQLite::OPEN_READONLY,
                                        2000);
        SQLite::Statement query(database, "SELECT id, role || ' ' || text FROM message WHERE role = 'user' OR status = "
                                          "'complete'");
        while (query.executeStep())
            out.insert(query.getColumn(0).getInt64(), QString::fromStdString(query.getColumn(1).getString()));
    } catch (const SQLite::Exception&) {
        out.clear(); // it is being changed just now
    }
    return out;
}

/// A folder whose window will have this theme.
void writeTheme(const QString& dataDir, const char* theme) {
    QDir().mkpath(dataDir);
    QSettings settings(dataDir + QStringLiteral("/window.ini"), QSettings::IniFormat);
    settings.setValue(QStringLiteral("appearance/theme"), QLatin1StringView(theme));
}

/// A folder with one chat, which has these settings and is shown first.
bool makeChat(const QString& dataDir, const char* settings) {
    const QString path = dataDir + QStringLiteral("/chat.json");
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) ||
        file.write(R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}])") < 0)
        return false;
    file.close();
    QProcess::execute(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope-cli"),
                      {QStringLiteral("import"), QStringLiteral("--data-dir"), dataDir, path});
    SQLite::Database database((dataDir + QStringLiteral("/kvscope.db")).toStdString(), SQLite::OPEN_READWRITE, 2000);
    SQLite::Statement update(database, "UPDATE conversation SET settings = ?");
    update.bind(1, settings);
    return update.exec() == 1;
}

constexpr int kImported = 600, kMessagesEach = 8;

/// Chats as other programs export them, so many that reading them takes a while.
void writeForeignChats(const QString& path) {
    QJsonArray chats;
    for (int chat = 0; chat < kImported; ++chat) {
        QJsonArray messages;
        for (int i = 0; i < kMessagesEach; ++i)
            messages.append(QJsonObject{
                {QStringLiteral("role"), i % 2 == 0 ? QStringLiteral("user") : QStringLiteral("assistant")},
                {QStringLiteral("content"), QStringLiteral("Message %1 of chat %2. ").arg(i).arg(chat).repeated(40)}});
        chats.append(QJsonObject{{QStringLiteral("title"), QStringLiteral("import %1").arg(chat)},
                                 {QStringLiteral("messages"), messages}});
    }
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(QJsonDocument(chats).toJson()) < 0)
        qFatal("the file to import cannot be written");
}

constexpr const char* kImportedChats = "SELECT count(*) FROM conversation WHERE title LIKE 'import %'";
/// Chats of which a part is missing.
constexpr const char* kBrokenChats =
    "SELECT count(*) FROM (SELECT c.id FROM conversation c LEFT JOIN message m ON m.conversation_id = c.id "
    "WHERE c.title LIKE 'import %' GROUP BY c.id HAVING count(m.id) <> 8)";

} // namespace

class TestDesktopProgram final : public QObject {
    Q_OBJECT
    test::TempDir m_dir;
    QString m_data;
    std::unique_ptr<Screen> m_screen;

    /// Types a message and sends it, as soon as the program takes it: Enter does nothing while the model loads.
    bool sendByKeyboard(const QString& text) { return sendByKeyboard(m_data, text); }
    bool sendByKeyboard(const QString& data, const QString& text) {
        const std::int64_t before = std::max<std::int64_t>(0, figure(data, kUserMessages));
        QTest::qWait(1500);
        m_screen->press({QStringLiteral("type"), QStringLiteral("--delay"), QStringLiteral("8"), text});
        return QTest::qWaitFor(
            [&] {
                m_screen->press({QStringLiteral("key"), QStringLiteral("Return")});
                QTest::qWait(250);
                return figure(data, kUserMessages) > before;
            },
            kPatienceMs);
    }

    static void checkKept(const QString& data, const QMap<qint64, QString>& kept) {
        QCOMPARE(textOf(data, "PRAGMA integrity_check"), QStringLiteral("ok"));
        const auto now = committed(data);
        for (auto it = kept.begin(); it != kept.end(); ++it)
            QCOMPARE(now.value(it.key()), it.value());
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

    /// Trial U25. A second start brings the first window to the front, from behind another (light) one, and the
    /// keyboard with it. While an answer is written the program is started again, five times: each of these ends at
    /// once, the answer goes on to its end and is saved.
    void startedAgainWhileAnswering() {
        const QString data = QString::fromStdString(m_dir.file("twice"));
        const QString other = QString::fromStdString(m_dir.file("cover"));
        writeTheme(data, "dark");
        writeTheme(other, "light");
        QVERIFY(makeChat(data, R"({"temperature": 0, "repeat_penalty": 1.1, "max_tokens": 250})"));
        const auto front = [&] { // lightness of the screen
            const QImage picture = m_screen->picture(QString::fromStdString(m_dir.file("front.png")));
            return picture.isNull() ? -1
                                    : picture.scaled(1, 1, {}, Qt::SmoothTransformation).pixelColor(0, 0).lightness();
        };
        RunningProgram first(*m_screen, data, *test::defaultModel());
        QTRY_VERIFY_WITH_TIMEOUT(front() > 5 && front() < 100, kPatienceMs);
        RunningProgram cover(*m_screen, other, {});
        QTRY_VERIFY_WITH_TIMEOUT(front() > 160, kPatienceMs);
        const auto startAgain = [&] {
            RunningProgram second(*m_screen, data, *test::defaultModel());
            QVERIFY(second.process().waitForFinished(kPatienceMs));
            QCOMPARE(second.process().exitCode(), 0);
            QCOMPARE(first.process().state(), QProcess::Running);
        };
        startAgain();
        QTRY_VERIFY_WITH_TIMEOUT(front() < 100, kPatienceMs);
        QVERIFY(sendByKeyboard(data, QStringLiteral("Write a very long story about a lighthouse keeper.")));
        constexpr const char* kStatus = "SELECT status FROM message ORDER BY id DESC LIMIT 1";
        for (int again = 0; again < 5; ++again) {
            startAgain();
            QVERIFY(again > 0 || textOf(data, kStatus) == QStringLiteral("generating"));
        }
        QTRY_COMPARE_WITH_TIMEOUT(textOf(data, kStatus), QStringLiteral("complete"), 5 * kPatienceMs);
        QVERIFY(figure(data, "SELECT answer_tokens FROM receipt") > 20);
        QCOMPARE(figure(data, kUserMessages), std::int64_t(2));
        QCOMPARE(textOf(data, "PRAGMA integrity_check"), QStringLiteral("ok"));
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

    /// Killed while a message of the user is edited and the other answer to it is written.
    void killedWhileEditing() {
        const QString data = QString::fromStdString(m_dir.file("edited"));
        for (int kill = 0; kill < std::max(1, qEnvironmentVariableIntValue("KVSCOPE_KILLS")); ++kill) {
            RunningProgram program(*m_screen, data, *test::defaultModel());
            if (kill == 0) {
                QVERIFY(sendByKeyboard(data, QStringLiteral("Say hi.")));
                QTRY_COMPARE_WITH_TIMEOUT(textOf(data, "SELECT status FROM message WHERE role = 'assistant'"),
                                          QStringLiteral("complete"), kPatienceMs);
            }
            const std::int64_t before = figure(data, kUserMessages);
            QVERIFY(QTest::qWaitFor( // while the model loads nothing can be sent
                [&] {
                    m_screen->focusWindow();
                    m_screen->press({QStringLiteral("key"), QStringLiteral("ctrl+l"), QStringLiteral("shift+F6"),
                                     QStringLiteral("ctrl+Up"), QStringLiteral("ctrl+Up"), QStringLiteral("e"),
                                     QStringLiteral("ctrl+End")});
                    m_screen->press({QStringLiteral("type"), QStringLiteral(" Take %1.").arg(kill)});
                    m_screen->press({QStringLiteral("key"), QStringLiteral("ctrl+Return")});
                    QTest::qWait(250);
                    return figure(data, kUserMessages) > before;
                },
                kPatienceMs));
            QTest::qWait(QRandomGenerator::global()->bounded(0, 1200));
            const auto kept = committed(data);
            program.killNow();
            checkKept(data, kept);
            QCOMPARE(figure(data, "SELECT count(*) FROM conversation"), std::int64_t(1));
            QCOMPARE(figure(data, "SELECT count(DISTINCT ifnull(parent_id, 0)) FROM message WHERE role = 'user'"),
                     std::int64_t(1)); // versions of each other
        }
    }

    /// Killed while chats are imported: each of them is there whole or not at all, and the rest can be fetched.
    void killedWhileImporting() {
        const QString data = QString::fromStdString(m_dir.file("imported"));
        const QString file = QString::fromStdString(m_dir.file("chats.json"));
        writeForeignChats(file);
        const auto import = [&] {
            m_screen->focusWindow();
            QTest::qWait(500);
            m_screen->press({QStringLiteral("key"), QStringLiteral("ctrl+k")});
            m_screen->press({QStringLiteral("type"), QStringLiteral("--delay"), QStringLiteral("8"),
                             QStringLiteral("import chats")});
            m_screen->press({QStringLiteral("key"), QStringLiteral("Return")});
            m_screen->press({QStringLiteral("search"), QStringLiteral("--sync"), QStringLiteral("--onlyvisible"),
                             QStringLiteral("--name"), QStringLiteral("Import chats"), QStringLiteral("windowfocus"),
                             QStringLiteral("--sync")});
            QTest::qWait(300);
            m_screen->press({QStringLiteral("type"), QStringLiteral("--delay"), QStringLiteral("8"), file});
            m_screen->press({QStringLiteral("key"), QStringLiteral("Return")});
        };
        for (int kill = 0; kill < std::max(1, qEnvironmentVariableIntValue("KVSCOPE_KILLS")); ++kill) {
            RunningProgram program(*m_screen, data, {});
            import();
            QTest::qWait(QRandomGenerator::global()->bounded(0, 400));
            const auto kept = committed(data);
            program.killNow();
            checkKept(data, kept);
            QCOMPARE(figure(data, kBrokenChats), std::int64_t(0));
        }
        RunningProgram program(*m_screen, data, {});
        import(); // what is there already is not fetched twice
        QTRY_COMPARE_WITH_TIMEOUT(figure(data, kImportedChats), std::int64_t(kImported), kPatienceMs);
        QTest::qWait(300);
        QCOMPARE(figure(data, kImportedChats), std::int64_t(kImported));
        QCOMPARE(figure(data, kBrokenChats), std::int64_t(0));
    }

    void cleanupTestCase() { m_screen.reset(); }
};

QTEST_GUILESS_MAIN(TestDesktopProgram)
#include "test_desktop_program.moc"
