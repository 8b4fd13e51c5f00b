// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/model_list_model.h"

#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <algorithm>

#include "ui/models/chat_words.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

/// Of a model in several files only the first is a row.
bool isLaterShard(const QString& fileName) {
    static const QRegularExpression shard(QStringLiteral("-(\\d{5})-of-\\d{5}\\.gguf$"));
    const QRegularExpressionMatch match = shard.match(fileName);
    return match.hasMatch() && match.captured(1).toInt() != 1;
}

} // namespace

QString modelDisplayName(const QString& path) {
    static const QRegularExpression shardTail(QStringLiteral("-\\d{5}-of-\\d{5}$"));
    static const QRegularExpression typeTail(QStringLiteral("[-._](I?Q\\d\\w*|BF16|F16|F32)$"),
                                             QRegularExpression::CaseInsensitiveOption);
    QString name = QFileInfo(path).completeBaseName();
    const QString whole = name;
    name.remove(shardTail).remove(typeTail);
    name.replace(QLatin1Char('-'), QLatin1Char(' ')).replace(QLatin1Char('_'), QLatin1Char(' '));
    name = name.simplified();
    return name.isEmpty() ? whole : name;
}

namespace {

/// The row names the file already: "/home/u/x.gguf has the architecture ..." goes on as "has the architecture ...".
QString withoutPath(const QString& sentence, const QString& path) {
    if (!sentence.startsWith(path))
        return sentence;
    QString rest = sentence.mid(path.size());
    if (rest.startsWith(QLatin1Char(':')))
        rest.remove(0, 1);
    return rest.trimmed();
}

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : std::min(1.0, double(part) / double(whole));
}

} // namespace

ModelListModel::ModelListModel(QString folder, Prober prober, QObject* parent)
    : QAbstractListModel(parent)
    , m_folder(std::move(folder))
    , m_prober(std::move(prober)) {
    m_pool.setMaxThreadCount(1);
}

ModelListModel::~ModelListModel() {
    m_pool.clear();
    m_pool.waitForDone();
}

int ModelListModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(m_entries.size());
}

QVariant ModelListModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid())
        return {};
    const ModelEntry& e = at(index.row());
    const std::uint64_t whole = e.probe.availableBytes;
    switch (role) {
    case Qt::DisplayRole:
        return e.name;
    case Qt::ToolTipRole:
        return e.error.isEmpty() ? e.path : e.error;
    case PathRole:
        return e.path;
    case DetailRole:
        if (!e.error.isEmpty())
            return withoutPath(e.error, e.path);
        if (!e.probed)
            return tr("Looking into the file");
        if (!e.probe.problem.empty())
            return withoutPath(QString::fromStdString(e.probe.problem), e.path);
        if (e.probe.missingBytes > 0)
            return tr("%1 · lacks %2").arg(formatBytes(e.probe.weightsBytes), formatBytes(e.probe.missingBytes));
        return tr("%1 · %2 · %3 per token")
            .arg(formatBytes(e.probe.weightsBytes), QString::fromStdString(e.probe.quantization),
                 formatBytes(e.probe.kvBytesPerToken));
    case FitRole:
        if (!e.probed || !e.error.isEmpty() || !e.probe.problem.empty())
            return QString();
        return e.fits() ? words::tokensFit(e.probe.tokensThatFit) : tr("does not fit");
    case FitsRole:
        return e.fits();
    case WeightsShareRole:
        return share(e.probe.weightsBytes, whole);
    case RoomShareRole:
        return share(e.probe.poolBytes, whole);
    case CurrentRole:
        return e.current;
    default:
        return {};
    }
}

int ModelListModel::rowOf(const QString& path) const {
    const auto it =
        std::find_if(m_entries.begin(), m_entries.end(), [&](const ModelEntry& e) { return e.path == path; });
    return it == m_entries.end() ? -1 : int(it - m_entries.begin());
}

void ModelListModel::rescan() {
    QStringList paths = m_opened;
    const QDir folder(m_folder);
    for (const QFileInfo& file : folder.entryInfoList({QStringLiteral("*.gguf")}, QDir::Files, QDir::Name))
        if (!isLaterShard(file.fileName()) && !paths.contains(file.absoluteFilePath()))
            paths << file.absoluteFilePath();
    std::vector<ModelEntry> entries;
    for (const QString& path : paths) {
        const int known = rowOf(path);
        ModelEntry entry;
        if (known >= 0)
            entry = at(known);
        entry.path = path;
        entry.name = modelDisplayName(path);
        entry.current = path == m_current;
        entries.push_back(std::move(entry));
    }
    beginResetModel();
    m_entries = std::move(entries);
    endResetModel();
    for (const QString& path : paths)
        probe(path);
}

void ModelListModel::addFile(const QString& path) {
    const QString absolute = QFileInfo(path).absoluteFilePath();
    if (rowOf(absolute) >= 0)
        return;
    m_opened << absolute;
    beginInsertRows({}, 0, 0);
    ModelEntry entry;
    entry.path = absolute;
    entry.name = modelDisplayName(absolute);
    entry.current = absolute == m_current;
    m_entries.insert(m_entries.begin(), std::move(entry));
    endInsertRows();
    probe(absolute);
}

void ModelListModel::setCurrent(const QString& path) {
    m_current = path;
    for (int row = 0; row < int(m_entries.size()); ++row) {
        ModelEntry& entry = m_entries[std::size_t(row)];
        if (entry.current == (entry.path == path))
            continue;
        entry.current = entry.path == path;
        emit dataChanged(index(row), index(row), {CurrentRole});
    }
}

std::uint64_t ModelListModel::availableBytes() const {
    for (const ModelEntry& entry : m_entries)
        if (entry.probed && entry.probe.availableBytes > 0)
            return entry.probe.availableBytes;
    return 0;
}

void ModelListModel::probe(const QString& path) {
    m_pool.start([this, path] {
        Result<api::ModelProbe> result = m_prober(path.toStdString());
        QMetaObject::invokeMethod(
            this, [this, path, result = std::move(result)] { probed(path, result); }, Qt::QueuedConnection);
    });
}

void ModelListModel::probed(const QString& path, const Result<api::ModelProbe>& result) {
    const int row = rowOf(path);
    if (row < 0)
        return;
    ModelEntry& entry = m_entries[std::size_t(row)];
    entry.probed = true;
    entry.error.clear();
    if (result) {
        entry.probe = *result;
    } else {
        entry.error = QString::fromStdString(result.error().message);
    }
    emit dataChanged(index(row), index(row));
}

} // namespace kvscope::ui
