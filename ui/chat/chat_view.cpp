// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatView: which rows there are, where they lie, and what is drawn. Mouse and keys: chat_view_input.cpp.
#include "ui/chat/chat_view.h"

#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr int kSidePadding = 20;
constexpr int kColumnAtMost = 780; // a wide window keeps the chat in its middle
constexpr int kBottomPadding = 12;
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
    m_hoverRow = m_currentRow = m_litRow = m_litTextRow = m_pressedRow = -1;
    m_follow = true;
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
    if (last + 1 < int(m_rows.size()))
        clearSelection();
    relayout(keep);
}

void ChatView::rowsRemoved(int first, int last) {
    Anchor keep = anchor();
    m_rows.erase(m_rows.begin() + first, m_rows.begin() + last + 1);
    keep.row = std::min(keep.row, std::max(0, int(m_rows.size()) - 1));
    clearSelection();
    m_hoverRow = m_currentRow = m_litRow = m_litTextRow = m_pressedRow = -1;
    relayout(keep);
}

void ChatView::rowsChanged(const QModelIndex& first, const QModelIndex& last, const QVector<int>& roles) {
    const Anchor keep = anchor();
    const bool appendedOnly = roles.size() == 1 && roles[0] == Qt::DisplayRole;
    bool moved = false;
    for (int row = first.row(); row <= last.row(); ++row) {
        MessageItem& item = m_rows[std::size_t(row)].item;
        const QRect before = rowRect(row);
        const QRect tail = item.measured() ? item.tailRect() : QRect();
        if (item.measured())
            item.update(m_model->at(row), m_style, columnWidth(), appendedOnly);
        else
            item.guess(m_model->at(row), m_style, columnWidth());
        if (item.height() == before.height()) {
            repaintRow(row, appendedOnly ? tail : QRect());
        } else if (appendedOnly && tail.isValid() && first == last && row + 1 == int(m_rows.size()) && m_follow) {
            m_rows[std::size_t(row)].shownRate = m_model->at(row).tokensPerSecond;
            settle(keep);
            return pushUp(before.top() - rowRect(row).top(), before.top() + tail.top());
        } else {
            moved = true;
        }
    }
    if (moved)
        relayout(keep);
}

/// `oldTail`: where the last line stood before words came at the end, and nothing else changed; empty otherwise.
void ChatView::repaintRow(int row, const QRect& oldTail) {
    Row& r = m_rows[std::size_t(row)];
    const QPoint at = rowRect(row).topLeft();
    const double rate = m_model->at(row).tokensPerSecond;
    if (oldTail.isValid()) {
        viewport()->update(oldTail.united(r.item.tailRect()).translated(at));
        if (rate != r.shownRate)
            viewport()->update(r.item.partRect(MessagePart::Receipt).translated(at));
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
    a.row = std::max(0, rowAt(verticalScrollBar()->value()));
    a.offset = m_rows[std::size_t(a.row)].y - verticalScrollBar()->value();
    return a;
}

void ChatView::restore(const Anchor& a) {
    updateScrollBar();
    QScrollBar* bar = verticalScrollBar();
    if (a.end || m_rows.empty())
        bar->setValue(bar->maximum());
    else
        bar->setValue(m_rows[std::size_t(std::min<int>(a.row, int(m_rows.size()) - 1))].y - a.offset);
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
    for (int pass = 0; pass < 8; ++pass) {
        place();
        restore(keep);
        const int top = verticalScrollBar()->value();
        const int bottom = top + viewport()->height();
        bool measured = false;
        for (int row = 0; row < int(m_rows.size()); ++row) {
            Row& r = m_rows[std::size_t(row)];
            const bool near = r.y < bottom + 200 && r.y + r.item.height() > top - 200;
            if (near && (!r.item.measured())) {
                r.item.update(m_model->at(row), m_style, columnWidth(), false);
                measured = true;
            } else if (!near) {
                r.item.release();
            }
        }
        if (!measured)
            break;
    }
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
            const int y = r.y + r.item.textRect().top() + int(r.item.text().caretRect(range.from).top());
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
    if (row == m_pressedRow)
        look.pressed = m_pressed;
    look.selection = selectionOf(row);
    if (row == m_litTextRow)
        look.lit = m_litText;
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
    return m_rows[std::size_t(row)].item.partRect(part).translated(rowRect(row).topLeft());
}

} // namespace kvscope::ui
