// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QList>
#include <QRectF>
#include <QString>
#include <QTextLayout>
#include <memory>
#include <vector>

class QPainter;

namespace kvscope::ui {

/// How the lines of a flow are set.
struct FlowStyle {
    QFont font;
    int line = 22;         ///< height of each line, pixels
    double width = 0;      ///< of the lines
    double tab = 0;        ///< distance of tab stops; 0 = Qt's
    Qt::Alignment align{}; ///< none = where the text's direction begins
    bool operator==(const FlowStyle&) const = default;
};

/// Wrapped text whose lines are all equally high, laid out in pieces of a few lines. Line counts are kept; the
/// layouts themselves are made when asked and can be released. Text that grows at its end costs the layout of its last
/// piece.
class TextFlow {
public:
    using Formats = QList<QTextLayout::FormatRange>;

    TextFlow() = default;
    // QFont does not say that it cannot fail to move; vectors of flows must move.
    TextFlow(TextFlow&& other) noexcept = default;
    TextFlow& operator=(TextFlow&& other) noexcept = default;

    /// Sets text ('\n' ends a line), formats and style, and breaks it into lines as far as that is not known already.
    /// Returns the first line that may look different from before.
    int set(const QString& text, const Formats& formats, const FlowStyle& style);
    /// Formats of the same widths in other colours.
    void recolour(const Formats& formats);
    void release();
    bool hasLayouts() const;

    int lines() const { return m_lines; }
    int height() const { return m_lines * m_style.line; }
    double widest() const; ///< natural width of the widest line
    const QString& text() const { return m_text; }
    bool rightToLeft() const { return m_rightToLeft; }

    /// In the pen of the painter where a format names no colour. `clip` in the coordinates of `origin`.
    void draw(QPainter& painter, QPointF origin, const QRectF& clip) const;
    int positionAt(QPointF point) const;
    int lineOf(int position) const;
    /// Where the insertion mark before `position` stands: no width, one line high.
    QRectF caret(int position) const;
    /// The lines' parts of a range; with `past`, a line that the range leaves at its end gets a small step more.
    std::vector<QRectF> rects(int from, int to, bool past = false) const;

private:
    struct Piece {
        int from = 0, to = 0;
        int firstLine = 0, lines = 0;
        double widest = 0;
        mutable std::unique_ptr<QTextLayout> layout;
    };
    std::unique_ptr<QTextLayout> make(int from, int to, int mostLines) const;
    const QTextLayout& layoutOf(const Piece& piece) const;
    const Piece* pieceAt(int position) const;
    bool settled(const Piece& piece, int changed) const;

    QString m_text;
    Formats m_formats;
    FlowStyle m_style;
    double m_baseline = 0; ///< of each line from its top
    bool m_rightToLeft = false;
    std::vector<Piece> m_pieces;
    int m_lines = 0;
};

} // namespace kvscope::ui
