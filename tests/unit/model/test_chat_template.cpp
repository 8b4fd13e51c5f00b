// SPDX-License-Identifier: GPL-3.0-or-later
#include <QElapsedTimer>
#include <QTest>
#include <algorithm>
#include <array>

#include "engine/model/chat_template.h"
#include "engine/model/jinja/json_value.h"
#include "tests/support/default_model.h"
#include "tests/unit/model/text_reference.h"

using namespace kvscope;
using namespace kvscope::model;
using Json = nlohmann::ordered_json;

namespace {

/// "2024-07-26T14:03:09" of the cases.
std::tm timeOf(const Json& c) {
    std::tm time{};
    if (c.contains("now"))
        strptime(c.at("now").get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%S", &time);
    std::mktime(&time); // day of the week and of the year
    return time;
}

TemplateInput inputOf(const Json& c) {
    TemplateInput input;
    input.messages = jinja::valueFromJson(c.at("messages"), true);
    input.addGenerationPrompt = c.value("add_generation_prompt", true);
    for (const auto& [name, value] : c.at("extra").items())
        input.variables.emplace_back(name, jinja::valueFromJson(value, false));
    input.now = timeOf(c);
    return input;
}

Result<std::string> renderCase(const Json& c, const std::string& source) {
    const auto chatTemplate = ChatTemplate::compile(source);
    if (!chatTemplate)
        return tl::unexpected(chatTemplate.error());
    auto rendering = (*chatTemplate)->render(inputOf(c));
    if (!rendering)
        return tl::unexpected(rendering.error());
    return rendering->text.bytes();
}

/// Empty when the case came out as it must.
QByteArray faultOf(const Json& c, const std::string& source) {
    const auto text = renderCase(c, source);
    const std::string kind = c.value("error_kind", "");
    if (kind == "limit" && text)
        return c.contains("or_expected") && *text == c.at("or_expected").get<std::string>() ? ""
                                                                                            : "no limit stopped it";
    if (c.value("error", false)) {
        if (text)
            return "rendered instead of failing: " + QByteArray::fromStdString(*text);
        if (text.error().code != ErrorCode::Template)
            return "not a template error";
        if (kind == "raise" && text.error().message != c.at("error_message").get<std::string>())
            return "another message: " + QByteArray::fromStdString(text.error().message);
        return "";
    }
    if (!text)
        return QByteArray::fromStdString(text.error().message);
    const std::string expected = c.at("expected").get<std::string>();
    if (*text != expected)
        return "expected " + QByteArray::fromStdString(Json(expected).dump()) + "\n     got " +
               QByteArray::fromStdString(Json(*text).dump());
    return "";
}

} // namespace

class TestChatTemplate : public QObject {
    Q_OBJECT
private slots:
    void referenceTemplatesRenderExactly_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("cases");
        QTest::newRow("own") << "templates/own.json" << 102;
        QTest::newRow("errors") << "templates/errors.json" << 17;
    }
    void referenceTemplatesRenderExactly() {
        QFETCH(QString, file);
        QFETCH(int, cases);
        int passed = 0;
        QByteArray faults;
        for (const Json& c : test::readReference(file.toStdString())) {
            const QByteArray fault = faultOf(c, c.at("template").get<std::string>());
            if (fault.isEmpty())
                ++passed;
            else
                faults += "\n" +
                          QByteArray::fromStdString(c.value("name", "") + " (" + c.value("level", "core") + "): ") +
                          fault;
        }
        QVERIFY2(faults.isEmpty(), (QByteArray::number(passed) + " passed" + faults).constData());
        QCOMPARE(passed, cases);
    }

