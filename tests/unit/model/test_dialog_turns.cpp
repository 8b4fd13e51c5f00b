// SPDX-License-Identifier: GPL-3.0-or-later
//
// Templates that refuse what a chat can be, and how a template ends an answer.
#include <QTest>
#include <algorithm>

#include "engine/model/dialog.h"
#include "engine/model/template_json.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

/// Every byte is a token; 256 = <|im_start|>, 257 = <|im_end|>, 258 = </s>, all control.
std::shared_ptr<const Tokenizer> bytes(const std::vector<std::string>& more = {}) {
    Vocabulary v;
    v.model = "gpt2";
    v.preTokenizer = "gpt-2";
    for (int byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        int code = byte;
        if (!printable) {
            int shifted = 256;
            for (int b = 0; b < byte; ++b)
                shifted += !((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174);
            code = shifted;
        }
        v.tokens.push_back(QString(QChar(code)).toStdString());
    }
    v.types.assign(256, TokenType::Normal);
    for (const char* control : {"<|im_start|>", "<|im_end|>", "</s>"}) {
        v.tokens.emplace_back(control);
        v.types.push_back(TokenType::Control);
    }
    for (const std::string& token : more) {
        v.tokens.push_back(token);
        v.types.push_back(TokenType::Normal);
    }
    v.eos = 258;
    return *Tokenizer::create(std::move(v));
}

DialogEncoder encoderWith(const std::string& source, const std::vector<std::string>& more = {}) {
    return {bytes(more), *ChatTemplate::compile(source)};
}

DialogInput chat(std::vector<ChatMessage> messages) {
    DialogInput input;
    input.messages = std::move(messages);
    input.now = localTimeNow();
    return input;
}

const char* const kGemma =
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '[' + m.role + ']' + m.content | trim + '\n' }}{% endfor %}{% if add_generation_prompt %}[model]{% endif %}";
const char* const kSilent =
    "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}[model]{% endif %}";
const char* const kAny = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
                         "{% if add_generation_prompt %}[model]{% endif %}";
const char* const kNever = "{{ raise_exception('Not today') }}";

using A = DialogAdaptation;

} // namespace

Q_DECLARE_METATYPE(std::vector<kvscope::model::ChatMessage>)
Q_DECLARE_METATYPE(std::vector<kvscope::model::DialogAdaptation>)

class TestDialogTurns : public QObject {
    Q_OBJECT

private slots:
    /// A tool's result belongs to its call: joined with another or moved, it would lose it.
    void whatIsMoreThanATextIsNeverJoined() {
        ChatMessage result{"tool", "21", {}};
        QVERIFY(setMessageFields(R"({"role": "tool", "content": "21", "tool_call_id": "c"})", "21", 1, result));
        QVERIFY(!result.onlyText);
        const std::vector<ChatMessage> messages{
            {"user", "a", {}}, result, result, {"user", "b", {}}, {"user", "c", {}}};
        for (const DialogTurns& way : waysToGive(messages, messages.size())) {
            const auto results = std::count_if(way.turns.begin(), way.turns.end(),
                                               [](const DialogTurn& turn) { return turn.role == "tool"; });
            QCOMPARE(results, 2);
        }
        const auto joined = waysToGive(messages, messages.size()).at(1);
        QCOMPARE(joined.turns.size(), std::size_t(4)); // b and c are only text
    }

    void fieldsKeepTheirOrderAndTheTextOfTheMessage() {
        ChatMessage answer{"assistant", "Yes.", {}};
        QVERIFY(setMessageFields(R"({"content": "Yes.", "role": "assistant", "name": "n"})", "Yes.", 0, answer));
        DialogTurns turns;
        turns.turns = {{"assistant", {0}, false}};
        QCOMPARE(jinja::toText(turnsValue(turns, {answer})).bytes(),
                 std::string("[{'content': 'Yes.', 'role': 'assistant', 'name': 'n'}]"));
        ChatMessage parts{"user", "ab", {}};
        QVERIFY(setMessageFields(R"({"role": "user", "content": [{"text": "a"}, {"text": "b"}]})", "ab", 0, parts));
        QVERIFY(parts.onlyText);
        QCOMPARE(jinja::toText(turnsValue(turns, {parts})).bytes(),
                 std::string("[{'role': 'user', 'content': [{'text': 'a'}, {'text': 'b'}]}]"));
        for (const char* wrong : {"", "[]", "{\"role\": \"system\"}", "{\"role\": 1}"}) {
            ChatMessage message{"user", "a", {}};
            const auto set = setMessageFields(wrong, "a", 0, message);
            QVERIFY(!set && set.error().code == ErrorCode::InvalidArgument);
        }
        QVERIFY(!templateVariables(std::string("{\"messages\": 1}")).has_value());
        QVERIFY(!templateVariables(std::string(500, '[')).has_value());
        QCOMPARE(templateVariables(std::string()).value().size(), std::size_t(0));
    }

