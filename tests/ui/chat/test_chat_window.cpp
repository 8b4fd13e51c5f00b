// SPDX-License-Identifier: GPL-3.0-or-later
//
// A chat that outgrows its window: the mark where it is cut, after a restart too, and what the composer says before.
#include <QTest>

#include "tests/support/engine_chat.h"
#include "tests/support/fake_chat_source.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"
#include "ui/chat/chat_panel.h"
#include "ui/chat/composer.h"
#include "ui/models/chat_words.h"

using namespace kvscope;
using namespace kvscope::ui;
using kvscope::test::EngineChat;
using kvscope::test::FakeChatSource;
using kvscope::test::FakeChatStore;

namespace {

/// Rows with the mark.
std::vector<int> marks(const ChatModel& rows) {
    std::vector<int> marked;
    for (int row = 0; row < rows.size(); ++row)
        if (rows.at(row).windowCut)
            marked.push_back(row);
    return marked;
}

QString question(int turn) {
    return QStringLiteral("Question %1, which is long enough to fill some blocks of the cache.").arg(turn);
}

} // namespace

class TestChatWindow final : public QObject {
    Q_OBJECT

    test::TempDir m_dir;
    std::string m_model;

    void load(EngineChat& c, kv::WindowPolicy policy) {
        c.config.windowPolicy = policy;
        c.config.window = 512;
        c.source.load(c.config);
        c.drain();
    }

private slots:
    void initTestCase() {
        test::ScriptedShape shape;
        shape.context = 1024;
        m_model = m_dir.file("scripted.gguf");
        QVERIFY(test::scriptedLlama(test::awkwardPieces("An answer of some words."), shape).write(m_model));
    }

    void theCutIsMarkedAndFoundAgainAfterARestart() {
        EngineChat c(m_model);
        load(c, kv::WindowPolicy::Trim);
        c.chat.setSystemPrompt(QStringLiteral("Answer in few words, and be kind to whoever asks."));
        std::vector<int> before;
        int moves = 0;
        for (int turn = 1; turn <= 12; ++turn) {
            c.ask(question(turn));
            QCOMPARE(c.last().status, MessageStatus::Done);
            const std::vector<int> now = marks(c.rows());
            QVERIFY(now.size() <= 1);
            if (now != before) {
                ++moves;
                QCOMPARE(c.rows().at(now.front()).role, MessageRole::User);
                QCOMPARE(c.last().receipt->cache.cut.messages, now.front()); // all rows above it are left out
                QCOMPARE(c.last().receipt->cache.missReason, api::MissReason::WindowCut);
                QVERIFY(words::receiptCause(*c.last().receipt).contains(QStringLiteral("oldest turns")));
            }
            before = now;
        }
        QVERIFY(moves >= 2);

        // Another program over the same database: nothing about the cut is stored, and it is where it was.
        const ConversationId id = c.chat.current().conversation.id;
        ChatController again(c.source, c.store, c.source.clock, [] { return qint64(1'773'327'600'000); });
        again.handleEvent(api::LoadedEvent{c.source.engine.model()});
        again.start();
        c.store.settleAll();
        QCOMPARE(again.current().conversation.id, id);
        while (const auto event = c.source.nextEvent())
            again.handleEvent(*event);
        QVERIFY(marks(*again.messages()) == before);

        // With another policy everything is read, and nothing is marked.
        api::ModelInfo stops = c.source.engine.model();
        stops.windowPolicy = kv::WindowPolicy::Stop;
        again.handleEvent(api::LoadedEvent{stops});
        QVERIFY(marks(*again.messages()).empty());
    }

    void anotherVersionOfAMessageIsMarkedAnew() {
        EngineChat c(m_model);
        load(c, kv::WindowPolicy::Trim);
        for (int turn = 1; turn <= 9; ++turn)
            c.ask(question(turn));
        const std::vector<int> cut = marks(c.rows());
        QCOMPARE(cut.size(), std::size_t(1));
        QVERIFY(c.chat.editMessage(2, QStringLiteral("Short."))); // the second turn, and nothing behind it
        c.finish();
        QVERIFY(marks(c.rows()).empty());
        QVERIFY(c.chat.showVersion(2, 1));
        c.drain();
        QVERIFY(marks(c.rows()) == cut);
    }

    void theComposerSaysBeforeWhatWillBeLeftOut() {
        FakeChatSource source;
        FakeChatStore store;
        ManualClock clock;
        ChatController chat{source, store, clock, [] { return qint64(0); }};
        QTemporaryDir folder;
        ModelListModel models{folder.path(), [](const std::string&) -> Result<api::ModelProbe> {
                                  return fail(ErrorCode::NotFound, "no file here");
                              }};
        ChatPanel panel{&chat, &models, Theme::load(ThemeKind::Dark)};
        panel.resize(900, 800);
        panel.show();
        chat.start();
        store.settleAll();
        chat.handleEvent(FakeChatSource::loaded());
        panel.composer()->setDraft({QStringLiteral("a question"), {}});
        QTRY_VERIFY(!source.measured.empty());
        api::MeasuredEvent cost;
        cost.id = source.measured.back().id;
        cost.promptTokens = 500;
        cost.cachedTokens = 96;
        cost.newBlocks = 26;
        cost.limit = cost.window = cost.poolTokens = 1024;
        cost.cut = {4, 310};
        chat.handleEvent(cost);
        const QString line = panel.composer()->meter();
        QVERIFY2(line.contains(QStringLiteral("without the 4 oldest messages")), qPrintable(line));
    }
};

QTEST_MAIN(TestChatWindow)
#include "test_chat_window.moc"
