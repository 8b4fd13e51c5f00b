// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QListView>
#include <QStyledItemDelegate>
#include <QWidget>

#include "ui/models/conversation_list_model.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// Draws headings and conversation rows: title, time or running dot, subtitle, warmth bar. The editor covers the title.
class ConversationDelegate final : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit ConversationDelegate(const Theme& theme, QObject* parent = nullptr);
    void setTheme(const Theme& theme) { m_theme = theme; }

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                              const QModelIndex& index) const override;

private:
    void paintHeading(QPainter& painter, const QRect& rect, const QString& text) const;
    void paintWarmth(QPainter& painter, const QRectF& rect, const QModelIndex& index) const;

    Theme m_theme;
};

/// The list of conversations: choose, rename in place (F2 or double click), delete (Del), new (the plus).
class ConversationPanel final : public QWidget, public Themed {
    Q_OBJECT
public:
    ConversationPanel(ConversationListModel* model, const Theme& theme, QWidget* parent = nullptr);

    /// Selects the row without telling anybody; kNoId = none.
    void setCurrent(ConversationId id);
    QListView* list() const { return m_list; }
    void renameCurrent();
    void setTheme(const Theme& theme) override;

signals:
    void selected(qint64 id);
    void newRequested();
    void deleteRequested(qint64 id);

protected:
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void showMenu(const QPoint& at);
    void syncCurrent();

    Theme m_theme;
    ConversationListModel* m_model;
    QListView* m_list;
    ConversationDelegate* m_delegate;
    ConversationId m_current = kNoId;
    bool m_syncing = false;
};

} // namespace kvscope::ui
