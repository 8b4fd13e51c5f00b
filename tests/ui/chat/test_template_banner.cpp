// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the window says about templates that are not the file's own, and the view of a prompt's tokens.
#include <QAbstractButton>
#include <QGlyphRun>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTest>
#include <QTextLayout>

#include "ui/chat/template_banner.h"
#include "ui/chat/token_view.h"

using namespace kvscope;
using namespace kvscope::ui;

namespace {

api::TemplateInfo guessed(const std::string& problem) {
    return {"ChatML", problem, true, "<|im_start|>user\nHello<|im_end|>\n", {"ChatML", "Gemma"}};
}

api::PromptTokensEvent prompt(std::vector<TokenId> ids) {
    api::PromptTokensEvent event;
    event.beginToken = 1;
    for (const TokenId id : ids)
        event.tokens.push_back({id, id == 1 ? "<s>" : " a\n", id == 1});
    event.messageRanges = {{1, 2}};
    return event;
}

/// The glyphs that a text is drawn with.
QList<quint32> glyphs(const QString& text, const QFont& font) {
    QTextLayout layout(text, font);
    layout.beginLayout();
    layout.createLine();
    layout.endLayout();
    QList<quint32> indexes;
    for (const QGlyphRun& run : layout.glyphRuns())
        indexes += run.glyphIndexes();
    return indexes;
}

/// Whether each character of what control tokens are written with is drawn as itself.
bool drawsLiterally(const QFont& font) {
    for (const char* text : {"<|im_end|>", "!=", "</s>", "->", "[|", "<!--"}) {
        QList<quint32> single;
        for (const QChar c : QString::fromLatin1(text))
            single += glyphs(QString(c), font);
        if (glyphs(QString::fromLatin1(text), font) != single)
            return false;
    }
    return true;
}

} // namespace

class TestTemplateBanner : public QObject {
    Q_OBJECT
private slots:
    void itNamesProblemAndGuess() {
        TemplateBanner banner(Theme::load(ThemeKind::Dark));
        QVERIFY(banner.isHidden());
        banner.setTemplate(guessed("There is no chat template in this file."), true);
        QVERIFY(!banner.isHidden());
        QCOMPARE(banner.sentence(), QStringLiteral("No chat template in this file, using “ChatML”"));
        QCOMPARE(banner.preview(), QStringLiteral("<|im_start|>user\nHello<|im_end|>\n"));
        banner.setTemplate(guessed("The chat template cannot be used: line 2: no end."), true);
        QCOMPARE(banner.sentence(), QStringLiteral("The chat template in this file is broken, using “ChatML”"));
    }

    void itIsHiddenForTheFilesOwnTemplate() {
        TemplateBanner banner(Theme::load(ThemeKind::Light));
        banner.setTemplate({}, true);
        QVERIFY(banner.isHidden());
        banner.setTemplate(guessed("There is no chat template in this file."), true);
        banner.setTemplate({}, false);
        QVERIFY(banner.isHidden());
    }

    void keepingMakesAChoiceOfTheGuess() {
        TemplateBanner banner(Theme::load(ThemeKind::Dark));
        QSignalSpy chosen(&banner, &TemplateBanner::chosen);
        banner.setTemplate(guessed("There is no chat template in this file."), true);
        auto* keep = banner.findChild<QAbstractButton*>(QStringLiteral("keep"));
        QVERIFY(keep != nullptr);
        keep->click();
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen.first().first().toString(), QStringLiteral("ChatML"));
        QVERIFY(banner.isHidden());
        // The engine says that it is used now: no reason to come back.
        api::TemplateInfo info = guessed("There is no chat template in this file.");
        info.guessed = false;
        banner.setTemplate(info, false);
        QVERIFY(banner.isHidden());
    }

    void theTokenViewCountsBeginTokens() {
        TokenView view(Theme::load(ThemeKind::Dark), nullptr);
        view.setTokens(prompt({1, 5, 6}));
        QCOMPARE(view.summary(), QStringLiteral("3 tokens, 1 begin token"));
        view.setTokens(prompt({5}));
        QCOMPARE(view.summary(), QStringLiteral("1 token, no begin token"));
        view.setTokens(prompt({1, 1, 5}));
        QVERIFY(view.summary().startsWith(QStringLiteral("3 tokens, 2 begin tokens")));
    }

    void theTokenViewShowsPlaceIdTextAndKind() {
        TokenView view(Theme::load(ThemeKind::Dark), nullptr);
        view.setTokens(prompt({1, 5, 6}));
        const PromptTokensModel& tokens = view.tokens();
        QCOMPARE(tokens.rowCount(), 3);
        const auto shown = [&](int row, int column) {
            return tokens.data(tokens.index(row, column), Qt::DisplayRole).toString();
        };
        QCOMPARE(shown(0, PromptTokensModel::Text), QStringLiteral("<s>"));
        QCOMPARE(shown(0, PromptTokensModel::What), QStringLiteral("begin token"));
        QCOMPARE(shown(1, PromptTokensModel::Id), QStringLiteral("5"));
        QCOMPARE(shown(1, PromptTokensModel::Text), QStringLiteral("·a↵"));
        QCOMPARE(shown(1, PromptTokensModel::What), QStringLiteral("message 1"));
        QCOMPARE(shown(2, PromptTokensModel::What), QStringLiteral("template"));
    }

    void whatIsReadCharacterByCharacterIsDrawnSo() {
        const Theme theme = Theme::load(ThemeKind::Dark);
        if (drawsLiterally(monoFont(TextRole::Table)))
            qInfo("The font here joins no signs.");
        TemplateBanner banner(theme);
        banner.setTemplate(guessed("There is no chat template in this file."), true);
        auto* preview = banner.findChild<QPlainTextEdit*>();
        QVERIFY(preview != nullptr && drawsLiterally(preview->font()));
        TokenView view(theme, nullptr);
        view.setTokens(prompt({1}));
        const PromptTokensModel& tokens = view.tokens();
        QVERIFY(drawsLiterally(tokens.data(tokens.index(0, PromptTokensModel::Text), Qt::FontRole).value<QFont>()));
    }

    void theTokenViewSaysWhatFailed() {
        TokenView view(Theme::load(ThemeKind::Dark), nullptr);
        api::PromptTokensEvent event;
        event.error = Error{ErrorCode::Template, "The template failed."};
        view.setTokens(event);
        QCOMPARE(view.summary(), QStringLiteral("The template failed."));
    }
};

QTEST_MAIN(TestTemplateBanner)
#include "test_template_banner.moc"
