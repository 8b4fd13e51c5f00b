// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fuzzy matching, the palette, presets and the search as models, and the widgets over them.
#include <QComboBox>
#include <QInputMethodEvent>
#include <QLineEdit>
#include <QListView>
#include <QSignalSpy>
#include <QTest>

#include "ui/chat/conversation_panel.h"
#include "ui/models/conversation_list_model.h"
#include "ui/models/palette_model.h"
#include "ui/models/search_model.h"
#include "ui/widgets/button.h"
#include "ui/widgets/line_edit.h"
#include "ui/window/command_palette.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

Conversation conversation(ConversationId id, const QString& title) {
    Conversation c;
    c.id = id;
    c.title = title;
    c.updatedMs = 1'773'327'600'000 - id * 1000; // the first is the newest
    return c;
}

struct Stage {
    CommandRegistry registry;
    ConversationListModel list;
    QStringList ran;
    bool canStop = false;

    Stage() {
        add("chat.new", "New chat", "Chats", {QKeySequence(Qt::CTRL | Qt::Key_N)});
        add("theme.dark", "Dark theme", "Theme", {});
        add("model.open", "Open a GGUF file…", "Model", {QKeySequence(Qt::CTRL | Qt::Key_O)});
        add("stop", "Stop the answer", "Writing", {}, [this] { return canStop; });
        list.setConversations({conversation(1, QStringLiteral("Why does paging help?")),
                               conversation(2, QStringLiteral("Refactor the tokenizer")),
                               conversation(3, QStringLiteral("第三章 维护与清洁"))},
                              1'773'327'600'000);
    }
    void add(const char* id, const char* title, const char* group, const QList<QKeySequence>& keys,
             std::function<bool()> enabled = {}) {
        Command command;
        command.id = QLatin1StringView(id);
        command.title = QString::fromUtf8(title);
        command.group = QLatin1StringView(group);
        command.shortcuts = keys;
        command.run = [this, name = command.id] { ran << name; };
        command.enabled = std::move(enabled);
        registry.add(std::move(command));
    }
    QStringList titles(const QString& query) {
        PaletteModel model(&registry, &list);
        model.setQuery(query);
        QStringList out;
        for (int row = 0; row < model.rowCount(); ++row)
            out << model.index(row).data().toString();
        return out;
    }
};

} // namespace

class TestCommands final : public QObject {
    Q_OBJECT
    const Theme m_theme = Theme::load(ThemeKind::Dark);

private slots:
    void fuzzyFindsSubsequences_data() {
        QTest::addColumn<QString>("pattern");
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("found");
        const auto row = [](const char* pattern, const char* text, bool found) {
            QTest::addRow("%s in %s", pattern, text) << QString::fromUtf8(pattern) << QString::fromUtf8(text) << found;
        };
        row("", "anything", true);
        row("nch", "New chat", true);
        row("chat new", "New chat", true); // words in any order
        row("NEW", "new chat", true);
        row("newx", "New chat", false);
        row("清洁", "第三章 维护与清洁", true);
        row("洁清", "第三章 维护与清洁", false);
        row("naïve", "A NAÏVE user", true);
        row("longer than the text", "short", false);
    }
    void fuzzyFindsSubsequences() {
        QFETCH(QString, pattern);
        QFETCH(QString, text);
        QFETCH(bool, found);
        const auto match = fuzzyMatch(pattern, text);
        QCOMPARE(match.has_value(), found);
        if (!match)
            return;
        QString marked;
        for (const auto& [begin, end] : match->ranges) {
            QVERIFY(begin < end && end <= text.size());
            marked += text.mid(begin, end - begin);
        }
        QString wanted = pattern.simplified(), got = marked;
        wanted.remove(QLatin1Char(' '));
        std::sort(wanted.begin(), wanted.end());
        wanted = wanted.toCaseFolded();
        got = got.toCaseFolded();
        std::sort(got.begin(), got.end());
        std::sort(wanted.begin(), wanted.end());
        QCOMPARE(got, wanted); // what is marked is what was typed
    }

    void beginningsOfWordsWin() {
        QVERIFY(fuzzyMatch(QStringLiteral("oc"), QStringLiteral("Open chat"))->score >
                fuzzyMatch(QStringLiteral("oc"), QStringLiteral("A block of"))->score);
        QVERIFY(fuzzyMatch(QStringLiteral("dark"), QStringLiteral("Dark theme"))->score >
                fuzzyMatch(QStringLiteral("dark"), QStringLiteral("Deny a rake"))->score);
        // The best place counts, not the first one.
        const auto match = fuzzyMatch(QStringLiteral("chat"), QStringLiteral("c h a t and chat"));
        QCOMPARE(match->ranges.size(), std::size_t(1));
    }

