// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cache again, as naively as it can be written: whole prefixes instead of keys, std containers searched from end to
// end, nothing counted incrementally. A property test runs both side by side and expects the same block ids, the same
// order of the free list and the same refusals, under every eviction policy. With a window the same of its group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv/eviction_policy.h"

namespace kvscope::test {

class KvOracle {
public:
    using Tokens = std::vector<TokenId>;
    struct Table {
        std::vector<int> blocks;
        Tokens tokens;
        std::vector<int> companions; ///< of the window group, -1 = passed; those of later blocks are not taken yet
        bool open = false;
    };
    struct Copy {
        int from = 0, to = 0, slotCount = 0;
    };

    KvOracle(int numBlocks, int blockSize, const kv::EvictionPolicy& policy, int window = 0, int windowBlocks = 0)
        : m_size(blockSize)
        , m_policy(policy)
        , m_clock(numBlocks)
        , m_blocks(static_cast<std::size_t>(numBlocks))
        , m_window(window) {
        for (int i = 0; i < numBlocks; ++i)
            m_free.push_back(i);
        for (int i = 0; i < windowBlocks; ++i)
            m_companions.push_back({i, -1, 0, 0});
    }

    const std::deque<int>& freeList() const { return m_free; }
    const std::vector<Copy>& copies() const { return m_copies; }
    int references(int block) const { return at(block).references; }

    /// Companions that nobody holds, in the order in which they will be taken.
    std::vector<int> freeCompanions() const {
        std::vector<int> out;
        for (const Companion& c : m_companions)
            if (c.references == 0)
                out.push_back(c.id);
        return out;
    }
    int companionsLacking(const Table& table, int upTo) const {
        return m_window == 0 ? 0 : blocksFor(upTo) - static_cast<int>(table.companions.size());
    }
    int freeCompanionCount() const { return static_cast<int>(freeCompanions().size()); }

    /// How many leading blocks of the prompt are published; the last token is never taken from the cache.
    int cachedBlocks(const Tokens& prompt) const {
        int blocks = 0;
        while ((blocks + 1) * m_size <= static_cast<int>(prompt.size()) - 1 &&
               m_published.count(prefix(prompt, (blocks + 1) * m_size)) != 0)
            ++blocks;
        return blocks;
    }

    /// None = no room. `fork`: may share this table's beginning.
    std::optional<Table> admit(const Tokens& prompt, int keepBack, const Table* fork, int forkTokens, int& reused) {
        std::vector<int> shared;
        const int cached = cachedBlocks(prompt);
        for (int i = 1; i <= cached; ++i)
            shared.push_back(m_published.at(prefix(prompt, i * m_size)));
        reused = whatTheWindowHolds(shared, cached * m_size);
        shared.resize(static_cast<std::size_t>(reused / m_size));
        const int forked =
            fork == nullptr
                ? 0
                : whatTheWindowHolds(fork->blocks, std::min({forkTokens, static_cast<int>(fork->tokens.size()),
                                                             static_cast<int>(prompt.size()) - 1}));
        if (forked > reused) {
            reused = forked;
            shared.assign(fork->blocks.begin(), fork->blocks.begin() + blocksFor(forked));
        }
        int needed = blocksFor(static_cast<int>(prompt.size())) - static_cast<int>(shared.size()) + keepBack;
        needed += reused % m_size != 0 ? 1 : 0;
        for (const int block : shared)
            needed += at(block).references == 0 ? 1 : 0;
        if (needed > static_cast<int>(m_free.size()))
            return std::nullopt;
        Table table;
        table.tokens = prefix(prompt, reused);
        for (const int block : shared)
            addReader(table.blocks.emplace_back(block));
        openWindow(table);
        if (reused % m_size != 0)
            copyTail(table);
        while (static_cast<int>(table.blocks.size()) < blocksFor(static_cast<int>(prompt.size())))
            table.blocks.push_back(take());
        return table;
    }

    bool grow(Table& table, int upTo) {
        const bool copies = tailIsNotOnlyMine(table);
        const int missing = std::max(0, blocksFor(upTo) - static_cast<int>(table.blocks.size()));
        if (missing + (copies ? 1 : 0) > static_cast<int>(m_free.size()))
            return false;
        if (copies)
            copyTail(table);
        for (int i = 0; i < missing; ++i)
            table.blocks.push_back(take());
        while (companionsLacking(table, upTo) > 0)
            table.companions.push_back(takeCompanion(table.blocks[table.companions.size()]));
        return true;
    }

    void commitCopies() {
        for (const Copy& copy : std::exchange(m_copies, {}))
            dropReference(copy.from);
    }

