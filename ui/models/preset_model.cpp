// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/preset_model.h"

#include <QPointer>
#include <algorithm>

#include "ui/models/chat_settings.h"

namespace kvscope::ui {
namespace {

constexpr qsizetype kLongestName = 60;

} // namespace

PresetModel::PresetModel(ChatStore* store, QObject* parent) : QObject(parent), m_store(store) {}

void PresetModel::load() {
    if (!m_store)
        return;
    m_store->listPresets([self = QPointer<PresetModel>(this)](Result<std::vector<Preset>> list) {
        if (!self)
            return;
        if (!list) {
            emit self->failed(QString::fromStdString(list.error().message));
            return;
        }
        self->m_presets = std::move(*list);
        emit self->changed();
    });
}

const PresetModel::Preset* PresetModel::find(std::int64_t id) const {
    const auto it = std::find_if(m_presets.begin(), m_presets.end(), [id](const Preset& p) { return p.id == id; });
    return it == m_presets.end() ? nullptr : &*it;
}

const PresetModel::Preset* PresetModel::matching(const QString& systemPrompt,
                                                 const api::SamplingParams& settings) const {
    // Compared as they are stored, so that what was saved is found again.
    const QByteArray wanted = settingsToJson(settings);
    const auto it = std::find_if(m_presets.begin(), m_presets.end(), [&](const Preset& p) {
        return p.systemPrompt == systemPrompt && settingsToJson(p.settings) == wanted;
    });
    return it == m_presets.end() ? nullptr : &*it;
}

void PresetModel::create(const QString& name, const QString& systemPrompt, const api::SamplingParams& settings) {
    Preset preset;
    preset.name = name.simplified().left(kLongestName);
    preset.systemPrompt = systemPrompt;
    preset.settings = settings;
    store(std::move(preset));
}

void PresetModel::update(std::int64_t id, const QString& systemPrompt, const api::SamplingParams& settings) {
    const Preset* known = find(id);
    if (!known)
        return;
    Preset preset = *known;
    preset.systemPrompt = systemPrompt;
    preset.settings = settings;
    store(std::move(preset));
}

void PresetModel::rename(std::int64_t id, const QString& name) {
    const Preset* known = find(id);
    if (!known)
        return;
    Preset preset = *known;
    preset.name = name.simplified().left(kLongestName);
    store(std::move(preset));
}

void PresetModel::store(Preset preset) {
    if (!m_store)
        return;
    if (preset.name.isEmpty()) {
        emit failed(tr("A preset needs a name."));
        return;
    }
    const auto taken = std::find_if(m_presets.begin(), m_presets.end(), [&](const Preset& p) {
        return p.id != preset.id && p.name.compare(preset.name, Qt::CaseInsensitive) == 0;
    });
    if (taken != m_presets.end()) {
        emit failed(tr("There is a preset “%1” already; choose another name.").arg(taken->name));
        return;
    }
    m_store->savePreset(preset, [self = QPointer<PresetModel>(this)](Result<std::int64_t> id) {
        if (!self)
            return;
        if (!id) {
            emit self->failed(QString::fromStdString(id.error().message));
            return;
        }
        self->load();
        emit self->saved(*id);
    });
}

void PresetModel::remove(std::int64_t id) {
    if (!m_store || !find(id))
        return;
    m_store->deletePreset(id, [self = QPointer<PresetModel>(this)](Result<void> done) {
        if (!self)
            return;
        if (!done)
            emit self->failed(QString::fromStdString(done.error().message));
        self->load();
    });
}

} // namespace kvscope::ui
