// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QDateTime>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "ui/models/chat_model.h"
#include "ui/models/chat_session.h"
#include "ui/models/chat_settings.h"
#include "ui/models/chat_words.h"
#include "ui/models/conversation_list_model.h"
#include "ui/models/format.h"
#include "ui/models/model_list_model.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

qint64 at(const char* iso) {
    return QDateTime::fromString(QLatin1StringView(iso), Qt::ISODate).toMSecsSinceEpoch();
}

Conversation chat(ConversationId id, const char* title, const char* updated) {
    Conversation c;
    c.id = id;
    c.title = QLatin1StringView(title);
    c.updatedMs = at(updated);
    return c;
}

QStringList rows(const ConversationListModel& model) {
    QStringList out;
    for (int row = 0; row < model.rowCount(); ++row) {
        const QModelIndex index = model.index(row);
        const QString text = index.data().toString();
        out << (index.data(ConversationListModel::HeadingRole).toBool() ? QStringLiteral("# ") + text : text);
    }
    return out;
}

ChatMessage message(MessageRole role, const char* text, MessageStatus status = MessageStatus::Done) {
    ChatMessage m;
    m.role = role;
    m.text = QLatin1StringView(text);
    m.status = status;
    return m;
}

} // namespace

class TestChatModels final : public QObject {
    Q_OBJECT
    const qint64 m_now = at("2026-03-12T15:00:00");

private slots:
    void conversationsStandUnderTheirDay() {
        ConversationListModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setConversations({chat(1, "old", "2025-07-01T10:00:00"), chat(2, "now", "2026-03-12T14:00:00"),
                                chat(3, "yesterday", "2026-03-11T23:59:00"), chat(4, "week", "2026-03-07T10:00:00"),
                                chat(5, "month", "2026-01-02T10:00:00")},
                               m_now);
        QCOMPARE(rows(model), (QStringList{"# Today", "now", "# Yesterday", "yesterday", "# Last 7 days", "week",
                                           "# January", "month", "# 2025", "old"}));
        QVERIFY(!(model.flags(model.index(0)) & Qt::ItemIsSelectable));
        QVERIFY(model.flags(model.index(1)) & Qt::ItemIsEditable);
    }

    void usingAConversationMovesItUp() {
        ConversationListModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setConversations({chat(1, "a", "2026-03-12T10:00:00"), chat(2, "b", "2026-03-12T09:00:00"),
                                chat(3, "c", "2026-03-11T09:00:00")},
                               m_now);
        model.setWarmth(3, {0.5F, 0.25F, true});
        Conversation c = *model.find(3);
        c.updatedMs = at("2026-03-12T14:59:00");
        model.put(c, m_now);
        QCOMPARE(rows(model), (QStringList{"# Today", "c", "a", "b"}));
        QCOMPARE(model.index(1).data(ConversationListModel::WarmthCachedRole).toFloat(), 0.5F);
        model.put(chat(4, "d", "2026-03-12T14:59:30"), m_now);
        QCOMPARE(rows(model), (QStringList{"# Today", "d", "c", "a", "b"}));
        model.put(chat(5, "e", "2026-03-11T12:00:00"), m_now);
        QCOMPARE(rows(model), (QStringList{"# Today", "d", "c", "a", "b", "# Yesterday", "e"}));
        model.remove(5);
        model.remove(2);
        QCOMPARE(rows(model), (QStringList{"# Today", "d", "c", "a"}));
        for (const ConversationId id : {1, 3, 4})
            model.remove(id);
        QCOMPARE(model.rowCount(), 0);
    }

    /// Any order of uses gives the list that a fresh sort gives.
    void movesEqualAFreshSort() {
        ConversationListModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        std::vector<Conversation> list;
        for (int i = 1; i <= 12; ++i) {
            list.push_back(chat(i, "x", "2026-03-12T10:00:00"));
            list.back().title = QString::number(i);
            list.back().updatedMs -= qint64(i) * 7 * 3600 * 1000;
        }
        model.setConversations(list, m_now);
        std::uint32_t random = 12345;
        for (int step = 0; step < 200; ++step) {
            random = random * 1664525U + 1013904223U;
            Conversation& c = list[(random >> 16) % list.size()];
            c.updatedMs = m_now - qint64((random >> 8) % (20 * 24 * 60)) * 60 * 1000 - step;
            model.put(c, m_now);
            ConversationListModel fresh;
            fresh.setConversations(list, m_now);
            QCOMPARE(rows(model), rows(fresh));
        }
    }

