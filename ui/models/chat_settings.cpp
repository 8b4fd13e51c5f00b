// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/chat_settings.h"

#include <QCoreApplication>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLocale>
#include <QRegularExpression>
#include <cmath>
#include <limits>

namespace kvscope::ui {
namespace {

using Id = SettingField::Id;
constexpr double kNever = std::numeric_limits<double>::quiet_NaN();
/// Largest whole number that a double and JSON keep exactly.
constexpr double kMaxSeed = 9007199254740991.0;
constexpr double kMaxAnswer = 1048576.0;

QString tr(const char* text) {
    return QCoreApplication::translate("settings", text);
}

} // namespace

const std::array<SettingField, 9>& settingFields() {
    static const std::array<SettingField, 9> fields{{
        {Id::Temperature, "Temperature", "--temperature",
         "Higher is more surprising, 0 always takes the likeliest token", "0 to 2", 0, 2, true, true, false, 0,
         "greedy"},
        {Id::TopK, "Top-k", "--top-k", "Draw from the k likeliest tokens only", "0 (off) to 1,000,000", 0, 1e6, true,
         true, true, 0, "off"},
        {Id::TopP, "Top-p", "--top-p", "Draw from the likeliest tokens that together reach this share",
         "above 0, up to 1 (off)", 0, 1, false, true, false, 1, "off"},
        {Id::MinP, "Min-p", "--min-p", "Leave out tokens below this share of the likeliest one", "0 (off) to below 1",
         0, 1, true, false, false, 0, "off"},
        {Id::RepeatPenalty, "Repetition penalty", "--repeat-penalty",
         "Divides the score of tokens that occurred already", "0.5 to 2, 1 is off", 0.5, 2, true, true, false, 1,
         "off"},
        {Id::PresencePenalty, "Presence penalty", "--presence-penalty",
         "Lowers the score of tokens that occurred at all", "−2 to 2, 0 is off", -2, 2, true, true, false, 0, "off"},
        {Id::FrequencyPenalty, "Frequency penalty", "--frequency-penalty",
         "Lowers the score of tokens with each occurrence", "−2 to 2, 0 is off", -2, 2, true, true, false, 0, "off"},
        {Id::Seed, "Seed", "--seed", "The same seed and text give the same answer", "0 to 9,007,199,254,740,991", 0,
         kMaxSeed, true, true, true, kNever, ""},
        {Id::MaxTokens, "Longest answer", "--max-tokens", "Tokens after which an answer ends", "1 to 1,048,576", 1,
         kMaxAnswer, true, true, true, kNever, ""},
    }};
    return fields;
}

double settingValue(const api::SamplingParams& p, Id id) {
    switch (id) {
    case Id::Temperature:
        return p.temperature;
    case Id::TopK:
        return p.topK;
    case Id::TopP:
        return p.topP;
    case Id::MinP:
        return p.minP;
    case Id::RepeatPenalty:
        return p.repeatPenalty;
    case Id::PresencePenalty:
        return p.presencePenalty;
    case Id::FrequencyPenalty:
        return p.frequencyPenalty;
    case Id::Seed:
        return double(p.seed);
    case Id::MaxTokens:
        return p.maxTokens;
    }
    return 0;
}

void setSettingValue(api::SamplingParams& p, Id id, double value) {
    switch (id) {
    case Id::Temperature:
        p.temperature = value;
        break;
    case Id::TopK:
        p.topK = std::int32_t(value);
        break;
    case Id::TopP:
        p.topP = value;
        break;
    case Id::MinP:
        p.minP = value;
        break;
    case Id::RepeatPenalty:
        p.repeatPenalty = value;
        break;
    case Id::PresencePenalty:
        p.presencePenalty = value;
        break;
    case Id::FrequencyPenalty:
        p.frequencyPenalty = value;
        break;
    case Id::Seed:
        p.seed = std::uint64_t(value);
        break;
    case Id::MaxTokens:
        p.maxTokens = std::int32_t(value);
        break;
    }
}

QString settingText(const api::SamplingParams& params, const SettingField& field) {
    const double value = settingValue(params, field.id);
    if (value == field.off)
        return tr(field.offWord);
    return field.whole ? QString::number(qint64(value)) : QString::number(value, 'g', QLocale::FloatingPointShortest);
}

Result<void> parseSetting(api::SamplingParams& params, const SettingField& field, const QString& text) {
    QString typed = text.trimmed();
    const auto refused = [&] {
        QString sentence = tr("Allowed: %1").arg(tr(field.range));
        if (!field.whole && typed.contains(QLatin1Char(',')))
            sentence = tr("%1, with a point: 0.5").arg(sentence);
        return fail(ErrorCode::InvalidArgument, sentence.toStdString());
    };
    if (!std::isnan(field.off) && typed.compare(tr(field.offWord), Qt::CaseInsensitive) == 0) {
        setSettingValue(params, field.id, field.off);
        return {};
    }
    typed.replace(QChar(0x2212), QLatin1Char('-'));
    // A comma separates thousands here as everywhere in the window, and nothing else: 0,5 would be read as 5 by some
    // and as a half by others.
    static const QRegularExpression kGrouped(QStringLiteral("^[+-]?[0-9]{1,3}(,[0-9]{3})+$"));
    if (field.whole && kGrouped.match(typed).hasMatch())
        typed.remove(QLatin1Char(','));
    bool ok = false;
    const double value = typed.toDouble(&ok);
    if (!ok || !std::isfinite(value) || (field.whole && value != std::floor(value)))
        return refused();
    if (value < field.lowest || (value == field.lowest && !field.lowestAllowed))
        return refused();
    if (value > field.highest || (value == field.highest && !field.highestAllowed))
        return refused();
    setSettingValue(params, field.id, value);
    return {};
}

api::SamplingParams defaultChatSettings() {
    api::SamplingParams params;
    params.temperature = 0.7;
    params.topP = 0.95;
    params.repeatPenalty = 1.1;
    params.maxTokens = 512;
    return params;
}

QByteArray settingsToJson(const api::SamplingParams& p) {
    QJsonObject object;
    object.insert(QStringLiteral("temperature"), p.temperature);
    object.insert(QStringLiteral("top_k"), p.topK);
    object.insert(QStringLiteral("top_p"), p.topP);
    object.insert(QStringLiteral("min_p"), p.minP);
    object.insert(QStringLiteral("repeat_penalty"), p.repeatPenalty);
    object.insert(QStringLiteral("presence_penalty"), p.presencePenalty);
    object.insert(QStringLiteral("frequency_penalty"), p.frequencyPenalty);
    object.insert(QStringLiteral("seed"), qint64(p.seed));
    object.insert(QStringLiteral("max_tokens"), p.maxTokens);
    QJsonArray stop;
    for (const std::string& s : p.stop)
        stop.append(QString::fromStdString(s));
    object.insert(QStringLiteral("stop"), stop);
    return QJsonDocument(object).toJson(QJsonDocument::Compact);
}

api::SamplingParams settingsFromJson(const QByteArray& json) {
    const QJsonObject object = QJsonDocument::fromJson(json).object();
    api::SamplingParams p = defaultChatSettings();
    const auto read = [&](const char* name, double fallback) {
        return object.value(QLatin1StringView(name)).toDouble(fallback);
    };
    p.temperature = read("temperature", p.temperature);
    p.topK = std::int32_t(read("top_k", p.topK));
    p.topP = read("top_p", p.topP);
    p.minP = read("min_p", p.minP);
    p.repeatPenalty = read("repeat_penalty", p.repeatPenalty);
    p.presencePenalty = read("presence_penalty", p.presencePenalty);
    p.frequencyPenalty = read("frequency_penalty", p.frequencyPenalty);
    p.seed = std::uint64_t(object.value(QStringLiteral("seed")).toInteger(qint64(p.seed)));
    p.maxTokens = std::int32_t(read("max_tokens", p.maxTokens));
    for (const QJsonValue stop : object.value(QStringLiteral("stop")).toArray())
        p.stop.push_back(stop.toString().toStdString());
    return api::validate(p) ? p : defaultChatSettings();
}

} // namespace kvscope::ui
