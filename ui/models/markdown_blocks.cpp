// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/markdown_blocks.h"

#include <QUrl>
#include <algorithm>

namespace kvscope::ui::md {
namespace {

constexpr qsizetype kPlainPiece = 4000; // one Plain block: what a view lays out at once

/// An opening or closing fence: its sign and length; 0 = none.
struct Fence {
    QChar sign;
    qsizetype length = 0;
    QStringView info;
};

Fence fenceOf(QStringView line) {
    qsizetype at = 0;
    while (at < line.size() && at < 4 && line[at] == u' ')
        ++at;
    if (at > 3 || at >= line.size() || (line[at] != u'`' && line[at] != u'~'))
        return {};
    Fence fence{line[at], 0, {}};
    while (at < line.size() && line[at] == fence.sign) {
        ++at;
        ++fence.length;
    }
    fence.info = line.mid(at).trimmed();
    if (fence.length < 3 || (fence.sign == u'`' && fence.info.contains(u'`')))
        return {};
    return fence;
}

/// Cuts typed text into blocks, line by line.
class PlainParser {
public:
    PlainParser(QStringView text, int offset) : m_text(text), m_offset(offset) {}

    Parsed run() {
        qsizetype plainFrom = 0;
        for (qsizetype at = 0; at < m_text.size();) {
            const qsizetype end = endOfLine(at);
            const Fence fence = fenceOf(m_text.mid(at, end - at));
            if (fence.length == 0) {
                at = end + 1;
                continue;
            }
            addPlain(plainFrom, at);
            at = plainFrom = addCode(at, fence);
        }
        addPlain(plainFrom, m_text.size());
        if (!m_parsed.blocks.empty()) {
            m_parsed.restartBlock = int(m_parsed.blocks.size()) - 1;
            m_parsed.restart = m_parsed.blocks.back().source.from;
        }
        return std::move(m_parsed);
    }

private:
    qsizetype endOfLine(qsizetype at) const {
        const qsizetype end = m_text.indexOf(u'\n', at);
        return end < 0 ? m_text.size() : end;
    }

    /// Line ends next to code belong to the gap between the blocks.
    void addPlain(qsizetype from, qsizetype to) {
        if (to < m_text.size() && to > from)
            --to; // the line end before the fence
        while (from < to) {
            qsizetype end = std::min(to, from + kPlainPiece);
            if (end < to) {
                const QStringView piece = m_text.mid(from, end - from);
                const qsizetype line = piece.lastIndexOf(u'\n');
                const qsizetype word = piece.lastIndexOf(u' ');
                if (line >= 0)
                    end = from + line + 1;
                else if (word > 0)
                    end = from + word + 1;
                else if (m_text[end].isLowSurrogate())
                    --end;
            }
            // The line end between two pieces is the step from block to block.
            const bool lineEnd = end < to && m_text[end - 1] == u'\n';
            add(Kind::Plain, from, end - (lineEnd ? 1 : 0), {from, end});
            from = end;
        }
    }

    qsizetype addCode(qsizetype at, const Fence& open) {
        const qsizetype begin = std::min(endOfLine(at) + 1, m_text.size());
        qsizetype line = begin, end = begin, behind = m_text.size();
        bool closed = false;
        while (line < m_text.size() && !closed) {
            const qsizetype lineEnd = endOfLine(line);
            const Fence fence = fenceOf(m_text.mid(line, lineEnd - line));
            closed = fence.sign == open.sign && fence.length >= open.length && fence.info.isEmpty();
            if (closed)
                behind = std::min(lineEnd + 1, m_text.size());
            else
                end = lineEnd;
            line = lineEnd + 1;
        }
        add(Kind::Code, begin, end, {at, behind});
        Block& block = m_parsed.blocks.back();
        block.code = block.text;
        block.closed = closed;
        block.language = open.info.toString().section(u' ', 0, 0);
        return behind;
    }