    void advance(Table& table, const Tokens& tokens) {
        for (const TokenId token : tokens) {
            table.tokens.push_back(token);
            if (table.tokens.size() % static_cast<std::size_t>(m_size) != 0)
                continue;
            int& block = table.blocks[table.tokens.size() / static_cast<std::size_t>(m_size) - 1];
            const auto known = m_published.find(table.tokens);
            if (known == m_published.end()) {
                m_published[table.tokens] = block;
                at(block).content = table.tokens;
                if (Block* parent = parentOf(block))
                    kv::inherit(at(block).reuse, parent->reuse, m_clock.ticks());
                continue;
            }
            addReader(known->second);
            switchCompanion(table, block, known->second);
            dropReference(std::exchange(block, known->second));
        }
        for (int i = 0; m_window > 0 && i < firstSeen(static_cast<int>(table.tokens.size())); ++i)
            if (int& passed = table.companions[static_cast<std::size_t>(i)]; passed >= 0)
                dropCompanion(std::exchange(passed, -1), 1);
    }

    Table fork(const Table& source, int tokens) {
        Table table;
        tokens = whatTheWindowHolds(source.blocks, tokens);
        table.tokens = prefix(source.tokens, tokens);
        for (int i = 0; i < blocksFor(tokens); ++i)
            addReader(table.blocks.emplace_back(source.blocks[static_cast<std::size_t>(i)]));
        openWindow(table);
        return table;
    }

    void truncate(Table& table, int tokens) {
        if (m_window > 0) { // a sealed block keeps its content; what the window has passed may be gone
            const bool sealed =
                tokens % m_size != 0 && tokens / m_size < static_cast<int>(table.tokens.size()) / m_size;
            const int seen = firstSeen(sealed ? tokens / m_size * m_size : tokens);
            const bool passed = seen < static_cast<int>(table.companions.size()) &&
                                table.companions[static_cast<std::size_t>(seen)] < 0;
            tokens = sealed ? tokens / m_size * m_size : tokens;
            tokens = passed ? whatTheWindowHolds(table.blocks, tokens) : tokens;
        }
        const bool open = table.open;
        closeWindow(table);
        table.tokens.resize(static_cast<std::size_t>(tokens));
        while (static_cast<int>(table.blocks.size()) > blocksFor(tokens)) {
            const int last = table.blocks.back();
            table.blocks.pop_back();
            dropReference(last);
        }
        if (open)
            openWindow(table);
    }

    void release(Table& table) {
        closeWindow(table);
        truncate(table, 0);
    }
    void rest(Table& table) { closeWindow(table); }
    /// By a sequence; copies and pins read too, but are no use that says anything about later ones.
    void addReader(int block) {
        addReference(block);
        at(block).reuse.use(m_clock.ticks());
    }
    void addReference(int block) {
        if (at(block).references++ == 0)
            m_free.erase(std::find(m_free.begin(), m_free.end(), block));
    }
    void dropReference(int block) {
        if (--at(block).references > 0)
            return;
        if (at(block).content.empty()) {
            forgetCompanion(block);
            m_free.push_front(block);
        } else
            queueUp(block);
        const auto copy = std::find_if(m_copies.begin(), m_copies.end(), [&](const Copy& c) { return c.to == block; });
        if (copy == m_copies.end())
            return;
        const int source = copy->from;
        m_copies.erase(copy);
        dropReference(source);
    }
    bool isPublished(int block) const { return !at(block).content.empty(); }

private:
    struct Block {
        int references = 0;
        Tokens content; ///< the whole prefix up to its end, once it is published
        kv::ReuseFacts reuse;
        std::uint64_t rank = 0;   ///< given when it became cached
        std::uint64_t behind = 0; ///< the highest rank given to what follows it
    };
    Block& at(int block) { return m_blocks[static_cast<std::size_t>(block)]; }
    const Block& at(int block) const { return m_blocks[static_cast<std::size_t>(block)]; }
    int blocksFor(int tokens) const { return (tokens + m_size - 1) / m_size; }
    static Tokens prefix(const Tokens& tokens, int length) { return {tokens.begin(), tokens.begin() + length}; }

    bool tailIsNotOnlyMine(const Table& table) const {
        if (table.tokens.size() % static_cast<std::size_t>(m_size) == 0)
            return false;
        const int tail = table.blocks[table.tokens.size() / static_cast<std::size_t>(m_size)];
        return at(tail).references > 1 || isPublished(tail);
    }

    Block* parentOf(int block) {
        const int before = static_cast<int>(at(block).content.size()) - m_size;
        return before == 0 ? nullptr : &at(m_published.at(prefix(at(block).content, before)));
    }

    /// Behind everything cached that is not worth more.
    void queueUp(int block) {
        Block& own = at(block);
        own.reuse.rest(m_clock.ticks());
        own.rank = m_policy.rank({own.reuse, static_cast<std::int64_t>(own.content.size()) / m_size - 1, own.behind});
        const auto worthMore = [&](int other) { return isPublished(other) && at(other).rank > own.rank; };
        m_free.insert(std::find_if(m_free.begin(), m_free.end(), worthMore), block);
        if (Block* parent = parentOf(block))
            parent->behind = std::max(parent->behind, own.rank);
    }

