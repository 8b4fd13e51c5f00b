// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

#include "ui/models/palette_model.h"
#include "ui/widgets/popup.h"

class QLabel;
class QListView;

namespace kvscope::ui {

class LineEdit;

/// One line of the palette: title with what matched in bold, group or time, keys at the right.
class PaletteDelegate final : public QStyledItemDelegate {
    Q_OBJECT
public:
    PaletteDelegate(const Theme& theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    Theme m_theme;
};

/// "Find or run": a field, and below it what matches among commands and chats. Arrows choose, Enter runs, Esc closes.
class CommandPalette final : public Popup {
    Q_OBJECT
public:
    CommandPalette(const CommandRegistry* commands, const ConversationListModel* conversations, const Theme& theme,
                   QWidget* parent = nullptr);
    /// In the upper middle of the parent's window.
    void open();
    LineEdit* field() const { return m_field; }
    QListView* list() const { return m_list; }

signals:
    void commandChosen(const QString& id);
    void conversationChosen(qint64 id);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void search(const QString& query);
    void choose(const QModelIndex& index);
    void move(int by);

    PaletteModel m_model;
    LineEdit* m_field;
    QListView* m_list;
    QLabel* m_nothing;
};

} // namespace kvscope::ui
