// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli tokenize, detokenize and render as a program: streams, exit status, one answer line per input line.
#include <QProcess>
#include <QTest>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/run_cli.h"
#include "tests/support/temp_dir.h"

using namespace kvscope::test;
using nlohmann::json;

namespace {

const QString kModel = QStringLiteral(KVSCOPE_TEST_DATA "/pretokenizer/smollm.gguf");

} // namespace

class TestCliText : public QObject {
    Q_OBJECT
private slots:
    void tokenizeAndDetokenizeAreInverse() {
        const QString text = QStringLiteral("Hello <|im_end|> 12 é");
        for (const bool special : {false, true}) {
            const Outcome tokens = run(QStringList{"tokenize", "--model", kModel, "--text", text, "--json"} +
                                       (special ? QStringList{"--special"} : QStringList{}));
            QCOMPARE(tokens.status, 0);
            QVERIFY2(tokens.err.empty(), tokens.err.c_str());
            const json answer = tokens.lines().at(0);
            QCOMPARE(answer["ids"].size(), answer["pieces"].size());
            QCOMPARE(answer["pieces"].dump().find("\"<|im_end|>\"") != std::string::npos, special);
            QStringList ids;
            for (const json& id : answer["ids"])
                ids << QString::number(id.get<int>());
            const Outcome back = run({"detokenize", "--model", kModel, "--ids", ids.join(','), "--json"});
            QCOMPARE(back.lines().at(0)["text"].get<std::string>(), text.toStdString());
        }
    }

    void bytesThatAreNotTextComeAsHexToo() {
        const Outcome tokens = run({"tokenize", "--model", kModel, "--jsonl", lines(R"({"text_hex": "61ff"})")});
        const std::string ids = tokens.lines().at(0)["ids"].dump();
        const Outcome back = run({"detokenize", "--model", kModel, "--jsonl", lines("{\"ids\": " + ids + "}")});
        QCOMPARE(back.lines().at(0)["text"].get<std::string>(), std::string("a\uFFFD"));
        QCOMPARE(back.lines().at(0)["text_hex"].get<std::string>(), std::string("61ff"));
    }

    void aFileWithoutAnEndIsRefused() {
        const Outcome o = run({"tokenize", "--model", kModel, "--text-file", "/dev/zero"});
        QCOMPARE(o.status, 1);
        QVERIFY2(o.err.find("has no end") != std::string::npos, o.err.c_str());
        const Outcome folder = run({"tokenize", "--model", kModel, "--text-file", "/"});
        QCOMPARE(folder.status, 1);
        QVERIFY2(folder.err.find("check that it is a file") != std::string::npos, folder.err.c_str());
        QCOMPARE(run({"tokenize", "--model", kModel, "--text-file", "/dev/null"}).status, 0);
    }

    void everyLineHasItsAnswerWhateverFails() {
        const Outcome tokens = run({"tokenize", "--model", kModel, "--jsonl",
                                    lines("{\"text\": \"a\"}\nnonsense\n{\"text\": 1}\n{\"text\": \"a\", \"x\": 1}\n"
                                          "{\"text_hex\": \"6\"}\n{\"text\": \"b\", \"special\": true}")});
        QCOMPARE(tokens.status, 0);
        const auto answers = tokens.lines();
        QCOMPARE(answers.size(), std::size_t(6));
        for (std::size_t i = 0; i < answers.size(); ++i)
            QCOMPARE(answers[i].contains("error"), i > 0 && i < 5);
        const Outcome ids =
            run({"detokenize", "--model", kModel, "--jsonl",
                 lines("{\"ids\": [3], \"skip_special\": true}\n{\"ids\": [99999]}\n{\"ids\": \"3\"}")});
        QCOMPARE(ids.lines().at(0)["text"].get<std::string>(), std::string());
        QVERIFY(ids.lines().at(1).contains("error") && ids.lines().at(2).contains("error"));
    }

    void renderUsesTemplateChatAndVariables() {
        const QString source = file("t.jinja", "{{ who }}:{% for m in messages %}{{ m.content }}{% endfor %}"
                                               "{{ '>' if add_generation_prompt }}");
        const QString messages = file("chat.json", R"([{"role": "user", "content": "Hi"}])");
        const QString variables = file("vars.json", R"({"who": "me"})");
        const QStringList base{"render", "--template", source, "--chat", messages, "--vars", variables, "--json"};
        QCOMPARE(run(base).lines().at(0)["text"].get<std::string>(), std::string("me:Hi>"));
        QCOMPARE(run(base + QStringList{"--no-generation-prompt"}).lines().at(0)["text"].get<std::string>(),
                 std::string("me:Hi"));
        const Outcome jsonl =
            run({"render", "--jsonl",
                 lines(R"({"template": "{{ strftime_now('%a %d %b %Y') }}{{ x }}", "messages": [], "extra": {"x": 1}, )"
                       R"("now": "2026-03-04T05:06:07"})"
                       "\n"
                       R"({"template": "{% if %}", "messages": []})")});
        QCOMPARE(jsonl.lines().at(0)["text"].get<std::string>(), std::string("Wed 04 Mar 20261"));
        QCOMPARE(jsonl.lines().at(1)["error"]["code"].get<std::string>(), std::string("template"));
    }

