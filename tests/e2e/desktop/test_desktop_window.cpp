// SPDX-License-Identifier: GPL-3.0-or-later
//
// The desktop program's object graph in this process: real engine, real database, real window, offscreen.
#include <QElapsedTimer>
#include <QFile>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <ctime>
#include <functional>

#include "tests/e2e/desktop/desktop_harness.h"
#include "tests/support/default_model.h"
#include "tests/support/sanitized.h"
#include "ui/cockpit/curves_panel.h"
#include "ui/cockpit/curves_plot.h"

using namespace kvscope;
using kvscope::desktop::Desktop;
using test::kAnswerMs;
using test::Program;

namespace {

std::int64_t residentBytes() {
    QFile file(QStringLiteral("/proc/self/statm"));
    if (!file.open(QIODevice::ReadOnly))
        return 0;
    return file.readAll().split(' ').value(1).toLongLong() * 4096;
}

/// What holds the window up for so long is a fault on any machine. The limit that is wanted, 100 ms, is bench_window's
/// to judge: a test knows neither how fast its machine is nor what else runs there.
constexpr double kMostStallMs = 300;

} // namespace

class TestDesktopWindow final : public QObject {
    Q_OBJECT
    test::TempDir m_models;
    std::string m_tiny;

private slots:
    void initTestCase() { m_tiny = test::tinyModel(m_models); }

    void fourStripsThenHitsAndMemoryMove() {
        Program program(m_tiny);
        auto* curves = program->window().findChild<ui::CurvesPanel*>();
        QVERIFY(curves && curves->isVisible());
        QCOMPARE(curves->plot().strips(), 4);
        for (int strip = 0; strip < 4; ++strip)
            QVERIFY(curves->plot().stripRect(strip).height() >= 40);
        QTRY_VERIFY_WITH_TIMEOUT(program->cockpit().latest(), kAnswerMs);
        const double weights = double(program->cockpit().latest()->weightsBytes);
        QVERIFY(weights > 0);
        QCOMPARE(program->cockpit().latest()->hitRate(), -1.0); // nothing was asked: a gap, not 0

        program.settings(0, 40);
        const ui::ChatMessage first =
            program.ask(QStringLiteral("The first question of this chat, long enough for blocks."));
        QVERIFY(first.receipt);
        QCOMPARE(first.receipt->cache.reusedTokens, std::int64_t(0));
        QTRY_COMPARE_WITH_TIMEOUT(program->cockpit().latest()->hitRate(), 0.0, kAnswerMs);
        const auto cachedAfter = [&] {
            return program->cockpit().latest()->blocksByState[std::size_t(kv::BlockState::Cached)];
        };
        QTRY_VERIFY_WITH_TIMEOUT(cachedAfter() > 0, kAnswerMs);
        const std::uint32_t once = cachedAfter();

        const ui::ChatMessage second = program.ask(QStringLiteral("The second question."));
        QVERIFY(second.receipt->cache.reusedTokens >= 64);
        const double prompts = double(first.receipt->cache.promptTokens + second.receipt->cache.promptTokens);
        QTRY_COMPARE_WITH_TIMEOUT(program->cockpit().latest()->hitRate(),
                                  double(second.receipt->cache.reusedTokens) / prompts, kAnswerMs);
        QTRY_VERIFY_WITH_TIMEOUT(cachedAfter() > once, kAnswerMs);
        QTRY_VERIFY_WITH_TIMEOUT(!curves->valueText(QStringLiteral("prefix hits")).isEmpty(), kAnswerMs);
    }

    /// The meter equals the engine's own sequence length, also where an answer was stopped.
    void meterEqualsTheEngine() {
        Program program(m_tiny);
        program.settings(0, 30);
        for (int turn = 0; turn < 4; ++turn) {
            if (turn == 2) {
                program.begin(QStringLiteral("Stopped turn"));
                QTRY_VERIFY_WITH_TIMEOUT(
                    program.chat().messages()->at(program.chat().messages()->size() - 1).tokens.size() > 3, kAnswerMs);
                program.chat().stop();
                program.awaitEnd();
            } else {
                program.ask(QStringLiteral("Turn %1").arg(turn));
            }
            const ui::ChatMessage& answer = program.chat().messages()->at(program.chat().messages()->size() - 1);
            // Prompt and answer; a token that was drawn last and never read again is not in the sequence.
            const std::int64_t whole = answer.receipt->cache.promptTokens + std::int64_t(answer.tokens.size());
            QTRY_VERIFY_WITH_TIMEOUT(
                program.chat().context().length == whole || program.chat().context().length == whole - 1, kAnswerMs);
            QTest::qWait(200);
            const std::int64_t shown = program.chat().context().length;
            const std::vector<BlockId> blocks = program.blocks();
            QCOMPARE(std::int64_t(blocks.size()), shown / 16); // the tail that was never sealed is given back
        }
    }

