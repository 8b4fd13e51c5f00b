// SPDX-License-Identifier: GPL-3.0-or-later
//
// Pictures of the chat view to look at: chat_pictures FOLDER, with QT_SCALE_FACTOR and QT_QPA_PLATFORM as wanted.
#include <QApplication>
#include <QScrollBar>

#include "tests/ui/chat/chat_view_fixture.h"

using namespace kvscope::ui;

int main(int argc, char** argv) {
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    const QString folder = argc > 1 ? QString::fromLocal8Bit(argv[1]) : QStringLiteral(".");
    for (const ThemeKind kind : {ThemeKind::Dark, ThemeKind::Light}) {
        const Theme theme = Theme::load(kind);
        applyTheme(application, theme);
        ChatMessage answer = test::message(MessageRole::Assistant, test::richText(), MessageStatus::Interrupted);
        answer.thinking =
            QStringLiteral("The user wants numbers. Eight requests, 512 tokens each.\n\n- reserved means 4,096 "
                           "slots for each\n- paged means `512`");
        answer.thinkingSeconds = 1.3;
        answer.thinkingTokens = 64;
        answer.version = 2;
        answer.versions = 3;
        answer.tokens.resize(212);
        ChatMessage question =
            test::message(MessageRole::User, QStringLiteral("Show it, *as typed*:\n```c\n\tint x = 1;\n```\nthanks"));
        question.windowCut = true;
        question.versions = 2;
        ChatModel model;
        model.setMessages(
            {test::message(MessageRole::User, QStringLiteral("What happens when two requests start alike?")),
             test::message(MessageRole::Assistant, QStringLiteral("They *share* the memory of that beginning.")),
             question, answer, test::message(MessageRole::User, QStringLiteral("One more")),
             test::message(MessageRole::Assistant, QStringLiteral("Now I **write"), MessageStatus::Writing)});
        for (const int pixels : {14, 20}) {
            ChatView view(theme);
            view.resize(590, pixels == 14 ? 1900 : 2600);
            view.setTextSize(pixels);
            view.show();
            view.setModel(&model);
            view.grab();
            QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.partRect(3, MessagePart::Thought).center());
            view.activateWindow();
            view.setFocus(Qt::TabFocusReason);
            if (!QTest::qWaitForWindowActive(&view))
                return 1;
            for (int i = 0; i < 2; ++i)
                QTest::keyClick(&view, Qt::Key_Up, Qt::ControlModifier);
            if (pixels == 14) {
                for (int i = 0; i < 4; ++i)
                    QTest::keyClick(&view, Qt::Key_Tab);
            } else {
                QTest::keyClick(&view, Qt::Key_A, Qt::ControlModifier);
            }
            view.grab().save(QStringLiteral("%1/chat-%2-%3.png")
                                 .arg(folder, kind == ThemeKind::Dark ? "dark" : "light")
                                 .arg(pixels));
        }
    }
}
