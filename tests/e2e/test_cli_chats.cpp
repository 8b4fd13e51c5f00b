// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli export and import, as a user's script would run them.
#include <QFile>
#include <QTest>

#include "engine/store/conversation_store.h"
#include "engine/store/data_folder.h"
#include "tests/support/run_cli.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using kvscope::test::run;

namespace {

QString q(const std::string& text) {
    return QString::fromStdString(text);
}

void put(const std::string& path, const QByteArray& text) {
    QFile file(q(path));
    if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
        qFatal("cannot write");
}

QByteArray contents(const std::string& path) {
    QFile file(q(path));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray("(none)");
}

} // namespace

class TestCliChats : public QObject {
    Q_OBJECT
private slots:
    void whatIsImportedIsExportedAgain() {
        test::TempDir dir;
        put(dir.file("open.json"), R"([{"title":"One","messages":[{"role":"user","content":"Hi"},)"
                                   R"({"role":"assistant","content":"<b>Ho</b>"},{"role":"tool","content":"x"}]}])");
        put(dir.file("share.jsonl"), "{\"conversations\":[{\"from\":\"human\",\"value\":\"Q\"}]}\n"
                                     "{\"conversations\":[{\"from\":\"human\",\"value\":\"R\"}]}\n");
        const QString a = q(dir.file("a")), b = q(dir.file("b"));
        const auto in =
            run({"import", q(dir.file("open.json")), q(dir.file("share.jsonl")), "--data-dir", a, "--json"});
        QVERIFY2(in.status == 0, in.err.c_str());
        QCOMPARE(in.lines()[0]["added"].get<int>(), 3);
        QCOMPARE(in.lines()[0]["messages"].get<int>(), 4);
        QCOMPARE(in.lines()[0]["skipped_count"].get<int>(), 1);
        QVERIFY(in.err.find("tool") != std::string::npos);
        const auto again =
            run({"import", q(dir.file("open.json")), q(dir.file("share.jsonl")), "--data-dir", a, "--json"});
        QCOMPARE(again.lines()[0]["added"].get<int>(), 0);
        QCOMPARE(again.lines()[0]["already_there"].get<int>(), 3);

        QCOMPARE(run({"export", "--data-dir", a, "--output", q(dir.file("a.json"))}).status, 0);
        QCOMPARE(run({"import", q(dir.file("a.json")), "--data-dir", b}).status, 0);
        QCOMPARE(run({"export", "--db", b + "/kvscope.db", "--output", q(dir.file("b.json"))}).status, 0);
        QCOMPARE(contents(dir.file("b.json")), contents(dir.file("a.json")));
        QVERIFY(contents(dir.file("a.json")).size() > 200);

        const auto list = run({"export", "--data-dir", a, "--list", "--json"});
        QCOMPARE(list.lines()[0].size(), std::size_t(3));
        const QString id = q(list.lines()[0][2]["id"].dump());
        const auto html = run({"export", "--data-dir", a, "--chat", id, "--format", "html"});
        QVERIFY(html.out.find("&lt;b&gt;Ho&lt;/b&gt;") != std::string::npos);
        const auto markdown = run({"export", "--data-dir", a, "--chat", id, "--format", "markdown"});
        QVERIFY(markdown.out.starts_with("# One\n"));
    }

    void whatCannotBeDoneIsOneSentence() {
        test::TempDir dir;
        put(dir.file("garbage.json"), "not json at all");
        put(dir.file("deep.json"), QByteArray(100'000, '['));
        put(dir.file("cut.json"),
            "[{\"messages\":[{\"role\":\"user\",\"content\":\"whole\"}]},{\"messages\":[{\"role\":\"us");
        const QString data = q(dir.file("data"));
        for (const char* name : {"garbage.json", "deep.json", "missing.json"}) {
            const auto outcome = run({"import", q(dir.file(name)), "--data-dir", data, "--json"});
            QCOMPARE(outcome.status, 1);
            QCOMPARE(outcome.lines()[0]["added"].get<int>(), 0);
            QCOMPARE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
        }
        const auto cut = run({"import", q(dir.file("cut.json")), "--data-dir", data, "--json"});
        QCOMPARE(cut.status, 1);
        QCOMPARE(cut.lines()[0]["added"].get<int>(), 1);
        QVERIFY(cut.err.find("cut off") != std::string::npos);
        QCOMPARE(run({"import", "--data-dir", data}).status, 2);
        QCOMPARE(run({"export", "--data-dir", data, "--output", q(dir.file("a.xyz"))}).status, 2);
        QCOMPARE(run({"export", "--data-dir", data, "--chat", "99"}).status, 1);
        QCOMPARE(run({"export", "--data-dir", q(dir.file("nowhere"))}).status, 1);
        QCOMPARE(run({"export", "--db", q(dir.file("garbage.json"))}).status, 1);
        QCOMPARE(run({"export", "--data-dir", data, "--output", q(dir.file("no/such/a.json"))}).status, 1);
    }

    void aRunningWindowIsRespected() {
        test::TempDir dir;
        put(dir.file("a.json"), R"({"messages":[{"role":"user","content":"Hi"}]})");
        const auto held = store::DataFolder::open(dir.file("data"));
        QVERIFY(held);
        store::DatabaseOptions options;
        options.path = held->databasePath();
        auto database = store::Database::open(options);
        store::ConversationStore chats(**database, store::systemWallClock());
        QVERIFY(chats.create({"open in the window", "", "", ""}));
        for (const QStringList& place :
             {QStringList{"--data-dir", q(held->path())}, QStringList{"--db", q(held->databasePath())}}) {
            const auto refused = run(QStringList{"import", q(dir.file("a.json"))} + place);
            QCOMPARE(refused.status, 1);
            QVERIFY2(refused.err.find("already running") != std::string::npos, refused.err.c_str());
            const auto read = run(QStringList{"export", "--list"} + place); // reading is no matter
            QVERIFY2(read.out.find("open in the window") != std::string::npos, read.err.c_str());
        }
        QCOMPARE(chats.list()->size(), std::size_t(1));
    }
};

QTEST_APPLESS_MAIN(TestCliChats)
#include "test_cli_chats.moc"