    void twoChatsAtOnceShareTheirBeginning() {
        Program program(m_tiny);
        program.settings(0, 200);
        program.chat().setSystemPrompt(QStringLiteral("A common beginning that fills a block."));
        program.begin(QStringLiteral("one"));
        const ui::ConversationId first = program.chat().current().conversation.id;
        Q_UNUSED(first);
        QTRY_VERIFY_WITH_TIMEOUT(program.chat().current().model->at(1).tokens.size() > 2, kAnswerMs);
        program.chat().newConversation();
        program.settings(0, 40);
        program.chat().setSystemPrompt(QStringLiteral("A common beginning that fills a block."));
        program.begin(QStringLiteral("two"));
        const ui::ChatMessage& second = program.awaitEnd();
        QVERIFY(second.receipt->cache.reusedTokens >= 32); // from the other chat, which still writes or has just ended
        QTRY_VERIFY_WITH_TIMEOUT(!program.chat().anyRunning(), kAnswerMs);
    }

    /// U13: text in the database is whole at every cut, for characters made of several tokens.
    void noCutCharacters() {
        const auto model = test::defaultModel();
        if (!model)
            QSKIP(test::kNoDefaultModel);
        Program program(*model, 512);
        const QString prompt =
            QString::fromUtf8("Repeat: 👨‍👩‍👧‍👦🏳️‍🌈𠮷 สวัสดี مرحبا "
                              "👨‍👩‍👧‍👦🏳️‍🌈𠮷 สวัสดี "
                              "مرحبا "
                              "👨‍👩‍👧‍👦🏳️‍🌈");
        program.settings(0, 12);
        const std::string whole = program.ask(prompt).text.toStdString();
        for (int cut = 1; cut < 12; ++cut) {
            program.chat().newConversation();
            program.settings(0, cut);
            program.ask(prompt);
            const store::Message stored = program.stored().back();
            QVERIFY2(whole.compare(0, stored.text.size(), stored.text) == 0,
                     ("cut at " + std::to_string(cut) + ": \"" + stored.text + "\" of \"" + whole + "\"").c_str());
            QVERIFY(QString::fromStdString(stored.text).toStdString() == stored.text); // valid UTF-8
            QCOMPARE(stored.tokens->ids.size(), std::size_t(cut));
        }
        // Stopped wherever it happens to be.
        for (int stop = 1; stop <= 4; ++stop) {
            program.chat().newConversation();
            program.settings(0, 200);
            program.begin(prompt);
            QTRY_VERIFY_WITH_TIMEOUT(
                int(program.chat().messages()->at(1).tokens.size()) >= stop || !program.chat().answering(), kAnswerMs);
            program.chat().stop();
            program.awaitEnd();
            const store::Message stored = program.stored().back();
            QVERIFY(QString::fromStdString(stored.text).toStdString() == stored.text);
            const std::size_t common = std::min(stored.text.size(), whole.size());
            QCOMPARE(stored.text.substr(0, common), whole.substr(0, common));
        }
    }

    /// Nothing that a person does while an answer is written holds the window's thread for a tenth of a second. Judged
    /// by what the thread computed between two beats of a timer: how long it waited for a processor is the machine's.
    void nothingHoldsTheWindow() {
        Program program(m_tiny);
        for (const char* text : {"first", "second"}) {
            program.chat().newConversation();
            program.settings(1, 400);
            program.ask(QLatin1StringView(text));
        }
        const auto computed = [] {
            timespec t{};
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            return double(t.tv_sec) * 1e3 + double(t.tv_nsec) / 1e6;
        };
        QTimer beat;
        QElapsedTimer wall;
        double before = computed(), most = 0;
        qint64 longest = 0;
        connect(&beat, &QTimer::timeout, this, [&] {
            most = std::max(most, computed() - before);
            longest = std::max(longest, wall.restart());
            before = computed();
        });
        program.begin(QStringLiteral("go on"));
        wall.start();
        beat.start(1);
        const auto watch = [&](const char* what, const std::function<void()>& act) {
            most = 0;
            longest = 0;
            act();
            QTest::qWait(300);
            qInfo("%s: at most %.1f ms computed, %lld ms between two beats of 1 ms", what, most, qlonglong(longest));
            QVERIFY2(most < kMostStallMs || test::kSanitized, what);
        };
        ui::MainWindow& window = program->window();
        watch("writing", [] {});
        for (const ui::ConversationId id : program.chat().conversations()->ids())
            watch("another chat", [&] { program.chat().select(id); });
        watch("settings", [&] { window.chatPanel()->showSettings(); });
        for (const QSize size : {QSize(1000, 700), QSize(1900, 1000), QSize(1600, 1000)})
            watch("another size", [&] { window.resize(size); });
        QVERIFY(QTest::qWaitFor([&] { return !program.chat().anyRunning(); }, kAnswerMs));
    }