    void paletteOffersCommandsAndChats() {
        Stage stage;
        QCOMPARE(stage.titles(QStringLiteral("tok")), QStringList{QStringLiteral("Refactor the tokenizer")});
        QCOMPARE(stage.titles(QStringLiteral("theme dark")).first(), QStringLiteral("Dark theme"));
        QCOMPARE(stage.titles(QStringLiteral("维护")), QStringList{QStringLiteral("第三章 维护与清洁")});
        QCOMPARE(stage.titles({}).size(), 6);
        QVERIFY2(!stage.titles({}).contains(QStringLiteral("Stop the answer")), "it cannot be run now");
        stage.canStop = true;
        QVERIFY(stage.titles({}).contains(QStringLiteral("Stop the answer")));
        QVERIFY(!stage.registry.run(QStringLiteral("no such command")));
    }

    void paletteRunsByKeyboard() {
        Stage stage;
        QWidget window;
        window.resize(900, 700);
        window.show();
        CommandPalette palette(&stage.registry, &stage.list, m_theme, &window);
        QSignalSpy command(&palette, &CommandPalette::commandChosen);
        QSignalSpy chat(&palette, &CommandPalette::conversationChosen);
        palette.open();
        QTest::keyClicks(palette.field(), QStringLiteral("gguf"));
        QTest::keyClick(palette.field(), Qt::Key_Return);
        QCOMPARE(command.count(), 1);
        QCOMPARE(command[0][0].toString(), QStringLiteral("model.open"));
        QVERIFY(!palette.isVisible());
        palette.field()->clear();
        palette.open();
        QTest::keyClick(palette.field(), Qt::Key_Up); // around to the last: the oldest chat
        QTest::keyClick(palette.field(), Qt::Key_Return);
        QCOMPARE(chat.count(), 1);
        QCOMPARE(chat[0][0].toLongLong(), 3);
    }

