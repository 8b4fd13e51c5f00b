// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QPointer>
#include <functional>
#include <optional>
#include <vector>

#include "ui/chat/message_edit.h"
#include "ui/chat/message_item.h"
#include "ui/models/chat_model.h"
#include "ui/theme/apply_theme.h"

class QMenu;

namespace kvscope::ui {

class Button;

/// The messages of a conversation, virtualised: only what is on the screen is laid out. While the view stands at its
/// end it follows what is written; once the user has scrolled up, nothing moves what is being read.
///
/// Keys: arrows, Page and Home/End scroll; Ctrl+Up/Down walk from message to message, Tab and Left/Right from part to
/// part of the current one, Enter does what the part does (the message itself opens its receipt). C copies, R writes
/// again, E edits, N begins a new chat here, B shows the blocks, < and > go through the versions, T opens the thought,
/// Del deletes and Ctrl+Z brings back what was deleted; Ctrl+C copies the selection or else the current message.
class ChatView final : public QAbstractScrollArea, public Themed {
    Q_OBJECT
public:
    explicit ChatView(const Theme& theme, QWidget* parent = nullptr);
    ~ChatView() override;

    void setModel(ChatModel* model);
    void setTheme(const Theme& theme) override;
    void setTextSize(int pixels);

    bool atEnd() const;
    void scrollToEnd();
    /// Marks the answer whose blocks the map shows; -1 = none.
    void setLitMessage(int row, int blocks);
    int litMessage() const { return m_litRow; }
    /// Lights a range of a message's text (a block selected in the map) and brings it into view; -1 = none.
    void setLitText(int row, TextRange range);

    QString selectedText() const;
    void clearSelection();
    /// For tests: rows whose layouts are in memory, and where a row lies in the viewport.
    int laidOutRows() const;
    QRect rowRect(int row) const;
    QRect partRect(int row, MessagePart part) const;
    QRect partRect(int row, MessageHit hit) const;
    std::vector<MessageHit> targets(int row) const;
    MessageHit focusedPart() const { return m_focused; }
    const MessageText& textOf(int row) const { return m_rows[std::size_t(row)].item.text(); }

    /// Puts a box with the message's text in its place; the old version stays whatever comes of it.
    void beginEdit(int row);
    void beginEdit(int row, const QString& text); ///< with what was written before
    void endEdit();
    MessageEdit* editBox() const { return m_edit; }

signals:
    void stopRequested();
    void showBlocksRequested(int row);
    void copied();
    void againRequested(int row);                     ///< another answer beside this one
    void editRequested(int row, const QString& text); ///< a new version with this text
    void branchRequested(int row);                    ///< a new chat with everything up to this message
    void continueRequested(int row);                  ///< go on writing an answer that ended early
    void discardRequested(int row);                   ///< an interrupted answer
    void deleteRequested(int row);                    ///< this message alone
    void undoDeleteRequested();
    void versionRequested(int row, int step); ///< -1: the version before, 1: the one after

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    bool focusNextPrevChild(bool next) override;
    void timerEvent(QTimerEvent* event) override;

private:
    /// A place in the text: row and source position.
    struct Spot {
        int row = -1;
        int position = 0;
        friend auto operator<=>(const Spot&, const Spot&) = default;
    };
    /// What must stay where it is on the screen when heights change.
    struct Anchor {
        bool end = true;
        int row = 0;
        int position = -1; ///< in the row's text, when its line is the first that is seen; -1 = the row's top
        int offset = 0;    ///< of that line or top from the top of the viewport
    };
    struct Row {
        MessageItem item;
        int y = 0;            ///< from the top of the content
        double shownRate = 0; ///< speed as it was painted last
    };

    /// A version was asked for: what stays on the screen when it comes.
    struct Pin {
        int row = -1;
        int top = 0; ///< of the arrows, in the viewport
        MessageHit focused;
    };

    // content
    void resetRows();
    void noteLast();
    void restorePin();
    void rowsInserted(int first, int last);
    void rowsRemoved(int first, int last);
    void rowsChanged(const QModelIndex& first, const QModelIndex& last, const QVector<int>& roles);
    int columnWidth() const;
    QPoint columnOrigin() const; ///< upper left corner of the column in viewport coordinates, scrolled
    void place();                ///< y of all rows
    Anchor anchor() const;
    void restore(const Anchor& anchor);
    void relayout(const Anchor& keep); ///< settles and paints all again
    void settle(const Anchor& keep);
    void repaintRow(int row, int dirtyTop);
    int topOf(const Anchor& anchor) const;
    void pushUp(int by, int tailTop);
    int contentHeight() const;
    int rowAt(int y) const; ///< content coordinate; -1 outside
    void updateScrollBar();
    void placeNewestButton();

    // interaction
    Spot spotAt(QPoint point) const;
    MessageHit partAt(QPoint point, int& row) const;
    TextRange selectionOf(int row) const;
    void hover(QPoint point);
    void activate(MessageHit hit, int row);
    bool activateByKey(int key);
    void requestDelete(int row);
    void openAttachment(int row, int index);
    void toggleReceipt(int row);
    void toggleThought(int row);
    void refit(int row, bool keepEnd, const std::function<void(MessageItem&)>& change);
    void copyText(const QString& text);
    void copyFrom(MessageHit hit, int row, const QString& text);
    void moveCurrent(int by);
    bool moveFocus(int by);
    void placeEdit();
    bool valid(int row) const { return m_model && row >= 0 && row < m_model->size() && row < int(m_rows.size()); }
    void ensureVisible(int row);
    MessageLook lookOf(int row) const;

    QPointer<ChatModel> m_model;
    std::vector<Row> m_rows;
    ChatStyle m_style;
    Theme m_theme;
    Button* m_newest;
    bool m_follow = true, m_followedBefore = false; ///< before the mouse began to select
    bool m_relaying = false;
    int m_hoverRow = -1, m_currentRow = -1;
    MessageHit m_under, m_pressed, m_focused, m_done;
    int m_pressedRow = -1, m_doneRow = -1;
    int m_doneTimer = 0; ///< takes back the tick of what has been copied
    QPointer<MessageEdit> m_edit;
    int m_editRow = -1;
    Pin m_pin;
    Spot m_selectFrom, m_selectTo;
    bool m_selecting = false;
    int m_autoScroll = 0; ///< timer while a selection is dragged beyond the edge
    int m_litRow = -1, m_litBlocks = 0;
    int m_litTextRow = -1;
    TextRange m_litText;
};

} // namespace kvscope::ui
