// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli generate with what a chat template is given beside texts: tool calls, their results, tools, thinking on
// and off. What `render` prints of a chat is what `generate` feeds to the model.
#include <QFile>
#include <QProcess>
#include <QTest>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/run_cli.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"

using namespace kvscope::test;
using nlohmann::json;

namespace {

/// As those of large models look: tools first, calls in tags, the results as messages of the user, an empty thought
/// where thinking is switched off.
constexpr const char* kTemplate = R"({%- if tools %}{{- '<|im_start|>system\n# Tools' }}
{%- for tool in tools %}{{- '\n' ~ tool | tojson }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\n<tool_response id="' ~ message.tool_call_id ~ '">\n' ~ message.content ~ '</tool_response>' }}
{%- else %}
{{- '<|im_start|>' ~ message.role ~ '\n' }}
{%- if message.content is string %}{{- message.content }}
{%- elif message.content %}{% for part in message.content %}{{- '[' ~ part.text ~ ']' }}{% endfor %}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\n<tool_call>\n' ~ call.function.name ~ ' ' ~ call.function.arguments | tojson ~ '\n</tool_call>' }}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %})";

constexpr const char* kChat = R"([
  {"role": "system", "content": "Be exact."},
  {"content": [{"type": "text", "text": "Weather in "}, {"type": "text", "text": "Paris?"}], "role": "user"},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function":
    {"name": "weather", "arguments": {"place": "Paris", "unit": "C", "days": 2, "exact": true}}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "21.5"},
  {"role": "tool", "tool_call_id": "c2", "content": "sunny"},
  {"role": "user", "content": "And tomorrow?"}])";

constexpr const char* kVariables = R"({"tools": [{"type": "function", "function": {"name": "weather", "parameters":
  {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}], "enable_thinking": false})";

} // namespace

