// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/chat_link.h"

#include <algorithm>
#include <cmath>

namespace kvscope::ui {
namespace {

/// Start of the occurrence of `needle` nearest to `near`; -1 = none.
qsizetype nearest(const QString& text, QStringView needle, qsizetype near) {
    const qsizetype behind = text.indexOf(needle, std::min(near, text.size()));
    const qsizetype before = text.lastIndexOf(needle, std::min(near, text.size()) - text.size() - 1);
    if (behind < 0 || before < 0)
        return std::max(behind, before);
    return near - before <= behind - near ? before : behind;
}

} // namespace

std::vector<BlockId> blocksOfTokens(const api::OwnerBlocksEvent& owner, std::pair<std::int64_t, std::int64_t> tokens) {
    std::vector<BlockId> out;
    if (owner.blockSize <= 0 || tokens.second <= tokens.first)
        return out;
    const std::int64_t end = (std::min(tokens.second, owner.tokens) + owner.blockSize - 1) / owner.blockSize;
    for (std::int64_t i = tokens.first / owner.blockSize; i < std::min(end, std::int64_t(owner.blocks.size())); ++i)
        if (owner.blocks[std::size_t(i)].valid())
            out.push_back(owner.blocks[std::size_t(i)]);
    return out;
}

std::pair<int, int> charactersOfBlock(const QString& message, const QString& blockText, double share) {
    // Templates trim messages: what counts is the text without the white space around it.
    const QStringView body = QStringView(message).trimmed();
    if (body.isEmpty() || blockText.trimmed().isEmpty())
        return {0, 0};
    const auto start = int(body.data() - message.constData());
    const auto near = qsizetype(std::llround(share * double(message.size())));
    const qsizetype inside = nearest(message, blockText, std::max<qsizetype>(0, near));
    if (inside >= 0)
        return {int(inside), int(inside + blockText.size())};
    if (blockText.contains(body))
        return {start, start + int(body.size())};
    const QStringView block(blockText);
    const qsizetype longest = std::min(body.size(), block.size());
    for (qsizetype n = longest; n > 0; --n) // the message begins inside the block
        if (block.endsWith(body.left(n)))
            return {start, start + int(n)};
    for (qsizetype n = longest; n > 0; --n) // it ends inside the block
        if (block.startsWith(body.right(n)))
            return {start + int(body.size() - n), start + int(body.size())};
    return {0, 0};
}

Warmth warmthOf(const api::OwnerBlocksEvent& owner, const metrics::BlockMapSnapshot& map) {
    Warmth warmth;
    warmth.known = true;
    if (owner.blockSize <= 0 || owner.tokens <= 0) // it never ran, or nothing is left: all of it must be computed
        return warmth;
    const double whole = std::ceil(double(owner.tokens) / owner.blockSize);
    int cached = 0, inUse = 0;
    bool gap = false; // what is cached behind one is of no use: it is found from the first token on
    for (const BlockId block : owner.blocks) {
        if (!block.valid() || std::size_t(block.value()) >= map.cells.size()) {
            gap = true;
            continue;
        }
        switch (map.cells[std::size_t(block.value())].state) {
        case kv::BlockState::Cached:
            cached += gap ? 0 : 1;
            break;
        case kv::BlockState::Filling:
        case kv::BlockState::Active:
        case kv::BlockState::Shared:
        case kv::BlockState::Pinned:
            ++inUse;
            break;
        default:
            gap = true;
        }
    }
    warmth.cached = float(std::min(1.0, cached / whole));
    warmth.inUse = float(std::min(1.0, inUse / whole));
    return warmth;
}

} // namespace kvscope::ui
