// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>
#include <QStringList>
#include <QThreadPool>
#include <functional>
#include <vector>

#include "engine/api/model_probe.h"

namespace kvscope::ui {

/// One row of the model picker.
struct ModelEntry {
    QString path;
    QString name;
    bool probed = false;
    bool current = false; ///< the loaded one
    QString error;        ///< cannot be opened at all
    api::ModelProbe probe;

    bool fits() const { return probed && error.isEmpty() && probe.problem.empty() && probe.missingBytes == 0; }
};

/// A file's name as people say it: "SmolLM2-135M-Instruct.Q4_1.gguf" is "SmolLM2 135M Instruct". The name inside a file
/// is often that of a training run.
QString modelDisplayName(const QString& path);

/// Model files: those in the models folder and those opened by the user. Looking into a file happens on a worker
/// thread; the row is there at once and fills in.
class ModelListModel final : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role { PathRole = Qt::UserRole, DetailRole, FitRole, FitsRole, WeightsShareRole, RoomShareRole, CurrentRole };
    using Prober = std::function<Result<api::ModelProbe>(const std::string& path)>;

    /// `prober` is called on worker threads.
    ModelListModel(QString folder, Prober prober, QObject* parent = nullptr);
    ~ModelListModel() override;

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;

    const ModelEntry& at(int row) const { return m_entries[std::size_t(row)]; }
    int rowOf(const QString& path) const;
    const QString& folder() const { return m_folder; }
    /// Looks at the folder again, and into every file again (memory has changed since).
    void rescan();
    /// A file elsewhere that the user opened.
    void addFile(const QString& path);
    void setCurrent(const QString& path);
    /// Memory that the machine had when the newest probe was made; 0 = no model was looked at yet.
    std::uint64_t availableBytes() const;

private:
    void probe(const QString& path);
    void probed(const QString& path, const Result<api::ModelProbe>& result);

    QString m_folder;
    Prober m_prober;
    QStringList m_opened; ///< outside of the folder
    QString m_current;
    std::vector<ModelEntry> m_entries;
    QThreadPool m_pool; ///< own, so that the destructor can wait for it
};

} // namespace kvscope::ui
