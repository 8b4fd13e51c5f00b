// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatView: which rows there are, where they lie, and what is drawn. Mouse and keys: chat_view_input.cpp.
#include "ui/chat/chat_view.h"

#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "ui/chat/message_edit.h"
#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr int kSidePadding = 20;
constexpr int kColumnAtMost = 780; // a wide window keeps the chat in its middle
constexpr int kBottomPadding = 12;
constexpr int kNear = 200;  // what is this close to the screen is laid out
constexpr int kNearEnd = 8; // this close to the end counts as at the end

} // namespace

ChatView::ChatView(const Theme& theme, QWidget* parent)
    : QAbstractScrollArea(parent)
    , m_style(ChatStyle::at(14))
    , m_theme(theme)
    , m_newest(new Button(tr("Newest"), Button::Kind::Normal, theme, viewport())) {
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::StrongFocus);
    setProperty("kvscopeFocusInside", true); // the current message carries the ring
    setAccessibleName(tr("Messages"));
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent); // nothing below it needs to be painted first
    m_newest->setGlyph(Icon::Down);
    m_newest->setHeight(28);
    m_newest->setFocusPolicy(Qt::NoFocus); // End does the same
    m_newest->hide();
    connect(m_newest, &QAbstractButton::clicked, this, &ChatView::scrollToEnd);
}

ChatView::~ChatView() = default;

void ChatView::setModel(ChatModel* model) {
    if (m_model)
        m_model->disconnect(this);
    m_model = model;
    if (model) {
        connect(model, &QAbstractItemModel::modelReset, this, &ChatView::resetRows);
        connect(model, &QAbstractItemModel::rowsInserted, this,
                [this](const QModelIndex&, int first, int last) { rowsInserted(first, last); });
        connect(model, &QAbstractItemModel::rowsRemoved, this,
                [this](const QModelIndex&, int first, int last) { rowsRemoved(first, last); });
        connect(model, &QAbstractItemModel::dataChanged, this, &ChatView::rowsChanged);
    }
    resetRows();
}

void ChatView::setTheme(const Theme& theme) {
    m_theme = theme;
    for (Row& row : m_rows)
        row.item.setLinkColor(theme.accent);
    viewport()->update();
}

void ChatView::setTextSize(int pixels) {
    const Anchor keep = anchor();
    m_style = ChatStyle::at(pixels);
    for (Row& row : m_rows)
        row.item.forgetMeasure();
    relayout(keep);
}

// ---- rows ----

void ChatView::resetRows() {
    m_rows.clear();
    m_rows.resize(m_model ? std::size_t(m_model->size()) : 0);
    m_selectFrom = m_selectTo = Spot();
    m_hoverRow = m_currentRow = m_litRow = m_litTextRow = m_pressedRow = m_doneRow = -1;
    m_focused = {};
    endEdit();
    m_follow = true;
    m_pin = {};
    noteLast();
    for (int row = 0; row < int(m_rows.size()); ++row)
        m_rows[std::size_t(row)].item.guess(m_model->at(row), m_style, columnWidth());
    relayout({});
}

void ChatView::rowsInserted(int first, int last) {
    const Anchor keep = anchor();
    for (int row = first; row <= last; ++row) {
        const auto it = m_rows.insert(m_rows.begin() + row, Row{});
        it->item.guess(m_model->at(row), m_style, columnWidth());
    }
    if (last + 1 < int(m_rows.size())) {
        clearSelection();
        endEdit();
    }
    noteLast();
    relayout(keep);
    if (m_pin.row >= first && m_pin.row <= last)
        restorePin();
}

void ChatView::rowsRemoved(int first, int last) {
    endEdit();
    Anchor keep = anchor();
    if (keep.row >= first)
        keep.position = -1;
    m_rows.erase(m_rows.begin() + first, m_rows.begin() + last + 1);
    keep.row = std::min(keep.row, std::max(0, int(m_rows.size()) - 1));
    clearSelection();
    m_hoverRow = m_currentRow = m_litRow = m_litTextRow = m_pressedRow = m_doneRow = -1;
    m_focused = {};
    noteLast();
    relayout(keep);
}

