// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/run_log.h"

#include "engine/store/row_io.h"

namespace kvscope::store {

Result<Recovery> RunLog::recover() {
    return m_db.write([&]() -> Result<Recovery> {
        Recovery recovery;
        auto answers = m_db.statement("UPDATE message SET status = 'interrupted' WHERE status = 'generating'");
        recovery.interruptedAnswers = answers->exec();
        auto runs = m_db.statement("UPDATE run SET clean_exit = 0, ended_at = ? WHERE clean_exit IS NULL");
        runs->bind(1, m_clock());
        recovery.uncleanRuns = runs->exec();
        return recovery;
    });
}

Result<RunId> RunLog::begin(const std::string& version, const std::string& configuration) {
    return m_db.write([&]() -> Result<RunId> {
        auto insert = m_db.statement("INSERT INTO run(version, configuration, started_at) VALUES (?, ?, ?)");
        insert->bind(1, version);
        insert->bind(2, configuration);
        insert->bind(3, m_clock());
        insert->exec();
        return RunId(m_db.lastInsertId());
    });
}

Result<void> RunLog::endCleanly(RunId run) {
    return m_db.write([&]() -> Result<void> {
        auto update = m_db.statement("UPDATE run SET clean_exit = 1, ended_at = ? WHERE id = ?");
        update->bind(1, m_clock());
        update->bind(2, run.value());
        update->exec();
        return {};
    });
}

Result<bool> RunLog::knows(RunId run) {
    if (!run.valid())
        return false;
    return m_db.read([&]() -> Result<bool> {
        auto select = m_db.statement("SELECT 1 FROM run WHERE id = ? AND clean_exit IS NULL");
        select->bind(1, run.value());
        return select->executeStep();
    });
}

Result<void> RunLog::addEvent(RunId run, const StoredEvent& event) {
    return m_db.write([&]() -> Result<void> {
        auto insert = m_db.statement("INSERT INTO event(run_id, conversation_id, message_id, at, kind, detail)"
                                     " VALUES (?, ?, ?, ?, ?, ?)");
        bindId(*insert, 1, run);
        bindId(*insert, 2, event.conversation);
        bindId(*insert, 3, event.message);
        insert->bind(4, event.time != 0 ? event.time : m_clock());
        insert->bind(5, event.kind);
        insert->bind(6, event.detail);
        insert->exec();
        return {};
    });
}

Result<void> RunLog::noteModel(const StoredModel& model) {
    return m_db.write([&]() -> Result<void> {
        auto insert = m_db.statement("INSERT INTO model(path, size, mtime, fingerprint, template_choice)"
                                     " VALUES (?, ?, ?, ?, ?) ON CONFLICT(path) DO UPDATE SET size = excluded.size,"
                                     " mtime = excluded.mtime, fingerprint = excluded.fingerprint,"
                                     " template_choice = excluded.template_choice");
        insert->bind(1, model.path);
        insert->bind(2, static_cast<std::int64_t>(model.size));
        insert->bind(3, model.modified);
        insert->bind(4, model.fingerprint);
        insert->bind(5, model.templateChoice);
        insert->exec();
        return {};
    });
}

Result<std::vector<StoredModel>> RunLog::models() {
    return m_db.read([&]() -> Result<std::vector<StoredModel>> {
        auto select =
            m_db.statement("SELECT id, path, size, mtime, fingerprint, template_choice FROM model ORDER BY id");
        std::vector<StoredModel> all;
        while (select->executeStep()) {
            StoredModel model;
            model.id = ModelId(select->getColumn(0).getInt64());
            model.path = select->getColumn(1).getString();
            model.size = static_cast<std::uint64_t>(select->getColumn(2).getInt64());
            model.modified = select->getColumn(3).getInt64();
            model.fingerprint = select->getColumn(4).getString();
            model.templateChoice = select->getColumn(5).getString();
            all.push_back(std::move(model));
        }
        return all;
    });
}

Result<void> RunLog::addEstimates(RunId run, const std::vector<LoadEstimate>& estimates) {
    return m_db.write([&]() -> Result<void> {
        for (const LoadEstimate& estimate : estimates) {
            auto insert =
                m_db.statement("INSERT INTO load_estimate(run_id, model_id, at, part, estimated_bytes, measured_bytes)"
                               " VALUES (?, (SELECT id FROM model WHERE path = ?), ?, ?, ?, ?)");
            bindId(*insert, 1, run);
            insert->bind(2, estimate.model);
            insert->bind(3, m_clock());
            insert->bind(4, estimate.part);
            insert->bind(5, static_cast<std::int64_t>(estimate.estimatedBytes));
            insert->bind(6, static_cast<std::int64_t>(estimate.measuredBytes));
            insert->exec();
        }
        return {};
    });
}

} // namespace kvscope::store
