// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/memory_bar.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>

#include "ui/cockpit/look.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {
constexpr int kTop = 8;
constexpr int kLabel = 16;
constexpr int kBarTop = kTop + kLabel + 2;
constexpr int kBarHeight = 10;
constexpr int kFunnel = 12;
constexpr int kSwatch = 8;
constexpr int kSwatchGap = 5;
constexpr int kLabelGap = 14;
constexpr int kHostNewsMs = 1000;
} // namespace

MemoryBar::MemoryBar(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(tr("Memory"));
}

QSize MemoryBar::sizeHint() const {
    return {200, kBarTop + kBarHeight + kFunnel};
}

void MemoryBar::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void MemoryBar::setMapRight(int right) {
    if (right == m_mapRight)
        return;
    m_mapRight = right;
    update();
}

void MemoryBar::setParts(const MemoryParts& parts) {
    // What the rest of the machine takes changes all the time: it is news once a second, our own parts at once.
    const bool sameEngine = parts.hasEngine == m_parts.hasEngine && parts.hasHost == m_parts.hasHost &&
                            parts.pool() == m_parts.pool() &&
                            parts.bytes[MemoryParts::HostTier] == m_parts.bytes[MemoryParts::HostTier] &&
                            parts.bytes[MemoryParts::Weights] == m_parts.bytes[MemoryParts::Weights];
    if (sameEngine && m_sinceNews.isValid() && m_sinceNews.elapsed() < kHostNewsMs)
        return;
    m_sinceNews.start();
    m_parts = parts;
    QStringList words;
    for (const Segment& segment : segments())
        words << segment.name + u' ' + segment.value;
    const QString text = words.join(QStringLiteral(", "));
    if (text == m_text)
        return; // a few pages more or less do not move a pixel
    m_text = text;
    setAccessibleDescription(text);
    update();
}

std::vector<MemoryBar::Segment> MemoryBar::segments() const {
    std::vector<Segment> out;
    const auto add = [&out](const QString& name, std::uint64_t bytes, const QColor& color, int givesWay,
                            bool outlined = false) {
        out.push_back({name, formatBytes(bytes), bytes, color, givesWay, outlined});
    };
    if (m_parts.hasEngine) {
        add(tr("Weights"), m_parts.bytes[MemoryParts::Weights], m_theme.memoryWeights, 3);
        add(tr("KV pool"), m_parts.pool(), m_theme.memoryKv, 0);
        if (m_parts.bytes[MemoryParts::HostTier] > 0)
            add(tr("Host cache"), m_parts.bytes[MemoryParts::HostTier], hostTierColor(m_theme), 2);
        add(tr("Activations"), m_parts.bytes[MemoryParts::Activations], m_theme.memoryActivations, 1);
    }
    if (m_parts.hasHost) {
        add(tr("Other"), m_parts.other(), m_theme.memoryOther, 2);
        add(tr("Free"), m_parts.bytes[MemoryParts::Free], m_theme.memoryFree, 0, true);
    }
    return out;
}

void MemoryBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg1);
    const std::vector<Segment> parts = segments();
    double total = 0;
    for (const Segment& segment : parts)
        total += double(segment.bytes);
    if (total <= 0) {
        painter.setFont(figureFont(TextRole::Axis));
        painter.setPen(m_theme.text3);
        painter.drawText(QRect(kGutter, kTop, width() - kGutter, kLabel), Qt::AlignVCenter,
                         tr("Memory is not reported"));
        return;
    }
    const QRectF bar(kGutter, kBarTop, width() - kGutter - kRightMargin, kBarHeight);
    QPainterPath outline;
    outline.addRoundedRect(bar, 2, 2);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setClipPath(outline);
    double x = bar.left(), kvLeft = -1, kvRight = -1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const double right = i + 1 == parts.size() ? bar.right() : x + double(parts[i].bytes) / total * bar.width();
        painter.fillRect(QRectF(x, bar.top(), right - x, bar.height()), parts[i].color);
        if (i > 0)
            painter.fillRect(QRectF(qRound(x), bar.top(), 1, bar.height()), m_theme.well);
        if (m_parts.hasEngine && i == 1) {
            kvLeft = x;
            kvRight = right;
        }
        x = right;
    }
    painter.setClipping(false);
    paintLabels(painter, parts, bar);
    if (kvLeft >= 0 && m_mapRight > kGutter)
        paintFunnel(painter, kvLeft, kvRight, bar.bottom());
}

void MemoryBar::paintLabels(QPainter& painter, const std::vector<Segment>& parts, const QRectF& bar) const {
    painter.setFont(figureFont(TextRole::Axis));
    const QFontMetrics metrics = painter.fontMetrics();
    struct Label {
        const Segment* segment;
        double width, natural;
    };
    std::vector<Label> labels;
    double total = 0, x = bar.left();
    for (const Segment& s : parts)
        total += double(s.bytes);
    for (const Segment& s : parts) {
        const double width = kSwatch + kSwatchGap + metrics.horizontalAdvance(s.name + u' ' + s.value);
        labels.push_back({&s, width, x});
        x += double(s.bytes) / total * bar.width();
    }
    const auto needed = [&labels] {
        double sum = -kLabelGap;
        for (const Label& l : labels)
            sum += l.width + kLabelGap;
        return sum;
    };
    for (int next = 1; next <= 3 && needed() > bar.width(); ++next)
        std::erase_if(labels, [next](const Label& l) { return l.segment->givesWay == next; });
    // Each label stands over its part where it can, is pushed right by its neighbours, and the last ends with the bar.
    double right = bar.right();
    std::vector<double> latest(labels.size());
    for (std::size_t i = labels.size(); i-- > 0;) {
        latest[i] = right - labels[i].width;
        right = latest[i] - kLabelGap;
    }
    double from = bar.left();
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const Segment& s = *labels[i].segment;
        const bool last = i + 1 == labels.size();
        const double at = last ? latest[i] : std::clamp(labels[i].natural, std::min(from, latest[i]), latest[i]);
        const QRectF swatch(qRound(at), kTop + (kLabel - kSwatch) / 2.0, kSwatch, kSwatch);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(s.outlined ? QPen(m_theme.line3) : QPen(Qt::NoPen));
        painter.setBrush(s.color);
        painter.drawRoundedRect(s.outlined ? swatch.adjusted(.5, .5, -.5, -.5) : swatch, 1, 1);
        painter.setPen(s.givesWay == 0 && !s.outlined ? m_theme.text1 : m_theme.text3);
        painter.drawText(QRectF(swatch.right() + kSwatchGap, kTop, labels[i].width, kLabel), Qt::AlignVCenter,
                         s.name + u' ' + s.value);
        from = at + labels[i].width + kLabelGap;
    }
}

void MemoryBar::paintFunnel(QPainter& painter, double kvLeft, double kvRight, double top) const {
    const double bottom = top + kFunnel, left = kGutter, right = m_mapRight;
    QPainterPath shape;
    shape.moveTo(kvLeft, top);
    shape.lineTo(kvRight, top);
    shape.lineTo(right, bottom);
    shape.lineTo(left, bottom);
    shape.closeSubpath();
    QColor color = m_theme.memoryKv;
    color.setAlphaF(0.16f);
    painter.fillPath(shape, color);
    color.setAlphaF(0.6f);
    painter.setPen(color);
    painter.drawLine(QPointF(kvLeft + .5, top), QPointF(left + .5, bottom));
    painter.drawLine(QPointF(kvRight - .5, top), QPointF(right - .5, bottom));
}

} // namespace kvscope::ui
