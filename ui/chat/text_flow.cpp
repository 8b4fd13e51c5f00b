// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/text_flow.h"

#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>
#include <cmath>

namespace kvscope::ui {
namespace {

constexpr int kPieceLines = 6;
constexpr int kUnsureLines = 2; // lines at the end of a piece that what follows may still change
constexpr int kSlice = 1600;    // characters given to one layout at most
constexpr int kLongWord = 64;   // text without blanks: this far behind, a line end is certain
constexpr double kPastEnd = 4;  // how far a selection shows that it takes in the line end
constexpr double kLeastWidth = 20;

int firstDifference(const QString& a, const QString& b) {
    const auto end = std::min(a.size(), b.size());
    return int(std::mismatch(a.cbegin(), a.cbegin() + end, b.cbegin()).first - a.cbegin());
}

/// Formats are the same up to here.
int firstDifference(const TextFlow::Formats& a, const TextFlow::Formats& b) {
    const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), [](const auto& left, const auto& right) {
        return left.start == right.start && left.length == right.length && left.format == right.format;
    });
    int at = INT_MAX;
    if (x != a.end())
        at = x->start;
    if (y != b.end())
        at = std::min(at, y->start);
    if (x != a.end() && y != b.end() && x->start == y->start && x->format == y->format)
        at += std::min(x->length, y->length); // the last one has grown
    return at;
}

} // namespace

int TextFlow::set(const QString& source, const Formats& formats, const FlowStyle& style) {
    QString text = source;
    text.replace(u'\n', QChar::LineSeparator);
    const bool rightToLeft = text.isRightToLeft();
    int changed = std::min(firstDifference(m_text, text), firstDifference(m_formats, formats));
    if (style != m_style || rightToLeft != m_rightToLeft || m_pieces.empty())
        changed = 0;
    else if (changed >= text.size() && text.size() == m_text.size())
        return m_lines;
    // The word that changes may begin in the line above.
    const int firstLine = changed == 0 ? 0 : std::max(0, lineOf(std::min(changed, int(m_text.size())) - 1));
    m_text = std::move(text);
    m_formats = formats;
    m_style = style;
    m_rightToLeft = rightToLeft;
    const QFontMetricsF metrics(style.font);
    m_baseline = std::round((style.line - metrics.height()) / 2 + metrics.ascent());
    while (!m_pieces.empty() && !settled(m_pieces.back(), changed))
        m_pieces.pop_back();
    int at = m_pieces.empty() ? 0 : m_pieces.back().to;
    m_lines = m_pieces.empty() ? 0 : m_pieces.back().firstLine + m_pieces.back().lines;
    const int size = int(m_text.size());
    do {
        const int end = std::min(size, at + kSlice);
        std::unique_ptr<QTextLayout> layout = make(at, end, kPieceLines + kUnsureLines + 1);
        const int made = layout->lineCount();
        const QTextLine last = layout->lineAt(made - 1);
        const bool whole =
            end == size && last.textStart() + last.textLength() >= size - at && made <= kPieceLines + kUnsureLines;
        Piece piece;
        piece.from = at;
        piece.firstLine = m_lines;
        piece.lines = whole ? made : std::clamp(made - kUnsureLines - 1, 1, kPieceLines);
        piece.to =
            whole ? size
                  : at + layout->lineAt(piece.lines - 1).textStart() + layout->lineAt(piece.lines - 1).textLength();
        for (int i = 0; i < piece.lines; ++i)
            piece.widest = std::max(piece.widest, layout->lineAt(i).naturalTextWidth());
        if (whole)
            piece.layout = std::move(layout);
        m_lines += piece.lines;
        at = piece.to;
        m_pieces.push_back(std::move(piece));
    } while (at < size);
    return std::min(firstLine, m_lines);
}

/// Does `piece` stay as it is when everything from `changed` on is different?
bool TextFlow::settled(const Piece& piece, int changed) const {
    if (piece.to >= changed)
        return false;
    const QStringView behind = QStringView(m_text).mid(piece.to, changed - piece.to);
    return behind.size() > kLongWord || behind.contains(u' ') || behind.contains(QChar::LineSeparator);
}

std::unique_ptr<QTextLayout> TextFlow::make(int from, int to, int mostLines) const {
    auto layout = std::make_unique<QTextLayout>(m_text.mid(from, to - from), m_style.font);
    QTextOption option;
    option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    option.setTextDirection(m_rightToLeft ? Qt::RightToLeft : Qt::LeftToRight);
    const Qt::Alignment begin = m_rightToLeft ? Qt::AlignRight : Qt::AlignLeft;
    option.setAlignment((m_style.align ? m_style.align : begin) | Qt::AlignAbsolute);
    if (m_style.tab > 0)
        option.setTabStopDistance(m_style.tab);
    layout->setTextOption(option);
    layout->setCacheEnabled(true); // shaped once, painted often; what is out of sight is released as a whole
    Formats formats;
    for (const QTextLayout::FormatRange& format : m_formats) {
        const int begin = std::max(from, format.start), end = std::min(to, format.start + format.length);
        if (begin < end)
            formats.push_back({begin - from, end - begin, format.format});
    }
    layout->setFormats(formats);
    layout->beginLayout();
    int lines = 0;
    for (QTextLine line = layout->createLine(); line.isValid(); line = layout->createLine()) {
        line.setLineWidth(std::max(kLeastWidth, m_style.width));
        // One baseline distance for all lines, whatever fonts stand in them.
        line.setPosition({0, lines * m_style.line + m_baseline - line.ascent()});
        if (++lines == mostLines)
            break;
    }
    layout->endLayout();
    return layout;
}

