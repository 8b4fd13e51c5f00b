// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>
#include <vector>

#include "ui/models/command_registry.h"
#include "ui/models/conversation_list_model.h"
#include "ui/models/fuzzy_match.h"

namespace kvscope::ui {

/// What the palette offers for a query: commands and conversations whose names match, best first. With no query, all
/// commands that can be run now, then the conversations used last.
class PaletteModel final : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role {
        DetailRole = Qt::UserRole, ///< group of a command, time of a conversation
        KeysRole,                  ///< "Ctrl+N"
        RangesRole,                ///< QVariantList of QPoint(begin, end) in the title
        IsCommandRole,
        IdRole, ///< id of the command, or of the conversation as a number
    };
    /// Both outlive it.
    PaletteModel(const CommandRegistry* commands, const ConversationListModel* conversations,
                 QObject* parent = nullptr);

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    void setQuery(const QString& query);

private:
    struct Entry {
        bool command = true;
        QString id, title, detail, keys;
        FuzzyMatch match;
    };
    void addCommands(const QString& query);
    void addConversations(const QString& query);

    const CommandRegistry* m_registry;
    const ConversationListModel* m_conversations;
    std::vector<Entry> m_entries;
};

} // namespace kvscope::ui
