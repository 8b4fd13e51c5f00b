// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <vector>

#include "ui/models/chat_store.h"

namespace kvscope::ui {

/// The named pairs of system prompt and sampling settings, as the database has them. Thread: GUI.
class PresetModel final : public QObject {
    Q_OBJECT
public:
    using Preset = ChatStore::Preset;

    /// `store` outlives it; may be null: then there are none, and none can be saved.
    explicit PresetModel(ChatStore* store, QObject* parent = nullptr);

    void load();
    bool available() const { return m_store; }
    const std::vector<Preset>& presets() const { return m_presets; }
    const Preset* find(std::int64_t id) const;
    /// The preset that these values are, to the last field; nullptr = none.
    const Preset* matching(const QString& systemPrompt, const api::SamplingParams& settings) const;

    /// A name that is there already is refused with a sentence (`failed`).
    void create(const QString& name, const QString& systemPrompt, const api::SamplingParams& settings);
    void update(std::int64_t id, const QString& systemPrompt, const api::SamplingParams& settings);
    void rename(std::int64_t id, const QString& name);
    void remove(std::int64_t id);

signals:
    void changed();
    void saved(qint64 id);         ///< create, update or rename is in the database
    void failed(QString sentence); ///< nothing was changed

private:
    void store(Preset preset);

    ChatStore* m_store;
    std::vector<Preset> m_presets; ///< by name
};

} // namespace kvscope::ui