const QTextLayout& TextFlow::layoutOf(const Piece& piece) const {
    if (!piece.layout)
        piece.layout = make(piece.from, piece.to, piece.lines);
    return *piece.layout;
}

void TextFlow::recolour(const Formats& formats) {
    m_formats = formats;
    release();
}

void TextFlow::release() {
    for (Piece& piece : m_pieces)
        piece.layout.reset();
}

bool TextFlow::hasLayouts() const {
    return std::any_of(m_pieces.begin(), m_pieces.end(), [](const Piece& piece) { return piece.layout != nullptr; });
}

double TextFlow::widest() const {
    double widest = 0;
    for (const Piece& piece : m_pieces)
        widest = std::max(widest, piece.widest);
    return widest;
}

void TextFlow::draw(QPainter& painter, QPointF origin, const QRectF& clip) const {
    for (const Piece& piece : m_pieces) {
        const double top = origin.y() + piece.firstLine * m_style.line;
        if (top > clip.bottom())
            break;
        if (top + piece.lines * m_style.line >= clip.top())
            layoutOf(piece).draw(&painter, {origin.x(), top}, {}, clip);
    }
}

int TextFlow::positionAt(QPointF point) const {
    if (m_pieces.empty())
        return 0;
    const int line = std::clamp(int(std::floor(point.y() / m_style.line)), 0, std::max(0, m_lines - 1));
    const auto it =
        std::find_if(m_pieces.begin(), m_pieces.end(), [line](const Piece& p) { return line < p.firstLine + p.lines; });
    const Piece& piece = it == m_pieces.end() ? m_pieces.back() : *it;
    const QTextLayout& layout = layoutOf(piece);
    const QTextLine textLine = layout.lineAt(std::clamp(line - piece.firstLine, 0, layout.lineCount() - 1));
    int position = piece.from + textLine.xToCursor(point.x());
    // Behind the last character of a line means before its end, not at the start of the next.
    const int end = piece.from + textLine.textStart() + textLine.textLength();
    if (position >= end && end > piece.from + textLine.textStart() && end <= m_text.size() &&
        (m_text[end - 1] == QChar::LineSeparator || (m_text[end - 1] == u' ' && end < m_text.size())))
        position = end - 1;
    return std::clamp(position, 0, int(m_text.size()));
}

const TextFlow::Piece* TextFlow::pieceAt(int position) const {
    if (m_pieces.empty())
        return nullptr;
    const auto it = std::upper_bound(m_pieces.begin(), m_pieces.end(), position,
                                     [](int value, const Piece& piece) { return value < piece.from; });
    return it == m_pieces.begin() ? &m_pieces.front() : &*(it - 1);
}

int TextFlow::lineOf(int position) const {
    const Piece* piece = pieceAt(position);
    if (!piece)
        return 0;
    const QTextLine line =
        layoutOf(*piece).lineForTextPosition(std::clamp(position, piece->from, piece->to) - piece->from);
    return piece->firstLine + (line.isValid() ? std::min(line.lineNumber(), piece->lines - 1) : piece->lines - 1);
}

QRectF TextFlow::caret(int position) const {
    const Piece* piece = pieceAt(position);
    if (!piece)
        return {0, 0, 0, double(m_style.line)};
    const int inside = std::clamp(position, piece->from, piece->to) - piece->from;
    const QTextLayout& layout = layoutOf(*piece);
    QTextLine line = layout.lineForTextPosition(inside);
    if (!line.isValid())
        line = layout.lineAt(layout.lineCount() - 1);
    return {line.cursorToX(inside), double((piece->firstLine + line.lineNumber()) * m_style.line), 0,
            double(m_style.line)};
}

std::vector<QRectF> TextFlow::rects(int from, int to, bool past) const {
    std::vector<QRectF> out;
    for (const Piece& piece : m_pieces) {
        if (piece.from > to || piece.to < from)
            continue;
        const QTextLayout& layout = layoutOf(piece);
        for (int i = 0; i < std::min(piece.lines, layout.lineCount()); ++i) {
            const QTextLine line = layout.lineAt(i);
            const int begin = piece.from + line.textStart(), end = begin + line.textLength();
            const bool last = end >= m_text.size();
            if (from > end || to < begin || (from == end && !(last && past)) || (to == begin && begin != end))
                continue;
            const bool leaves = last ? past : to >= end;
            double x0 = line.cursorToX(std::max(from, begin) - piece.from);
            double x1 = line.cursorToX(std::min(to, end) - piece.from);
            if (leaves && end > begin && m_text[end - 1].isSpace() && !last) // not the blank that hangs over
                x1 = m_rightToLeft ? line.naturalTextRect().left() : line.naturalTextRect().right();
            if (leaves && (past || !last))
                x1 += m_rightToLeft ? -kPastEnd : kPastEnd;
            if (x0 != x1)
                out.emplace_back(std::min(x0, x1), (piece.firstLine + i) * m_style.line, std::abs(x1 - x0),
                                 m_style.line);
        }
    }
    return out;
}

} // namespace kvscope::ui
