// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/curve_values.h"

#include <QPaintEvent>
#include <QPainter>
#include <algorithm>
#include <tuple>
#include <utility>

#include "ui/cockpit/look.h"

namespace kvscope::ui {
namespace {
constexpr int kLine = 14;
constexpr int kNarrow = 240;           // below it margins and gap shrink, so that the names need not
constexpr double kFirstColumn = 0.475; // the left names are shorter
constexpr int kSwatch = 8;
constexpr int kSwatchGap = 5;

int perRowOf(const CurveValues::Group& group) {
    return group.oneColumn ? 1 : 2;
}
} // namespace

std::vector<int> stacked(const std::vector<std::pair<int, int>>& wanted, int room) {
    std::vector<int> tops(wanted.size());
    int below = room;
    for (std::size_t i = wanted.size(); i-- > 0;) {
        tops[i] = std::min(wanted[i].first, below - wanted[i].second);
        below = tops[i];
    }
    int above = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        tops[i] = std::max(tops[i], above);
        above = tops[i] + wanted[i].second;
    }
    return tops;
}

CurveValues::CurveValues(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Values at the cursor"));
}

void CurveValues::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

QRect CurveValues::place(std::size_t at, std::size_t index) const {
    const Group& group = m_groups[at];
    const bool narrow = width() < kNarrow;
    const int left = narrow ? 10 : 14, gap = narrow ? 10 : 12;
    const int room = width() - left - (narrow ? 10 : kRightMargin);
    const int top = m_tops[at] + int(index) / perRowOf(group) * kLine;
    if (group.oneColumn)
        return {left, top, room, kLine};
    const int first = int(kFirstColumn * (room - gap));
    return index % 2 == 0 ? QRect(left, top, first, kLine) : QRect(left + first + gap, top, room - gap - first, kLine);
}

/// Beside their strips; where a strip is lower than its values, they take from the room above it, else from that below.
void CurveValues::stack() {
    std::vector<std::pair<int, int>> wanted;
    for (const Group& group : m_groups) {
        const int tall = (int(group.values.size()) + perRowOf(group) - 1) / perRowOf(group) * kLine;
        wanted.emplace_back(group.top + (group.height - tall) / 2, tall);
    }
    m_tops = stacked(wanted, height());
}

void CurveValues::setGroups(std::vector<Group> groups) {
    const auto shapeOf = [](const Group& group) {
        return std::tuple(group.top, group.height, group.oneColumn, group.values.size());
    };
    const bool sameShape = std::equal(groups.begin(), groups.end(), m_groups.begin(), m_groups.end(),
                                      [&](const Group& a, const Group& b) { return shapeOf(a) == shapeOf(b); });
    const std::vector<Group> before = std::exchange(m_groups, std::move(groups));
    if (!sameShape) {
        stack();
        update();
    }
    QStringList spoken;
    for (std::size_t g = 0; g < m_groups.size(); ++g)
        for (std::size_t i = 0; i < m_groups[g].values.size(); ++i) {
            const CurveValue& value = m_groups[g].values[i];
            spoken << value.name + u' ' + value.value;
            if (sameShape && !(value == before[g].values[i]))
                update(place(g, i));
        }
    setAccessibleDescription(spoken.join(QStringLiteral(", ")));
}

void CurveValues::resizeEvent(QResizeEvent*) {
    stack();
}

void CurveValues::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    for (const QRect& rect : event->region())
        painter.fillRect(rect, m_theme.bg1);
    for (std::size_t g = 0; g < m_groups.size(); ++g)
        for (std::size_t i = 0; i < m_groups[g].values.size(); ++i)
            if (const QRect rect = place(g, i); rect.bottom() < height() && event->region().intersects(rect))
                paintValue(painter, rect, m_groups[g].values[i]);
}

void CurveValues::paintValue(QPainter& p, const QRect& rect, const CurveValue& value) const {
    using Mark = CurveValue::Mark;
    const double middle = rect.top() + rect.height() / 2.0;
    const QRectF square(rect.left(), middle - kSwatch / 2.0, kSwatch, kSwatch);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(Qt::NoPen);
    p.setBrush(value.color);
    switch (value.mark) {
    case Mark::Area:
        p.drawRoundedRect(square, 1, 1);
        break;
    case Mark::Line:
        p.drawRoundedRect(QRectF(square.left(), middle - 1.5, kSwatch, 3), 1, 1);
        break;
    case Mark::Column:
        p.setOpacity(0.6);
        p.drawRoundedRect(square, 1, 1);
        p.setOpacity(1);
        break;
    case Mark::Outline:
        p.setPen(m_theme.line3);
        p.drawRoundedRect(square.adjusted(.5, .5, -.5, -.5), 1, 1);
        break;
    case Mark::Eviction:
        p.drawPolygon(QPolygonF{square.topLeft(), square.topRight(), {square.center().x(), square.bottom() - 1}});
        break;
    case Mark::Preemption:
        p.drawPolygon(QPolygonF{{square.center().x(), square.top()},
                                {square.right(), square.center().y()},
                                {square.center().x(), square.bottom()},
                                {square.left(), square.center().y()}});
        break;
    }
    p.setRenderHint(QPainter::Antialiasing, false);
    p.setFont(figureFont(TextRole::Axis));
    const QFontMetrics metrics = p.fontMetrics();
    const int figures = metrics.horizontalAdvance(value.value);
    int x = rect.left() + kSwatch + kSwatchGap;
    const int roomForName = rect.right() + 1 - figures - 6 - x;
    p.setPen(m_theme.text2);
    p.drawText(QRect(x, rect.top(), roomForName, rect.height()), Qt::AlignVCenter,
               metrics.elidedText(value.name, Qt::ElideRight, roomForName));
    x += metrics.horizontalAdvance(value.name) + 6;
    if (const int roomForNote = rect.right() + 1 - figures - 6 - x;
        !value.note.isEmpty() && metrics.horizontalAdvance(value.note) <= roomForNote) {
        p.setPen(m_theme.text3);
        p.drawText(QRect(x, rect.top(), roomForNote, rect.height()), Qt::AlignVCenter, value.note);
    }
    p.setPen(m_theme.text1);
    p.drawText(rect, Qt::AlignRight | Qt::AlignVCenter, value.value);
}

} // namespace kvscope::ui
