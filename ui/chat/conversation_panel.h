// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QListView>
#include <QWidget>

#include "ui/models/conversation_list_model.h"
#include "ui/models/search_model.h"
#include "ui/theme/apply_theme.h"

class QContextMenuEvent;
class QLabel;
class QMenu;
class QStackedWidget;

namespace kvscope::ui {

class ConversationDelegate;
class LineEdit;
class SearchDelegate;
class Button;

/// The list of conversations: choose (arrows), go to the text (Enter), rename in place (F2 or double click), delete
/// (Del), new (the plus), menu. Above it the search: while there is something in its field, what was found stands in
/// place of the list.
class ConversationPanel final : public QWidget, public Themed {
    Q_OBJECT
public:
    /// Both outlive it. `search` may be null: then there is no field.
    ConversationPanel(ConversationListModel* model, SearchModel* search, const Theme& theme, QWidget* parent = nullptr);

    /// Selects the row without telling anybody; kNoId = none.
    void setCurrent(ConversationId id);
    QListView* list() const { return m_list; }
    QListView* hits() const { return m_hits; }
    LineEdit* searchField() const { return m_field; }
    Button* moreButton() const { return m_more; }
    void renameCurrent();
    void focusSearch();
    /// Takes the search away; false = there was none.
    bool clearSearch();
    void setTheme(const Theme& theme) override;

signals:
    void selected(qint64 id);
    void hitChosen(qint64 conversation, qint64 message, const QString& query); ///< message kNoId = the title
    void entered();                                                            ///< Enter on a conversation: to its text
    void newRequested();
    void deleteRequested(qint64 id);
    void duplicateRequested(qint64 id);
    void exportRequested(qint64 id);

protected:
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildHead();
    void buildList();
    void buildHits();
    void showMenu(const QContextMenuEvent& event);
    void showSearch();
    void chooseHit(const QModelIndex& index);
    void syncCurrent();
    bool listKey(int key);
    bool fieldKey(int key);

    Theme m_theme;
    ConversationListModel* m_model;
    SearchModel* m_search;
    LineEdit* m_field = nullptr;
    QStackedWidget* m_stack;
    QListView* m_list;
    QListView* m_hits;
    QLabel* m_nothing;
    Button* m_more; ///< below the hits where not all are listed
    ConversationDelegate* m_delegate;
    SearchDelegate* m_hitDelegate;
    ConversationId m_current = kNoId;
    bool m_syncing = false;
};

} // namespace kvscope::ui
