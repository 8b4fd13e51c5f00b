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
    using Answer = std::function<void(Result<std::vector<SearchHit>>)>;
    /// Asks for conversations whose title or messages contain the text; answers later on the GUI thread.
    using Source = std::function<void(const QString& query, Answer answer)>;
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
    QTimer m_pause; ///< a fast typist asks once
    std::int64_t m_asked = 0, m_answered = 0;
};

} // namespace kvscope::ui
