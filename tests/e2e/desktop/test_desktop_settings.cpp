// SPDX-License-Identifier: GPL-3.0-or-later
//
// Trial U15 on the program's own object graph: what the panel shows is what the engine is asked with (by the session
// log), also after a change of preset in mid chat and after a restart; what cannot be is refused at its field.
#include <QAbstractButton>
#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QScreen>
#include <QTimer>
#include <cmath>

#include "engine/metrics/log_file.h"
#include "tests/e2e/desktop/desktop_harness.h"
#include "ui/chat/preset_row.h"
#include "ui/chat/settings_panel.h"

using namespace kvscope;
using namespace kvscope::ui;
using test::Program;
using Id = SettingField::Id;

namespace {

SettingsPanel* openPanel(const Program& program) {
    program.window().chatPanel()->showSettings();
    return program.window().chatPanel()->settings();
}

QAbstractButton* settingsButton(const Program& program) {
    for (QAbstractButton* button : program.window().chatPanel()->findChildren<QAbstractButton*>())
        if (button->accessibleName() == QStringLiteral("Settings of this chat"))
            return button;
    qFatal("there is no button for the settings");
}

void type(QLineEdit* field, const QString& text) {
    field->setFocus();
    field->selectAll();
    QTest::keyClick(field, Qt::Key_Delete);
    QTest::keyClicks(field, text);
}

QStringList shownValues(const SettingsPanel* panel) {
    QStringList out;
    for (const SettingField& field : settingFields())
        out << panel->field(field.id)->text();
    return out;
}

/// What a request of the session log would be shown as.
QStringList valuesOf(const metrics::RequestRecord& r) {
    api::SamplingParams p;
    p.temperature = r.temperature;
    p.topK = r.topK;
    p.topP = r.topP;
    p.minP = r.minP;
    p.repeatPenalty = r.repeatPenalty;
    p.presencePenalty = r.presencePenalty;
    p.frequencyPenalty = r.frequencyPenalty;
    p.seed = r.seed;
    p.maxTokens = r.maxTokens;
    QStringList out;
    for (const SettingField& field : settingFields())
        out << settingText(p, field);
    return out;
}

QStringList valuesOf(const store::Message& message) {
    const api::SamplingParams p = settingsFromJson(QByteArray::fromStdString(message.settings));
    QStringList out;
    for (const SettingField& field : settingFields())
        out << settingText(p, field);
    return out;
}

/// The requests of this run, from a log that is saved as the menu does it.
std::vector<metrics::RequestRecord> loggedRequests(const Program& program, const std::string& path) {
    QFile::remove(QString::fromStdString(path));
    emit program.window().saveSessionRequested(QString::fromStdString(path));
    if (!QTest::qWaitFor([&] { return QFile::exists(QString::fromStdString(path)); }, test::kAnswerMs))
        qFatal("the session was not saved");
    auto log = metrics::readLog(path);
    if (!log)
        qFatal("%s", log.error().message.c_str());
    std::vector<metrics::RequestRecord> out;
    for (const metrics::LogRecord& record : log->records)
        if (const auto* request = std::get_if<metrics::RequestRecord>(&record))
            out.push_back(*request);
    return out;
}

/// Picks an entry of the menu beside the presets.
void chooseInMenu(SettingsPanel* panel, const QString& start) {
    QAbstractButton* button = nullptr;
    for (QAbstractButton* candidate : panel->presets()->findChildren<QAbstractButton*>())
        if (candidate->accessibleName().startsWith(QStringLiteral("Save, rename")))
            button = candidate;
    if (!button)
        qFatal("there is no menu of presets");
    QTimer::singleShot(0, qApp, [start] {
        auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
        if (!menu)
            qFatal("no menu came up");
        for (QAction* action : menu->actions())
            if (action->text().startsWith(start))
                menu->setActiveAction(action);
        QTest::keyClick(menu, Qt::Key_Return);
    });
    QTest::keyClick(button, Qt::Key_Space);
}

void savePreset(SettingsPanel* panel, const QString& name) {
    chooseInMenu(panel, QStringLiteral("Save as"));
    auto* field = qobject_cast<QLineEdit*>(QApplication::focusWidget());
    if (!field)
        qFatal("no name is asked for");
    QTest::keyClicks(field, name);
    QTest::keyClick(field, Qt::Key_Return);
    auto* box = panel->presets()->findChild<QComboBox*>();
    if (!QTest::qWaitFor([&] { return box->currentText() == name; }, test::kAnswerMs))
        qFatal("the preset was not saved");
}

void choosePreset(const Program& program, const QString& name) {
    SettingsPanel* panel = openPanel(program);
    auto* box = panel->presets()->findChild<QComboBox*>();
    const int index = box->findText(name);
    if (index < 0)
        qFatal("there is no such preset");
    box->setFocus();
    while (box->currentIndex() != index)
        QTest::keyClick(box, box->currentIndex() < index ? Qt::Key_Down : Qt::Key_Up);
    panel->hide();
}

struct Typed {
    const char* text;
    /// In the order of settingFields(): what the field shows then; nullptr = refused.
    std::array<const char*, 9> shown;
};
const Typed kTyped[] = {
    {"-1", {nullptr, nullptr, nullptr, nullptr, nullptr, "-1", "-1", nullptr, nullptr}},
    {"0", {"greedy", "off", nullptr, "off", nullptr, "off", "off", "0", nullptr}},
    {"1e9", {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, "1000000000", nullptr}},
    {"0,5", {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr}},
    {"", {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr}},
    {"0.5", {"0.5", nullptr, "0.5", "0.5", "0.5", "0.5", "0.5", nullptr, nullptr}},
    {"nan", {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr}},
    {"1", {"1", "1", "off", nullptr, "off", "1", "1", "1", "1"}},
};

} // namespace

