// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "ui/models/chat_settings.h"
#include "ui/widgets/popup.h"

class QLabel;
class QLineEdit;
class QPlainTextEdit;

namespace kvscope::ui {

class PresetModel;
class PresetRow;

/// System prompt and sampling of one conversation, as a popup below its button. A value counts when it is possible;
/// an impossible one stays in its field with the allowed range below it, and the last possible one stays in force.
class SettingsPanel final : public Popup {
    Q_OBJECT
public:
    /// `presets` outlives it; may be null: then there is no row for them.
    explicit SettingsPanel(const Theme& theme, QWidget* parent = nullptr, PresetModel* presets = nullptr);

    void setValues(const QString& systemPrompt, const api::SamplingParams& settings);
    void popupBelow(QWidget* anchor);
    QSize sizeHint() const override;
    /// For tests.
    QLineEdit* field(SettingField::Id id) const;
    QLabel* message(SettingField::Id id) const;
    QPlainTextEdit* systemPromptEdit() const { return m_prompt; }
    PresetRow* presets() const { return m_presets; } ///< nullptr without a store

signals:
    void systemPromptChanged(const QString& prompt);
    void settingsChanged(const api::SamplingParams& settings);

protected:
    void hideEvent(QHideEvent* event) override;

private:
    struct Row {
        QLineEdit* edit;
        QLabel* message;
        double base = 0; ///< the value before the field was edited: what counts again while its text is impossible
    };
    QWidget* makeRow(const SettingField& field);
    void read(const SettingField& field);
    void showValue(const SettingField& field);
    void tell(const SettingField& field, const QString& refusal);
    void takePreset(const QString& systemPrompt, const api::SamplingParams& settings);
    void commitPrompt();
    void refreshPreset();
    void fit();

    QWidget* m_sheet; ///< everything; scrolls where the screen is too low for it
    QRect m_room;     ///< of the screen it was opened on
    PresetRow* m_presets = nullptr;
    QPlainTextEdit* m_prompt;
    std::vector<Row> m_rows; ///< in the order of settingFields()
    QString m_lastPrompt;
    api::SamplingParams m_settings;
};

} // namespace kvscope::ui
