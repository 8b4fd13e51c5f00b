// SPDX-License-Identifier: GPL-3.0-or-later
//
// kill -9 at random moments of a program that writes chats: nothing that was confirmed may be missing.
#include <QTest>

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/store/conversation_store.h"
#include "engine/store/run_log.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::store;

namespace {

constexpr int kKills = 24;

/// What the writer says it has committed, by number of the answer.
struct Confirmed {
    std::size_t length = 0; ///< of its text
    bool ended = false;
};

class Writer {
public:
    explicit Writer(const std::string& database) {
        int ends[2];
        if (pipe(ends) != 0)
            qFatal("no pipe");
        m_pid = fork();
        if (m_pid == 0) {
            dup2(ends[1], STDOUT_FILENO);
            ::close(ends[0]);
            ::close(ends[1]);
            execl(KVSCOPE_STORE_WRITER, KVSCOPE_STORE_WRITER, database.c_str(), static_cast<char*>(nullptr));
            _exit(127);
        }
        ::close(ends[1]);
        m_out = ends[0];
    }
    /// Lets it say this many lines and work on for a while, kills it, and returns all that it had said. Lines first: a
    /// slow machine gets as far as a quick one.
    std::string killAfter(int lines, int microseconds) {
        std::string said;
        while (std::count(said.begin(), said.end(), '\n') < lines) {
            const std::string more = readSome();
            if (more.empty())
                break; // it ended; the caller sees that it was not killed
            said += more;
        }
        usleep(static_cast<useconds_t>(microseconds));
        kill(m_pid, SIGKILL);
        int status = 0;
        waitpid(m_pid, &status, 0);
        m_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        for (std::string more = readSome(); !more.empty(); more = readSome())
            said += more;
        ::close(m_out);
        return said;
    }
    bool killed() const { return m_killed; }

private:
    std::string readSome() const {
        char buffer[65536];
        const ssize_t size = read(m_out, buffer, sizeof buffer);
        return {buffer, size > 0 ? static_cast<std::size_t>(size) : 0};
    }
    pid_t m_pid = -1;
    int m_out = -1;
    bool m_killed = false;
};

struct Said {
    std::map<std::int64_t, Confirmed> answers;
    std::set<std::int64_t> edits, imports;
};

void parse(const std::string& said, Said& all) {
    std::map<std::int64_t, Confirmed>& confirmed = all.answers;
    std::istringstream lines(said.substr(0, said.rfind('\n') + 1)); // the last line may be cut
    std::string what;
    std::int64_t number = 0;
    while (lines >> what >> number) {
        if (what == "edit" || what == "import") {
            (what == "edit" ? all.edits : all.imports).insert(number);
            continue;
        }
        Confirmed& c = confirmed[number];
        if (what == "progress")
            lines >> c.length;
        c.ended |= what == "end";
    }
}

} // namespace

class TestStoreCrash : public QObject {
    Q_OBJECT
private slots:
    void nothingConfirmedIsLost() {
        test::TempDir dir;
        const std::string path = dir.file("kvscope.db");
        std::mt19937 random(5);
        Said all; // over all lives of the program
        const std::map<std::int64_t, Confirmed>& confirmed = all.answers;
        int interrupted = 0;
        for (int round = 0; round < kKills; ++round) {
            Writer writer(path);
            const std::string said =
                writer.killAfter(1 + static_cast<int>(random() % 30), static_cast<int>(random() % 3'000));
            QVERIFY2(writer.killed(), said.c_str());
            parse(said, all);

            DatabaseOptions options;
            options.path = path;
            auto database = Database::open(options);
            QVERIFY2(database, database ? "" : database.error().message.c_str());
            QCOMPARE((*database)->handle().execAndGet("PRAGMA integrity_check").getString(), std::string("ok"));
            RunLog runs(**database, systemWallClock());
            const auto recovery = runs.recover();
            QVERIFY(recovery);
            QCOMPARE(recovery->uncleanRuns, 1);
            interrupted += recovery->interruptedAnswers;

            ConversationStore chats(**database, systemWallClock());
            std::map<std::int64_t, Message> found;
            const auto list = chats.list();
            std::set<std::int64_t> missing = all.imports;
            QVERIFY(list);
            for (const Conversation& chat : *list) {
                const auto content = chats.load(chat.id);
                for (const Message& message : content->messages)
                    found.emplace(message.id.value(), message);
                // An imported chat is there whole or not at all.
                QVERIFY(!chat.title.starts_with("imported") || content->messages.size() == 4);
                missing.erase(chat.id.value());
            }
            for (const auto& [number, c] : confirmed) {
                const auto message = found.find(number);
                QVERIFY2(message != found.end(), qPrintable(QString("answer %1 is lost").arg(number)));
                QVERIFY(found.count(message->second.parent.value()) == 1);
                QCOMPARE(found[message->second.parent.value()].text, std::string("question"));
                const Message& answer = message->second;
                QVERIFY(answer.text.size() >= c.length);
                const std::string begin = "answer " + std::to_string(number) + " ";
                QCOMPARE(answer.text.substr(0, begin.size()), answer.text.empty() ? std::string() : begin);
                if (c.ended) {
                    QCOMPARE(int(answer.status), int(MessageStatus::Complete));
                    QCOMPARE(answer.text.size(), std::size_t(500));
                }
            }
            QVERIFY2(missing.empty(), "an imported chat is lost");
            for (const std::int64_t edit : all.edits)
                QVERIFY(found.count(edit) == 1 && found.at(edit).text == "edited");
            for (const auto& [number, message] : found)
                QVERIFY(message.status != MessageStatus::Generating);
        }
        QVERIFY(confirmed.size() >= kKills); // every life of the program has confirmed something
        QVERIFY(interrupted > 0);            // the kills did hit answers that were being written
    }
};

QTEST_APPLESS_MAIN(TestStoreCrash)
#include "test_store_crash.moc"
