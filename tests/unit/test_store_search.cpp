// SPDX-License-Identifier: GPL-3.0-or-later
//
// The search index against a brute-force scan of the same database, after any history of changes.
#include <QTest>

#include <map>
#include <random>
#include <set>

#include "engine/store/chat_search.h"
#include "engine/store/conversation_store.h"
#include "engine/store/fold.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::store;

namespace {

const char* const kWords[] = {"Cache",
                              "BLOCK",
                              "stra\303\237e", // octal: a hexadecimal number would take the e
                              "STRASSE",
                              "\xC3\x84nderung",
                              "\xE4\xB8\xAD\xE6\x96\x87\xE5\xAD\x97",
                              "\xF0\x9F\x98\x80",
                              "o'clock",
                              "\"quoted\"",
                              "100%",
                              "a_b",
                              "\xFF\xFE",
                              "\xCE\xA3\xCE\xAF\xCF\x83\xCF\x85\xCF\x86\xCE\xBF\xCF\x82",
                              "AND",
                              "NEAR(",
                              "*",
                              "caf\x65\xCC\x81"};

class Texts {
public:
    explicit Texts(std::uint32_t seed) : m_random(seed) {}
    std::string operator()() {
        std::string text;
        for (std::uint32_t i = m_random() % 12; i > 0; --i)
            text += std::string(kWords[m_random() % std::size(kWords)]) + (m_random() % 3 ? " " : "");
        if (m_random() % 10 == 0)
            text += std::string("x\0y", 3);
        return text;
    }
    std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(m_random() % n); }

private:
    std::mt19937 m_random;
};

/// Rows of an index that contain the folded text as a phrase.
std::set<std::int64_t> byIndex(SQLite::Database& db, const std::string& table, const std::string& folded) {
    std::string phrase = "\"";
    for (const char c : folded)
        phrase += c == '"' ? std::string("\"\"") : std::string(1, c);
    phrase += '"';
    SQLite::Statement select(db, "SELECT rowid FROM " + table + " WHERE " + table + " MATCH ?");
    select.bind(1, phrase);
    std::set<std::int64_t> rows;
    while (select.executeStep())
        rows.insert(select.getColumn(0).getInt64());
    return rows;
}

std::set<std::int64_t> byScan(SQLite::Database& db, const std::string& table, const std::string& column,
                              const std::string& folded) {
    SQLite::Statement select(db, "SELECT id, " + column + " FROM " + table);
    std::set<std::int64_t> rows;
    while (select.executeStep())
        if (foldCase(select.getColumn(1).getString()).find(folded) != std::string::npos)
            rows.insert(select.getColumn(0).getInt64());
    return rows;
}

/// FTS5's own comparison of an external-content index with its table; it fails on any missing or stale entry.
void checkIndex(SQLite::Database& db, const std::string& table) {
    db.exec("INSERT INTO " + table + "(" + table + ", rank) VALUES ('integrity-check', 1)");
}

} // namespace

class TestStoreSearch : public QObject {
    Q_OBJECT
private slots:
    void foldingFindsWhatPeopleCallTheSame() {
        QCOMPARE(foldCase("STRASSE"), foldCase("stra\xC3\x9F"
                                               "e"));
        QCOMPARE(foldCase("\xC3\x84"), foldCase("\xC3\xA4"));
        QCOMPARE(foldCase("caf\xC3\xA9"), foldCase("CAFe\xCC\x81"));          // composed or not
        QCOMPARE(foldCase("\xCE\xA3\xCF\x82"), foldCase("\xCF\x83\xCF\x83")); // final sigma
        QCOMPARE(foldCase("\xE4\xB8\xAD"), std::string("\xE4\xB8\xAD"));
        QCOMPARE(foldCase(std::string_view("a\0b\xFF", 4)), std::string("a\xEF\xBF\xBD"
                                                                        "b\xEF\xBF\xBD"));
        QCOMPARE(foldCase(""), std::string());
    }

