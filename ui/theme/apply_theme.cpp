// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/apply_theme.h"

#include <QApplication>
#include <QFile>
#include <QHash>
#include <QRegularExpression>
#include <QStyle>
#include <QStyleFactory>
#include <QWidget>

#include "ui/theme/focus_ring.h"

namespace kvscope::ui {
namespace {

constexpr const char* kStyled = "kvscopeStyled";

QHash<QString, QColor> tokensByName(const Theme& t) {
    return {
        {QStringLiteral("bg0"), t.bg0},
        {QStringLiteral("bg1"), t.bg1},
        {QStringLiteral("bg2"), t.bg2},
        {QStringLiteral("bg3"), t.bg3},
        {QStringLiteral("bg4"), t.bg4},
        {QStringLiteral("well"), t.well},
        {QStringLiteral("line1"), t.line1},
        {QStringLiteral("line2"), t.line2},
        {QStringLiteral("line3"), t.line3},
        {QStringLiteral("text1"), t.text1},
        {QStringLiteral("text2"), t.text2},
        {QStringLiteral("text3"), t.text3},
        {QStringLiteral("textOff"), t.textOff},
        {QStringLiteral("accent"), t.accent},
        {QStringLiteral("accentFill"), t.accentFill},
        {QStringLiteral("accentHover"), t.accentHover},
        {QStringLiteral("onAccent"), t.onAccent},
        {QStringLiteral("sel"), t.sel},
        {QStringLiteral("focus"), t.focus},
        {QStringLiteral("warn"), t.warn},
        {QStringLiteral("danger"), t.danger},
    };
}

} // namespace

QPalette makePalette(const Theme& t) {
    QPalette p;
    const auto set = [&p](QPalette::ColorRole role, const QColor& color, const QColor& disabled) {
        p.setColor(QPalette::Active, role, color);
        p.setColor(QPalette::Inactive, role, color);
        p.setColor(QPalette::Disabled, role, disabled);
    };
    set(QPalette::Window, t.bg1, t.bg1);
    set(QPalette::WindowText, t.text1, t.textOff);
    set(QPalette::Base, t.bg1, t.bg1);
    set(QPalette::AlternateBase, t.bg2, t.bg2);
    set(QPalette::Text, t.text1, t.textOff);
    set(QPalette::PlaceholderText, t.text3, t.textOff);
    set(QPalette::Button, t.bg3, t.bg3);
    set(QPalette::ButtonText, t.text1, t.textOff);
    set(QPalette::BrightText, t.onAccent, t.textOff);
    set(QPalette::Highlight, t.accentFill, t.bg4);
    set(QPalette::HighlightedText, t.onAccent, t.text2);
    set(QPalette::Link, t.accent, t.textOff);
    set(QPalette::LinkVisited, t.accent, t.textOff);
    set(QPalette::ToolTipBase, t.bg3, t.bg3);
    set(QPalette::ToolTipText, t.text1, t.text1);
    set(QPalette::Light, t.bg4, t.bg4);
    set(QPalette::Midlight, t.bg3, t.bg3);
    set(QPalette::Mid, t.line2, t.line2);
    set(QPalette::Dark, t.line1, t.line1);
    set(QPalette::Shadow, t.bg0, t.bg0);
    return p;
}

QString makeStyleSheet(const Theme& theme) {
    QFile file(QStringLiteral(":/kvscope/styles/kvscope.qss"));
    if (!file.open(QIODevice::ReadOnly))
        qFatal("resources/styles/kvscope.qss is not compiled into this program");
    const QString source = QString::fromUtf8(file.readAll());
    const QHash<QString, QColor> tokens = tokensByName(theme);
    static const QRegularExpression kToken(QStringLiteral("@([A-Za-z0-9]+)"));
    QString out;
    qsizetype from = source.indexOf(QLatin1StringView("*/")) + 2; // the head comment names @name itself
    for (auto match = kToken.match(source, from); match.hasMatch(); match = kToken.match(source, from)) {
        out += QStringView(source).mid(from, match.capturedStart() - from);
        const QString name = match.captured(1);
        if (name == QLatin1StringView("kind"))
            out += theme.kind == ThemeKind::Dark ? QStringLiteral("dark") : QStringLiteral("light");
        else if (tokens.contains(name))
            out += tokens.value(name).name();
        else
            qFatal("kvscope.qss names the token \"%s\", which does not exist", qPrintable(name));
        from = match.capturedEnd();
    }
    out += QStringView(source).mid(from);
    return out;
}

void applyTheme(QApplication& application, const Theme& theme) {
    if (!application.property(kStyled).toBool()) { // style() is Qt's style sheet wrapper once a sheet is set
        QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
        application.setProperty(kStyled, true);
    }
    // It goes to every widget, and is the same in all themes.
    if (const QFont font = textFont(TextRole::Control); QApplication::font() != font)
        QApplication::setFont(font);
    // From one sheet to another Qt takes five times as long as from none: it asks what every widget had before.
    application.setStyleSheet(QString());
    QApplication::setPalette(makePalette(theme));
    application.setStyleSheet(makeStyleSheet(theme));
    FocusRing::install(application, theme);
}

void handDown(QWidget& root, const Theme& theme) {
    if (auto* themed = dynamic_cast<Themed*>(&root))
        themed->setTheme(theme);
    const QList<QWidget*> children = root.findChildren<QWidget*>();
    for (QWidget* child : children)
        if (auto* themed = dynamic_cast<Themed*>(child))
            themed->setTheme(theme);
}

} // namespace kvscope::ui
