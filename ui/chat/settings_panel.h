// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <vector>

#include "ui/models/chat_settings.h"
#include "ui/theme/apply_theme.h"

class QLabel;
class QLineEdit;
class QPlainTextEdit;

namespace kvscope::ui {

/// System prompt and sampling of one conversation, as a popup below its button. A value counts when it is possible;
/// an impossible one stays in its field with the allowed range below it, and the last possible one stays in force.
class SettingsPanel final : public QFrame, public Themed {
    Q_OBJECT
public:
    explicit SettingsPanel(const Theme& theme, QWidget* parent = nullptr);

    void setValues(const QString& systemPrompt, const api::SamplingParams& settings);
    void popupBelow(QWidget* anchor);
    /// For tests.
    QLineEdit* field(SettingField::Id id) const;
    QLabel* message(SettingField::Id id) const;
    QPlainTextEdit* systemPromptEdit() const { return m_prompt; }
    void setTheme(const Theme& theme) override;

signals:
    void systemPromptChanged(const QString& prompt);
    void settingsChanged(const api::SamplingParams& settings);

protected:
    void paintEvent(QPaintEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    struct Row {
        QLineEdit* edit;
        QLabel* message;
    };
    QWidget* makeRow(const SettingField& field);
    void read(const SettingField& field);
    void showValue(const SettingField& field);
    void tell(const SettingField& field, const QString& refusal);

    Theme m_theme;
    QPlainTextEdit* m_prompt;
    std::vector<Row> m_rows; ///< in the order of settingFields()
    QString m_lastPrompt;
    api::SamplingParams m_settings;
};

} // namespace kvscope::ui
