// SPDX-License-Identifier: GPL-3.0-or-later
//
// The templates that the program brings along, how one is recognised, and how many begin tokens a prompt gets.
#include <QTest>
#include <algorithm>

#include "engine/model/dialog.h"
#include "engine/model/template_library.h"
#include "tests/unit/model/text_reference.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

Vocabulary withMarks(const std::vector<std::string>& marks, TokenType type = TokenType::Control) {
    Vocabulary v = test::tinyTokenizer("smollm")->vocabulary();
    for (std::size_t id = 0; id < v.size(); ++id) // the tiny vocabulary has marks of its own
        if (v.types[id] == TokenType::Control)
            v.tokens[id] = "<control " + std::to_string(id) + ">";
    for (const std::string& mark : marks) {
        v.tokens.push_back(mark);
        v.types.push_back(type);
    }
    return v;
}

DialogInput chat(std::vector<ChatMessage> messages) {
    DialogInput input;
    input.messages = std::move(messages);
    return input;
}

std::string textOfChat(const KnownTemplate& known, const Vocabulary& v) {
    const DialogEncoder encoder(*Tokenizer::create(v), *ChatTemplate::compile(std::string(known.source)));
    const auto encoded = encoder.encode(
        chat({{"system", "Be brief.", {}}, {"user", "Hi", {}}, {"assistant", "Hello.", {}}, {"user", "Bye", {}}}));
    return encoded ? encoded->text : encoded.error().message;
}

} // namespace

class TestTemplateLibrary : public QObject {
    Q_OBJECT
private slots:
    void everyTemplateWritesAWholeChat_data() {
        QTest::addColumn<QString>("text");
        const auto row = [](const char* name, const char* text) { QTest::newRow(name) << QString(text); };
        row("ChatML", "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                      "<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
                      "<|im_start|>assistant\n");
        row("Llama 3", "<control 1><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
                       "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
                       "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
                       "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
                       "<|start_header_id|>assistant<|end_header_id|>\n\n");
        row("Gemma", "<control 1><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n"
                     "<start_of_turn>model\nHello.<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n"
                     "<start_of_turn>model\n");
        row("DeepSeek", "<control 1>Be brief.<｜User｜>Hi<｜Assistant｜>Hello.<control 3><｜User｜>Bye<｜Assistant｜>");
        row("Phi-3", "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello.<|end|>\n"
                     "<|user|>\nBye<|end|>\n<|assistant|>\n");
        row("Mistral", "<control 1>[INST] Be brief.\n\nHi [/INST] Hello.<control 3>[INST] Bye [/INST]");
        row("Zephyr", "<|system|>\nBe brief.<control 3>\n<|user|>\nHi<control 3>\n<|assistant|>\nHello.<control 3>\n"
                      "<|user|>\nBye<control 3>\n<|assistant|>\n");
        row("Plain text", "Be brief.\n\nUser: Hi\n\nAssistant: Hello.<control 3>User: Bye\n\nAssistant:");
    }
    void everyTemplateWritesAWholeChat() {
        QFETCH(QString, text);
        const KnownTemplate* known = findKnownTemplate(QTest::currentDataTag());
        QVERIFY(known != nullptr);
        QCOMPARE(QString::fromStdString(textOfChat(*known, withMarks({}))), text);
    }

    void everyTemplateIsTested() { QCOMPARE(knownTemplates().size(), std::size_t(8)); }

    void aVocabularySuggestsTheTemplateOfItsMarks() {
        for (const KnownTemplate& known : knownTemplates()) {
            const std::vector<std::string> marks(known.marks.begin(), known.marks.end());
            QCOMPARE(guessTemplate(withMarks(marks)).name, known.marks.empty() ? "Plain text" : known.name);
            if (marks.empty())
                continue;
            QCOMPARE(guessTemplate(withMarks({marks.begin() + 1, marks.end()})).name, std::string_view("Plain text"));
            QCOMPARE(guessTemplate(withMarks(marks, TokenType::Normal)).name, std::string_view("Plain text"));
        }
    }

    void theFilesOwnTemplateComesFirst() {
        Vocabulary v = test::tinyTokenizer("smollm")->vocabulary();
        v.chatTemplate = "{{ messages[0].content }}!";
        const TemplateChoice own = chooseTemplate(v, "");
        QVERIFY(own.name.empty() && own.problem.empty() && !own.guessed);
        QCOMPARE(*templatePreview(*own.chatTemplate, v, "Hello"), std::string("Hello!"));
        const TemplateChoice chosen = chooseTemplate(v, "Gemma");
        QCOMPARE(chosen.name, std::string("Gemma"));
        QVERIFY(chosen.problem.empty() && !chosen.guessed);
        QVERIFY(chooseTemplate(v, "of another version").name.empty());
    }

    void aMissingOrBrokenTemplateIsSaidAndReplaced() {
        Vocabulary v = test::tinyTokenizer("smollm")->vocabulary();
        const TemplateChoice none = chooseTemplate(v, "");
        QCOMPARE(none.name, std::string("ChatML"));
        QVERIFY(none.guessed);
        QVERIFY(none.problem.find("no chat template") != std::string::npos);
        v.chatTemplate = "fine\n{% for m in messages %}{{ m.content }}";
        const TemplateChoice broken = chooseTemplate(v, "");
        QVERIFY(broken.guessed);
        QVERIFY2(broken.problem.find("line ") != std::string::npos, broken.problem.c_str());
        v.chatTemplate = "{{ raise_exception('Never.') }}"; // compiles, and can never be used
        QCOMPARE(chooseTemplate(v, "").problem, std::string("Never."));
        QCOMPARE(chooseTemplate(v, "Plain text").name, std::string("Plain text"));
        QVERIFY(!chooseTemplate(v, "Plain text").guessed);
    }

    void aPromptHasOneBeginTokenOrNone_data() {
        QTest::addColumn<bool>("addBos");
        QTest::addColumn<QString>("source");
        QTest::addColumn<int>("begins");
        const QString chatMl = QString::fromUtf8(findKnownTemplate("ChatML")->source.data(),
                                                 qsizetype(findKnownTemplate("ChatML")->source.size()));
        QTest::newRow("both write it") << true << "{{ bos_token }}" + chatMl << 1;
        QTest::newRow("the file asks for it") << true << chatMl << 1;
        QTest::newRow("only the template writes it") << false << "{{ bos_token }}" + chatMl << 1;
        QTest::newRow("nobody wants it") << false << chatMl << 0;
    }
    void aPromptHasOneBeginTokenOrNone() {
        QFETCH(bool, addBos);
        QFETCH(QString, source);
        QFETCH(int, begins);
        for (const char* name : {"smollm", "llama-bpe", "spm-prefix", "spm-noprefix"}) {
            Vocabulary v = test::tinyTokenizer(name)->vocabulary();
            v.addBos = addBos;
            const TokenId bos = *v.bos;
            const DialogEncoder encoder(*Tokenizer::create(v), *ChatTemplate::compile(source.toStdString()));
            const auto encoded = encoder.encode(chat({{"user", v.tokens[std::size_t(bos)] + " begins", {}}}));
            QVERIFY(encoded.has_value());
            QCOMPARE(std::count(encoded->ids.begin(), encoded->ids.end(), bos), begins);
            QVERIFY(begins == 0 || encoded->ids.front() == bos);
        }
    }
};

QTEST_APPLESS_MAIN(TestTemplateLibrary)
#include "test_template_library.moc"
