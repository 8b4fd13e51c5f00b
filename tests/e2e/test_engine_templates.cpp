// SPDX-License-Identifier: GPL-3.0-or-later
//
// Chats over templates that are hard to please, and files whose end token is not the one that their template uses.
#include <QTest>

#include "tests/support/engine_harness.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::api;
using kvscope::test::EngineHarness;

namespace {

const char* const kStrict =
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const char* const kText = "Certainly! It is 7.";

} // namespace

class TestEngineTemplates : public QObject {
    Q_OBJECT

    test::TempDir m_dir;
    EngineHarness m_harness;

    void load(const test::ScriptedShape& shape, const std::string& text = kText) {
        const std::string path = m_dir.file("model.gguf");
        if (!test::scriptedLlama(test::awkwardPieces(text), shape).write(path))
            qFatal("the model cannot be written");
        m_harness.load(EngineHarness::config(path));
    }
    Answer ask(DialogPrompt dialog) { return m_harness.run(EngineHarness::request(++m_next, std::move(dialog), 100)); }
    std::vector<DialogAdaptation> adaptations() const {
        return m_harness.eventsOf<QueuedEvent>(RequestId(m_next)).front().adaptations;
    }
    std::int64_t m_next = 0;

private slots:
    // U8
    void aStrictTemplateAnswersEveryChat() {
        test::ScriptedShape shape;
        shape.chatTemplate = kStrict;
        load(shape);
        QCOMPARE(ask({{{"system", "Be brief.", {}}, {"user", "Hi", {}}}}).text, std::string(kText));
        QCOMPARE(adaptations(), (std::vector<DialogAdaptation>{DialogAdaptation::SystemInFirstMessage}));
        QCOMPARE(ask({{{"user", "Hi", {}}, {"user", "Hello?", {}}}}).text, std::string(kText));
        QCOMPARE(adaptations(), (std::vector<DialogAdaptation>{DialogAdaptation::MessagesJoined}));
        QCOMPARE(
            ask({{{"user", "Hi", {}}, {"user", "And now?", {}}, {"assistant", "So.", {}}, {"user", "Go on", {}}}}).text,
            std::string(kText));
        QCOMPARE(ask({{{"assistant", "So.", {}}, {"user", "Go on", {}}}}).text, std::string(kText));
        QCOMPARE(adaptations(), (std::vector<DialogAdaptation>{DialogAdaptation::EmptyMessageAdded}));
        QCOMPARE(ask({{{"user", "Hi", {}}}}).text, std::string(kText));
        QVERIFY(adaptations().empty());
    }

    void anAdaptedChatIsReusedTurnByTurn() {
        test::ScriptedShape shape;
        shape.chatTemplate = kStrict;
        load(shape);
        DialogPrompt dialog;
        dialog.messages = {{"system", std::string(100, 'x'), {}}, {"user", "Hi", {}}};
        const Answer first = ask(dialog);
        dialog.messages.push_back({"assistant", first.text, first.tokenIds});
        dialog.messages.push_back({"user", "More", {}});
        const Answer second = ask(dialog);
        const auto known = static_cast<std::int64_t>(first.promptTokenIds.size() + first.tokenIds.size());
        QVERIFY(second.cache.reusedTokens >= (known - 1) / 16 * 16);
    }

    void aTemplateThatTakesNothingIsNotQuotedBare() {
        test::ScriptedShape shape;
        shape.chatTemplate = "{{ raise_exception('Not today') }}";
        load(shape);
        const Answer answer = ask({{{"user", "Hi", {}}}});
        QCOMPARE(answer.reason, FinishReason::Error);
        QVERIFY2(answer.error->message.find("\"Not today\"") != std::string::npos &&
                     answer.error->message.find("Edit or delete a message") != std::string::npos,
                 answer.error->message.c_str());
    }

    void aTemplateAtFaultIsNotBlamedOnTheChat() {
        test::ScriptedShape shape;
        shape.chatTemplate = "{{ messages[0].content }}\n\n{{ 1/0 }}";
        load(shape);
        const Answer answer = ask({{{"user", "Hi", {}}}});
        QCOMPARE(answer.reason, FinishReason::Error);
        QCOMPARE(answer.error->code, ErrorCode::Template);
        QCOMPARE(answer.error->message, std::string("The chat template failed: line 3: division by zero. Choose "
                                                    "another template or another model."));
    }

    // U11
    void theTurnMarkerEndsAnAnswerWhateverTheFileCallsItsEnd_data() {
        QTest::addColumn<QString>("marker");
        QTest::newRow("a well-known one") << "<|im_end|>";
        QTest::newRow("one that only this template uses") << "<|over_and_out|>";
    }
    void theTurnMarkerEndsAnAnswerWhateverTheFileCallsItsEnd() {
        QFETCH(QString, marker);
        const std::string end = marker.toStdString();
        test::ScriptedShape shape;
        shape.endToken = 0; // an ordinary byte: the file is wrong
        shape.endText = end;
        shape.chatTemplate =
            "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '" + end +
            "\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
        shape.afterEnd = {"\nuser: ", "and I ", "go on"};
        load(shape);
        const Answer answer = ask({{{"user", "Say hi.", {}}}});
        QCOMPARE(answer.text, std::string(kText));
        QCOMPARE(answer.reason, FinishReason::Stop);
        QCOMPARE(std::get<TokenId>(answer.stopReason), 257);
        QCOMPARE(answer.endedBy, end);
        QVERIFY(std::find(answer.tokenIds.begin(), answer.tokenIds.end(), 257) == answer.tokenIds.end());
        DialogPrompt on;
        on.messages = {{"user", "Say hi.", {}}};
        Request ignoring = EngineHarness::request(++m_next, on, 20);
        ignoring.sampling.ignoreEos = true;
        QVERIFY(m_harness.run(std::move(ignoring)).tokenIds.size() == 20);
    }

    void aTemplateWithoutEndTokensIsStoppedByItsWords() {
        test::ScriptedShape shape;
        shape.endToken = 0;
        shape.endText = "<|unused|>";
        shape.chatTemplate = "{% for m in messages %}{{ '\n### ' + m.role + ':\n' + m.content }}{% endfor %}"
                             "{% if add_generation_prompt %}{{ '\n### assistant:\n' }}{% endif %}";
        load(shape, std::string(kText) + "\n### user:\nAnd then?");
        const Answer answer = ask({{{"user", "Say hi.", {}}}});
        QCOMPARE(answer.text, std::string(kText));
        QCOMPARE(answer.endedBy, std::string("\n### user:"));
    }
};

QTEST_APPLESS_MAIN(TestEngineTemplates)
#include "test_engine_templates.moc"
