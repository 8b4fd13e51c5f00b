// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QFont>
#include <QPainter>
#include <QRect>
#include <QString>
#include <utility>
#include <vector>

namespace kvscope::ui {

/// One line of text of which parts were found.
struct MarkedText {
    QString text;
    std::vector<std::pair<qsizetype, qsizetype>> marks; ///< [begin, end), ascending, disjoint
    bool elideLeft = false;                             ///< "…take the mutex only": the text began before
};

/// Paints it elided at the right; marked parts half bold in `marked` on `ground` (invalid = none). Returns the x where
/// the text ended.
int paintMarked(QPainter& painter, const QRect& rect, const MarkedText& text, const QFont& font, const QColor& plain,
                const QColor& marked, const QColor& ground);

} // namespace kvscope::ui
