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
};

QTEST_APPLESS_MAIN(TestChatTemplate)
#include "test_chat_template.moc"