    void foundRangesAreOfTheText_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("query");
        QTest::addColumn<QStringList>("found");
        const auto row = [](const char* text, const char* query, const QStringList& found) {
            QTest::addRow("%s in %s", query, text) << QString::fromUtf8(text) << QString::fromUtf8(query) << found;
        };
        row("Take the Mutex, mutex", "MUTEX", {QStringLiteral("Mutex"), QStringLiteral("mutex")});
        row("步2 重跑gen-itgc后50条清零", "清", {QStringLiteral("清")});
        row("C++ is 100% \"fun\"", "100%", {QStringLiteral("100%")});
        row("Straße", "SS", {QStringLiteral("ß")});
        row("aaa", "aa", {QStringLiteral("aa")});
        row("nothing", "x", {});
        row("nothing", "", {});
    }
    void foundRangesAreOfTheText() {
        QFETCH(QString, text);
        QFETCH(QString, query);
        QFETCH(QStringList, found);
        QStringList got;
        for (const auto& [begin, end] : foundRanges(text, query))
            got << text.mid(begin, end - begin);
        QCOMPARE(got, found);
    }

    /// Answers that come late, or out of order, do not replace newer ones.
    void searchTakesTheLatestAnswer() {
        SearchModel model([] { return qint64(0); });
        std::vector<std::pair<QString, SearchModel::Answer>> asked;
        model.setSource([&](const QString& query, int, SearchModel::Answer answer) {
            asked.emplace_back(query, std::move(answer));
        });
        const auto hit = [](ConversationId id, const char* title) {
            SearchHit h;
            h.conversation = id;
            h.title = QLatin1StringView(title);
            return SearchModel::Found{{h}, 1};
        };
        model.setQuery(QStringLiteral("a"));
        QTRY_COMPARE(asked.size(), std::size_t(1));
        model.setQuery(QStringLiteral("ab"));
        QTRY_COMPARE(asked.size(), std::size_t(2));
        asked[1].second(hit(2, "second"));
        asked[0].second(hit(1, "first"));
        QCOMPARE(model.rowCount(), 1);
        QCOMPARE(model.index(0).data().toString(), QStringLiteral("second"));
        model.setQuery(QStringLiteral("abc"));
        QTRY_COMPARE(asked.size(), std::size_t(3));
        model.setQuery({});
        asked[2].second(hit(3, "third"));
        QCOMPARE(model.rowCount(), 0);
        QVERIFY(!model.active());
        model.setQuery(QStringLiteral("x"));
        QTRY_COMPARE(asked.size(), std::size_t(4));
        asked[3].second(fail(ErrorCode::Io, "The database cannot be read."));
        QCOMPARE(model.problem(), QStringLiteral("The database cannot be read."));
    }

    void moreHitsAreSaidAndListed() {
        Stage stage;
        SearchModel search([] { return qint64(0); });
        std::vector<int> most;
        search.setSource([&](const QString&, int mostHits, SearchModel::Answer answer) {
            most.push_back(mostHits);
            SearchModel::Found found;
            found.conversations = 1234;
            for (int i = 0; i < std::min(mostHits, 1234); ++i) {
                SearchHit hit;
                hit.conversation = i + 1;
                hit.title = QStringLiteral("chat %1").arg(i);
                found.hits.push_back(hit);
            }
            answer(found);
        });
        ConversationPanel panel(&stage.list, &search, m_theme);
        panel.resize(248, 600);
        panel.show();
        QVERIFY(!panel.moreButton()->isVisible());
        panel.focusSearch();
        QTest::keyClicks(panel.searchField(), QStringLiteral("chat"));
        QTRY_COMPARE(search.rowCount(), 500);
        QVERIFY(panel.moreButton()->isVisible());
        QVERIFY2(panel.moreButton()->text().contains(QStringLiteral("500 of 1,234")),
                 qPrintable(panel.moreButton()->text()));
        panel.moreButton()->click();
        QCOMPARE(search.rowCount(), 1234);
        QVERIFY(!panel.moreButton()->isVisible() && most.back() > 1234);
        QTest::keyClicks(panel.searchField(), QStringLiteral("s")); // another search begins small again
        QTRY_COMPARE(most.back(), 500);
    }

    void searchByKeyboard() {
        Stage stage;
        SearchModel search([] { return qint64(0); });
        search.setSource([](const QString& query, int, SearchModel::Answer answer) {
            SearchHit hit;
            hit.conversation = 2;
            hit.message = 17;
            hit.title = QStringLiteral("Refactor the tokenizer");
            hit.snippet = QStringLiteral("take the mutex only for the merge table");
            hit.count = 4;
            answer(hit.snippet.contains(query) ? SearchModel::Found{{hit}, 1} : SearchModel::Found{});
        });
        ConversationPanel panel(&stage.list, &search, m_theme);
        panel.resize(248, 600);
        panel.show();
        QSignalSpy chosen(&panel, &ConversationPanel::hitChosen);
        panel.focusSearch();
        QTest::keyClicks(panel.searchField(), QStringLiteral("mutex"));
        QTRY_COMPARE(search.rowCount(), 1);
        QVERIFY(panel.hits()->isVisible());
        QTest::keyClick(panel.searchField(), Qt::Key_Return);
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(chosen[0][0].toLongLong(), 2);
        QCOMPARE(chosen[0][1].toLongLong(), 17);
        QTest::keyClicks(panel.searchField(), QStringLiteral("zzz"));
        QTRY_VERIFY(!panel.hits()->isVisible());
        QVERIFY(!panel.list()->isVisible()); // a sentence says that there is nothing
        QVERIFY(panel.clearSearch());
        QVERIFY(panel.list()->isVisible());
        QVERIFY(!panel.clearSearch());
    }

    /// U30 in the fields of the panel: nothing is searched or renamed by the Enter of a composition.
    void compositionsInThePanel() {
        Stage stage;
        SearchModel search([] { return qint64(0); });
        ConversationPanel panel(&stage.list, &search, m_theme);
        panel.resize(248, 600);
        panel.show();
        const auto compose = [](QWidget* field, const QString& preedit, const QString& text) {
            QInputMethodEvent event(preedit, {});
            event.setCommitString(text);
            QCoreApplication::sendEvent(field, &event);
        };
        QSignalSpy chosen(&panel, &ConversationPanel::hitChosen);
        compose(panel.searchField(), QStringLiteral("nihao"), {});
        QTest::keyClick(panel.searchField(), Qt::Key_Return);
        QTest::keyClick(panel.searchField(), Qt::Key_Down);
        QCOMPARE(chosen.count(), 0);
        QCOMPARE(panel.searchField()->text(), QString());

        panel.setCurrent(2);
        panel.renameCurrent();
        auto* editor = panel.list()->findChild<LineEdit*>(QStringLiteral("renameEditor"));
        QVERIFY(editor);
        QSignalSpy renamed(&stage.list, &ConversationListModel::renamed);
        editor->selectAll();
        compose(editor, QStringLiteral("nihao"), {});
        QTest::keyClick(editor, Qt::Key_Return);
        QTest::keyClick(editor, Qt::Key_Tab);
        QCoreApplication::processEvents();
        QCOMPARE(renamed.count(), 0);
        QVERIFY(editor->isVisible());
        compose(editor, {}, QStringLiteral("你好"));
        QTest::keyClick(editor, Qt::Key_Return);
        QTRY_COMPARE(renamed.count(), 1);
        QCOMPARE(renamed[0][0].toLongLong(), 2);
        QCOMPARE(renamed[0][1].toString(), QStringLiteral("你好"));
    }
};

QTEST_MAIN(TestCommands)
#include "test_commands.moc"
