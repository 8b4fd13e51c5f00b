// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointF>
#include <QRectF>
#include <QString>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ui/chat/markdown_style.h"
#include "ui/chat/markdown_table.h"
#include "ui/chat/text_flow.h"
#include "ui/models/markdown_blocks.h"

class QPainter;

namespace kvscope::ui {

/// What in a text answers to mouse and keyboard; `index` names which link, code or thought it is.
enum class TextPart { None, Words, Thought, CopyCode, Link };
struct TextHit {
    TextPart part = TextPart::None;
    int index = 0;
    bool operator==(const TextHit&) const = default;
};

/// What decides how a text looks beside its own content.
struct TextLook {
    const Theme* theme = nullptr;
    bool own = false; ///< stands in the user's bubble
    TextRange selection, lit;
    TextHit under, focused;
    TextHit done; ///< the code that has just been copied
    double devicePixelRatio = 1;
};

/// The text of one message, laid out: an answer as Markdown below what was thought, an own message as it was typed.
///
/// Positions count through the source: first the thought, then from `answerAt()` the text; what is copied, lit or
/// selected is a range of positions. Heights of units that nobody has looked at are guesses until `measure` comes near
/// them. Layouts are made when a unit is painted or asked, and can be thrown away (`release`): a long chat keeps only
/// what is on the screen. Text that grows costs the parsing of its last block and the layout of its last lines.
class MessageText {
public:
    enum class Mode { Typed, Markdown };

    void setStyle(const ChatStyle& style, int width);
    void setLinkColor(const QColor& color);
    /// `appendedOnly`: both begin with what was set before.
    void setContent(const QString& thinking, const QString& text, Mode mode, bool appendedOnly);
    /// The line that stands for the thought, and whether the thought itself is shown below it.
    void setThought(const QString& line, bool open);
    bool thoughtOpen() const { return m_thoughtOpen; }
    void release();
    bool hasLayouts() const;
    /// Real heights for everything between two heights; true when anything was only guessed so far.
    bool measure(int top, int bottom);

    const QString& text() const { return m_text; }
    const QString& thinking() const { return m_thinking; }
    int answerAt() const { return m_thinking.isEmpty() ? 0 : int(m_thinking.size()) + 2; }
    int end() const { return answerAt() + int(m_text.size()); }
    int height() const { return m_height; }
    /// Width of the widest line: what a bubble needs.
    int naturalWidth() const;
    /// Above this nothing has changed with the last `setContent`.
    int dirtyTop() const { return m_dirtyTop; }
    /// Cheap guess for a message that nobody has looked at yet.
    static int estimateHeight(const QString& text, const ChatStyle& style, int width);

    /// `clip` in the same coordinates as `origin`, the upper left corner of the text.
    void paint(QPainter& painter, QPointF origin, const QRectF& clip, const TextLook& look) const;

    /// Position nearest to a point relative to the upper left corner.
    int positionAt(QPointF point) const;
    /// Where the insertion mark behind `position` stands: a rectangle of zero width, one line high.
    QRectF caretRect(int position) const;
    /// The word around a position.
    TextRange wordAt(int position) const;
    /// What is copied of a range: all of the text as its source, a part as it is seen.
    QString copied(TextRange range) const;

    TextHit hitAt(QPointF point) const;
    /// Everything that the keyboard can reach, from top to bottom.
    std::vector<TextHit> targets() const;
    QRectF rectOf(TextHit hit) const;
    QString codeOf(int index) const;
    QString linkOf(int index) const;

private:
    /// A part of a block that is measured and painted as one: whole blocks, or pieces of long ones.
    struct Unit {
        bool thought = false;
        int block = -1; ///< -1: the line of the thought
        int piece = 0;
        bool lastPiece = true;
        int from = 0, to = 0; ///< of the block's shown text
        int indent = 0, gap = 0;
        int y = 0, height = 0;
        bool measured = false;
        bool stale = false; ///< was measured, and its block has changed since
        TextFlow flow;
        std::unique_ptr<MarkdownTable> table;
    };
    const md::Block& blockOf(const Unit& unit) const { return partOf(unit.thought).blocks[std::size_t(unit.block)]; }
    const md::Parsed& partOf(bool thought) const { return thought ? m_thoughtParsed : m_parsed; }
    static int indexOf(const Unit& unit, int link = 0);

    int parsePart(md::Parsed& part, const QString& text, int offset, Mode mode, bool appendedOnly) const;
    void rebuild(int changedThought, int changedText);
    void addUnits(std::vector<Unit>& units, bool thought, int changed, std::vector<Unit>& old, std::size_t& next) const;
    void noteListIndents(const md::Parsed& part);
    int listIndent(int list) const;
    int indentOf(const md::Block& block, bool thought) const;
    const ChatStyle& styleOf(const Unit& unit) const { return unit.thought ? m_thoughtStyle : m_style; }
    FlowStyle flowStyleOf(const Unit& unit) const;
    void measureUnit(Unit& unit);
    void guessUnit(Unit& unit) const;
    void place();
    bool isMirrored(const Unit& unit) const;
    QPointF flowOrigin(const Unit& unit) const;
    QRectF copyRect(const Unit& unit) const;
    const Unit* unitAtHeight(double y) const;
    const Unit* unitAtPosition(int position) const;
    const Unit* unitOf(TextHit hit) const;

    struct Brush;
    void paintUnit(const Brush& brush, std::size_t index) const;
    void paintQuotes(const Brush& brush, std::size_t index) const;
    void paintCode(const Brush& brush, std::size_t index) const;
    void paintMarker(const Brush& brush, const Unit& unit) const;
    void paintThoughtLine(const Brush& brush, const Unit& unit) const;
    void paintRange(const Brush& brush, const Unit& unit, TextRange range, const QColor& color) const;
    void paintSpans(const Brush& brush, const Unit& unit) const;
    void paintFocus(const Brush& brush, const QRectF& rect) const;

    ChatStyle m_style, m_thoughtStyle;
    QColor m_link;
    int m_width = 0;
    QString m_text, m_thinking, m_thoughtLine;
    bool m_thoughtOpen = false;
    bool m_lineChanged = false; ///< of the thought, since the last `setContent`
    Mode m_mode = Mode::Markdown;
    md::Parsed m_parsed, m_thoughtParsed;
    std::unordered_map<int, int> m_listIndents; ///< by the id of the list; only those wider than usual
    std::vector<Unit> m_units;
    int m_height = 0, m_dirtyTop = 0;
    int m_changedLine = 0; ///< of the unit that was measured last
};

} // namespace kvscope::ui