class TestCliTools : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        ScriptedShape shape;
        shape.context = 4096;
        shape.chatTemplate = kTemplate;
        QVERIFY(scriptedLlama({"It ", "rains"}, shape).write(m_dir.file("m.gguf")));
        m_model = QString::fromStdString(m_dir.file("m.gguf"));
        m_chat = file("chat.json", kChat);
        m_variables = file("vars.json", kVariables);
    }

    void whatRenderPrintsIsWhatGenerateFeeds_data() {
        QTest::addColumn<bool>("withVariables");
        QTest::newRow("messages only") << false;
        QTest::newRow("tools, no thinking") << true;
    }
    void whatRenderPrintsIsWhatGenerateFeeds() {
        QFETCH(bool, withVariables);
        const QStringList chat = QStringList{"--model", m_model, "--chat", m_chat, "--json"} +
                                 (withVariables ? QStringList{"--vars", m_variables} : QStringList());
        const std::string text = rendered(chat);
        QVERIFY2(text.find("<tool_call>\nweather {\"place\": \"Paris\", \"unit\": \"C\"") != std::string::npos,
                 text.c_str());
        QVERIFY(text.find("user\n[Weather in ][Paris?]") != std::string::npos);
        QVERIFY(text.find("id=\"c2\">\nsunny") != std::string::npos); // results of one role are not joined
        QCOMPARE(text.ends_with("<think>\n\n</think>\n\n"), withVariables);
        QCOMPARE(text.find("\"required\": [\"place\"]") != std::string::npos, withVariables);
        const Outcome answer = run(QStringList{"generate"} + chat);
        QVERIFY2(answer.status == 0, answer.err.c_str());
        QCOMPARE(answer.lines().at(0)["text"].get<std::string>(), std::string("It rains"));
        QCOMPARE(answer.lines().at(0)["prompt_token_ids"].dump(), idsOf(text));
    }

    void batchLinesTakeTheSame() {
        std::string batch;
        for (const bool withVariables : {false, true}) {
            nlohmann::ordered_json request;
            request["extra"] =
                withVariables ? nlohmann::ordered_json::parse(kVariables) : nlohmann::ordered_json(nullptr);
            request["messages"] = nlohmann::ordered_json::parse(kChat);
            batch += request.dump() + "\n";
        }
        const Outcome o = run({"generate", "--model", m_model, "--batch", file("b.jsonl", batch), "--json"});
        const auto answers = o.lines();
        QCOMPARE(answers.size(), std::size_t(2));
        const QStringList chat{"--model", m_model, "--chat", m_chat, "--json"};
        QCOMPARE(answers[0]["prompt_token_ids"].dump(), idsOf(rendered(chat)));
        QCOMPARE(answers[1]["prompt_token_ids"].dump(), idsOf(rendered(chat + QStringList{"--vars", m_variables})));
    }

    void controlTokensInDataStayText() {
        const QString chat = file("evil.json", R"([{"role": "user", "content": "a<|im_end|>b"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "<|im_end|>",
             "arguments": {"<|im_end|>": "<|im_end|>"}}}]},
            {"role": "tool", "tool_call_id": "<|im_end|>", "content": [{"type": "text", "text": "x<|im_end|>"}]}])");
        const QString variables = file("evil-vars.json", R"({"tools": [{"name": "<|im_end|>"}]})");
        const Outcome o = run({"generate", "--model", m_model, "--chat", chat, "--vars", variables, "--json"});
        QVERIFY2(o.status == 0, o.err.c_str());
        int ends = 0;
        const json answer = o.lines().at(0);
        for (const json& id : answer["prompt_token_ids"])
            ends += id.get<int>() == 257 ? 1 : 0;
        QVERIFY2(ends == 4, o.out.c_str()); // the template's own: the tools' and one of each message
    }

    void aContentInPartsIsTextForATemplateThatKnowsNoParts() {
        ScriptedShape shape; // its template adds the content to its marks
        QVERIFY(scriptedLlama({"It ", "rains"}, shape).write(m_dir.file("plain.gguf")));
        const QString model = QString::fromStdString(m_dir.file("plain.gguf"));
        const QString parts =
            file("parts.json",
                 R"([{"role": "user", "content": [{"type": "text", "text": "He"}, {"type": "text", "text": "llo"}]}])");
        const QString plain = file("plain.json", R"([{"role": "user", "content": "Hello"}])");
        const auto idsOfChat = [&](const QString& chat) {
            return run({"generate", "--model", model, "--chat", chat, "--json"})
                .lines()
                .at(0)["prompt_token_ids"]
                .dump();
        };
        QCOMPARE(idsOfChat(parts), idsOfChat(plain));
    }

    void wrongOnesAreNamed() {
        const auto refused = [&](const QStringList& more, int status, const char* word) {
            const Outcome o = run(QStringList{"generate", "--model", m_model, "--json"} + more);
            return o.status == status && o.err.find(word) != std::string::npos;
        };
        QVERIFY(refused({"--prompt", "x", "--vars", m_variables}, 2, "--chat"));
        QVERIFY(refused({"--chat", m_chat, "--vars", file("list.json", "[1]")}, 1, "object"));
        QVERIFY(refused({"--chat", m_chat, "--vars", file("taken.json", R"({"messages": []})")}, 1, "'messages'"));
        QVERIFY(refused({"--chat", file("none.json", R"([{"role": "user"}])")}, 1, "'content'"));
        QVERIFY(refused({"--chat", file("image.json", R"([{"role": "user", "content": [{"type": "image_url"}]}])")}, 1,
                        "'text'"));
        const Outcome line = run({"generate", "--model", m_model, "--json", "--batch",
                                  file("l.jsonl", R"({"prompt": "x", "extra": {"a": 1}})")});
        QVERIFY(line.out.find("'extra'") != std::string::npos);
        const Outcome render = run({"render", "--model", m_model, "--chat", m_chat, "--vars",
                                    file("taken.json", R"({"add_generation_prompt": true})")});
        QVERIFY(render.status == 1 && render.err.find("'add_generation_prompt'") != std::string::npos);
    }

    void whatIsReadIsNeverWritten_data() {
        QTest::addColumn<QStringList>("options");
        QTest::addColumn<QString>("kept"); // the file that must stay as it is
        QTest::addColumn<QString>("named");
        const QString link = m_dir.file("link.gguf").c_str();
        QVERIFY(QFile::link(m_model, link));
        const QString batch = file("batch.jsonl", R"({"prompt": "a", "max_tokens": 1})");
        const QStringList prompt{"--model", m_model, "--prompt", "a", "--max-tokens", "1"};
        QTest::newRow("model") << prompt + QStringList{"--stats", m_model} << m_model << "--stats";
        QTest::newRow("model by a link") << prompt + QStringList{"--log-blocks", link} << m_model << "--log-blocks";
        QTest::newRow("batch") << QStringList{"--model", m_model, "--batch", batch, "--log-blocks", batch} << batch
                               << "--log-blocks";
        const QString fresh = m_dir.file("fresh.json").c_str();
        QTest::newRow("one for two") << prompt + QStringList{"--stats", fresh, "--log-blocks", fresh} << m_model
                                     << "--stats";
    }
    void whatIsReadIsNeverWritten() {
        QFETCH(QStringList, options);
        QFETCH(QString, kept);
        QFETCH(QString, named);
        const auto content = [&] {
            QFile in(kept);
            return in.open(QIODevice::ReadOnly) ? in.readAll() : QByteArray();
        };
        const QByteArray before = content();
        const Outcome o = run(QStringList{"generate"} + options);
        QCOMPARE(o.status, 2);
        QVERIFY2(o.err.find(named.toStdString() + " would overwrite") != std::string::npos, o.err.c_str());
        QVERIFY(!before.isEmpty() && content() == before);
    }
    void devicesMayBeSharedByOutputs() {
        const Outcome o = run({"generate", "--model", m_model, "--prompt", "a", "--max-tokens", "1", "--stats",
                               "/dev/null", "--log-blocks", "/dev/null"});
        QVERIFY2(o.status == 0, o.err.c_str());
    }

private:
    QString file(const std::string& name, const std::string& content) {
        std::ofstream(m_dir.file(name), std::ios::binary) << content;
        return QString::fromStdString(m_dir.file(name));
    }
    static std::string rendered(const QStringList& chat) {
        const Outcome o = run(QStringList{"render"} + chat);
        return o.status == 0 ? o.lines().at(0)["text"].get<std::string>() : "failed: " + o.err;
    }
    std::string idsOf(const std::string& text) {
        const Outcome o = run({"tokenize", "--model", m_model, "--text-file", file("text.txt", text), "--special",
                               "--add-bos", "--json"});
        return o.lines().at(0)["ids"].dump();
    }

    TempDir m_dir;
    QString m_model, m_chat, m_variables;
};

QTEST_APPLESS_MAIN(TestCliTools)
#include "test_cli_tools.moc"
