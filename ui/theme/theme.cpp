// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/theme.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

static void initResources() { // a static library's resources are linked only when somebody asks for them
    Q_INIT_RESOURCE(kvscope);
}

namespace kvscope::ui {
namespace {

QColor token(const QJsonObject& colors, const char* name) {
    const QColor color(colors.value(QLatin1StringView(name)).toString());
    if (!color.isValid())
        qFatal("resources/tokens.json lacks the colour \"%s\"", name);
    return color;
}

template <std::size_t N> std::array<QColor, N> ramp(const QJsonObject& theme, const char* name) {
    const QJsonArray values = theme.value(QLatin1StringView(name)).toArray();
    if (values.size() != qsizetype(N))
        qFatal("resources/tokens.json: \"%s\" needs %d colours", name, int(N));
    std::array<QColor, N> out;
    for (std::size_t i = 0; i < N; ++i)
        out[i] = QColor(values.at(qsizetype(i)).toString());
    return out;
}

struct RoleMetrics {
    int pixels;
    int line;
};
RoleMetrics metricsOf(TextRole role) {
    switch (role) {
    case TextRole::Axis:
        return {11, 16};
    case TextRole::Table:
        return {12, 16};
    case TextRole::Control:
        return {13, 20};
    case TextRole::Chat:
        return {14, 22};
    case TextRole::Dialog:
        return {16, 24};
    case TextRole::Headline:
        return {20, 28};
    case TextRole::BigHeadline:
        return {28, 36};
    }
    return {13, 20};
}

QFont make(const QStringList& families, TextRole role, int weight) {
    QFont font;
    font.setFamilies(families);
    font.setPixelSize(metricsOf(role).pixels);
    font.setWeight(QFont::Weight(weight));
    // Full hinting rounds widths to whole pixels: letters crowd, and regular looks bold.
    font.setHintingPreference(QFont::PreferVerticalHinting);
    return font;
}

QJsonObject tokensOf(ThemeKind kind) {
    initResources();
    QFile file(QStringLiteral(":/kvscope/tokens.json"));
    if (!file.open(QIODevice::ReadOnly))
        qFatal("resources/tokens.json is not compiled into this program");
    return QJsonDocument::fromJson(file.readAll())
        .object()
        .value(kind == ThemeKind::Dark ? QStringLiteral("dark") : QStringLiteral("light"))
        .toObject();
}

} // namespace

Theme Theme::load(ThemeKind kind) {
    const QJsonObject theme = tokensOf(kind);
    const QJsonObject c = theme.value(QStringLiteral("colors")).toObject();
    Theme t;
    t.kind = kind;
    t.bg0 = token(c, "bg0");
    t.bg1 = token(c, "bg1");
    t.bg2 = token(c, "bg2");
    t.bg3 = token(c, "bg3");
    t.bg4 = token(c, "bg4");
    t.well = token(c, "well");
    t.line1 = token(c, "line1");
    t.line2 = token(c, "line2");
    t.line3 = token(c, "line3");
    t.text1 = token(c, "text1");
    t.text2 = token(c, "text2");
    t.text3 = token(c, "text3");
    t.textOff = token(c, "textoff");
    t.accent = token(c, "accent");
    t.accentFill = token(c, "accentfill");
    t.accentHover = token(c, "accenthover");
    t.onAccent = token(c, "onaccent");
    t.accentSoft = token(c, "accentsoft");
    t.focus = token(c, "focus");
    t.ok = token(c, "ok");
    t.okFill = token(c, "okfill");
    t.warn = token(c, "warn");
    t.warnFill = token(c, "warnfill");
    t.danger = token(c, "danger");
    t.dangerFill = token(c, "dangerfill");
    t.dangerButton = token(c, "dangerbtn");
    t.bubble = token(c, "bubble");
    t.sel = token(c, "sel");
    t.stateEmpty = token(c, "s_free");
    t.stateFilling = token(c, "s_filling");
    t.stateActive = token(c, "s_active");
    t.stateShared = token(c, "s_shared");
    t.stateCached = token(c, "s_cached");
    t.stateCachedRing = token(c, "s_cachedring");
    t.statePinned = token(c, "s_pinned");
    t.stateTransfer = token(c, "s_transfer");
    t.stateMark = token(c, "s_mark");
    t.memoryWeights = token(c, "m_weights");
    t.memoryKv = token(c, "m_kv");
    t.memoryActivations = token(c, "m_act");
    t.memoryDriver = token(c, "m_driver");
    t.memoryOther = token(c, "m_other");
    t.memoryFree = token(c, "m_free");
    t.plotLines = {token(c, "l1"), token(c, "l2"), token(c, "l3"), token(c, "l4"), token(c, "l5")};
    t.owners = ramp<12>(theme, "owners");
    t.age = ramp<9>(theme, "age");
    t.uses = ramp<7>(theme, "refs");
    return t;
}

int lineHeight(TextRole role) {
    return metricsOf(role).line;
}

QFont textFont(TextRole role, int weight) {
    return make({QStringLiteral("Inter"), QStringLiteral("Noto Sans CJK SC"), QStringLiteral("Noto Sans"),
                 QStringLiteral("Noto Color Emoji")},
                role, weight);
}

QFont figureFont(TextRole role, int weight) {
    return make({QStringLiteral("Noto Sans"), QStringLiteral("Noto Sans CJK SC"), QStringLiteral("Noto Color Emoji")},
                role, weight);
}

QFont monoFont(TextRole role) {
    return make(
        {QStringLiteral("JetBrains Mono"), QStringLiteral("Noto Sans Mono CJK SC"), QStringLiteral("Noto Sans Mono")},
        role, QFont::Normal);
}

} // namespace kvscope::ui