    void add(Kind kind, qsizetype from, qsizetype to, std::pair<qsizetype, qsizetype> source) {
        Block block;
        block.kind = kind;
        block.text = m_text.mid(from, to - from).toString();
        if (to > from)
            block.runs = {{0, int(to - from), m_offset + int(from), int(to - from)}};
        block.source = {m_offset + int(source.first), m_offset + int(source.second)};
        m_parsed.blocks.push_back(std::move(block));
    }

    QStringView m_text;
    int m_offset;
    Parsed m_parsed;
};

/// What joins a block to the one before it in copied text.
QString joint(const Block& before, const Block& block) {
    const bool item = !block.marker.isEmpty() && !before.containers.empty();
    const bool piece = before.kind == Kind::Plain && block.kind == Kind::Plain;
    return item || piece ? QStringLiteral("\n") : QStringLiteral("\n\n");
}

QString markOf(const Block& block) {
    QString mark;
    for (std::size_t i = 1; i < block.containers.size(); ++i)
        if (!block.containers[i].quote)
            mark += QStringLiteral("  ");
    if (block.marker.isEmpty())
        return {};
    if (block.task != Task::None)
        return mark + (block.task == Task::Done ? QStringLiteral("[x] ") : QStringLiteral("[ ] "));
    return mark + block.marker + QLatin1Char(' ');
}

} // namespace

int Block::sourceAt(int shown) const {
    const auto behind =
        std::upper_bound(runs.begin(), runs.end(), shown, [](int value, const Run& run) { return value < run.shown; });
    if (behind == runs.begin())
        return runs.empty() ? source.from : runs.front().source;
    const Run& run = *(behind - 1);
    const int inside = shown - run.shown;
    if (run.length == run.sourceLength)
        return run.source + std::min(inside, run.length);
    return inside <= 0 ? run.source : run.source + run.sourceLength;
}

int Block::shownAt(int position) const {
    const auto behind = std::upper_bound(runs.begin(), runs.end(), position,
                                         [](int value, const Run& run) { return value < run.source; });
    if (behind == runs.begin())
        return 0;
    const Run& run = *(behind - 1);
    const int inside = position - run.source;
    const int end = run.shown + run.length;
    if (inside >= run.sourceLength) // in the marks behind the run, or at its end
        return behind != runs.end() && inside > run.sourceLength ? behind->shown : end;
    return run.length == run.sourceLength ? run.shown + inside : inside <= 0 ? run.shown : end;
}

void Block::addRun(const Run& run) {
    if (run.length == 0 && run.sourceLength == 0)
        return;
    if (!runs.empty()) {
        Run& last = runs.back();
        if (run.source < last.source + last.sourceLength)
            return; // said twice
        if (run.length == run.sourceLength && last.length == last.sourceLength &&
            last.shown + last.length == run.shown && last.source + last.length == run.source) {
            last.length += run.length;
            last.sourceLength += run.length;
            return;
        }
    }
    runs.push_back(run);
}

Parsed parsePlain(QStringView text, int offset) {
    return PlainParser(text, offset).run();
}

bool mayOpen(const QString& address) {
    for (const QChar c : address)
        if (c.unicode() <= 0x20 || c.unicode() == 0x7f || c.category() == QChar::Other_Format)
            return false;
    const QUrl url(address, QUrl::StrictMode);
    const QString scheme = url.scheme();
    if (!url.isValid())
        return false;
    if (scheme == QLatin1StringView("mailto"))
        return !url.path().isEmpty();
    return (scheme == QLatin1StringView("http") || scheme == QLatin1StringView("https")) && !url.host().isEmpty();
}

QString shownText(const std::vector<Block>& blocks, TextRange source) {
    QString out;
    const Block* before = nullptr;
    for (const Block& block : blocks) {
        if (block.source.to <= source.from && !(block.source.empty() && block.source.from >= source.from))
            continue;
        if (block.source.from >= source.to)
            break;
        const int from = block.shownAt(source.from), to = block.shownAt(source.to);
        const bool whole = from == 0 && to == int(block.text.size());
        if (from >= to && !(whole && before))
            continue;
        if (before)
            out += joint(*before, block) + markOf(block);
        out += QStringView(block.text).mid(from, to - from);
        before = &block;
    }
    return out;
}

} // namespace kvscope::ui::md
