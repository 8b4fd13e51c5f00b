// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QPointer>
#include <optional>
#include <vector>

#include "ui/chat/message_item.h"
#include "ui/models/chat_model.h"
#include "ui/theme/apply_theme.h"

class QMenu;

namespace kvscope::ui {

class Button;

/// The messages of a conversation, virtualised: only what is on the screen is laid out. While the view stands at its
/// end it follows what is written; once the user has scrolled up, nothing moves what is being read.
///
/// Keys: arrows, Page and Home/End scroll; Ctrl+Up/Down walk from message to message, Enter opens the receipt of the
/// current one, B shows its blocks, Ctrl+C copies the selection or else the current message.
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

signals:
    void stopRequested();
    void showBlocksRequested(int row);
    void copied();

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
        int offset = 0; ///< of the row's top from the top of the viewport
    };
    struct Row {
        MessageItem item;
        int y = 0;            ///< from the top of the content
        double shownRate = 0; ///< speed as it was painted last
    };

    // content
    void resetRows();
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
    void repaintRow(int row, const QRect& oldTail);
    void pushUp(int by, int tailTop);
    int contentHeight() const;
    int rowAt(int y) const; ///< content coordinate; -1 outside
    void updateScrollBar();
    void placeNewestButton();

    // interaction
    Spot spotAt(QPoint point) const;
    MessagePart partAt(QPoint point, int& row) const;
    TextRange selectionOf(int row) const;
    void hover(QPoint point);
    void activate(MessagePart part, int row);
    void toggleReceipt(int row);
    void copyText(const QString& text);
    void moveCurrent(int by);
    void ensureVisible(int row);
    MessageLook lookOf(int row) const;

    QPointer<ChatModel> m_model;
    std::vector<Row> m_rows;
    ChatStyle m_style;
    Theme m_theme;
    Button* m_newest;
    bool m_follow = true;
    bool m_relaying = false;
    int m_hoverRow = -1, m_currentRow = -1;
    MessagePart m_under = MessagePart::None, m_pressed = MessagePart::None;
    int m_pressedRow = -1;
    Spot m_selectFrom, m_selectTo;
    bool m_selecting = false;
    int m_autoScroll = 0; ///< timer while a selection is dragged beyond the edge
    int m_litRow = -1, m_litBlocks = 0;
    int m_litTextRow = -1;
    TextRange m_litText;
};

} // namespace kvscope::ui
