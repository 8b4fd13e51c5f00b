// SPDX-License-Identifier: GPL-3.0-or-later
//
// Small drawings that messages share.
#pragma once

#include <QColor>
#include <QFont>
#include <QPainter>
#include <QRect>
#include <QString>
#include <utility>
#include <vector>

#include "ui/theme/icons.h"
#include "ui/theme/theme.h"

namespace kvscope::ui {

/// A line of words in which the figures stand out: digits in `figures`, the rest in `words`. Elided at the right.
/// Returns the x where the text ended.
int paintFigures(QPainter& painter, const QRect& rect, const QString& text, const QFont& font, const QColor& words,
                 const QColor& figures);
/// Rows of a two-column table of facts: name quiet, value plain.
using Facts = std::vector<std::pair<QString, QString>>;
int factsHeight(const Facts& facts, int width, int nameWidth);
void paintFacts(QPainter& painter, const QRect& rect, const Facts& facts, int nameWidth, const Theme& theme);
/// Height of `text` wrapped at `width`.
int wrappedHeight(const QString& text, const QFont& font, int lineHeight, int width);
/// Wrapped text with our line height.
void paintWrapped(QPainter& painter, const QRect& rect, const QString& text, const QFont& font, int lineHeight,
                  const QColor& color);
/// A ground or a line with edges on whole device pixels, sharp at fractional scales too.
void fillCrisp(QPainter& painter, const QRectF& rect, const QColor& color);
void paintIcon(QPainter& painter, QRect rect, Icon icon, int size, const QColor& color, double devicePixelRatio);

} // namespace kvscope::ui