    void everyQueryFindsWhatAScanFinds() {
        test::TempDir dir;
        DatabaseOptions options;
        options.path = dir.file("kvscope.db");
        auto database = Database::open(options);
        (*database)->handle().exec("PRAGMA synchronous = OFF");
        WallMillis now = 1;
        ConversationStore store(**database, [&] { return ++now; });
        const std::vector<std::string> texts{
            "\u6B652 \u91CD\u8DD1gen-itgc\u540E50\u6761\u6E05\u96F6\uFF0C\u4FEE\u590D\u5DF2\u9A8C\u8BC1",
            "C++ is 100% \"fun\"",
            "na\u00EFve_user*",
            "\uFF08\u5168\u89D2\uFF09",
            "Stra\u00DFe, \u0130stanbul, CAFE\u0301",
            std::string("nul\0byte \xFF end", 14),
            "",
            "AND OR NOT NEAR(a b) \"quoted\" ^start col:on {x} 'single' \\ back; --dash /* */"};
        std::map<std::int64_t, std::string> all;
        std::map<std::int64_t, std::vector<std::string>> files; // attached to messages
        std::vector<ConversationId> chats;
        for (int copy = 0; copy < 3; ++copy)
            for (const std::string& text : texts) {
                const auto chat = store.create({copy == 1 ? text : "title", "", "", ""})->id;
                chats.push_back(chat);
                NewTurn turn;
                turn.conversation = chat;
                turn.text = text;
                if (text.size() % 2 == 1)
                    turn.attachments = {{"notes.txt", "Zeile eins\n" + text + " ANHANG", 3},
                                        {"", "pasted \xC3\x84", 0}};
                const auto made = store.addTurn(turn, RunId());
                AnswerEnd end;
                end.answer = made->answer->id;
                end.text = "answer to " + text;
                end.thinking = "secretthought";
                QVERIFY(store.endAnswer(end));
                if (copy < 2) {
                    all[made->user.id.value()] = text;
                    for (const Attachment& file : turn.attachments)
                        files[made->user.id.value()].push_back(file.name + "\n" + file.content);
                    all[made->answer->id.value()] = end.text;
                } else {
                    QVERIFY(store.remove(chat)); // deleted chats are not found
                }
            }
        const std::vector<std::string> queries{"\u6E05\u96F6",
                                               "\u4FEE\u590D",
                                               "\u6E05",
                                               "itgc",
                                               "gen",
                                               "c++",
                                               "100%",
                                               "\"fun",
                                               "user*",
                                               "_",
                                               "-",
                                               "(",
                                               "NEAR",
                                               "",
                                               "%",
                                               "\uFF08",
                                               "\u5168\u89D2",
                                               "STRASSE",
                                               "i\u0307stanbul",
                                               "caf\u00E9",
                                               "cafe",
                                               "e\u0301",
                                               "nul",
                                               "\xFF",
                                               "answer to ",
                                               "secretthought",
                                               "anhang",
                                               "notes.txt",
                                               "txt\nzeile",
                                               "pasted \u00E4",
                                               "\n",
                                               "near(a b) \"quoted\" ^",
                                               "'",
                                               "\\",
                                               "\"",
                                               "*",
                                               "^start",
                                               "col:on",
                                               "--dash",
                                               " ",
                                               "no such text anywhere",
                                               std::string(500, 'x'),
                                               "answer to C++ is 100% \"fun\""};
        for (const std::string& query : queries) {
            std::set<std::int64_t> expected, found;
            for (const auto& [id, text] : all)
                if (foldCase(text).find(foldCase(query)) != std::string::npos)
                    expected.insert(id);
            for (const auto& [id, texts] : files)
                for (const std::string& file : texts)
                    if (foldCase(file).find(foldCase(query)) != std::string::npos)
                        expected.insert(id);
            const auto result = searchChats(**database, query);
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            for (const MessageId id : result->messages)
                found.insert(id.value());
            QVERIFY2(found == expected && found.size() == result->messages.size(), query.c_str());
            std::set<std::int64_t> titles;
            for (std::size_t i = 0; i < chats.size(); ++i) {
                const bool alive = i < texts.size() * 2, second = i >= texts.size();
                const std::string title = second ? texts[i % texts.size()] : "title";
                if (alive && foldCase(title).find(foldCase(query)) != std::string::npos)
                    titles.insert(chats[i].value());
            }
            QCOMPARE(result->titles.size(), titles.size());
            std::int64_t counted = 0;
            std::set<std::int64_t> seen;
            for (const SearchHit& hit : result->hits) {
                counted += hit.count;
                QVERIFY(seen.insert(hit.conversation.value()).second); // each conversation once
                QVERIFY(hit.message.valid() ? expected.count(hit.message.value()) > 0
                                            : titles.count(hit.conversation.value()) > 0);
            }
            QCOMPARE(counted, static_cast<std::int64_t>(expected.size()));
            QCOMPARE(result->conversations, static_cast<std::int64_t>(seen.size()));
            for (const SearchHit& hit : result->hits) {
                const std::string shown = hit.snippet.substr(hit.snippetAt, hit.snippetBytes);
                QVERIFY2(validUtf8(hit.snippet) == hit.snippet && hit.snippet.find('\n') == std::string::npos,
                         hit.snippet.c_str());
                if (!query.empty() && query.find('\n') == std::string::npos && hit.snippetBytes < 100)
                    QVERIFY2(foldCase(shown).find(foldCase(query)) != std::string::npos,
                             (query + ": " + shown).c_str());
            }
        }
        const auto few = searchChats(**database, "a", nullptr, 3);
        const auto whole = searchChats(**database, "a");
        QCOMPARE(few->hits.size(), std::size_t(3)); // listed; counted are all
        QCOMPARE(few->conversations, whole->conversations);
        QVERIFY(few->messages == whole->messages && whole->hits.size() > 3);
        QCOMPARE(searchChats(**database, "secretthought")->messages.size(),
                 std::size_t(0)); // thoughts are not searched
        std::atomic<bool> stop{true};
        QVERIFY(searchChats(**database, "a", &stop)->superseded);
    }

