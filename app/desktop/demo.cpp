// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/demo.h"

#include <QCoreApplication>
#include <QDir>
#include <QPixmap>
#include <QTimer>
#include <cstdio>

#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/composer.h"
#include "ui/models/chat_settings.h"
#include "ui/models/chat_words.h"

namespace kvscope::desktop {
namespace {

constexpr int kPatienceMs = 180'000;
constexpr int kSettleMs = 1200; // map glow, curves and warmth come to rest
constexpr int kAnswerTokens = 96;

void print(const QString& line) {
    std::fprintf(stdout, "%s\n", line.toUtf8().constData());
    std::fflush(stdout);
}

} // namespace

Demo::Demo(Desktop& desktop, const QString& folder, QObject* parent)
    : QObject(parent)
    , m_desktop(desktop)
    , m_folder(folder)
    , m_questions{tr("In two sentences: why is the sky blue?"), tr("And why is it red in the evening?")} {
    connect(&desktop, &Desktop::loaded, this, &Demo::begin);
    connect(&desktop, &Desktop::loadFailed, this, &Demo::giveUp);
    connect(&desktop.chat(), &ui::ChatController::stateChanged, this, &Demo::lookAtAnswer, Qt::QueuedConnection);
    QTimer::singleShot(kPatienceMs, this,
                       [this] { giveUp(tr("The demo took too long; see whether the model answers.")); });
}

void Demo::begin() {
    if (std::exchange(m_begun, true))
        return;
    api::SamplingParams settings = ui::defaultChatSettings();
    settings.temperature = 0;
    settings.maxTokens = kAnswerTokens;
    m_desktop.chat().setSettings(settings);
    QTimer::singleShot(0, this, &Demo::ask);
}

void Demo::ask() {
    const QString question = m_questions.at(m_next);
    print(QStringLiteral("> ") + question);
    ui::Composer* composer = m_desktop.window().chatPanel()->composer();
    composer->setText(question);
    m_asked = true;
    emit composer->sendRequested();
    if (!m_desktop.chat().answering())
        giveUp(tr("The message could not be sent."));
}

void Demo::lookAtAnswer() {
    if (!m_asked || m_desktop.chat().answering())
        return;
    m_asked = false;
    printAnswer();
    if (++m_next < m_questions.size())
        QTimer::singleShot(0, this, &Demo::ask);
    else
        QTimer::singleShot(kSettleMs, this, &Demo::finish);
}

void Demo::printAnswer() {
    const ui::ChatModel& messages = *m_desktop.chat().messages();
    if (messages.size() == 0) {
        giveUp(tr("The message could not be saved."));
        return;
    }
    const ui::ChatMessage& answer = messages.at(messages.size() - 1);
    if (answer.status == ui::MessageStatus::Failed) {
        giveUp(answer.error);
        return;
    }
    print(answer.text);
    if (answer.receipt)
        print(QStringLiteral("[") + ui::words::receiptLine(*answer.receipt) + QStringLiteral("]"));
    print(QString());
}

void Demo::finish() {
    // The last answer's blocks light up in the map, as after a click on its target.
    emit m_desktop.window().chatPanel()->view()->showBlocksRequested(m_desktop.chat().messages()->size() - 1);
    QTimer::singleShot(kSettleMs, this, [this] {
        QDir().mkpath(m_folder);
        const QString path = QDir(m_folder).absoluteFilePath(QStringLiteral("kvscope.png"));
        if (!m_desktop.window().grab().save(path)) {
            giveUp(tr("The screenshot could not be written to %1.").arg(path));
            return;
        }
        print(tr("Screenshot: %1").arg(path));
        QCoreApplication::exit(0);
    });
}

void Demo::giveUp(const QString& sentence) {
    std::fprintf(stderr, "%s\n", sentence.toUtf8().constData());
    QCoreApplication::exit(1);
}

} // namespace kvscope::desktop
