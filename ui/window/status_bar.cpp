// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/status_bar.h"

#include <QFontMetrics>
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "ui/models/format.h"
#include "ui/theme/icons.h"
#include "ui/widgets/bar.h"

namespace kvscope::ui {
namespace {

constexpr int kHeight = 26;
constexpr int kSide = 12;
constexpr int kGap = 16;
constexpr int kGlyph = 16;
constexpr double kWarnAt = 0.85;

QFont statusFont() {
    return figureFont(TextRole::Table);
}

} // namespace

StatusBar::StatusBar(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setFixedHeight(kHeight);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Status"));
}

void StatusBar::setFacts(const Facts& facts) {
    const bool meterMoved = facts.context != m_facts.context;
    m_facts = facts;
    QString now = spoken();
    if (now == m_spoken && !meterMoved)
        return;
    m_spoken = std::move(now);
    setAccessibleDescription(m_spoken);
    update();
}

void StatusBar::setNarrow(bool narrow) {
    m_narrow = narrow;
    update();
}

void StatusBar::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

std::vector<StatusBar::Segment> StatusBar::leftSegments() const {
    std::vector<Segment> out;
    if (!m_facts.model.isEmpty() && !m_narrow)
        out.push_back({m_facts.model, {}});
    if (!m_facts.backend.isEmpty())
        out.push_back({m_facts.backend, m_facts.backendDetail, false, true});
    if (m_facts.context.limit > 0) {
        const QString figures =
            m_narrow ? tr("%1 / %2").arg(formatNumber(m_facts.context.length), formatNumber(m_facts.context.limit))
                     : tr("%1 of %2").arg(formatNumber(m_facts.context.length), formatNumber(m_facts.context.limit));
        out.push_back({figures,
                       tr("Tokens of this chat in the engine, of those its context holds. Gold: reused from the cache; "
                          "blue: computed or written this turn."),
                       false, false, true});
    }
    return out;
}

std::vector<StatusBar::Segment> StatusBar::rightSegments() const {
    std::vector<Segment> out;
    if (m_facts.tokensPerSecond > 0)
        out.push_back({formatRate(m_facts.tokensPerSecond), tr("Written by all answers together, over two seconds")});
    if (m_facts.hitRate)
        out.push_back({tr("prefix hits %1").arg(formatPercent(*m_facts.hitRate)),
                       tr("Reused of the prompt tokens of the last 32 requests")});
    if (m_facts.droppedSamples)
        out.push_back({m_narrow && *m_facts.droppedSamples == 0
                           ? tr("no samples dropped")
                           : tr("%1 samples dropped").arg(formatNumber(std::int64_t(*m_facts.droppedSamples))),
                       tr("Samples that the window took too late. Totals stay right, curves lose detail."), true});
    return out;
}

int StatusBar::widthOf(const Segment& s) const {
    const QFontMetrics metrics(statusFont());
    int width = metrics.horizontalAdvance(s.text);
    if (s.info)
        width += kGlyph + 6;
    if (s.meter)
        width += metrics.horizontalAdvance(tr("Context")) + 8 + (m_narrow ? 96 : 120) + 8;
    return width;
}

std::vector<std::pair<QRect, StatusBar::Segment>> StatusBar::placed() const {
    std::vector<std::pair<QRect, Segment>> out;
    int right = width() - kSide;
    std::vector<Segment> ends = rightSegments();
    for (auto it = ends.rbegin(); it != ends.rend(); ++it) {
        const int w = widthOf(*it);
        right -= w;
        out.push_back({QRect(right, 0, w, height()), *it});
        right -= 2 * kGap + 1;
    }
    int x = kSide;
    for (Segment& s : leftSegments()) {
        const int w = widthOf(s);
        if (x + w > right)
            break; // no room: facts leave from the middle
        out.push_back({QRect(x, 0, w, height()), std::move(s)});
        x += w + 2 * kGap + 1;
    }
    return out;
}

void StatusBar::paintSegment(QPainter& painter, const Segment& s, int x) const {
    const QFontMetrics metrics(statusFont());
    painter.setPen(s.quiet ? m_theme.text3 : m_theme.text2);
    if (s.info) {
        painter.drawPixmap(QPoint(x, (height() - kGlyph) / 2),
                           iconPixmap(Icon::Info, kGlyph, m_theme.text3, devicePixelRatioF()));
        x += kGlyph + 6;
    }
    if (s.meter) {
        const QString word = tr("Context");
        painter.drawText(QRect(x, 1, width(), height() - 1), Qt::AlignVCenter, word);
        x += metrics.horizontalAdvance(word) + 8;
        const ContextUse& use = m_facts.context;
        const double limit = double(use.limit);
        const bool warns = double(use.length) > kWarnAt * limit;
        const double cached = double(std::min(use.cached, use.length)) / limit;
        const double rest = double(std::max<std::int64_t>(0, use.length - use.cached)) / limit;
        const int barWidth = m_narrow ? 96 : 120;
        paintBar(painter, QRectF(x, (height() - 6) / 2.0 + 0.5, barWidth, 6),
                 {{cached, m_theme.stateCachedRing}, {rest, warns ? m_theme.warn : m_theme.stateActive}},
                 m_theme.stateEmpty, m_theme.well);
        x += barWidth + 8;
        painter.setPen(warns ? m_theme.warn : m_theme.text2);
    }
    painter.drawText(QRect(x, 1, width(), height() - 1), Qt::AlignVCenter, s.text);
}

void StatusBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg0);
    painter.fillRect(QRect(0, 0, width(), 1), m_theme.line1);
    painter.setFont(statusFont());
    const auto segments = placed();
    for (const auto& [place, segment] : segments) {
        paintSegment(painter, segment, place.left());
        const bool lastRight = place.right() + kSide >= width() - 1;
        const int separator = place.right() + 1 + kGap;
        const bool neighbour = std::any_of(segments.begin(), segments.end(), [&](const auto& other) {
            return other.first.left() == separator + 1 + kGap || other.first.left() == separator + kGap;
        });
        if (!lastRight && neighbour)
            painter.fillRect(QRect(separator, (height() - 12) / 2, 1, 12), m_theme.line2);
    }
}

bool StatusBar::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        for (const auto& [place, segment] : placed())
            if (place.contains(help->pos())) {
                QToolTip::showText(help->globalPos(), segment.hint, this, place);
                return true;
            }
        QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

QString StatusBar::spoken() const {
    QStringList parts;
    for (const auto& segments : {leftSegments(), rightSegments()})
        for (const Segment& s : segments)
            parts << (s.meter ? tr("Context %1").arg(s.text) : s.text);
    return parts.join(QStringLiteral(", "));
}

} // namespace kvscope::ui