class TestDesktopSettings final : public QObject {
    Q_OBJECT
    test::TempDir m_dir;
    std::string m_tiny;

private slots:
    void initTestCase() { m_tiny = test::tinyModel(m_dir); }

    void presetsReachTheEngineWhole() {
        const std::string data = m_dir.file("presets"), log = m_dir.file("presets.jsonl");
        const QString x = QStringLiteral("X"), y = QStringLiteral("Y");
        std::vector<QStringList> asked; // what the panel showed at each question
        QStringList valuesOfX;
        {
            Program program(m_tiny, 256, data);
            SettingsPanel* panel = openPanel(program);
            panel->systemPromptEdit()->setPlainText(QStringLiteral("Be brief."));
            type(panel->field(Id::Temperature), QStringLiteral("0.1"));
            type(panel->field(Id::TopK), QStringLiteral("3"));
            type(panel->field(Id::MinP), QStringLiteral("0.2"));
            type(panel->field(Id::RepeatPenalty), QStringLiteral("1.3"));
            type(panel->field(Id::MaxTokens), QStringLiteral("4"));
            savePreset(panel, x);
            type(panel->field(Id::Temperature), QStringLiteral("1.5"));
            type(panel->field(Id::TopP), QStringLiteral("0.5"));
            type(panel->field(Id::TopK), QStringLiteral("off"));
            type(panel->field(Id::Seed), QStringLiteral("77"));
            savePreset(panel, y);
            panel->hide();
            for (const QString& preset : {x, y, x}) {
                choosePreset(program, preset);
                program.ask(QStringLiteral("Something"));
                QCOMPARE(settingsButton(program)->text(), preset); // the head says which
                asked.push_back(shownValues(openPanel(program)));
                panel->hide();
            }
            valuesOfX = asked[0];
            QCOMPARE(valuesOfX, QStringList({QStringLiteral("0.1"), QStringLiteral("3"), QStringLiteral("0.95"),
                                             QStringLiteral("0.2"), QStringLiteral("1.3"), QStringLiteral("off"),
                                             QStringLiteral("off"), asked[0][7], QStringLiteral("4")}));
            QVERIFY(asked[1] != asked[0]);
            QCOMPARE(asked[2], asked[0]);
            const auto requests = loggedRequests(program, log);
            QCOMPARE(requests.size(), asked.size());
            for (std::size_t i = 0; i < asked.size(); ++i)
                QCOMPARE(valuesOf(requests[i]), asked[i]);
        }
        Program program(m_tiny, 256, data);
        QTRY_COMPARE_WITH_TIMEOUT(program.chat().messages()->size(), 6, test::kAnswerMs);
        QCOMPARE(shownValues(openPanel(program)), valuesOfX);
        QCOMPARE(program.window().chatPanel()->settings()->systemPromptEdit()->toPlainText(),
                 QStringLiteral("Be brief."));
        program.window().chatPanel()->settings()->hide();
        program.ask(QStringLiteral("Something else"));
        asked.push_back(valuesOfX);
        const auto requests = loggedRequests(program, log);
        QCOMPARE(requests.size(), std::size_t(1));
        QCOMPARE(valuesOf(requests[0]), valuesOfX);
        // Old messages keep what they were made with.
        std::vector<QStringList> kept;
        for (const store::Message& message : program.stored())
            if (message.role == store::Role::Assistant)
                kept.push_back(valuesOf(message));
        QCOMPARE(kept.size(), asked.size());
        for (std::size_t i = 0; i < asked.size(); ++i)
            QCOMPARE(kept[i], asked[i]);
    }

