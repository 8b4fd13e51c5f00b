// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QString>
#include <array>
#include <cstdint>

#include "engine/api/request.h"
#include "engine/base/result.h"

namespace kvscope::ui {

/// One sampling setting as a field of the panel: what it may be, when it is off, how it is written.
struct SettingField {
    enum class Id { Temperature, TopK, TopP, MinP, RepeatPenalty, PresencePenalty, FrequencyPenalty, Seed, MaxTokens };
    Id id;
    const char* name;   ///< English source text, translated where shown
    const char* option; ///< name in kvscope-cli, shown in mono below the name
    const char* help;   ///< one sentence
    const char* range;  ///< the allowed range in words, the message of a refused value
    double lowest, highest;
    bool lowestAllowed, highestAllowed; ///< whether the ends themselves are allowed
    bool whole;                         ///< whole numbers only
    double off;                         ///< value at which it does nothing; NaN = never off
    const char* offWord;                ///< what the field shows then: "off", "greedy"
};

const std::array<SettingField, 9>& settingFields();

double settingValue(const api::SamplingParams& params, SettingField::Id id);
void setSettingValue(api::SamplingParams& params, SettingField::Id id, double value);
/// "0.7", "off", "greedy", "128"
QString settingText(const api::SamplingParams& params, const SettingField& field);
/// Reads what the user typed ("off" included; the decimal comma too). On error the message names the allowed range
/// and `params` is untouched.
Result<void> parseSetting(api::SamplingParams& params, const SettingField& field, const QString& text);

/// Defaults of a new chat in the window: a little warmth instead of kvscope-cli's greedy, room for a whole answer.
api::SamplingParams defaultChatSettings();

/// As stored beside each message. Unknown members are ignored, missing ones keep their default.
QByteArray settingsToJson(const api::SamplingParams& params);
api::SamplingParams settingsFromJson(const QByteArray& json);

} // namespace kvscope::ui
