// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "ui/models/preset_model.h"
#include "ui/theme/apply_theme.h"

class QComboBox;
class QLabel;

namespace kvscope::ui {

class Button;
class IconButton;
class LineEdit;

/// Chooses, saves, renames and deletes presets. Shows which preset the present values are; values that none has are
/// "Own values", or a changed preset while one was chosen.
class PresetRow final : public QWidget, public Themed {
    Q_OBJECT
public:
    PresetRow(PresetModel* presets, const Theme& theme, QWidget* parent = nullptr);

    /// `fresh`: another chat's values, so that nothing counts as changed.
    void setValues(const QString& systemPrompt, const api::SamplingParams& settings, bool fresh);
    QComboBox* box() const { return m_box; }
    LineEdit* nameField() const { return m_name; }
    IconButton* menuButton() const { return m_menu; }
    void beginSaveAs();
    void beginRename();
    void saveChanges();
    void removeChosen();
    void setTheme(const Theme& theme) override;

signals:
    void chosen(const QString& systemPrompt, const api::SamplingParams& settings);
    void sizeChanged();

private:
    enum class Naming { None, New, Rename };
    void refresh();
    void showMenu();
    void beginNaming(Naming naming, const QString& proposed);
    void endNaming();
    void confirmName();
    void say(const QString& sentence);

    Theme m_theme;
    PresetModel* m_presets;
    QComboBox* m_box;
    IconButton* m_menu;
    QWidget* m_nameRow;
    LineEdit* m_name;
    QLabel* m_says;
    QString m_prompt;
    api::SamplingParams m_settings;
    std::int64_t m_base = kNoId; ///< the preset that was chosen last for this chat
    Naming m_naming = Naming::None;
};

} // namespace kvscope::ui
