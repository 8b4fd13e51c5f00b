// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/preset_row.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "ui/widgets/button.h"
#include "ui/widgets/icon_button.h"
#include "ui/widgets/line_edit.h"

namespace kvscope::ui {

PresetRow::PresetRow(PresetModel* presets, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_presets(presets)
    , m_box(new QComboBox(this))
    , m_menu(new IconButton(Icon::More, tr("Save, rename or delete a preset"), theme, this))
    , m_nameRow(new QWidget(this))
    , m_name(new LineEdit(m_nameRow))
    , m_says(new QLabel(this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    auto* row = new QHBoxLayout;
    row->setSpacing(6);
    m_box->setAccessibleName(tr("Preset"));
    m_box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    row->addWidget(m_box, 1);
    row->addWidget(m_menu);
    column->addLayout(row);
    auto* naming = new QHBoxLayout(m_nameRow);
    naming->setContentsMargins(0, 0, 0, 0);
    naming->setSpacing(6);
    m_name->setAccessibleName(tr("Name of the preset"));
    m_name->setPlaceholderText(tr("Name of the preset"));
    auto* save = new Button(tr("Save"), Button::Kind::Primary, theme, m_nameRow);
    auto* cancel = new Button(tr("Cancel"), Button::Kind::Ghost, theme, m_nameRow);
    naming->addWidget(m_name, 1);
    naming->addWidget(cancel);
    naming->addWidget(save);
    m_nameRow->hide();
    column->addWidget(m_nameRow);
    m_says->setObjectName(QStringLiteral("refusal"));
    m_says->setFont(textFont(TextRole::Axis));
    m_says->setTextFormat(Qt::PlainText);
    m_says->setWordWrap(true);
    m_says->hide();
    column->addWidget(m_says);
    connect(save, &QAbstractButton::clicked, this, &PresetRow::confirmName);
    connect(cancel, &QAbstractButton::clicked, this, &PresetRow::endNaming);
    connect(m_name, &QLineEdit::returnPressed, this, &PresetRow::confirmName);
    connect(m_menu, &QAbstractButton::clicked, this, &PresetRow::showMenu);
    connect(m_presets, &PresetModel::changed, this, &PresetRow::refresh);
    connect(m_presets, &PresetModel::failed, this, &PresetRow::say);
    connect(m_presets, &PresetModel::saved, this, [this](qint64 id) {
        m_base = id;
        endNaming();
    });
    connect(m_box, &QComboBox::activated, this, [this](int index) {
        const PresetModel::Preset* preset = m_presets->find(m_box->itemData(index).toLongLong());
        if (!preset)
            return refresh();
        m_base = preset->id;
        emit chosen(preset->systemPrompt, preset->settings);
    });
    refresh();
}

void PresetRow::setValues(const QString& systemPrompt, const api::SamplingParams& settings, bool fresh) {
    m_prompt = systemPrompt;
    m_settings = settings;
    if (fresh) {
        m_base = kNoId;
        endNaming();
    }
    refresh();
}

void PresetRow::refresh() {
    const QSignalBlocker quiet(m_box);
    m_box->clear();
    const PresetModel::Preset* now = m_presets->matching(m_prompt, m_settings);
    if (now)
        m_base = now->id;
    const PresetModel::Preset* base = m_presets->find(m_base);
    if (!base)
        m_base = kNoId;
    if (!now)
        m_box->addItem(base ? tr("%1, changed").arg(base->name) : tr("Own values"), qlonglong(kNoId));
    for (const PresetModel::Preset& preset : m_presets->presets()) {
        m_box->addItem(preset.name, qlonglong(preset.id));
        if (now && preset.id == now->id)
            m_box->setCurrentIndex(m_box->count() - 1);
    }
}

void PresetRow::showMenu() {
    const PresetModel::Preset* base = m_presets->find(m_base);
    const bool changed = base && m_presets->matching(m_prompt, m_settings) == nullptr;
    QMenu menu(this);
    if (changed)
        menu.addAction(makeIcon(Icon::Save, m_theme.text2, m_theme.textOff),
                       tr("Save the changes to “%1”").arg(base->name), this, &PresetRow::saveChanges);
    menu.addAction(makeIcon(Icon::Plus, m_theme.text2, m_theme.textOff), tr("Save as a new preset…"), this,
                   &PresetRow::beginSaveAs);
    QAction* rename = menu.addAction(makeIcon(Icon::Edit, m_theme.text2, m_theme.textOff), tr("Rename…"), this,
                                     &PresetRow::beginRename);
    QAction* remove = menu.addAction(makeIcon(Icon::Trash, m_theme.text2, m_theme.textOff), tr("Delete"), this,
                                     &PresetRow::removeChosen);
    rename->setEnabled(base);
    remove->setEnabled(base);
    menu.exec(m_menu->mapToGlobal(QPoint(m_menu->width() - menu.sizeHint().width(), m_menu->height() + 4)));
}

void PresetRow::beginNaming(Naming naming, const QString& proposed) {
    m_naming = naming;
    m_name->setText(proposed);
    m_name->selectAll();
    m_nameRow->show();
    m_name->setFocus();
    say({});
    emit sizeChanged();
}

void PresetRow::beginSaveAs() {
    beginNaming(Naming::New, {});
}

void PresetRow::beginRename() {
    if (const PresetModel::Preset* base = m_presets->find(m_base))
        beginNaming(Naming::Rename, base->name);
}

void PresetRow::saveChanges() {
    m_presets->update(m_base, m_prompt, m_settings);
}

void PresetRow::removeChosen() {
    m_presets->remove(m_base);
}

void PresetRow::confirmName() {
    if (m_naming == Naming::New)
        m_presets->create(m_name->text(), m_prompt, m_settings);
    else if (m_naming == Naming::Rename)
        m_presets->rename(m_base, m_name->text());
}

void PresetRow::endNaming() {
    m_naming = Naming::None;
    if (m_name->hasFocus())
        m_box->setFocus();
    m_nameRow->hide();
    say({});
    emit sizeChanged();
}

void PresetRow::say(const QString& sentence) {
    m_says->setText(sentence);
    m_says->setVisible(!sentence.isEmpty());
    emit sizeChanged();
}

void PresetRow::setTheme(const Theme& theme) {
    m_theme = theme;
}

} // namespace kvscope::ui
