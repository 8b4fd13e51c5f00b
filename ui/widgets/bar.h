// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QWidget>
#include <vector>

#include "ui/theme/apply_theme.h"

class QPainter;

namespace kvscope::ui {

/// One part of a bar: its share of the whole (0..1) and its colour.
struct BarPart {
    double share = 0;
    QColor color;
    friend bool operator==(const BarPart&, const BarPart&) = default;
};

/// Paints parts side by side on a track, a one-pixel well line between neighbours. For delegates and widgets alike.
void paintBar(QPainter& painter, const QRectF& rect, const std::vector<BarPart>& parts, const QColor& track,
              const QColor& gap);

/// The bar of receipts, context meter and progress. Height as set (6 unless told), width as laid out.
class Bar final : public QWidget, public Themed {
    Q_OBJECT
public:
    enum class Track { Empty, Raised }; ///< ground of an empty block / of a progress bar
    explicit Bar(const Theme& theme, QWidget* parent = nullptr, int height = 6, Track track = Track::Empty);

    /// `description` is what a screen reader says: "2,480 of 2,550 tokens reused".
    void setParts(std::vector<BarPart> parts, const QString& description);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override { return {56, m_height}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    int m_height;
    Track m_track;
    std::vector<BarPart> m_parts;
    Theme m_theme;
};

} // namespace kvscope::ui
