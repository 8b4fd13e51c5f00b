// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/curve_values.h"

#include <QPaintEvent>
#include <QPainter>

#include "ui/cockpit/look.h"

namespace kvscope::ui {
namespace {
constexpr int kLine = 14;
constexpr int kNarrow = 240;           // below it margins and gap shrink, so that the names need not
constexpr double kFirstColumn = 0.475; // the left names are shorter
constexpr int kSwatch = 8;
constexpr int kSwatchGap = 5;
} // namespace

CurveValues::CurveValues(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Values at the cursor"));
}

void CurveValues::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

QRect CurveValues::place(const Group& group, std::size_t index) const {
    const bool narrow = width() < kNarrow;
    const int left = narrow ? 10 : 14, gap = narrow ? 10 : 12;
    const int room = width() - left - (narrow ? 10 : kRightMargin);
    const int perRow = group.oneColumn ? 1 : 2;
    const int rows = (int(group.values.size()) + perRow - 1) / perRow;
    const int row = int(index) / perRow;
    const int top = group.top + (group.height - rows * kLine) / 2 + row * kLine;
    if (group.oneColumn)
        return {left, top, room, kLine};
    const int first = int(kFirstColumn * (room - gap));
    return index % 2 == 0 ? QRect(left, top, first, kLine) : QRect(left + first + gap, top, room - gap - first, kLine);
}

void CurveValues::setGroups(std::vector<Group> groups) {
    QStringList spoken;
    const bool sameShape = groups.size() == m_groups.size();
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const bool sameGroup = sameShape && groups[g].values.size() == m_groups[g].values.size() &&
                               groups[g].top == m_groups[g].top && groups[g].height == m_groups[g].height;
        for (std::size_t i = 0; i < groups[g].values.size(); ++i) {
            const CurveValue& value = groups[g].values[i];
            spoken << value.name + u' ' + value.value;
            if (sameGroup && !(value == m_groups[g].values[i]))
                update(place(groups[g], i));
        }
        if (!sameGroup)
            update();
    }
    if (!sameShape)
        update();
    m_groups = std::move(groups);
    setAccessibleDescription(spoken.join(QStringLiteral(", ")));
}

void CurveValues::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    for (const QRect& rect : event->region())
        painter.fillRect(rect, m_theme.bg1);
    for (const Group& group : m_groups)
        for (std::size_t i = 0; i < group.values.size(); ++i)
            if (const QRect rect = place(group, i); event->region().intersects(rect))
                paintValue(painter, rect, group.values[i]);
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