    void failuresAreOneSentenceAndAStatus() {
        const QString source = file("raise.jinja", "{{ raise_exception('Say please.') }}");
        const QString messages = file("none.json", "[]");
        const Outcome raised = run({"render", "--template", source, "--chat", messages, "--json"});
        QCOMPARE(raised.status, 1);
        QCOMPARE(raised.err, std::string("Say please.\n"));
        QVERIFY(raised.out.empty());
        // The tiny vocabulary has no template: said, not guessed.
        const Outcome none = run({"render", "--model", kModel, "--chat", messages});
        QCOMPARE(none.status, 1);
        QVERIFY(none.err.find("no chat template") != std::string::npos);
        QCOMPARE(run({"tokenize", "--model", kModel}).status, 2);
        QCOMPARE(run({"tokenize", "--text", "x"}).status, 2);
        QCOMPARE(run({"detokenize", "--model", kModel, "--ids", "1,,2"}).status, 2);
        QCOMPARE(run({"render", "--chat", messages}).status, 2);
        QCOMPARE(run({"tokenize", "--model", "/nowhere.gguf", "--text", "x"}).status, 1);
        QCOMPARE(run({"tokenize", "--model", kModel, "--text", ""}).status, 0);
    }

    void numbersThatNoComputerHoldsAreSaid() {
        const Outcome o =
            run({"tokenize", "--model", kModel, "--jsonl", lines("{\"text\": \"a\", \"x\": 1e999}\n{\"text\"\n[1]")});
        QCOMPARE(o.status, 0);
        const auto message = [&](std::size_t line) {
            return o.lines().at(line)["error"]["message"].get<std::string>();
        };
        QVERIFY(message(0).find("This line holds a number that is too large") == 0);
        QCOMPARE(message(1), std::string("This line is not valid JSON."));
        QCOMPARE(message(2), std::string("This line is not a JSON object (its type is array)."));
        const Outcome render =
            run({"render", "--template", file("t.jinja", "x"), "--chat", file("chat.json", "[1e999]")});
        QCOMPARE(render.status, 1);
        QVERIFY2(render.err.find("holds a number that is too large") != std::string::npos, render.err.c_str());
    }

    void flagsThatLinesSayThemselvesAreRefusedByName() {
        const QString path = lines("{\"text\": \"a\"}");
        for (const QString flag : {"special", "add-bos"}) {
            const Outcome o = run({"tokenize", "--model", kModel, "--jsonl", path, "--" + flag});
            QCOMPARE(o.status, 2);
            const QString field = QString(flag).replace('-', '_');
            QCOMPARE(QString::fromStdString(o.err), "--" + flag +
                                                        " cannot be given with --jsonl; give its lines the "
                                                        "field '" +
                                                        field + "': true.\n");
        }
        const Outcome o = run({"detokenize", "--model", kModel, "--jsonl", lines("{\"ids\": [1]}"), "--skip-special"});
        QCOMPARE(o.status, 2);
        QVERIFY(o.err.find("--skip-special cannot be given with --jsonl") == 0);
    }

    void anEmptyListOfIdsIsSaidToBeEmpty() {
        for (const QString verb : {"detokenize", "generate", "logits"}) {
            const QString option = verb == "detokenize" ? "--ids" : "--prompt-ids";
            const Outcome o = run({verb, "--model", kModel, option, ""});
            QCOMPARE(o.status, 2);
            QCOMPARE(QString::fromStdString(o.err),
                     option + " is empty; it takes numbers separated by commas, such as 1,2,3.\n");
        }
    }

private:
    QString file(const std::string& name, const std::string& content) {
        std::ofstream(m_dir.file(name), std::ios::binary) << content;
        return QString::fromStdString(m_dir.file(name));
    }
    QString lines(const std::string& content) { return file("lines.jsonl", content); }

    kvscope::test::TempDir m_dir;
};

QTEST_APPLESS_MAIN(TestCliText)
#include "test_cli_text.moc"