    void aPlaceIsGivenInTheTextAsItWasWritten() {
        const auto place = [](const std::string& text, const std::string& query) {
            const auto [at, bytes] = findFolded(text, foldCase(query));
            return at == std::string::npos ? std::string("(none)") : text.substr(at, bytes);
        };
        QCOMPARE(place("The Stra\u00DFe here", "STRASSE"), std::string("Stra\u00DFe"));
        QCOMPARE(place("xx CAFE\u0301 yy", "caf\u00E9"), std::string("CAFE\u0301"));
        QCOMPARE(place("a\u00DFb", "sb"), std::string("\u00DFb")); // half a character is shown whole
        QCOMPARE(place("\u6B65\u91CD\u6E05\u96F6", "\u6E05"), std::string("\u6E05"));
        QCOMPARE(place(std::string("a\0B\xFF"
                                   "C",
                                   5),
                       "b"),
                 std::string("B"));
        QCOMPARE(place("abc", "x"), std::string("(none)"));
        QCOMPARE(place("abc", ""), std::string());
        QCOMPARE(place("ABCABC", "bca"), std::string("BCA"));
    }

    void indexEqualsAScanAfterAnyHistory() {
        test::TempDir dir;
        DatabaseOptions options;
        options.path = dir.file("kvscope.db");
        auto database = Database::open(options);
        QVERIFY(database);
        SQLite::Database& db = (*database)->handle();
        db.exec("PRAGMA synchronous = OFF"); // this test is about the index, not about the disk
        WallMillis now = 1;
        ConversationStore store(**database, [&] { return ++now; });
        Texts texts(11);
        struct Open {
            ConversationId chat;
            MessageId answer;
        };
        std::vector<ConversationId> chats;
        std::vector<Open> open;
        std::size_t hits = 0;
        for (int i = 0; i < 1500; ++i) {
            switch (texts.below(chats.empty() ? 1 : 8)) {
            case 0:
                chats.push_back(store.create({texts(), "", "", ""})->id);
                break;
            case 1:
                (void)store.rename(chats[texts.below(chats.size())], texts(), true);
                break;
            case 2:
            case 3:
            case 4: {
                NewTurn turn;
                turn.conversation = chats[texts.below(chats.size())];
                turn.text = texts();
                if (texts.below(3) == 0)
                    turn.attachments = {{texts.below(2) == 0 ? "" : "name.txt", texts(), 0}};
                if (const auto made = store.addTurn(turn, RunId()))
                    open.push_back({turn.conversation, made->answer->id});
                break;
            }
            case 5:
                if (!open.empty())
                    (void)store.saveProgress({open[texts.below(open.size())].answer, texts(), "", {}});
                break;
            case 6:
                if (!open.empty()) {
                    AnswerEnd end;
                    end.answer = open.back().answer;
                    end.text = texts();
                    (void)store.endAnswer(end);
                    open.pop_back();
                }
                break;
            default:
                if (texts.below(10) == 0) {
                    (void)store.remove(chats[texts.below(chats.size())]);
                    (void)store.purgeDeleted(now + 1);
                }
            }
            if (i % 300 != 299)
                continue;
            checkIndex(db, "message_search");
            checkIndex(db, "conversation_search");
            checkIndex(db, "attachment_search");
            for (const char* word : kWords) {
                const std::string folded = foldCase(word);
                if (std::count_if(folded.begin(), folded.end(), [](char c) { return (c & 0xC0) != 0x80; }) < 3)
                    continue; // below three characters the search scans
                const auto expected = byScan(db, "message", "text", folded);
                QVERIFY2(byIndex(db, "message_search", folded) == expected, word);
                QVERIFY2(byIndex(db, "conversation_search", folded) == byScan(db, "conversation", "title", folded),
                         word);
                hits += expected.size();
            }
        }
        QVERIFY(hits > 500);
    }
};

QTEST_APPLESS_MAIN(TestStoreSearch)
#include "test_store_search.moc"
