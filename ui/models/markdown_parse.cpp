// SPDX-License-Identifier: GPL-3.0-or-later
//
// md4c's events into blocks. md4c hands out pieces of its input by address, which tells where they stand; what it makes
// up itself (line ends, indentation) lies elsewhere.
#include <md4c.h>

#include <QHash>
#include <QTextDocumentFragment>
#include <algorithm>
#include <array>

#include "ui/models/markdown_blocks.h"
#include "ui/models/markdown_code.h"

namespace kvscope::ui::md {
namespace {

constexpr unsigned kFlags =
    MD_FLAG_NOHTML | MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS;

QString attribute(const MD_ATTRIBUTE& value) {
    return QString::fromUtf8(value.text, qsizetype(value.size));
}

/// "&amp;" and its kin as the character they name.
QString entity(QByteArrayView text) {
    if (text.size() > 3 && text[1] == '#') {
        const bool hex = text[2] == 'x' || text[2] == 'X';
        const QByteArray digits = text.sliced(hex ? 3 : 2).chopped(1).toByteArray();
        bool ok = false;
        const uint code = digits.toUInt(&ok, hex ? 16 : 10);
        const bool character = ok && code != 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        const char32_t one = character ? char32_t(code) : U'\ufffd';
        return QString::fromUcs4(&one, 1);
    }
    // Asking Qt costs as much as a paragraph, and an answer may be full of them.
    constexpr qsizetype kMostKept = 4096;
    thread_local QHash<QByteArray, QString> known;
    const QByteArray key = text.toByteArray();
    if (const auto found = known.constFind(key); found != known.constEnd())
        return *found;
    if (known.size() >= kMostKept)
        known.clear();
    const QString name = QString::fromUtf8(text);
    const QString shown = QTextDocumentFragment::fromHtml(name).toPlainText();
    return known.insert(key, shown.isEmpty() ? name : shown).value();
}

class Builder {
public:
    Builder(QStringView text, int offset) : m_source(text.toUtf8()), m_positions(m_source), m_offset(offset) {
        m_parsed.restart = m_last = m_containerId = offset; // ids of what was parsed before are below that
    }

    Parsed run() {
        MD_PARSER parser{};
        parser.flags = kFlags;
        parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) {
            static_cast<Builder*>(self)->enterBlock(type, detail);
            return 0;
        };
        parser.leave_block = [](MD_BLOCKTYPE type, void*, void* self) {
            static_cast<Builder*>(self)->leaveBlock(type);
            return 0;
        };
        parser.enter_span = [](MD_SPANTYPE type, void* detail, void* self) {
            static_cast<Builder*>(self)->enterSpan(type, detail);
            return 0;
        };
        parser.leave_span = [](MD_SPANTYPE type, void* detail, void* self) {
            static_cast<Builder*>(self)->leaveSpan(type, detail);
            return 0;
        };
        parser.text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size, void* self) {
            static_cast<Builder*>(self)->text(type, text, size);
            return 0;
        };
        md_parse(m_source.constData(), MD_SIZE(m_source.size()), &parser, this);
        for (Block& block : m_parsed.blocks)
            if (block.source.empty())
                block.source.to = block.source.from;
        return std::move(m_parsed);
    }

private:
    struct List {
        bool ordered = false;
        unsigned next = 1;
        QChar delimiter;
        int items = 0;
    };

    // ---- blocks ----

    bool inTable() const { return m_open && m_block.kind == Kind::Table; }

    void openLeaf(Kind kind) {
        closeLeaf();
        m_block = Block{};
        m_block.kind = kind;
        const auto depth = std::min<std::size_t>(m_containers.size(), Block::kDeepest);
        m_block.containers.assign(m_containers.begin(), m_containers.begin() + std::ptrdiff_t(depth));
        m_block.marker = std::exchange(m_marker, {});
        m_block.task = std::exchange(m_task, Task::None);
        m_block.source = {m_last, m_last};
        m_flags = {};
        m_link = -1;
        m_open = true;
    }

