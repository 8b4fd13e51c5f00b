// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QWidget>

#include "ui/models/memory_parts.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// The memory of the engine's device as one bar with labels above it. Its KV part opens below like a funnel into the
/// block map. What is not reported has no part and no label. Labels leave in this order when the room is short:
/// activations, other, weights.
class MemoryBar final : public QWidget, public Themed {
    Q_OBJECT
public:
    explicit MemoryBar(const Theme& theme, QWidget* parent = nullptr);

    void setParts(const MemoryParts& parts);
    /// Right edge of the map's cells, logical, in this widget: where the funnel ends. 0 = there is no map.
    void setMapRight(int right);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    struct Segment {
        QString name, value;
        std::uint64_t bytes = 0;
        QColor color;
        int givesWay = 0; ///< labels with the smallest number leave first; 0 = never
        bool outlined = false;
    };
    std::vector<Segment> segments() const;
    void paintLabels(QPainter& painter, const std::vector<Segment>& segments, const QRectF& bar) const;
    void paintFunnel(QPainter& painter, double kvLeft, double kvRight, double top) const;

    MemoryParts m_parts;
    QElapsedTimer m_sinceNews; ///< since m_parts was set last
    QString m_text;            ///< what is shown, to repaint only when it reads differently
    int m_mapRight = 0;
    Theme m_theme;
};

} // namespace kvscope::ui
