// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/settings_panel.h"

#include <QCoreApplication>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/chat/preset_row.h"
#include "ui/widgets/button.h"
#include "ui/widgets/line_edit.h"

namespace kvscope::ui {
namespace {

constexpr int kWidth = 400;
constexpr int kFieldWidth = 96;
constexpr int kPromptHeight = 84;
constexpr int kFrame = 2; ///< room for the line around the card
constexpr int kFromScreen = 4;

QString fieldText(const char* source) {
    return QCoreApplication::translate("settings", source);
}

QLabel* label(const QString& text, const char* name, const QFont& font, QWidget* parent) {
    auto* out = new QLabel(text, parent);
    out->setObjectName(QLatin1StringView(name));
    out->setFont(font);
    out->setTextFormat(Qt::PlainText);
    out->setWordWrap(true);
    return out;
}

} // namespace

SettingsPanel::SettingsPanel(const Theme& theme, QWidget* parent, PresetModel* presets)
    : Popup(theme, parent)
    , m_sheet(new QWidget)
    , m_prompt(new QPlainTextEdit(m_sheet)) {
    setFixedWidth(kWidth);
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setWidget(m_sheet);
    for (QWidget* ground : {m_sheet, scroll->viewport()})
        ground->setAutoFillBackground(false); // the card's own shows through
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(kFrame, kFrame, kFrame, kFrame);
    all->addWidget(scroll);
    auto* column = new QVBoxLayout(m_sheet);
    column->setContentsMargins(16 - kFrame, 14 - kFrame, 16 - kFrame, 14 - kFrame);
    column->setSpacing(4);
    if (presets) {
        m_presets = new PresetRow(presets, theme, m_sheet);
        column->addWidget(label(tr("Preset"), "panelTitle", textFont(TextRole::Control, QFont::DemiBold), m_sheet));
        column->addWidget(m_presets);
        column->addSpacing(8);
        connect(m_presets, &PresetRow::chosen, this, &SettingsPanel::takePreset);
        connect(m_presets, &PresetRow::sizeChanged, this, &SettingsPanel::fit);
    }
    column->addWidget(label(tr("System prompt"), "panelTitle", textFont(TextRole::Control, QFont::DemiBold), m_sheet));
    column->addWidget(label(tr("Read before the first message. Changing it computes the chat again."), "hint",
                            textFont(TextRole::Table), m_sheet));
    column->addSpacing(4); // clear of the focus ring
    m_prompt->setFixedHeight(kPromptHeight);
    m_prompt->setFont(textFont(TextRole::Control));
    m_prompt->setTabChangesFocus(true);
    m_prompt->setAccessibleName(tr("System prompt"));
    m_prompt->setPlaceholderText(tr("None: the model's own template decides"));
    column->addWidget(m_prompt);
    column->addSpacing(8);
    column->addWidget(label(tr("Sampling"), "panelTitle", textFont(TextRole::Control, QFont::DemiBold), m_sheet));
    for (const SettingField& field : settingFields())
        column->addWidget(makeRow(field));
    auto* defaults = new Button(tr("Defaults"), Button::Kind::Ghost, theme, m_sheet);
    defaults->setGlyph(Icon::Again);
    connect(defaults, &QAbstractButton::clicked, this, [this] {
        m_settings = defaultChatSettings();
        for (const SettingField& field : settingFields())
            showValue(field);
        emit settingsChanged(m_settings);
        refreshPreset();
    });
    column->addWidget(defaults, 0, Qt::AlignRight);
    connect(m_prompt, &QPlainTextEdit::textChanged, this, &SettingsPanel::refreshPreset);
}

QWidget* SettingsPanel::makeRow(const SettingField& field) {
    auto* row = new QWidget(m_sheet);
    auto* grid = new QGridLayout(row);
    grid->setContentsMargins(0, 2, 0, 2);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(0);
    auto* name = label(fieldText(field.name), "settingName", textFont(TextRole::Control), row);
    name->setToolTip(fieldText(field.help));
    name->setWordWrap(false);
    auto* option = label(QLatin1StringView(field.option), "hint", monoFont(TextRole::Axis), row);
    option->setWordWrap(false);
    auto* edit = new LineEdit(row);
    edit->setFixedWidth(kFieldWidth);
    edit->setFont(figureFont(TextRole::Table));
    edit->setAccessibleName(fieldText(field.name));
    edit->setToolTip(tr("%1. Allowed: %2").arg(fieldText(field.help), fieldText(field.range)));
    auto* message = label(QString(), "refusal", textFont(TextRole::Axis), row);
    message->hide();
    grid->addWidget(name, 0, 0);
    grid->addWidget(option, 0, 1, Qt::AlignVCenter);
    grid->addWidget(edit, 0, 2);
    message->setWordWrap(false);
    message->setContentsMargins(0, 4, 0, 0); // clear of the focus ring
    grid->addWidget(message, 1, 0, 1, 3, Qt::AlignRight);
    grid->setColumnStretch(1, 1);
    m_rows.push_back({edit, message, 0});
    const std::size_t index = std::size_t(field.id);
    connect(edit, &QLineEdit::textEdited, this, [this, index] { read(settingFields()[index]); });
    connect(edit, &QLineEdit::editingFinished, this, [this, index] {
        if (m_rows[index].message->isHidden())
            showValue(settingFields()[index]);
    });
    return row;
}

void SettingsPanel::read(const SettingField& field) {
    api::SamplingParams candidate = m_settings;
    const Result<void> result = parseSetting(candidate, field, m_rows[std::size_t(field.id)].edit->text());
    tell(field, result ? QString() : QString::fromStdString(result.error().message));
    // On the way to 1e9 stands 1, which is possible: it must not stay in force when the whole is not.
    if (!result)
        setSettingValue(candidate, field.id, m_rows[std::size_t(field.id)].base);
    if (settingValue(candidate, field.id) == settingValue(m_settings, field.id))
        return;
    m_settings = candidate;
    emit settingsChanged(m_settings);
    refreshPreset();
}

void SettingsPanel::refreshPreset() {
    if (m_presets)
        m_presets->setValues(m_prompt->toPlainText(), m_settings, false);
}

/// All of a preset counts at once, the prompt too: a part of it would be another preset.
void SettingsPanel::takePreset(const QString& systemPrompt, const api::SamplingParams& settings) {
    m_settings = settings;
    m_prompt->setPlainText(systemPrompt);
    for (const SettingField& field : settingFields())
        showValue(field);
    commitPrompt();
    emit settingsChanged(m_settings);
    refreshPreset();
}

void SettingsPanel::tell(const SettingField& field, const QString& refusal) {
    const Row& row = m_rows[std::size_t(field.id)];
    row.message->setText(refusal);
    row.message->setVisible(!refusal.isEmpty());
    row.edit->setAccessibleDescription(refusal);
    fit();
}

void SettingsPanel::showValue(const SettingField& field) {
    Row& row = m_rows[std::size_t(field.id)];
    row.base = settingValue(m_settings, field.id);
    row.edit->setText(settingText(m_settings, field));
    tell(field, {});
}

void SettingsPanel::setValues(const QString& systemPrompt, const api::SamplingParams& settings) {
    m_settings = settings;
    m_lastPrompt = systemPrompt;
    if (m_prompt->toPlainText() != systemPrompt)
        m_prompt->setPlainText(systemPrompt);
    for (const SettingField& field : settingFields())
        showValue(field);
    if (m_presets)
        m_presets->setValues(systemPrompt, settings, true);
}

void SettingsPanel::popupBelow(QWidget* anchor) {
    m_room = anchor->screen()->availableGeometry().adjusted(kFromScreen, kFromScreen, -kFromScreen, -kFromScreen);
    const QPoint at = anchor->mapToGlobal(QPoint(anchor->width() - width(), anchor->height() + 4));
    move(std::clamp(at.x(), m_room.left(), std::max(m_room.left(), m_room.right() + 1 - width())), at.y());
    fit();
    show();
    m_prompt->setFocus();
}

/// As high as the content, as far as the screen has room for it: the rest scrolls.
void SettingsPanel::fit() {
    if (m_room.isEmpty())
        return;
    m_sheet->layout()->activate();
    resize(kWidth, std::min(sizeHint().height(), m_room.height()));
    move(x(), std::clamp(y(), m_room.top(), m_room.bottom() + 1 - height()));
}

/// As high as the wrapped words need at this width: Qt asks for the height at the width of the unwrapped ones.
QSize SettingsPanel::sizeHint() const {
    return {kWidth, m_sheet->layout()->totalHeightForWidth(kWidth - 2 * kFrame) + 2 * kFrame};
}

/// The system prompt counts when the panel closes: while typing, every keystroke would be another prompt.
void SettingsPanel::hideEvent(QHideEvent* event) {
    Popup::hideEvent(event);
    commitPrompt();
}

void SettingsPanel::commitPrompt() {
    const QString prompt = m_prompt->toPlainText();
    if (prompt == m_lastPrompt)
        return;
    m_lastPrompt = prompt;
    emit systemPromptChanged(prompt);
}

QLineEdit* SettingsPanel::field(SettingField::Id id) const {
    return m_rows[std::size_t(id)].edit;
}

QLabel* SettingsPanel::message(SettingField::Id id) const {
    return m_rows[std::size_t(id)].message;
}

} // namespace kvscope::ui