    void renamingAsksItsOwner() {
        ConversationListModel model;
        model.setConversations({chat(7, "old name", "2026-03-12T10:00:00")}, m_now);
        QSignalSpy renamed(&model, &ConversationListModel::renamed);
        QVERIFY(model.setData(model.index(1), QStringLiteral("  new \n name "), Qt::EditRole));
        QCOMPARE(renamed.size(), 1);
        QCOMPARE(renamed[0][0].toLongLong(), 7);
        QCOMPARE(renamed[0][1].toString(), QStringLiteral("new name"));
        QVERIFY(!model.setData(model.index(1), QStringLiteral("   "), Qt::EditRole));
    }

    void aBurstOfTokensIsOneChange() {
        ChatModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.append(message(MessageRole::User, "hi"));
        const int row = model.append(message(MessageRole::Assistant, "", MessageStatus::Writing));
        QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
        for (int i = 0; i < 50; ++i)
            model.appendTokens(row, QStringLiteral("ab"), {i}, 10.0);
        model.setTokenEnd(row, 50); // comes with every burst, and shows nowhere
        QCOMPARE(model.at(row).tokenRange.second, std::int64_t(50));
        QCOMPARE(changed.size(), 0);
        model.flush();
        QCOMPARE(changed.size(), 1);
        QCOMPARE(changed[0][2].value<QList<int>>(), QList<int>{Qt::DisplayRole});
        QCOMPARE(model.at(row).text.size(), 100);
        QCOMPARE(model.at(row).tokens.size(), std::size_t(50));
        model.edit(row, [](ChatMessage& m) { m.status = MessageStatus::Done; });
        model.appendTokens(row, QStringLiteral("!"), {}, 0);
        model.flush();
        QCOMPARE(changed.size(), 2);
        QVERIFY(changed[1][2].value<QList<int>>().isEmpty()); // more than text changed
        model.flush();
        QCOMPARE(changed.size(), 2);
    }

    void dialogLeavesOutWhatWasNotSaid() {
        ChatSession s;
        s.model = std::make_unique<ChatModel>();
        s.conversation.systemPrompt = QStringLiteral("Be brief.");
        s.model->append(message(MessageRole::User, "one"));
        s.model->append(message(MessageRole::Assistant, "", MessageStatus::Stopped));
        s.model->append(message(MessageRole::User, "two"));
        ChatMessage answer = message(MessageRole::Assistant, "fine");
        answer.tokens = {4, 5};
        answer.model = QStringLiteral("m");
        s.model->append(answer);
        s.model->append(message(MessageRole::User, "three"));
        s.answerRow = s.model->append(message(MessageRole::Assistant, "", MessageStatus::Queued));
        const api::DialogPrompt dialog = s.dialog(QStringLiteral("m"));
        QCOMPARE(dialog.messages.size(),
                 std::size_t(5)); // the engine joins "one" and "two" where a template asks for it
        QCOMPARE(dialog.messages[0].role, std::string("system"));
        QCOMPARE(dialog.messages[1].content, std::string("one"));
        QCOMPARE(dialog.messages[2].content, std::string("two"));
        QCOMPARE(dialog.messages[3].tokens, (std::vector<TokenId>{4, 5}));
        QCOMPARE(dialog.messages[4].content, std::string("three"));
        s.setRanges({{0, 10}, {10, 15}, {15, 20}, {20, 25}, {25, 33}}, 36);
        QCOMPARE(s.model->at(0).tokenRange.second, std::int64_t(15));
        QCOMPARE(s.model->at(1).tokenRange.second, std::int64_t(0));
        QCOMPARE(s.model->at(2).tokenRange.first, std::int64_t(15));
        QCOMPARE(s.model->at(3).tokenRange.first, std::int64_t(20));
        QCOMPARE(s.model->at(5).tokenRange.first, std::int64_t(36));
        QVERIFY(s.dialog(QStringLiteral("other")).messages[3].tokens.empty()); // ids of another tokenizer
    }

