// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/hole_list.h"

#include <algorithm>

#include "engine/base/check.h"

namespace kvscope::kv {

HoleList::HoleList(std::int32_t numBlocks) : m_holes{{0, numBlocks}}, m_total(numBlocks) {}

BlockId HoleList::bestFit(std::int32_t count) const {
    const Extent* best = nullptr;
    for (const Extent& hole : m_holes)
        if (hole.count >= count && (best == nullptr || hole.count < best->count))
            best = &hole;
    return best == nullptr ? BlockId() : BlockId(best->first);
}

std::int32_t HoleList::largest() const {
    std::int32_t blocks = 0;
    for (const Extent& hole : m_holes)
        blocks = std::max(blocks, hole.count);
    return blocks;
}

std::vector<Extent>::iterator HoleList::behind(BlockId block) {
    return std::upper_bound(m_holes.begin(), m_holes.end(), block.value(),
                            [](std::int32_t id, const Extent& hole) { return id < hole.first; });
}

void HoleList::take(BlockId block) {
    const std::int32_t id = block.value();
    const auto next = behind(block);
    KV_CHECK(next != m_holes.begin() && id < std::prev(next)->first + std::prev(next)->count,
             "a block was taken that is in no hole");
    Extent& hole = *std::prev(next);
    const Extent rest{id + 1, hole.first + hole.count - id - 1};
    hole.count = id - hole.first;
    --m_total;
    if (hole.count > 0 && rest.count > 0)
        m_holes.insert(next, rest);
    else if (rest.count > 0)
        hole = rest;
    else if (hole.count == 0)
        m_holes.erase(std::prev(next));
}

void HoleList::give(BlockId block) {
    const std::int32_t id = block.value();
    auto next = behind(block);
    const bool touchesNext = next != m_holes.end() && next->first == id + 1;
    const bool hasPrevious = next != m_holes.begin();
    KV_CHECK(!hasPrevious || std::prev(next)->first + std::prev(next)->count <= id, "a block became free twice");
    const bool touchesPrevious = hasPrevious && std::prev(next)->first + std::prev(next)->count == id;
    ++m_total;
    if (touchesPrevious && touchesNext) {
        std::prev(next)->count += 1 + next->count;
        m_holes.erase(next);
    } else if (touchesPrevious) {
        ++std::prev(next)->count;
    } else if (touchesNext) {
        --next->first;
        ++next->count;
    } else {
        m_holes.insert(next, {id, 1});
    }
}

} // namespace kvscope::kv
