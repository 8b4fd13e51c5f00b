// SPDX-License-Identifier: GPL-3.0-or-later
//
// Trials U4 and U6 on the whole window: real engine, real database, tiny models, and a program that is started again.
#include <QAbstractButton>
#include <QMenu>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

#include "app/desktop/desktop.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"
#include "ui/chat/chat_panel.h"
#include "ui/chat/composer.h"
#include "ui/chat/template_banner.h"
#include "ui/chat/token_view.h"

using namespace kvscope;
using kvscope::desktop::Desktop;

namespace {

constexpr int kWaitMs = 60'000;
constexpr TokenId kBegin = 256; ///< <|im_start|>, which these files call their begin token

/// The program over a folder; destroying it is closing the program.
class Program {
public:
    Program(const std::string& folder, const std::string& model) : m_folder(opened(folder)) {
        api::EngineConfig config;
        config.modelPath = model;
        config.numBlocks = 64;
        config.threads = 1;
        m_desktop = std::make_unique<Desktop>(m_folder, folder, config);
        m_desktop->chat().setAutoTitles(false); // a title would be one more answer
        QSignalSpy loaded(m_desktop.get(), &Desktop::loaded);
        m_desktop->start();
        if (!loaded.wait(kWaitMs))
            qFatal("the model did not load");
    }
    ui::MainWindow& window() const { return m_desktop->window(); }
    ui::ChatController& chat() const { return m_desktop->chat(); }
    ui::TemplateBanner& banner() const { return *window().chatPanel()->templateBanner(); }
    QAbstractButton* bannerButton(const QString& text) const {
        for (auto* button : banner().findChildren<QAbstractButton*>())
            if (button->text() == text)
                return button;
        return nullptr;
    }

    void load(const std::string& model) {
        QSignalSpy loaded(m_desktop.get(), &Desktop::loaded);
        m_desktop->loadModel(QString::fromStdString(model));
        if (!loaded.wait(kWaitMs))
            qFatal("the model did not load");
    }
    /// Typed and sent by Enter.
    const ui::ChatMessage& ask(const QString& text) const {
        ui::ComposerEdit* edit = window().chatPanel()->composer()->edit();
        edit->setPlainText(text);
        QTest::keyClick(edit, Qt::Key_Return);
        if (!chat().answering() || !QTest::qWaitFor([this] { return !chat().answering(); }, kWaitMs))
            qFatal("no answer");
        return chat().messages()->at(chat().messages()->size() - 1);
    }
    /// A template out of the menu of the banner.
    bool choose(const QString& name) const {
        bool there = false;
        QTimer::singleShot(0, [&] {
            auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
            for (QAction* action : menu ? menu->actions() : QList<QAction*>())
                if (action->text() == name) {
                    there = true;
                    action->trigger();
                }
            if (menu)
                menu->close();
        });
        bannerButton(QStringLiteral("Choose another"))->click(); // comes back when the menu is closed
        return there;
    }
    /// The ids that the token view shows of the newest prompt.
    std::vector<TokenId> shownTokens() const {
        emit window().chatPanel()->promptTokensRequested();
        ui::TokenView* view = window().tokenView();
        if (!view || !view->isVisible() || !QTest::qWaitFor([&] { return view->tokens().rowCount() > 0; }, kWaitMs))
            qFatal("no tokens are shown");
        std::vector<TokenId> ids;
        const ui::PromptTokensModel& tokens = view->tokens();
        for (int row = 0; row < tokens.rowCount(); ++row)
            ids.push_back(tokens.index(row, ui::PromptTokensModel::Id).data().toInt());
        return ids;
    }

private:
    static store::DataFolder opened(const std::string& folder) {
        auto opened = store::DataFolder::open(folder + "/data");
        if (!opened)
            qFatal("%s", opened.error().message.c_str());
        return std::move(*opened);
    }
    store::DataFolder m_folder;
    std::unique_ptr<Desktop> m_desktop;
};

} // namespace

class TestDesktopTemplates final : public QObject {
    Q_OBJECT
    test::TempDir m_dir;