    void closeLeaf() {
        if (!m_open)
            return;
        m_open = false;
        if (m_block.kind == Kind::Code)
            m_code.finish(m_block, m_offset);
        else if (!m_block.runs.empty()) {
            const Run& first = m_block.runs.front();
            const Run& last = m_block.runs.back();
            m_block.source = wholeLines(first.source, last.source + last.sourceLength);
        }
        m_last = std::max(m_last, m_block.source.to);
        m_parsed.blocks.push_back(std::move(m_block));
    }

    TextRange wholeLines(int from, int to) {
        // Positions are behind us already: lines are looked for in bytes, near where text was seen last.
        const qsizetype begin = m_source.lastIndexOf('\n', std::max<qsizetype>(-1, m_firstByte - 1));
        const qsizetype end = m_source.indexOf('\n', m_lastByte);
        const bool first = m_firstByte == 0 || begin < 0;
        const int lineFrom = from - (m_positions.at(m_firstByte) - (first ? 0 : m_positions.at(begin + 1)));
        const int lineTo = m_offset + m_positions.at(end < 0 ? m_source.size() : end);
        return {std::max(m_last, lineFrom), std::max(to, lineTo)};
    }

    void enterBlock(MD_BLOCKTYPE type, void* detail) {
        if (m_depth++ == 1)
            beginTop(type);
        switch (type) {
        case MD_BLOCK_QUOTE:
            closeLeaf();
            emptyItem();
            m_containers.push_back({true, ++m_containerId});
            break;
        case MD_BLOCK_UL:
        case MD_BLOCK_OL:
            closeLeaf();
            emptyItem();
            m_containers.push_back({false, ++m_containerId});
            m_lists.push_back({type == MD_BLOCK_OL, 1, u'.', 0});
            if (type == MD_BLOCK_OL) {
                m_lists.back().next = static_cast<MD_BLOCK_OL_DETAIL*>(detail)->start;
                m_lists.back().delimiter = QLatin1Char(static_cast<MD_BLOCK_OL_DETAIL*>(detail)->mark_delimiter);
            }
            break;
        case MD_BLOCK_LI:
            beginItem(*static_cast<MD_BLOCK_LI_DETAIL*>(detail));
            break;
        case MD_BLOCK_HR:
            openLeaf(Kind::Rule);
            closeLeaf();
            break;
        case MD_BLOCK_H:
            openLeaf(Kind::Heading);
            m_block.level = int(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
            break;
        case MD_BLOCK_P:
            openLeaf(Kind::Paragraph);
            break;
        case MD_BLOCK_CODE: {
            const auto& code = *static_cast<MD_BLOCK_CODE_DETAIL*>(detail);
            openLeaf(Kind::Code);
            m_block.language = attribute(code.lang);
            m_code.begin(code.fence_char, m_lastByte);
            break;
        }
        case MD_BLOCK_TABLE:
            openLeaf(Kind::Table);
            m_block.columns = int(static_cast<MD_BLOCK_TABLE_DETAIL*>(detail)->col_count);
            m_row = m_column = -1;
            break;
        case MD_BLOCK_TR:
            if (++m_row > 0)
                m_block.text += u'\n';
            m_column = -1;
            break;
        case MD_BLOCK_TH:
        case MD_BLOCK_TD:
            beginCell(static_cast<MD_BLOCK_TD_DETAIL*>(detail)->align, type == MD_BLOCK_TH);
            break;
        default:
            break;
        }
    }

    void leaveBlock(MD_BLOCKTYPE type) {
        --m_depth;
        switch (type) {
        case MD_BLOCK_QUOTE:
            closeLeaf();
            m_containers.pop_back();
            break;
        case MD_BLOCK_UL:
        case MD_BLOCK_OL:
            closeLeaf();
            m_containers.pop_back();
            m_lists.pop_back();
            break;
        case MD_BLOCK_LI:
            closeLeaf();
            emptyItem();
            break;
        case MD_BLOCK_TH:
        case MD_BLOCK_TD:
            m_block.cells.back().to = int(m_block.text.size());
            m_flags = {};
            break;
        case MD_BLOCK_H:
        case MD_BLOCK_P:
        case MD_BLOCK_CODE:
        case MD_BLOCK_TABLE:
        case MD_BLOCK_DOC:
            closeLeaf();
            break;
        default:
            break;
        }
    }

    /// "- - a", "-": the item has nothing of its own before what it contains.
    void emptyItem() {
        if (m_marker.isEmpty())
            return;
        openLeaf(Kind::Paragraph);
        closeLeaf();
    }

    void beginItem(const MD_BLOCK_LI_DETAIL& item) {
        closeLeaf();
        List& list = m_lists.back();
        ++list.items;
        m_marker = list.ordered ? QString::number(list.next++) + list.delimiter : QStringLiteral("•");
        m_task = !item.is_task ? Task::None : item.task_mark == ' ' ? Task::Open : Task::Done;
    }

    void beginCell(MD_ALIGN align, bool head) {
        ++m_column;
        m_inHead = head;
        if (m_column > 0)
            m_block.text += u'\t';
        const int at = int(m_block.text.size());
        m_block.cells.push_back({m_row, m_column, at, at,
                                 align == MD_ALIGN_CENTER  ? Align::Center
                                 : align == MD_ALIGN_RIGHT ? Align::Right
                                                           : Align::Left});
    }

    // ---- where parsing may begin again ----

    void beginTop(MD_BLOCKTYPE type) {
        closeLeaf();
        m_top = type;
        m_topBlock = int(m_parsed.blocks.size());
        m_topFresh = true;
    }

    /// The first text of a top-level block tells the line it begins on, unless something unseen stands before it.
    void noteRestart(qsizetype byte) {
        if (!m_topFresh)
            return;
        m_topFresh = false;
        const bool first = int(m_parsed.blocks.size()) == m_topBlock && m_block.kind != Kind::Code;
        const bool firstItem = m_lists.empty() || (m_lists.size() == 1 && m_lists[0].items == 1);
        const bool plain = m_top == MD_BLOCK_P || m_top == MD_BLOCK_H || m_top == MD_BLOCK_QUOTE ||
                           ((m_top == MD_BLOCK_UL || m_top == MD_BLOCK_OL) && firstItem) ||
                           (m_top == MD_BLOCK_TABLE && m_inHead);
        if (!first || !plain || m_images > 0)
            return;
        const qsizetype line = byte == 0 ? -1 : m_source.lastIndexOf('\n', byte - 1);
        m_parsed.restart = m_offset + m_positions.at(line + 1);
        m_parsed.restartBlock = m_topBlock;
    }

    // ---- spans and text ----

    void needLeaf() {
        if (!m_open) // the text of a tight list item
            openLeaf(Kind::Paragraph);
    }

    void enterSpan(MD_SPANTYPE type, void* detail) {
        needLeaf();
        switch (type) {
        case MD_SPAN_A: {
            const QString address = attribute(static_cast<MD_SPAN_A_DETAIL*>(detail)->href);
            if (mayOpen(address)) {
                m_link = int(m_block.links.size());
                m_block.links.push_back(address);
            } else {
                append(QStringLiteral("["), -1, 0);
            }
            break;
        }
        case MD_SPAN_IMG:
            ++m_images;
            append(QStringLiteral("!["), -1, 0);
            break;
        default:
            if (const std::size_t flag = flagOf(type); flag < m_flags.size())
                ++m_flags[flag];
            break;
        }
    }

    void leaveSpan(MD_SPANTYPE type, void* detail) {
        switch (type) {
        case MD_SPAN_A:
            if (m_link >= 0)
                m_link = -1;
            else
                append(QStringLiteral("](") + attribute(static_cast<MD_SPAN_A_DETAIL*>(detail)->href) + u')', -1, 0);
            break;
        case MD_SPAN_IMG:
            --m_images;
            append(QStringLiteral("](") + attribute(static_cast<MD_SPAN_IMG_DETAIL*>(detail)->src) + u')', -1, 0);
            break;
        default:
            if (const std::size_t flag = flagOf(type); flag < m_flags.size() && m_flags[flag] > 0)
                --m_flags[flag];
            break;
        }
    }

    static std::size_t flagOf(MD_SPANTYPE type) {
        switch (type) {
        case MD_SPAN_STRONG:
            return 0;
        case MD_SPAN_EM:
            return 1;
        case MD_SPAN_DEL:
            return 2;
        case MD_SPAN_CODE:
            return 3;
        default:
            return 4;
        }
    }

    void text(MD_TEXTTYPE type, const char* text, MD_SIZE size) {
        needLeaf();
        const bool known = text >= m_source.constData() && text + size <= m_source.constData() + m_source.size();
        const qsizetype byte = known ? text - m_source.constData() : -1;
        if (known)
            noteRestart(byte);
        if (m_block.kind == Kind::Code)
            return m_code.add(QByteArrayView(text, qsizetype(size)), byte);
        switch (type) {
        case MD_TEXT_BR:
        case MD_TEXT_SOFTBR:
            append(QStringLiteral("\n"), -1, 0); // lines are kept as they were written: verses, addresses
            break;
        case MD_TEXT_NULLCHAR:
            append(QStringLiteral("\ufffd"), -1, 0);
            break;
        case MD_TEXT_ENTITY:
            append(entity(QByteArrayView(text, qsizetype(size))), byte, qsizetype(size));
            break;
        default:
            append(QString::fromUtf8(text, qsizetype(size)), byte, qsizetype(size));
            break;
        }
    }

    /// `byte` < 0: made up, without a place in the source.
    void append(const QString& shown, qsizetype byte, qsizetype bytes) {
        const int from = int(m_block.text.size());
        m_block.text += shown;
        if (byte >= 0)
            addRun(from, int(shown.size()), byte, bytes);
        std::uint8_t flags = m_link >= 0 ? Link : 0;
        for (std::size_t i = 0; i < m_flags.size(); ++i)
            if (m_flags[i] > 0)
                flags = std::uint8_t(flags | (1u << i));
        if (flags == 0 || shown.isEmpty())
            return;
        if (!m_block.spans.empty() && m_block.spans.back().to == from && m_block.spans.back().flags == flags &&
            m_block.spans.back().link == m_link)
            m_block.spans.back().to += int(shown.size());
        else
            m_block.spans.push_back({from, from + int(shown.size()), flags, m_link});
    }

    void addRun(int shown, int length, qsizetype byte, qsizetype bytes) {
        if (m_block.runs.empty())
            m_firstByte = byte;
        m_lastByte = byte + bytes;
        const int source = m_offset + m_positions.at(byte);
        m_block.addRun({shown, length, source, m_offset + m_positions.at(byte + bytes) - source});
    }

    const QByteArray m_source;
    Positions m_positions;
    CodeReader m_code{m_source, m_positions};
    const int m_offset;
    Parsed m_parsed;
    int m_depth = 0;

    std::vector<Container> m_containers;
    int m_containerId = 0;
    std::vector<List> m_lists;
    QString m_marker;
    Task m_task = Task::None;

    Block m_block;
    bool m_open = false;
    int m_last = 0; ///< where the source of the last block ended
    qsizetype m_firstByte = 0, m_lastByte = 0;
    std::array<int, 4> m_flags{};
    int m_link = -1, m_images = 0;
    int m_row = -1, m_column = -1;
    bool m_inHead = false;

    MD_BLOCKTYPE m_top = MD_BLOCK_DOC;
    int m_topBlock = 0;
    bool m_topFresh = false;
};

} // namespace

Parsed parseMarkdown(QStringView text, int offset) {
    return Builder(text, offset).run();
}

} // namespace kvscope::ui::md