    /// Trial U37. KVSCOPE_TURNS (60) turns of KVSCOPE_ANSWER_TOKENS (200) tokens, a new chat each 20; from 100 turns on
    /// with the default model. The pool's pages are the system's until they are written for the first time: all of them
    /// are, before the start is measured, so that what grows afterwards is nobody's but the program's.
    void memoryStaysFlat() {
        const auto setting = [](const char* name, int otherwise) {
            const int value = qEnvironmentVariableIntValue(name);
            return value > 0 ? value : otherwise;
        };
        const int turns = setting("KVSCOPE_TURNS", 60);
        const bool whole = turns >= 100;
        const int tokens = setting("KVSCOPE_ANSWER_TOKENS", whole ? 200 : 30);
        if (whole && !test::defaultModel())
            QSKIP(test::kNoDefaultModel);
        Program program(whole ? *test::defaultModel() : m_tiny, whole ? 512 : 256);
        const int perChat = whole ? 20 : 6;
        const auto removeAll = [&program] {
            for (const ui::ConversationId id : program.chat().conversations()->ids())
                program.chat().remove(id);
            QTest::qWait(500);
            QCOMPARE(program.chat().conversations()->rowCount(), 0);
            QCOMPARE(program->cockpit().latest()->referencedBlocks, std::uint32_t(0));
        };
        // Blocks that were never used are taken before a cached one is given up.
        QTRY_VERIFY_WITH_TIMEOUT(program->cockpit().latest() != nullptr, kAnswerMs);
        for (int chat = 0; program->cockpit().latest()->totalEvictions == 0; ++chat) {
            QVERIFY(chat < 60);
            program.chat().newConversation();
            program.settings(0.7, 8);
            const ui::ChatMessage& answer =
                program.ask(QString::number(chat) + QStringLiteral(" more").repeated(whole ? 3000 : 300));
            QVERIFY2(answer.status == ui::MessageStatus::Done, qPrintable(answer.error));
            QTest::qWait(300); // the next sample
        }
        removeAll();
        const std::int64_t start = residentBytes();
        std::int64_t settled = 0;
        for (int turn = 0; turn < turns; ++turn) {
            if (turn % perChat == 0) {
                program.chat().newConversation();
                program.settings(0.7, tokens);
            }
            const ui::ChatMessage& answer = program.ask(QStringLiteral("Turn %1, please go on.").arg(turn));
            QVERIFY2(answer.status == ui::MessageStatus::Done, qPrintable(answer.error));
            QCOMPARE(int(answer.tokens.size()), tokens);
            if (turn == turns / 10)
                settled = residentBytes();
        }
        const std::int64_t after = residentBytes();
        removeAll();
        const std::int64_t end = residentBytes();
        const QString report =
            QStringLiteral("MiB resident: %1 at the start, %2 after %3 turns, %4 after %5 turns of %6 "
                           "tokens, %7 with all chats deleted")
                .arg(start >> 20)
                .arg(settled >> 20)
                .arg(turns / 10 + 1)
                .arg(after >> 20)
                .arg(turns)
                .arg(tokens)
                .arg(end >> 20);
        qInfo().noquote() << report;
        if (test::kSanitized)
            QSKIP("A sanitizer keeps freed memory.");
        constexpr std::int64_t kAllowed = 50 << 20;
        QVERIFY2(after <= settled + kAllowed, qPrintable(report));
        // A tenth of the tiny model's program is less than the history of the curves, which is meant to stay.
        constexpr std::int64_t kHistory = 24 << 20;
        QVERIFY2(end <= start + (whole ? start / 10 : kHistory), qPrintable(report));
    }

    void windowIsThereBeforeTheModel() {
        test::TempDir dir;
        auto folder = store::DataFolder::open(dir.file("data"));
        QVERIFY(folder);
        QElapsedTimer timer;
        timer.start();
        Desktop desktop(*folder, dir.path(), {});
        desktop.start();
        QVERIFY(desktop.window().isVisible());
        QVERIFY2(timer.elapsed() < 2000, qPrintable(QString::number(timer.elapsed())));
        QVERIFY(!desktop.chat().canSend());
        // A broken file says so, and the window stays.
        const QString broken = QString::fromStdString(dir.file("broken.gguf"));
        QFile file(broken);
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("GGUF nonsense") > 0);
        file.close();
        QSignalSpy failed(&desktop, &Desktop::loadFailed);
        desktop.loadModel(broken);
        QVERIFY(failed.wait(5000));
        const auto boxes = desktop.window().findChildren<ui::MessageBox*>();
        QCOMPARE(boxes.size(), 1);
        QVERIFY(boxes[0]->sentence().contains(QStringLiteral("broken.gguf")));
    }
};

QTEST_MAIN(TestDesktopWindow)
#include "test_desktop_window.moc"