    /// A model that answers "Hello to you." and ends; `spoil` changes its file.
    std::string model(const std::string& name, const test::ScriptedShape& shape,
                      const std::function<void(test::GgufWriter&)>& spoil = {}) const {
        test::GgufWriter writer = test::scriptedLlama({"Hello ", "to ", "you."}, shape);
        if (spoil)
            spoil(writer);
        if (!writer.write(m_dir.file(name)))
            qFatal("the model cannot be written");
        return m_dir.file(name);
    }

private slots:
    // U4
    void aFileWithoutUsableTemplateIsAnsweredThroughAChosenOne_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("sentence");
        QTest::newRow("none") << QString() << QStringLiteral("No chat template in this file, using “%1”");
        QTest::newRow("broken") << QStringLiteral("{% for m in messages %}{{ m.content }")
                                << QStringLiteral("The chat template in this file is broken, using “%1”");
    }
    void aFileWithoutUsableTemplateIsAnsweredThroughAChosenOne() {
        QFETCH(QString, source);
        QFETCH(QString, sentence);
        const std::string tag = QTest::currentDataTag();
        test::ScriptedShape shape;
        shape.chatTemplate = source.toStdString();
        const std::string path = model(tag + ".gguf", shape);
        const std::string other = model(tag + "-other.gguf", shape);
        const std::string folder = m_dir.file(tag);
        QVERIFY(QDir().mkpath(QString::fromStdString(folder)));
        {
            Program program(folder, path);
            QVERIFY(program.banner().isVisible());
            QCOMPARE(program.banner().sentence(), sentence.arg(QStringLiteral("ChatML")));
            QVERIFY(program.banner().preview().contains(QStringLiteral("<|im_start|>user\nHello<|im_end|>")));
            auto* preview = program.banner().findChild<QPlainTextEdit*>();
            QVERIFY(!preview->isVisible());
            program.bannerButton(QStringLiteral("Show prompt"))->click();
            QVERIFY(preview->isVisible() && preview->toPlainText() == program.banner().preview());

            const ui::ChatMessage& answer = program.ask(QStringLiteral("Hello"));
            QCOMPARE(answer.text, QStringLiteral("Hello to you."));
            QVERIFY(answer.reason == api::FinishReason::Stop && answer.tokens.size() <= 200);
            QCOMPARE(answer.endedBy, QStringLiteral("<|im_end|>"));

            QVERIFY(!program.choose(QStringLiteral("There is none of this name")));
            QVERIFY(program.choose(QStringLiteral("Zephyr")));
            QTRY_COMPARE_WITH_TIMEOUT(program.banner().sentence(), sentence.arg(QStringLiteral("Zephyr")), kWaitMs);
            QVERIFY(program.banner().preview().contains(QStringLiteral("<|user|>\nHello")));
            QCOMPARE(program.ask(QStringLiteral("Again")).text, QStringLiteral("Hello to you."));
        }
        Program program(folder, path);
        QTRY_COMPARE_WITH_TIMEOUT(program.banner().sentence(), sentence.arg(QStringLiteral("Zephyr")), kWaitMs);
        program.load(other); // remembered for that file, not for every one
        QTRY_COMPARE_WITH_TIMEOUT(program.banner().sentence(), sentence.arg(QStringLiteral("ChatML")), kWaitMs);
        program.bannerButton(QStringLiteral("Keep"))->click();
        QVERIFY(!program.banner().isVisible());
        program.load(path);
        QTRY_COMPARE_WITH_TIMEOUT(program.banner().sentence(), sentence.arg(QStringLiteral("Zephyr")), kWaitMs);
    }

    void aFileWithATemplateNeedsNoBanner() {
        const std::string folder = m_dir.file("plain");
        QVERIFY(QDir().mkpath(QString::fromStdString(folder)));
        Program program(folder, model("plain.gguf", {}));
        QCOMPARE(program.ask(QStringLiteral("Hello")).text, QStringLiteral("Hello to you."));
        QVERIFY(!program.banner().isVisible());
    }

    // U6
    void theTokenViewShowsOneBeginTokenOrNone_data() {
        QTest::addColumn<bool>("addBos");
        QTest::addColumn<bool>("written");
        QTest::addColumn<int>("begins");
        QTest::newRow("asked for and written") << true << true << 1;
        QTest::newRow("asked for") << true << false << 1;
        QTest::newRow("neither") << false << false << 0;
    }
    void theTokenViewShowsOneBeginTokenOrNone() {
        QFETCH(bool, addBos);
        QFETCH(bool, written);
        QFETCH(int, begins);
        const std::string tag = QTest::currentDataTag();
        test::ScriptedShape shape;
        shape.chatTemplate = std::string(written ? "{{ bos_token }}" : "") +
                             "{% for m in messages %}{{ m.role + ': ' + m.content + eos_token }}{% endfor %}"
                             "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";
        const std::string path = model(tag + ".gguf", shape, [&](test::GgufWriter& writer) {
            writer.boolean("tokenizer.ggml.add_bos_token", addBos);
        });
        const std::string folder = m_dir.file("begin " + tag);
        QVERIFY(QDir().mkpath(QString::fromStdString(folder)));
        const QString summary = begins == 1 ? QStringLiteral(", 1 begin token") : QStringLiteral(", no begin token");
        std::vector<TokenId> first;
        for (int start = 0; start < 2; ++start) {
            Program program(folder, path);
            if (start == 0) {
                program.ask(QStringLiteral("Hello"));
            } else {
                // The new chat that every start begins with, and the one of the first start.
                QTRY_COMPARE_WITH_TIMEOUT(program.chat().conversations()->rowCount(), 2, kWaitMs);
                program.chat().select(program.chat().conversations()->ids().back());
                QTRY_COMPARE_WITH_TIMEOUT(program.chat().messages()->size(), 2, kWaitMs);
            }
            const std::vector<TokenId> ids = program.shownTokens();
            QCOMPARE(int(std::count(ids.begin(), ids.end(), kBegin)), begins);
            QVERIFY(begins == 0 || ids.front() == kBegin);
            QVERIFY2(program.window().tokenView()->summary().endsWith(summary),
                     qPrintable(program.window().tokenView()->summary()));
            if (start == 0)
                first = ids;
            QVERIFY(ids == first && ids.size() > 10);
        }
    }
};

QTEST_MAIN(TestDesktopTemplates)
#include "test_desktop_templates.moc"