/// Only the last message can be written on: those that were it, or have become it, show that.
void ChatView::noteLast() {
    for (int row = 0; row < int(m_rows.size()); ++row) {
        MessageItem& item = m_rows[std::size_t(row)].item;
        const bool last = row + 1 == int(m_rows.size());
        if (item.last() == last)
            continue;
        item.setLast(last);
        if (item.measured())
            item.update(m_model->at(row), m_style, columnWidth(), false);
    }
}

/// Another version of a message has come: the arrows that were used to go there stay under the pointer.
void ChatView::restorePin() {
    const Pin pin = std::exchange(m_pin, {});
    m_currentRow = pin.row;
    m_follow = false;
    ensureVisible(pin.row);
    const QRect arrows = partRect(pin.row, MessagePart::Previous);
    if (arrows.isValid())
        verticalScrollBar()->setValue(verticalScrollBar()->value() + arrows.top() - pin.top);
    m_focused = targets(pin.row).empty() ? MessageHit{} : pin.focused;
    m_follow = atEnd();
    viewport()->update();
}

void ChatView::rowsChanged(const QModelIndex& first, const QModelIndex& last, const QVector<int>& roles) {
    const Anchor keep = anchor();
    const bool appendedOnly = roles.size() == 1 && roles[0] == Qt::DisplayRole;
    bool moved = false;
    for (int row = first.row(); row <= last.row(); ++row) {
        MessageItem& item = m_rows[std::size_t(row)].item;
        const QRect before = rowRect(row);
        const bool measured = item.measured();
        if (measured)
            item.update(m_model->at(row), m_style, columnWidth(), appendedOnly);
        else
            item.guess(m_model->at(row), m_style, columnWidth());
        const int dirtyTop = measured && appendedOnly ? item.dirtyTop() : -1;
        if (item.height() == before.height()) {
            repaintRow(row, dirtyTop);
        } else if (dirtyTop >= 0 && first == last && row + 1 == int(m_rows.size()) && m_follow) {
            m_rows[std::size_t(row)].shownRate = m_model->at(row).tokensPerSecond;
            settle(keep);
            return pushUp(before.top() - rowRect(row).top(), before.top() + dirtyTop);
        } else {
            moved = true;
        }
    }
    if (moved)
        relayout(keep);
}

/// `dirtyTop`: words came at the end, and above this height of the row nothing changed; -1 = anything may have.
void ChatView::repaintRow(int row, int dirtyTop) {
    Row& r = m_rows[std::size_t(row)];
    const QPoint at = rowRect(row).topLeft();
    const double rate = m_model->at(row).tokensPerSecond;
    if (dirtyTop >= 0) {
        const QRect text = r.item.textRect();
        viewport()->update(
            QRect(text.left() - 4, dirtyTop, text.width() + 8, text.bottom() + 3 - dirtyTop).translated(at));
        if (rate != r.shownRate)
            viewport()->update(r.item.rectOf({MessagePart::Receipt, 0}).translated(at));
    } else {
        viewport()->update(rowRect(row).adjusted(-kSidePadding, 0, kSidePadding, 0));
    }
    r.shownRate = rate;
}

/// New lines at the end push up what stands above them: those pixels are moved, and only what lies below `tailTop`,
/// where the last line began before, is painted again.
void ChatView::pushUp(int by, int tailTop) {
    const bool wholePixels = devicePixelRatioF() == std::floor(devicePixelRatioF());
    if (by <= 0 || tailTop <= by || m_newest->isVisible() || !wholePixels)
        return viewport()->update();
    const int width = viewport()->width();
    viewport()->scroll(0, -by, QRect(0, 0, width, tailTop));
    viewport()->update(0, tailTop - by, width, viewport()->height() - tailTop + by);
}

// ---- geometry ----

int ChatView::columnWidth() const {
    return std::clamp(viewport()->width() - 2 * kSidePadding, 120, kColumnAtMost);
}

QPoint ChatView::columnOrigin() const {
    // A short chat stands at the bottom, next to where one writes.
    const int slack = std::max(0, viewport()->height() - contentHeight());
    return {std::max(kSidePadding, (viewport()->width() - columnWidth()) / 2), slack - verticalScrollBar()->value()};
}

int ChatView::contentHeight() const {
    return m_rows.empty() ? 0 : m_rows.back().y + m_rows.back().item.height() + kBottomPadding;
}