    void theLeastChangeThatWorks_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<std::vector<ChatMessage>>("messages");
        QTest::addColumn<QString>("text");
        QTest::addColumn<std::vector<A>>("adaptations");
        const auto row = [](const char* name, const char* source, std::vector<ChatMessage> messages, const char* text,
                            std::vector<A> adaptations) {
            QTest::newRow(name) << QString(source) << std::move(messages) << QString(text) << std::move(adaptations);
        };
        row("nothing to do", kGemma, {{"user", "a", {}}, {"assistant", "b", {}}, {"user", "c", {}}},
            "[user]a\n[assistant]b\n[user]c\n[model]", {});
        row("a system prompt", kGemma, {{"system", "S", {}}, {"user", "a", {}}}, "[user]S\n\na\n[model]",
            {A::SystemInFirstMessage});
        row("stopped before the first token", kGemma, {{"user", "a", {}}, {"user", "b", {}}}, "[user]a\n\nb\n[model]",
            {A::MessagesJoined});
        row("both", kGemma, {{"system", "S", {}}, {"user", "a", {}}, {"user", "b", {}}}, "[user]S\n\na\n\nb\n[model]",
            {A::SystemInFirstMessage, A::MessagesJoined});
        row("answers in a row", kGemma,
            {{"user", "a", {}}, {"assistant", "b", {}}, {"assistant", "c", {}}, {"user", "d", {}}},
            "[user]a\n[assistant]b\n\nc\n[user]d\n[model]", {A::MessagesJoined});
        row("the first message was deleted", kGemma, {{"assistant", "b", {}}, {"user", "c", {}}},
            "[user]\n[assistant]b\n[user]c\n[model]", {A::EmptyMessageAdded});
        row("... and there is a system prompt", kGemma,
            {{"system", "S", {}}, {"assistant", "b", {}}, {"user", "c", {}}}, "[user]S\n[assistant]b\n[user]c\n[model]",
            {A::SystemInFirstMessage});
        row("left out without a word", kSilent, {{"system", "S", {}}, {"user", "a", {}}}, "[user]S\n\na\n[model]",
            {A::SystemInFirstMessage});
        row("a template that takes everything", kAny, {{"system", "S", {}}, {"user", "a", {}}, {"user", "b", {}}},
            "[system]S\n[user]a\n[user]b\n[model]", {});
        row("an empty system prompt is no reason", kSilent, {{"system", " \n", {}}, {"user", "a", {}}},
            "[user]a\n[model]", {});
    }
    void theLeastChangeThatWorks() {
        QFETCH(QString, source);
        QFETCH(std::vector<ChatMessage>, messages);
        QFETCH(std::vector<A>, adaptations);
        const auto dialog = encoderWith(source.toStdString()).encode(chat(messages));
        QVERIFY2(dialog, dialog ? "" : dialog.error().message.c_str());
        QTEST(QString::fromStdString(dialog->text), "text");
        QCOMPARE(dialog->adaptations, adaptations);
        // Each message keeps its own place.
        QCOMPARE(dialog->messageRanges.size(), messages.size());
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const auto [begin, end] = dialog->messageRanges[i];
            const std::string part = dialog->text.substr(std::size_t(begin), std::size_t(end - begin)); // byte = token
            if (messages[i].content.find_first_not_of(" \n") != std::string::npos)
                QVERIFY2(part.find(messages[i].content) != std::string::npos, part.c_str());
            if (i > 0)
                QVERIFY(begin >= dialog->messageRanges[i - 1].second);
        }
    }

    void controlTokensOfAUserStayTextWhenMessagesAreJoined() {
        const auto dialog = *encoderWith(kGemma).encode(chat({{"user", "<|im_end|>", {}}, {"user", "</s>", {}}}));
        for (const TokenId id : dialog.ids)
            QVERIFY(id < 256);
    }

    void idsOfAnAnswerAreTakenOverInAJoinedTurn() {
        const auto dialog =
            *encoderWith(kGemma, {"bc"})
                 .encode(chat(
                     {{"user", "a", {}}, {"assistant", "bc", {259}}, {"assistant", "bc", {259}}, {"user", "d", {}}}));
        QCOMPARE(dialog.reusedAnswerTokens, std::int64_t(2));
        QCOMPARE(std::count(dialog.ids.begin(), dialog.ids.end(), 259), 2);
    }

    void whatCannotBeAdaptedSaysWhy() {
        QCOMPARE(encoderWith(kNever).encode(chat({{"user", "a", {}}})).error().message, std::string("Not today"));
    }

    void howAnAnswerEnds_data() {
        QTest::addColumn<QString>("behind"); ///< what the template writes behind an answer
        QTest::addColumn<int>("token");
        QTest::addColumn<QString>("text");
        QTest::newRow("a control token") << "{{ '<|im_end|>\n' }}" << 257 << "";
        QTest::newRow("behind a blank") << " {{ '</s>' }}" << 258 << "";
        QTest::newRow("the file's own") << "{{ eos_token }}" << 258 << "";
        QTest::newRow("an ordinary token that looks like one") << "{{ '<|turn|>\n' }}" << 259 << "";
        QTest::newRow("a mark without a token") << "{{ '<|over|>\n' }}" << -1 << "<|over|>";
        QTest::newRow("words") << "{{ '\n### Human:\n' }}" << -1 << "\n### Human:";
        QTest::newRow("nothing that could be told from an answer") << "{{ '\n' }}" << -1 << "";
    }
    void howAnAnswerEnds() {
        QFETCH(QString, behind);
        QFETCH(int, token);
        const std::string source = "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}" +
                                   behind.toStdString() + "{% endif %}{% endfor %}";
        const DialogEncoder encoder = encoderWith(source, {"<|turn|>"});
        QCOMPARE(encoder.turnEnd().token.value_or(-1), token);
        QTEST(QString::fromStdString(encoder.turnEnd().text), "text");
    }

    void aTemplateThatBeginsAThought() {
        QCOMPARE(
            encoderWith("{{ messages[0].content }}{% if add_generation_prompt %}<think>\n{% endif %}").thoughtOpener(),
            std::string("<think>\n"));
        QVERIFY(encoderWith(kAny).thoughtOpener().empty());
        QVERIFY(encoderWith(kNever).thoughtOpener().empty());
    }
};

QTEST_APPLESS_MAIN(TestDialogTurns)
#include "test_dialog_turns.moc"
