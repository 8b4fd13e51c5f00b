// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>
#include <QTimer>
#include <functional>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "ui/models/chat_types.h"

namespace kvscope::ui {

/// A conversation in which something was found.
struct SearchHit {
    ConversationId conversation = kNoId;
    MessageId message = kNoId; ///< where; kNoId = in the title
    QString title;
    QString snippet;         ///< the text around the hit
    bool snippetCut = false; ///< the text began before
    int count = 0;           ///< messages of this conversation that contain it
    qint64 updatedMs = 0;
};

/// Where `query` occurs in `text`, letters of any case: [begin, end), ascending, disjoint.
std::vector<std::pair<qsizetype, qsizetype>> foundRanges(const QString& text, const QString& query);

/// What a search found. Searching happens elsewhere: the model asks its source and takes only the answer to what was
/// asked last.
class SearchModel final : public QAbstractListModel {
    Q_OBJECT
public:
    struct Found {
        std::vector<SearchHit> hits;
        std::int64_t conversations = 0; ///< all that contain it; `hits` has the first of them
    };
    using Answer = std::function<void(Result<Found>)>;
    /// Asks for conversations whose title, messages or attachments contain the text, at most `mostHits` of them;
    /// answers later on the GUI thread.
    using Source = std::function<void(const QString& query, int mostHits, Answer answer)>;
    static constexpr int kFirstHits = 500;
    enum Role {
        ConversationRole = Qt::UserRole,
        MessageRole,
        SnippetRole,
        SnippetCutRole,
        CountRole,
        TimeRole,
    };

    explicit SearchModel(std::function<qint64()> wallNow, QObject* parent = nullptr);
    void setSource(Source source) { m_source = std::move(source); }

    /// Empty or only spaces: nothing is searched and nothing found.
    void setQuery(const QString& query);
    /// Asks again, for example after a message was added.
    void refresh();
    const QString& query() const { return m_query; }
    bool active() const { return !m_query.isEmpty(); }
    bool waiting() const { return m_asked != m_answered; }
    const QString& problem() const { return m_problem; } ///< a sentence, when the search failed
    /// Conversations that were found; more than there are rows where not all are listed.
    std::int64_t conversations() const { return m_conversations; }
    bool more() const { return m_conversations > std::int64_t(m_hits.size()); }
    /// Lists several times as many.
    void showMore();

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;

signals:
    void changed(); ///< query, answer or problem

private:
    void ask();

    Source m_source;
    std::function<qint64()> m_wallNow;
    QString m_query, m_problem;
    std::vector<SearchHit> m_hits;
    std::int64_t m_conversations = 0;
    int m_mostHits = kFirstHits;
    QTimer m_pause; ///< a fast typist asks once
    std::int64_t m_asked = 0, m_answered = 0;
};

} // namespace kvscope::ui
