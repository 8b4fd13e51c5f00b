// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QPointF>
#include <QRectF>
#include <QString>
#include <QTextLayout>
#include <memory>
#include <vector>

#include "ui/theme/theme.h"

class QPainter;

namespace kvscope::ui {

/// Fonts and line heights of a chat text at the user's text size.
struct ChatStyle {
    ChatStyle() = default;
    ChatStyle(const ChatStyle&) = default;
    ChatStyle& operator=(const ChatStyle&) = default;
    // QFont shares its data and cannot fail to copy, though it does not say so; a vector of messages must move.
    ChatStyle(ChatStyle&& other) noexcept = default;
    ChatStyle& operator=(ChatStyle&& other) noexcept = default;

    QFont text, code;
    int textLine = 22, codeLine = 20;
    /// `pixels` 12..20, 14 unless the user chose otherwise.
    static ChatStyle at(int pixels);
};

/// A range of characters, [from, to).
struct TextRange {
    int from = 0, to = 0;
    bool empty() const { return from >= to; }
};

/// The text of one message as blocks, one per line; the lines of fenced code stand on a common card. Positions are
/// indexes into the source text, so that what is copied is what was written.
///
/// Heights of all blocks are known after `layOut`; the line layouts themselves are made when a block is painted or
/// asked, and can be thrown away (`release`): a long chat keeps only what is on the screen. Text that grows at its end
/// costs the layout of its last line.
class MessageText {
public:
    void setStyle(const ChatStyle& style, int width);
    /// `appendedOnly`: the text begins with what was set before.
    void setText(const QString& text, bool appendedOnly);
    void release();
    bool hasLayouts() const;

    const QString& text() const { return m_text; }
    int height() const { return m_height; }
    /// Width of the widest line: what a bubble needs.
    int naturalWidth() const { return m_naturalWidth; }
    /// Cheap guess for a message that nobody has looked at yet.
    static int estimateHeight(const QString& text, const ChatStyle& style, int width);

    struct Colors {
        QColor text, code, quiet, card, cardLine, selection, lit;
    };
    /// `clip` in the same coordinates as `origin`, the upper left corner of the text.
    void paint(QPainter& painter, QPointF origin, const QRectF& clip, const Colors& colors, TextRange selection,
               TextRange lit) const;
    /// Source position nearest to a point relative to the upper left corner.
    int positionAt(QPointF point) const;
    /// Where the insertion mark behind `position` stands: a rectangle of zero width, one line high.
    QRectF caretRect(int position) const;
    /// The word around a position.
    TextRange wordAt(int position) const;

private:
    /// Fences are not shown: the opening one is the head of the card, the closing one its foot.
    enum class Kind { Paragraph, Blank, CodeHead, Code, CodeFoot };
    struct Block {
        Kind kind = Kind::Paragraph;
        int start = 0, end = 0; ///< source range, its line end not included
        QString language;       ///< of a CodeHead
        int y = 0, height = 0, width = 0;
        mutable std::unique_ptr<QTextLayout> layout;
    };
    void parseFrom(std::size_t block);
    void measureFrom(std::size_t block);
    const QTextLayout& layoutOf(const Block& block) const;
    bool isText(const Block& block) const { return block.kind == Kind::Paragraph || block.kind == Kind::Code; }
    int lineHeightOf(const Block& block) const;
    double indentOf(const Block& block) const;
    void paintCard(QPainter& painter, QPointF origin, std::size_t inside, const Colors& colors) const;
    void paintBlock(QPainter& painter, QPointF origin, const QRectF& clip, const Block& block, const Colors& colors,
                    TextRange selection, TextRange lit) const;
    void paintRange(QPainter& painter, QPointF body, const Block& block, TextRange range, const QColor& color) const;
    const Block* blockAt(int position) const;

    ChatStyle m_style;
    int m_width = 0;
    QString m_text;
    std::vector<Block> m_blocks;
    int m_height = 0, m_naturalWidth = 0;
};

} // namespace kvscope::ui