    int take() {
        const int block = m_free.front();
        m_free.pop_front();
        if (isPublished(block))
            m_clock.countEviction();
        forgetCompanion(block);
        m_published.erase(at(block).content);
        at(block) = {1, {}, kv::ReuseFacts::fresh(m_clock.ticks()), 0, 0};
        return block;
    }

    void copyTail(Table& table) {
        int& tail = table.blocks[table.tokens.size() / static_cast<std::size_t>(m_size)];
        const int copy = take();
        int source = tail;
        for (const Copy& pending : m_copies)
            if (pending.to == tail)
                source = pending.from;
        addReference(source);
        m_copies.push_back({source, copy, static_cast<int>(table.tokens.size()) % m_size});
        dropReference(std::exchange(tail, copy));
    }

    // ---- the window group: all companions in one list, the next to be taken in front of those of equal rank ----

    struct Companion {
        int id = 0, block = -1, references = 0;
        int rank = 0; ///< 0 = empty, 1 = passed, 2 = released; while nobody holds it
    };
    auto companionOf(int block) {
        return std::find_if(m_companions.begin(), m_companions.end(),
                            [block](const Companion& c) { return c.block == block; });
    }
    bool hasCompanion(int block) const {
        return std::any_of(m_companions.begin(), m_companions.end(),
                           [block](const Companion& c) { return c.block == block; });
    }
    int firstSeen(int position) const { return std::max(0, position - m_window + 1) / m_size; }
    /// Of so many leading tokens those that another table can go on from.
    int whatTheWindowHolds(const std::vector<int>& blocks, int tokens) const {
        if (m_window == 0)
            return tokens;
        int whole = tokens / m_size;
        const auto holds = [&] {
            for (int i = firstSeen(whole * m_size); i < whole; ++i)
                if (!hasCompanion(blocks[static_cast<std::size_t>(i)]))
                    return false;
            return true;
        };
        while (!holds())
            --whole;
        return whole * m_size;
    }
    void openWindow(Table& table) {
        table.open = true;
        const int tokens = static_cast<int>(table.tokens.size());
        for (int i = 0; m_window > 0 && i < blocksFor(tokens); ++i) {
            table.companions.push_back(-1);
            if (i < firstSeen(tokens))
                continue;
            const auto companion = companionOf(table.blocks[static_cast<std::size_t>(i)]);
            ++companion->references;
            table.companions.back() = companion->id;
        }
    }
    void closeWindow(Table& table) {
        for (auto id = table.companions.rbegin(); id != table.companions.rend(); ++id)
            if (*id >= 0)
                dropCompanion(*id, 2);
        table.companions.clear();
        table.open = false;
    }
    /// To its place in the list: behind those of equal and lower rank; an empty one in front of all.
    void queueCompanion(Companion companion) {
        std::erase_if(m_companions, [&](const Companion& c) { return c.id == companion.id; });
        const auto behind = [&](const Companion& c) { return c.references == 0 && c.rank > companion.rank; };
        m_companions.insert(companion.rank == 0 ? m_companions.begin()
                                                : std::find_if(m_companions.begin(), m_companions.end(), behind),
                            companion);
    }
    void dropCompanion(int id, int rank) {
        const auto found =
            std::find_if(m_companions.begin(), m_companions.end(), [id](const Companion& c) { return c.id == id; });
        if (--found->references == 0)
            queueCompanion({id, found->block, 0, rank});
    }
    int takeCompanion(int block) {
        const auto next = std::find_if(m_companions.begin(), m_companions.end(),
                                       [](const Companion& c) { return c.references == 0; });
        *next = {next->id, block, 1, 0};
        return next->id;
    }
    void switchCompanion(Table& table, int block, int known) {
        if (m_window == 0)
            return;
        if (!hasCompanion(known)) {
            companionOf(block)->block = known;
            return;
        }
        const auto index = table.tokens.size() / static_cast<std::size_t>(m_size) - 1;
        ++companionOf(known)->references;
        dropCompanion(std::exchange(table.companions[index], companionOf(known)->id), 2);
    }
    void forgetCompanion(int block) {
        if (const auto found = companionOf(block); found != m_companions.end())
            queueCompanion({found->id, -1, 0, 0});
    }

    int m_size;
    const kv::EvictionPolicy& m_policy;
    kv::TurnoverClock m_clock;
    std::vector<Block> m_blocks;
    int m_window;
    std::deque<int> m_free;
    std::map<Tokens, int> m_published; ///< whole prefix -> block that ends with it
    std::vector<Copy> m_copies;
    std::vector<Companion> m_companions;
};

} // namespace kvscope::test