    void templatesOfRealModels_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("atLeast");
        QTest::newRow("smollm2-135m-instruct") << "SmolLM2-135M-Instruct.Q4_1.gguf" << 27;
        QTest::newRow("qwen2.5-coder-1.5b-instruct") << "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf" << 20;
    }
    void templatesOfRealModels() {
        QFETCH(QString, file);
        QFETCH(int, atLeast);
        const std::string name = QTest::currentDataTag();
        const bool isDefault = name == "smollm2-135m-instruct";
        const auto path = isDefault ? test::defaultModel() : test::fetchedModel(file.toStdString());
        if (!path)
            QSKIP(isDefault ? test::kNoDefaultModel : "this model is not there (packaging/fetch_model.sh)");
        const std::string source = test::loadTokenizer(*path)->vocabulary().chatTemplate;
        int cases = 0;
        for (const Json& c : test::readReference("templates/" + name + ".json")) {
            const QByteArray fault = faultOf(c, source);
            QVERIFY2(fault.isEmpty(),
                     (QByteArray::fromStdString(c.at("name").get<std::string>()) + ": " + fault).constData());
            ++cases;
        }
        QVERIFY(cases >= atLeast);
    }

    void marksFollowUserTextThroughEverything_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("shown"); // marked bytes between [ ]
        const auto row = [](const char* source, const char* shown) { QTest::newRow(source) << source << shown; };
        row("<a>{{ m }}<b>", "<a>[ User Text ]<b>");
        row("{{ '<a>' + m | trim + '<b>' }}", "<a>[User Text]<b>");
        row("{{ '<a>' ~ m.upper() ~ 1 }}", "<a>[ USER TEXT ]1");
        row("{{ m[1:5] }}{{ m[::-1] }}", "[User txeT resU ]");
        row("{{ m | replace('User', '<b>') }}", "[ ]<b>[ Text ]");
        row("{{ m.split()[1] }}|{{ m.split() | join('<b>') }}", "[Text]|[User]<b>[Text]");
        row("{% set x %}<a>{{ m }}{% endset %}{{ x | length }}{{ x }}", "14<a>[ User Text ]");
        row("{% macro f(t) %}<a>{{ t }}{% endmacro %}{{ f(m) }}", "<a>[ User Text ]");
        row("{% set ns = namespace(x='<a>') %}{% set ns.x = ns.x + m %}{{ ns.x }}", "<a>[ User Text ]");
        row("{{ {'k<a>': m} | tojson }}", "{\"k<a>\": \"[ User Text ]\"}");
        row("{{ [m] }}{{ '%s<b>' % m }}", "['[ User Text ]'][ User Text ]<b>");
        row("{{ '{}<b>'.format(m) }}{{ m | capitalize }}", "[ User Text ]<b>[ user text ]");
        row("{% filter upper %}a{{ m }}{% endfilter %}", "A[ USER TEXT ]");
        row("{{ m | indent(2, true) }}{{ m * 2 }}", "  [ User Text  User Text  User Text ]");
    }
    void marksFollowUserTextThroughEverything() {
        QFETCH(QString, source);
        QFETCH(QString, shown);
        const auto chatTemplate = ChatTemplate::compile(source.toStdString());
        QVERIFY2(chatTemplate.has_value(), chatTemplate ? "" : chatTemplate.error().message.c_str());
        TemplateInput input;
        input.messages = jinja::Value::list({});
        input.variables = {{"m", jinja::Value::string(jinja::Text::fromOutside(" User Text ", 7))}};
        const auto rendering = (*chatTemplate)->render(input);
        QVERIFY2(rendering.has_value(), rendering ? "" : rendering.error().message.c_str());
        std::string text;
        std::size_t done = 0;
        for (const jinja::Mark& mark : rendering->text.marks()) {
            QVERIFY(mark.source == 7 && mark.begin >= done && mark.end > mark.begin);
            text += rendering->text.bytes().substr(done, mark.begin - done) + "[" +
                    rendering->text.bytes().substr(mark.begin, mark.end - mark.begin) + "]";
            done = mark.end;
        }
        text += rendering->text.bytes().substr(done);
        QCOMPARE(QString::fromStdString(text), shown);
    }

    void stringsAreCharactersNotBytes_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("text");
        const auto row = [](const char* source, const char* text) { QTest::newRow(source) << source << text; };
        row("[{{ '\\u3000 \\u00e9\\u3000\\u2003' | trim }}]", "[é]");
        row("{{ 'xéx'.strip('x') }}{{ 'éaé'.rstrip('é') }}{{ 'éaé'.lstrip('é') }}", "ééaaé");
        row("{{ 'né中😀'[::-1] }}{{ 'né中😀'[-1] }}{{ 'né中😀' | length }}", "😀中én😀4");
        row("{{ 'a1b22c'.split('2') }}{{ ' a  b '.split() }}", "['a1b', '', 'c']['a', 'b']");
        row("{{ 'a b c'.split(none, 1) }}{{ 'a  b  c'.rsplit(none, 1) }}", "['a', 'b c']['a  b', 'c']");
        row("{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a,b,c'.split(',', 1) }}", "['a,b', 'c']['a', 'b,c']");
        row("{{ 'a.b'.partition('.') }}{{ 'ab'.rpartition('.') }}", "('a', '.', 'b')('', '', 'ab')");
        row("{{ 'éx'.find('x') }}{{ 'x'.find('y') }}{{ 'aXa'.rfind('a') }}", "1-12");
        row("{{ 'ab'.replace('', '-') }}{{ 'aaa'.replace('a', 'b', 2) }}", "-a-b-bba");
        row("{{ [1, 2, 3][5:] }}{{ [1, 2, 3][-2:] }}{{ [1, 2, 3][2:0:-1] }}{{ (1, 2)[:1] }}", "[][2, 3][3, 2](1,)");
    }
    void stringsAreCharactersNotBytes() {
        QFETCH(QString, source);
        QFETCH(QString, text);
        const auto chatTemplate = ChatTemplate::compile(source.toStdString());
        QVERIFY2(chatTemplate.has_value(), chatTemplate ? "" : chatTemplate.error().message.c_str());
        const auto rendering =
            (*chatTemplate)->render(inputOf(Json{{"messages", Json::array()}, {"extra", Json::object()}}));
        QVERIFY2(rendering.has_value(), rendering ? "" : rendering.error().message.c_str());
        QCOMPARE(QString::fromStdString(rendering->text.bytes()), text);
    }

    void messagesOfTheLoopAreFound() {
        const auto chatTemplate = ChatTemplate::compile(
            "S{% for m in messages[1:] %}{% if m.role == 'user' %}<{{ m.content }}>{% endif %}{% endfor %}G");
        TemplateInput input;
        input.messages = jinja::valueFromJson(
            Json::parse(R"([{"role":"user","content":"no"},{"role":"user","content":"a"},{"role":"x"},
                            {"role":"user","content":"bc"}])"),
            true);
        const auto rendering = *(*chatTemplate)->render(input);
        QCOMPARE(rendering.text.bytes(), std::string("S<a><bc>G"));
        QCOMPARE(rendering.messages.size(), std::size_t(2));
        QCOMPARE(rendering.messages[0].message, 1);
        QCOMPARE(rendering.messages[0].begin, std::size_t(1));
        QCOMPARE(rendering.messages[1].message, 3);
        QCOMPARE(rendering.messages[1].end, std::size_t(8));
    }

    void whatIsNotSupportedIsNamedWhenLoading_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("named");
        const auto row = [](const char* source, const char* named) { QTest::newRow(source) << source << named; };
        row("a\n{% include 'x' %}", "line 2: the statement 'include'");
        row("{% import 'x' as y %}", "'import'");
        row("{% extends 'x' %}", "'extends'");
        row("{% block b %}{% endblock %}", "'block'");
        row("{% if false %}\n\n{{ x | frobnicate }}{% endif %}", "line 3: the filter 'frobnicate'");
        row("{{ f(*args) }}", "unpacking");
        row("{% break %}", "outside of a loop");
        row("{% for a in b %}{% set c %}{% break %}{% endset %}{% endfor %}", "outside of a loop");
        row("{{ 'open }}", "not closed");
        row("{# never closed", "comment");
        row("{{ a ! b }}", "'!'");
        row("{% set true = 1 %}", "cannot be assigned");
    }
    void whatIsNotSupportedIsNamedWhenLoading() {
        QFETCH(QString, source);
        QFETCH(QString, named);
        const auto chatTemplate = ChatTemplate::compile(source.toStdString());
        QVERIFY(!chatTemplate.has_value());
        QCOMPARE(chatTemplate.error().code, ErrorCode::Template);
        QVERIFY2(QString::fromStdString(chatTemplate.error().message).contains(named),
                 chatTemplate.error().message.c_str());
    }

    void failuresNameTheirLine_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("message"); // behind "The chat template failed: "
        const auto row = [](const char* source, const char* message) { QTest::newRow(source) << source << message; };
        row("{{ messages | length }}\n\n{{ 1/0 }}", "line 3: division by zero.");
        row("a\n{{ 'b' +\n nope.x }}\n", "line 3: 'nope' is undefined.");
        row("a\n{{ 1 /\n 0\n }}", "line 3: division by zero.");
        row("{% set x = -\n 'a'\n %}", "line 2: bad operand type for unary -: 'str'.");
        row("a\n{{ 5 |\n join }}", "line 3: 'int' object is not iterable.");
        row("a\n{% for x in\n 5 %}\n{% endfor %}", "line 2: 'int' object is not iterable.");
        row("\n{% set a, b = [1] %}", "line 2: cannot unpack 1 value(s) into 2.");
        row("{% macro f(a) %}\n{{ a / 0 }}\n{% endmacro %}\n{{ f(1) }}", "line 2: division by zero.");
        row("{% macro f(a) %}\n{% endmacro %}\n{{ f(1,\n2) }}", "line 3: macro 'f' takes not more than 1 argument(s).");
        row("{% filter upper |\n join(1, 2, 3) %}a{% endfilter %}",
            "line 2: 'join' takes at most 2 argument(s), not 3.");
        row("\n{% macro f() %}\n{{ f() }}{% endmacro %}\n{{ f() }}", "line 3: it calls itself too deeply.");
        row("\n{% for a in range(90000) %}\n{% for b in range(90000) %}{% endfor %}{% endfor %}",
            "line 3: it does not come to an end (stopped after 2000000 steps).");
        row("\n\n{{ 'abc' * 9000000 }}", "line 3: it makes a text of more than 8 MiB.");
    }
    void failuresNameTheirLine() {
        QFETCH(QString, source);
        QFETCH(QString, message);
        const auto chatTemplate = ChatTemplate::compile(source.toStdString());
        QVERIFY2(chatTemplate.has_value(), chatTemplate ? "" : chatTemplate.error().message.c_str());
        TemplateInput input;
        input.messages = jinja::Value::list({});
        const auto rendering = (*chatTemplate)->render(input);
        QVERIFY(!rendering.has_value());
        QCOMPARE(QString::fromStdString(rendering.error().message), "The chat template failed: " + message);
        QVERIFY(!ChatTemplate::refusesChat(rendering.error()));
    }

    void whatATemplateRaisesStandsAlone() {
        const auto chatTemplate = ChatTemplate::compile("\n{{ raise_exception('Say please.') }}");
        TemplateInput input;
        input.messages = jinja::Value::list({});
        const auto rendering = (*chatTemplate)->render(input);
        QVERIFY(!rendering.has_value());
        QCOMPARE(rendering.error().message, std::string("Say please."));
        QVERIFY(ChatTemplate::refusesChat(rendering.error()));
    }

    void nothingRunsAway_data() {
        QTest::addColumn<QString>("source");
        const auto row = [](const char* name, const std::string& source) {
            QTest::newRow(name) << QString::fromStdString(source);
        };
        row("text doubled",
            "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}");
        row("text multiplied", "{{ 'abc' * 9000000000000000000 }}");
        row("list multiplied", "{{ ([1] * 99999999999) | length }}");
        row("list doubled",
            "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
        row("value shared and printed", "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, "
                                        "ns.x] %}{% endfor %}{{ ns.x }}");
        row("value shared and compared",
            "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = "
            "[ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}");
        row("value nested",
            "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}");
        row("methods nested", "{% set ns = namespace(x={}) %}{% for i in range(90000) %}{% set ns.x = {'a': ns.x}.get "
                              "%}{% endfor %}");
        row("macro calls itself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
        row("loops in loops", "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}");
        row("output without end", "{% for a in range(99999) %}{{ 'x' * 99999 }}{% endfor %}");
        row("namespace in itself", "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}");
        row("brackets", "{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}");
        row("unary", "{{ " + std::string(100000, '-') + "1 }}");
        row("not", [] {
            std::string nots;
            for (int i = 0; i < 100000; ++i)
                nots += "not ";
            return "{{ " + nots + "1 }}";
        }());
        row("long sum", [] {
            std::string sum = "1";
            for (int i = 0; i < 100000; ++i)
                sum += "+1";
            return "{{ " + sum + " }}";
        }());
        row("blocks in blocks", [] {
            std::string ifs;
            for (int i = 0; i < 100000; ++i)
                ifs += "{% if 1 %}";
            return ifs;
        }());
        row("power", "{{ 9 ** 99 ** 99 }}");
    }
    void nothingRunsAway() {
        QFETCH(QString, source);
        QElapsedTimer timer;
        timer.start();
        const auto chatTemplate = ChatTemplate::compile(source.toStdString());
        if (chatTemplate) {
            TemplateInput input;
            input.messages = jinja::Value::list({});
            const auto rendering = (*chatTemplate)->render(input);
            QVERIFY(!rendering.has_value());
            QCOMPARE(rendering.error().code, ErrorCode::Template);
        }
        QVERIFY2(timer.elapsed() < 30000, qPrintable(QString::number(timer.elapsed()))); // sanitizers are slow
    }

    void chainsOfNamespacesAreTakenApart() { // neither stack nor memory (leak check of the sanitizers)
        const auto chatTemplate = ChatTemplate::compile(
            "{% set h = namespace(n=none) %}{% for i in range(90000) %}{% set h.n = namespace(n=h.n) %}{% endfor %}"
            "{% for i in [1] %}{{ loop.changed(loop) }}{% set h.l = loop %}{% macro m() %}{% endmacro %}{% set h.m = m "
            "%}{% endfor %}ok");
        TemplateInput input;
        input.messages = jinja::Value::list({});
        const auto rendering = (*chatTemplate)->render(input);
        QVERIFY2(rendering.has_value(), rendering ? "" : rendering.error().message.c_str());
        QCOMPARE(rendering->text.bytes(), std::string("Trueok"));
    }

    void aLongChatIsFarFromTheLimits() {
        const auto chatTemplate = ChatTemplate::compile("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + "
                                                        "m.content | trim + '<|im_end|>' }}{% endfor %}");
        Json messages = Json::array();
        for (int i = 0; i < 2000; ++i)
            messages.push_back({{"role", "user"}, {"content", std::string(2000, 'x')}});
        TemplateInput input;
        input.messages = jinja::valueFromJson(messages, true);
        QVERIFY((*chatTemplate)->render(input).has_value());
    }

    void floatsPrintAsInPython_data() {
        QTest::addColumn<double>("value");
        QTest::addColumn<QString>("text");
        const std::array<std::pair<double, const char*>, 12> cases = {{{0.0, "0.0"},
                                                                       {-0.0, "-0.0"},
                                                                       {1.0, "1.0"},
                                                                       {0.1, "0.1"},
                                                                       {1e-4, "0.0001"},
                                                                       {1e-5, "1e-05"},
                                                                       {1e15, "1000000000000000.0"},
                                                                       {1e16, "1e+16"},
                                                                       {1.5e300, "1.5e+300"},
                                                                       {123456789.125, "123456789.125"},
                                                                       {2.0 / 3.0, "0.6666666666666666"},
                                                                       {5e-324, "5e-324"}}};
        for (const auto& [value, text] : cases)
            QTest::newRow(text) << value << text;
    }
    void floatsPrintAsInPython() {
        QFETCH(double, value);
        QFETCH(QString, text);
        QCOMPARE(QString::fromStdString(jinja::realToString(value)), text);
    }
};

QTEST_APPLESS_MAIN(TestChatTemplate)
#include "test_chat_template.moc"
