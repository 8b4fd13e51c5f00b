// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/preset_store.h"

#include <algorithm>

#include "engine/store/fold.h"
#include "engine/store/row_io.h"

namespace kvscope::store {

namespace {

tl::unexpected<Error> noSuchPreset() {
    return fail(ErrorCode::NotFound, "This preset is not in the database; it was deleted.");
}

} // namespace

Result<std::vector<Preset>> PresetStore::list() {
    return m_db.read([&]() -> Result<std::vector<Preset>> {
        auto select = m_db.statement("SELECT id, name, system_prompt, settings FROM preset");
        std::vector<Preset> all;
        while (select->executeStep())
            all.push_back({PresetId(select->getColumn(0).getInt64()), select->getColumn(1).getString(),
                           select->getColumn(2).getString(), select->getColumn(3).getString()});
        std::sort(all.begin(), all.end(), [](const Preset& a, const Preset& b) {
            return std::pair(foldCase(a.name), a.name) < std::pair(foldCase(b.name), b.name);
        });
        return all;
    });
}

Result<PresetId> PresetStore::save(const Preset& preset) {
    if (preset.name.find_first_not_of(" \t\r\n") == std::string::npos)
        return fail(ErrorCode::InvalidArgument, "A preset needs a name.");
    return m_db.write([&]() -> Result<PresetId> {
        auto taken = m_db.statement("SELECT 1 FROM preset WHERE name = ? AND id <> ?");
        taken->bind(1, preset.name);
        taken->bind(2, preset.id.value());
        if (taken->executeStep())
            return fail(ErrorCode::InvalidArgument,
                        "There is a preset named '" + preset.name + "' already; choose another name.");
        const WallMillis now = m_clock();
        if (!preset.id.valid()) {
            auto insert = m_db.statement("INSERT INTO preset(name, system_prompt, settings, created_at, updated_at)"
                                         " VALUES (?1, ?2, ?3, ?4, ?4)");
            insert->bind(1, preset.name);
            insert->bind(2, preset.systemPrompt);
            insert->bind(3, preset.settings);
            insert->bind(4, now);
            insert->exec();
            return PresetId(m_db.lastInsertId());
        }
        auto update = m_db.statement("UPDATE preset SET name = ?, system_prompt = ?, settings = ?, updated_at = ?"
                                     " WHERE id = ?");
        update->bind(1, preset.name);
        update->bind(2, preset.systemPrompt);
        update->bind(3, preset.settings);
        update->bind(4, now);
        update->bind(5, preset.id.value());
        if (update->exec() == 0)
            return noSuchPreset();
        return preset.id;
    });
}

Result<void> PresetStore::remove(PresetId id) {
    return m_db.write([&]() -> Result<void> {
        auto remove = m_db.statement("DELETE FROM preset WHERE id = ?");
        remove->bind(1, id.value());
        if (remove->exec() == 0)
            return noSuchPreset();
        return {};
    });
}

} // namespace kvscope::store