    void cutCharactersAreLeftOut_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<int>("kept");
        QTest::newRow("ascii") << QByteArray("abc") << 3;
        QTest::newRow("whole") << QByteArray("a\xF0\x9F\x98\x80") << 5;
        QTest::newRow("3 of 4") << QByteArray("a\xF0\x9F\x98") << 1;
        QTest::newRow("1 of 4") << QByteArray("a\xF0") << 1;
        QTest::newRow("2 of 3") << QByteArray("a\xE2\x82") << 1;
        QTest::newRow("1 of 2") << QByteArray("a\xC3") << 1;
        QTest::newRow("lone continuation stays") << QByteArray("a\x80") << 2;
        QTest::newRow("only continuations stay") << QByteArray("\x80\x80\x80\x80") << 4;
        QTest::newRow("empty") << QByteArray() << 0;
    }
    void cutCharactersAreLeftOut() {
        QFETCH(QByteArray, bytes);
        QFETCH(int, kept);
        QCOMPARE(int(wholeCharacters({bytes.constData(), std::size_t(bytes.size())}).size()), kept);
    }

    void settingsRefuseWhatCannotBe_data() {
        QTest::addColumn<int>("field");
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("ok");
        QTest::addColumn<double>("value");
        using Id = SettingField::Id;
        const auto row = [](Id id, const char* text, bool ok, double value = 0) {
            QTest::addRow("%s = '%s'", settingFields()[std::size_t(id)].name, text)
                << int(id) << QString::fromUtf8(text) << ok << value;
        };
        for (const Id id : {Id::Temperature, Id::TopK, Id::TopP, Id::MinP, Id::RepeatPenalty, Id::PresencePenalty,
                            Id::FrequencyPenalty, Id::Seed, Id::MaxTokens})
            for (const char* bad : {"", "abc", "nan", "inf", "1e9999", "-1e9", "1,2,3"})
                row(id, bad, false);
        row(Id::Temperature, "0,5", false, 0);
        row(Id::TopK, "1,000", true, 1000);
        row(Id::TopK, "1,00", false, 0);
        row(Id::Temperature, "greedy", true, 0);
        row(Id::Temperature, "2", true, 2);
        row(Id::Temperature, "2.01", false);
        row(Id::Temperature, "-1", false);
        row(Id::TopK, "3", true, 3);
        row(Id::TopK, "OFF", true, 0);
        row(Id::TopK, "2.5", false);
        row(Id::TopK, "1e9", false);
        row(Id::TopP, "0", false);
        row(Id::TopP, "1", true, 1);
        row(Id::MinP, "1", false);
        row(Id::MinP, "0", true, 0);
        row(Id::RepeatPenalty, "0.49", false);
        row(Id::PresencePenalty, "−2", true, -2);
        row(Id::Seed, "-1", false);
        row(Id::Seed, "9007199254740991", true, 9007199254740991.0);
        row(Id::MaxTokens, "0", false);
        row(Id::MaxTokens, "1e9", false);
        row(Id::MaxTokens, "256", true, 256);
    }
    void settingsRefuseWhatCannotBe() {
        QFETCH(int, field);
        QFETCH(QString, text);
        QFETCH(bool, ok);
        QFETCH(double, value);
        const SettingField& f = settingFields()[std::size_t(field)];
        api::SamplingParams params = defaultChatSettings();
        const api::SamplingParams before = params;
        const Result<void> result = parseSetting(params, f, text);
        QCOMPARE(result.has_value(), ok);
        if (ok) {
            QCOMPARE(settingValue(params, f.id), value);
            QVERIFY(api::validate(params).has_value());
        } else {
            QVERIFY(result.error().message.find(f.range) != std::string::npos);
            QCOMPARE(settingValue(params, f.id), settingValue(before, f.id));
        }
    }

    void settingsSurviveTheDatabase() {
        api::SamplingParams params;
        params.temperature = 0.1;
        params.topK = 3;
        params.minP = 0.2;
        params.repeatPenalty = 1.3;
        params.seed = 9007199254740991ULL;
        params.stop = {"\n\n", "Ende"};
        const api::SamplingParams back = settingsFromJson(settingsToJson(params));
        for (const SettingField& f : settingFields())
            QCOMPARE(settingValue(back, f.id), settingValue(params, f.id));
        QCOMPARE(back.stop, params.stop);
        QCOMPARE(settingsFromJson("{\"temperature\": 99}").temperature, defaultChatSettings().temperature);
        QCOMPARE(settingText(params, settingFields()[2]), QStringLiteral("off"));
    }

    void words() {
        using namespace kvscope::ui::words;
        Receipt receipt;
        receipt.cache.reusedTokens = 1940;
        receipt.cache.computedTokens = 62;
        receipt.cache.newBlocks = 5;
        receipt.ttftMs = 210;
        QCOMPARE(receiptLine(receipt), QString::fromUtf8("1,940 reused · 62 computed · 5 new blocks · 0.21\u202fs to "
                                                         "first token"));
        Progress p;
        p.done = 1536;
        p.total = 2391;
        p.secondsLeft = 1.3;
        QCOMPARE(readingLine(p), QString::fromUtf8("Reading 1,536 of 2,391 tokens, about 1.3\u202fs left"));
        p.neededBlocks = 12;
        p.availableBlocks = 9;
        QCOMPARE(waitingLine(p), QStringLiteral("Waiting: needs 12 blocks, 9 are available"));
        Receipt evicted;
        evicted.cache.missReason = api::MissReason::Evicted;
        QCOMPARE(receiptCause(evicted), receiptCause(evicted.cache)); // nobody knows any more
        evicted.evictedBy = QStringLiteral("Chat B");
        evicted.evictedAgoMs = 4 * 60 * 1000;
        QVERIFY2(receiptCause(evicted).contains(QStringLiteral("evicted by “Chat B” 4")),
                 qPrintable(receiptCause(evicted)));
        QCOMPARE(tooLongLine(5120, 4096),
                 QStringLiteral("Needs 5,120 tokens, the window holds 4,096. Nothing is sent yet."));
        QCOMPARE(titleFromAnswer(QStringLiteral("\n**Title: \"A walk\"**\nmore")), QStringLiteral("A walk"));
        QCOMPARE(titleFromAnswer(QStringLiteral("步行。")), QStringLiteral("步行"));
        QVERIFY(titleFromAnswer(QString(200, QLatin1Char('x'))).isEmpty());
        ChatMessage m = message(MessageRole::Assistant, "x", MessageStatus::Interrupted);
        m.tokens.resize(212);
        QCOMPARE(endLine(m), QStringLiteral("Interrupted after 212 tokens"));
        QCOMPARE(tokensFit(228'417), QStringLiteral("228,000 tokens fit"));
        QCOMPARE(formatBytes(96'468'992), QString::fromUtf8("92\u202fMiB"));
        QCOMPARE(formatBytes(1'513'975'808), QString::fromUtf8("1.41\u202fGiB"));
        QCOMPARE(titleFrom(QStringLiteral("  Why does\npaging help?  ")), QStringLiteral("Why does paging help?"));
        QVERIFY(titleFrom(QString(300, QLatin1Char('a'))).size() <= 121);
    }

    void modelNamesAsPeopleSayThem() {
        QCOMPARE(modelDisplayName(QStringLiteral("/m/SmolLM2-135M-Instruct.Q4_1.gguf")),
                 QStringLiteral("SmolLM2 135M Instruct"));
        QCOMPARE(modelDisplayName(QStringLiteral("gemma-3-270m-it-Q4_K_M.gguf")), QStringLiteral("gemma 3 270m it"));
        QCOMPARE(modelDisplayName(QStringLiteral("big-f16-00001-of-00002.gguf")), QStringLiteral("big"));
        QCOMPARE(modelDisplayName(QStringLiteral("Q8_0.gguf")), QStringLiteral("Q8 0"));
    }

    void modelFilesAreRows() {
        QTemporaryDir dir;
        for (const char* name : {"a.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf", "notes.txt"}) {
            QFile file(dir.filePath(QLatin1StringView(name)));
            QVERIFY(file.open(QIODevice::WriteOnly));
        }
        ModelListModel model(dir.path(), [](const std::string& path) -> Result<api::ModelProbe> {
            if (path.find("/a.gguf") == std::string::npos)
                return fail(ErrorCode::Corrupt, "The file ends inside its header: download it again.");
            api::ModelProbe probe;
            probe.path = path;
            probe.name = "Model A";
            probe.quantization = "Q4_1";
            probe.weightsBytes = 96'468'992;
            probe.kvBytesPerToken = 23'040;
            probe.availableBytes = 4ULL << 30;
            probe.poolBytes = 1ULL << 30;
            probe.tokensThatFit = 46'608;
            return probe;
        });
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.rescan();
        QCOMPARE(model.rowCount(), 2);
        QTRY_VERIFY(model.at(0).probed && model.at(1).probed);
        QCOMPARE(model.index(0).data().toString(), QStringLiteral("a"));
        QCOMPARE(model.index(0).data(ModelListModel::FitRole).toString(), QStringLiteral("46,600 tokens fit"));
        QVERIFY(model.index(0).data(ModelListModel::FitsRole).toBool());
        QVERIFY(!model.index(1).data(ModelListModel::FitsRole).toBool());
        QVERIFY(model.index(1).data(ModelListModel::DetailRole).toString().contains(QStringLiteral("download")));
        model.setCurrent(model.at(0).path);
        QVERIFY(model.index(0).data(ModelListModel::CurrentRole).toBool());
        model.addFile(dir.filePath(QStringLiteral("notes.txt")));
        QCOMPARE(model.rowCount(), 3);
        QTRY_VERIFY(model.at(0).probed);
    }
};

QTEST_GUILESS_MAIN(TestChatModels)
#include "test_chat_models.moc"