void ChatView::place() {
    int y = 0;
    for (Row& row : m_rows) {
        row.y = y;
        y += row.item.height();
    }
}

int ChatView::rowAt(int y) const {
    const auto it =
        std::upper_bound(m_rows.begin(), m_rows.end(), y, [](int value, const Row& row) { return value < row.y; });
    if (it == m_rows.begin())
        return -1;
    const int row = int(it - m_rows.begin()) - 1;
    return y < m_rows[std::size_t(row)].y + m_rows[std::size_t(row)].item.height() ? row : -1;
}

ChatView::Anchor ChatView::anchor() const {
    Anchor a;
    a.end = m_follow;
    if (a.end || m_rows.empty())
        return a;
    const int top = verticalScrollBar()->value();
    a.row = std::max(0, rowAt(top));
    const Row& row = m_rows[std::size_t(a.row)];
    // Within a text the first line that is seen whole is what must stay, whatever becomes of those above it.
    const QRect text = row.item.textRect();
    const int inside = top - row.y - text.top();
    if (row.item.measured() && inside > 0 && inside < text.height())
        a.position = row.item.text().positionAt({0, double(inside + m_style.textLine / 2)});
    a.offset = topOf(a) - top;
    return a;
}

/// Where the anchored line or row stands now, in content coordinates.
int ChatView::topOf(const Anchor& a) const {
    const Row& row = m_rows[std::size_t(std::min<int>(a.row, int(m_rows.size()) - 1))];
    if (a.position < 0 || !row.item.measured())
        return row.y;
    return row.y + row.item.textRect().top() + int(row.item.text().caretRect(a.position).top());
}

void ChatView::restore(const Anchor& a) {
    updateScrollBar();
    QScrollBar* bar = verticalScrollBar();
    bar->setValue(a.end || m_rows.empty() ? bar->maximum() : topOf(a) - a.offset);
}

void ChatView::updateScrollBar() {
    QScrollBar* bar = verticalScrollBar();
    bar->setPageStep(viewport()->height());
    bar->setSingleStep(m_style.textLine * 2);
    bar->setRange(0, std::max(0, contentHeight() - viewport()->height()));
}

/// Guessed rows near the screen get their real height; what is far away gives its layouts back. Measuring moves rows,
/// which may bring others onto the screen, so it goes on until nothing changes.
void ChatView::settle(const Anchor& keep) {
    if (m_relaying)
        return;
    m_relaying = true;
    // What carries the anchor must be measured first, or its line has no place yet.
    if (!keep.end && keep.position >= 0 && keep.row < int(m_rows.size())) {
        Row& r = m_rows[std::size_t(keep.row)];
        if (!r.item.measured())
            r.item.update(m_model->at(keep.row), m_style, columnWidth(), false);
        const int at = r.item.textRect().top() + int(r.item.text().caretRect(keep.position).top());
        r.item.measure(m_model->at(keep.row), at - m_style.textLine, at + m_style.textLine);
    }
    for (int pass = 0; pass < 12; ++pass) {
        place();
        restore(keep);
        const int top = verticalScrollBar()->value() - kNear;
        const int bottom = top + viewport()->height() + 2 * kNear;
        bool measured = false;
        for (int row = 0; row < int(m_rows.size()); ++row) {
            Row& r = m_rows[std::size_t(row)];
            if (r.y >= bottom || r.y + r.item.height() <= top) {
                r.item.release();
                continue;
            }
            if (!r.item.measured()) {
                r.item.setLinkColor(m_theme.accent);
                r.item.update(m_model->at(row), m_style, columnWidth(), false);
                measured = true;
            }
            measured = r.item.measure(m_model->at(row), top - r.y, bottom - r.y) || measured;
        }
        if (!measured)
            break;
    }
    placeEdit();
    m_relaying = false;
    placeNewestButton();
}

void ChatView::relayout(const Anchor& keep) {
    if (m_relaying)
        return;
    settle(keep);
    viewport()->update();
}

void ChatView::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    const Anchor keep = anchor();
    if (event->oldSize().width() != event->size().width())
        for (Row& row : m_rows)
            row.item.forgetMeasure();
    relayout(keep);
}

void ChatView::scrollContentsBy(int, int) {
    if (m_relaying)
        return;
    m_follow = atEnd();
    relayout(anchor());
}

