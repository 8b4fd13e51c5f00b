// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/search_model.h"

#include <QPointer>
#include <algorithm>
#include <limits>

#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

constexpr int kPauseMs = 60;
constexpr int kMoreTimes = 8;

/// Folded text, and for each of its characters the place in the text that it came from.
struct Folded {
    QString text;
    std::vector<qsizetype> from;
};

Folded fold(const QString& text) {
    Folded out;
    out.text.reserve(text.size());
    for (qsizetype i = 0; i < text.size();) {
        const qsizetype length =
            text[i].isHighSurrogate() && i + 1 < text.size() && text[i + 1].isLowSurrogate() ? 2 : 1;
        // Qt folds one character to one; this is the one that people notice.
        const bool sharp = text[i] == QChar(0xDF) || text[i] == QChar(0x1E9E);
        for (const QChar c : sharp ? QStringLiteral("ss") : text.mid(i, length).toCaseFolded()) {
            out.text += c;
            out.from.push_back(i);
        }
        i += length;
    }
    out.from.push_back(text.size());
    return out;
}

} // namespace

std::vector<std::pair<qsizetype, qsizetype>> foundRanges(const QString& text, const QString& query) {
    std::vector<std::pair<qsizetype, qsizetype>> out;
    const QString wanted = fold(query).text;
    if (wanted.isEmpty())
        return out;
    const Folded folded = fold(text);
    for (qsizetype at = folded.text.indexOf(wanted); at >= 0; at = folded.text.indexOf(wanted, at + wanted.size())) {
        const qsizetype begin = folded.from[std::size_t(at)];
        // A character that folds to several may be hit in its middle: it is marked whole.
        qsizetype end = folded.from[std::size_t(at + wanted.size())];
        if (end <= begin)
            end = begin + 1;
        if (out.empty() || begin >= out.back().second)
            out.emplace_back(begin, end);
    }
    return out;
}

SearchModel::SearchModel(std::function<qint64()> wallNow, QObject* parent)
    : QAbstractListModel(parent)
    , m_wallNow(std::move(wallNow)) {
    m_pause.setSingleShot(true);
    m_pause.setInterval(kPauseMs);
    connect(&m_pause, &QTimer::timeout, this, &SearchModel::ask);
}

void SearchModel::setQuery(const QString& query) {
    const QString wanted = query.trimmed().isEmpty() ? QString() : query;
    if (wanted == m_query)
        return;
    m_query = wanted;
    m_mostHits = kFirstHits;
    if (m_query.isEmpty()) {
        m_pause.stop();
        m_answered = ++m_asked; // whatever is still under way comes too late
        beginResetModel();
        m_hits.clear();
        m_conversations = 0;
        m_problem.clear();
        endResetModel();
    } else {
        ++m_asked;
        m_pause.start();
    }
    emit changed();
}

void SearchModel::refresh() {
    if (!active())
        return;
    ++m_asked;
    m_pause.start();
}

void SearchModel::showMore() {
    if (!more())
        return;
    m_mostHits = m_mostHits > std::numeric_limits<int>::max() / kMoreTimes ? std::numeric_limits<int>::max()
                                                                           : m_mostHits * kMoreTimes;
    ++m_asked;
    ask();
}

void SearchModel::ask() {
    if (!m_source)
        return;
    m_source(m_query, m_mostHits, [self = QPointer<SearchModel>(this), number = m_asked](Result<Found> found) {
        if (!self || number != self->m_asked)
            return;
        self->m_answered = number;
        self->beginResetModel();
        self->m_hits = found ? std::move(found->hits) : std::vector<SearchHit>();
        self->m_conversations = found ? std::max(found->conversations, std::int64_t(self->m_hits.size())) : 0;
        self->m_problem = found ? QString() : QString::fromStdString(found.error().message);
        self->endResetModel();
        emit self->changed();
    });
}

int SearchModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(m_hits.size());
}

QVariant SearchModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid())
        return {};
    const SearchHit& hit = m_hits[std::size_t(index.row())];
    switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:
        return hit.title;
    case Qt::AccessibleTextRole:
        return hit.snippet.isEmpty() ? hit.title : tr("%1: %2").arg(hit.title, hit.snippet);
    case ConversationRole:
        return qlonglong(hit.conversation);
    case MessageRole:
        return qlonglong(hit.message);
    case SnippetRole:
        return hit.snippet;
    case SnippetCutRole:
        return hit.snippetCut;
    case CountRole:
        return hit.count;
    case TimeRole:
        return words::shortTime(hit.updatedMs, m_wallNow());
    default:
        return {};
    }
}

} // namespace kvscope::ui