    void whatCannotBeIsRefusedAtItsField() {
        Program program(m_tiny);
        std::vector<QStringList> asked;
        type(openPanel(program)->field(Id::MaxTokens), QStringLiteral("4"));
        for (const Typed& typed : kTyped) {
            SettingsPanel* panel = openPanel(program);
            QStringList expected = shownValues(panel);
            for (const SettingField& field : settingFields()) {
                const std::size_t i = std::size_t(field.id);
                type(panel->field(field.id), QString::fromUtf8(typed.text));
                const QLabel* message = panel->message(field.id);
                const char* shown = typed.shown[i];
                QVERIFY2(message->isVisible() == (shown == nullptr),
                         qPrintable(QStringLiteral("%1: \"%2\"").arg(QLatin1StringView(field.name), typed.text)));
                if (shown) {
                    expected[qsizetype(i)] = QString::fromUtf8(shown);
                    continue;
                }
                QVERIFY2(message->text().contains(QString::fromUtf8(field.range)), qPrintable(message->text()));
                QCOMPARE(panel->field(field.id)->text(), QString::fromUtf8(typed.text)); // it stays to be mended
            }
            QVERIFY2(QGuiApplication::primaryScreen()->geometry().contains(panel->geometry()),
                     "with all refusals the panel is still on the screen");
            panel->hide();
            const ChatMessage& answer = program.ask(QStringLiteral("Go on"));
            QVERIFY2(answer.status == MessageStatus::Done, qPrintable(answer.error));
            panel = openPanel(program);
            QCOMPARE(shownValues(panel), expected); // what is in force, not what was refused
            asked.push_back(expected);
            panel->hide();
        }
        const auto requests = loggedRequests(program, m_dir.file("refused.jsonl"));
        QCOMPARE(requests.size(), asked.size());
        for (std::size_t i = 0; i < asked.size(); ++i) {
            QCOMPARE(valuesOf(requests[i]), asked[i]);
            QVERIFY(std::isfinite(requests[i].temperature) && std::isfinite(requests[i].topP));
        }
        std::size_t row = 0;
        for (const store::Message& message : program.stored())
            if (message.role == store::Role::Assistant)
                QCOMPARE(valuesOf(message), asked[row++]);
        QCOMPARE(row, asked.size());
    }
};

QTEST_MAIN(TestDesktopSettings)
#include "test_desktop_settings.moc"