bool ChatView::atEnd() const {
    return verticalScrollBar()->value() >= verticalScrollBar()->maximum() - kNearEnd;
}

void ChatView::scrollToEnd() {
    m_follow = true;
    relayout({});
}

void ChatView::placeNewestButton() {
    const bool away = verticalScrollBar()->value() < verticalScrollBar()->maximum() - 60;
    m_newest->setVisible(away);
    if (!away)
        return;
    m_newest->resize(m_newest->sizeHint());
    m_newest->move((viewport()->width() - m_newest->width()) / 2, viewport()->height() - m_newest->height() - 12);
}

void ChatView::ensureVisible(int row) {
    if (row < 0 || row >= int(m_rows.size()))
        return;
    const Row& r = m_rows[std::size_t(row)];
    const int top = verticalScrollBar()->value();
    const int page = viewport()->height();
    if (r.y < top || r.item.height() > page)
        verticalScrollBar()->setValue(r.y);
    else if (r.y + r.item.height() > top + page)
        verticalScrollBar()->setValue(r.y + r.item.height() - page);
}

// ---- marks ----

void ChatView::setLitMessage(int row, int blocks) {
    m_litRow = row;
    m_litBlocks = blocks;
    viewport()->update();
}

void ChatView::setLitText(int row, TextRange range) {
    m_litTextRow = row;
    m_litText = range;
    if (row >= 0 && row < int(m_rows.size())) {
        ensureVisible(row);
        Row& r = m_rows[std::size_t(row)];
        if (r.item.measured()) { // and in a long message the very line
            const int y = r.y + r.item.textRect().top() +
                          int(r.item.text().caretRect(range.from + r.item.text().answerAt()).top());
            const int top = verticalScrollBar()->value();
            if (y < top + 20 || y > top + viewport()->height() - 60)
                verticalScrollBar()->setValue(y - viewport()->height() / 3);
        }
    }
    viewport()->update();
}

MessageLook ChatView::lookOf(int row) const {
    MessageLook look;
    look.theme = &m_theme;
    look.devicePixelRatio = devicePixelRatioF();
    const bool current = hasFocus() && row == m_currentRow;
    look.hovered = row == m_hoverRow || current;
    look.ringed = current;
    look.blocksLit = row == m_litRow;
    look.litBlocks = m_litBlocks;
    if (row == m_hoverRow)
        look.under = m_under;
    if (current && m_focused.part != MessagePart::None) {
        look.focused = m_focused;
        look.ringed = false;
    }
    if (row == m_doneRow)
        look.done = m_done;
    if (row == m_pressedRow)
        look.pressed = m_pressed;
    look.selection = selectionOf(row);
    if (row == m_litTextRow) {
        const int at = m_rows[std::size_t(row)].item.text().answerAt();
        look.lit = {m_litText.from + at, m_litText.to + at};
    }
    return look;
}

void ChatView::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), m_theme.bg1);
    if (!m_model)
        return;
    const QPoint origin = columnOrigin();
    for (int row = std::max(0, rowAt(std::max(0, event->rect().top() - origin.y()))); row < int(m_rows.size()); ++row) {
        const Row& r = m_rows[std::size_t(row)];
        const QPoint at = origin + QPoint(0, r.y);
        if (at.y() > event->rect().bottom())
            break;
        if (r.item.measured())
            r.item.paint(painter, at, event->rect(), lookOf(row), m_model->at(row));
    }
}

int ChatView::laidOutRows() const {
    return int(std::count_if(m_rows.begin(), m_rows.end(), [](const Row& row) { return row.item.hasLayouts(); }));
}

QRect ChatView::rowRect(int row) const {
    const Row& r = m_rows[std::size_t(row)];
    return {columnOrigin() + QPoint(0, r.y), QSize(columnWidth(), r.item.height())};
}

QRect ChatView::partRect(int row, MessagePart part) const {
    return partRect(row, MessageHit{part, 0});
}

QRect ChatView::partRect(int row, MessageHit hit) const {
    return m_rows[std::size_t(row)].item.rectOf(hit).translated(rowRect(row).topLeft());
}

std::vector<MessageHit> ChatView::targets(int row) const {
    return m_rows[std::size_t(row)].item.targets();
}

} // namespace kvscope::ui
