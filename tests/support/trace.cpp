// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/trace.h"

#include <algorithm>
#include <deque>

#include "engine/metrics/block_history.h"

namespace kvscope::test {

using namespace kvscope::metrics;
using kv::BlockState;

namespace {

constexpr Nanos kOrigin = 5'000'000'000;
constexpr Nanos kStep = 20'000'000;
constexpr int kConversations = 5;
constexpr std::int32_t kChunk = 48;
constexpr int kMapEvery = 3;    ///< steps between two block maps
constexpr int kMemoryEvery = 5; ///< steps between two memory samples: 10 Hz
constexpr int kKeyEvery = 501;  ///< steps between two key frames: 10 s, and a multiple of kMapEvery

struct Conversation {
    RequestId request;
    std::vector<std::uint32_t> blocks; ///< its own; the pinned beginning is everybody's
    std::int64_t prompt = 0, computed = 0, answer = 0, wanted = 0;
    int startStep = 0;
    Nanos arrival = 0, first = 0;
    bool running = false;
    std::int64_t tokens() const { return computed + answer; }
};

class Simulation {
public:
    explicit Simulation(const TraceOptions& options)
        : m_options(options)
        , m_random(options.seed)
        , m_pinned(std::clamp(options.numBlocks / 64, 1, 6)) {
        m_map.blockSize = options.blockSize;
        m_map.cells.resize(static_cast<std::size_t>(options.numBlocks));
        for (int i = 0; i < kConversations; ++i)
            m_map.owners.push_back(OwnerId(i + 1));
        for (std::int32_t i = 0; i < m_pinned; ++i)
            set(static_cast<std::uint32_t>(i), BlockState::Pinned, options.blockSize, 1, 0);
        reserveTail();
        m_chats.resize(kConversations);
        for (int i = 0; i < kConversations; ++i)
            m_chats[static_cast<std::size_t>(i)].startStep = i * 40;
        m_log.header.program = "KVScope trace";
        m_log.header.session = "trace-" + std::to_string(options.seed);
        m_log.header.modelName = "arithmetic";
        m_log.header.modelFingerprint = "0123456789abcdef0123456789abcdef";
        m_log.header.backend = "none";
        m_log.header.configuration.text = R"({"block_size":)" + std::to_string(options.blockSize) + "}";
        m_log.header.clockOrigin = kOrigin;
        m_log.header.wallOrigin = 1'764'446'400'000;
    }

    SessionLog run() {
        for (m_step = 1; m_step <= m_options.steps; ++m_step) {
            m_now = kOrigin + m_step * kStep;
            for (std::size_t i = 0; i < m_chats.size(); ++i)
                advance(i);
            move();
            record();
        }
        return std::move(m_log);
    }

private:
    std::uint32_t random(std::uint32_t below) {
        m_random = m_random * 1664525u + 1013904223u;
        return (m_random >> 8) % below;
    }
    BlockCell& cell(std::uint32_t block) { return m_map.cells[block]; }
    void set(std::uint32_t block, BlockState state, std::int64_t fill, int references, std::size_t owner) {
        cell(block) = {state, static_cast<std::uint8_t>(fill), static_cast<std::uint16_t>(owner + 1),
                       static_cast<std::uint16_t>(references), quarterSeconds()};
    }
    std::uint16_t quarterSeconds() const { return static_cast<std::uint16_t>((m_now - kOrigin) / 250'000'000); }

    /// The last sixteenth of the pool shows what paging does not have: an extent with nothing written yet.
    void reserveTail() {
        const auto size = static_cast<std::uint32_t>(m_options.numBlocks);
        for (std::uint32_t i = size - size / 16; i < size; ++i)
            set(i, BlockState::Reserved, 0, 1, kConversations - 1);
    }

    /// An empty block, else the one cached longest (an eviction); none = the pool is full.
    std::int64_t allocate() {
        for (std::uint32_t i = 0; i < m_map.cells.size(); ++i)
            if (cell(i).state == BlockState::Empty) {
                cell(i).state = BlockState::Filling; // taken
                return i;
            }
        while (!m_cached.empty()) {
            const std::uint32_t block = m_cached.front();
            m_cached.pop_front();
            if (cell(block).state != BlockState::Cached)
                continue;
            ++m_sample.totalEvictions;
            cell(block).state = BlockState::Filling;
            return block;
        }
        return -1;
    }

    void advance(std::size_t i) {
        Conversation& chat = m_chats[i];
        if (!chat.running) {
            if (m_step >= chat.startStep)
                start(i);
            return;
        }
        const bool prefill = chat.computed < chat.prompt;
        const std::int64_t tokens = prefill ? std::min<std::int64_t>(kChunk, chat.prompt - chat.computed) : 1;
        if (!grow(i, chat.tokens() + tokens)) {
            finish(i, "length");
            return;
        }
        (prefill ? chat.computed : chat.answer) += tokens;
        (prefill ? m_sample.totalPrefillTokens : m_sample.totalDecodeTokens) += static_cast<std::uint64_t>(tokens);
        if (chat.answer == 1 && !prefill)
            chat.first = m_now;
        if (chat.answer >= chat.wanted)
            finish(i, "stop");
    }

    void start(std::size_t i) {
        Conversation& chat = m_chats[i];
        chat.blocks.clear(); // what it had stays cached until somebody needs the room
        chat.request = RequestId(++m_lastRequest);
        chat.prompt = 60 + random(400);
        chat.wanted = 40 + random(120);
        chat.computed = static_cast<std::int64_t>(m_pinned) * m_options.blockSize;
        chat.prompt += chat.computed;
        chat.answer = 0;
        chat.arrival = chat.first = m_now;
        chat.running = true;
        ++m_sample.totalAdmitted;
        m_sample.totalPrefixQueryTokens += static_cast<std::uint64_t>(chat.prompt);
        m_sample.totalPrefixHitTokens += static_cast<std::uint64_t>(chat.computed);
        m_sample.recentPromptTokens = m_sample.totalPrefixQueryTokens;
        m_sample.recentReusedTokens = m_sample.totalPrefixHitTokens;
        for (std::int32_t b = 0; b < m_pinned; ++b)
            ++cell(static_cast<std::uint32_t>(b)).references;
        RequestRecord request;
        request.time = m_now;
        request.request = chat.request;
        request.owner = OwnerId(static_cast<std::int64_t>(i) + 1);
        request.prompt = "dialog";
        request.messages = 2;
        request.maxTokens = static_cast<std::int32_t>(chat.wanted);
        request.seed = m_random;
        request.stop = {"\n\n"};
        m_log.records.emplace_back(request);
        EventRecord queued;
        queued.time = m_now;
        queued.request = chat.request;
        queued.promptTokens = chat.prompt;
        m_log.records.emplace_back(queued);
    }

    bool grow(std::size_t i, std::int64_t tokens) {
        Conversation& chat = m_chats[i];
        const std::int64_t own = tokens - static_cast<std::int64_t>(m_pinned) * m_options.blockSize;
        const auto needed = static_cast<std::size_t>((own + m_options.blockSize - 1) / m_options.blockSize);
        while (chat.blocks.size() < needed) {
            const std::int64_t block = allocate();
            if (block < 0)
                return false;
            chat.blocks.push_back(static_cast<std::uint32_t>(block));
        }
        for (std::size_t b = 0; b < chat.blocks.size(); ++b) {
            const std::int64_t fill =
                std::min<std::int64_t>(m_options.blockSize, own - static_cast<std::int64_t>(b) * m_options.blockSize);
            const bool sealed = fill == m_options.blockSize;
            // every conversation's second answer forks: its first own block has two readers
            const bool shared = sealed && b == 0 && chat.request.value() % 2 == 0;
            set(chat.blocks[b],
                shared   ? BlockState::Shared
                : sealed ? BlockState::Active
                         : BlockState::Filling,
                fill, shared ? 2 : 1, i);
        }
        return true;
    }

    void finish(std::size_t i, const char* reason) {
        Conversation& chat = m_chats[i];
        for (const std::uint32_t block : chat.blocks)
            if (cell(block).fill == m_options.blockSize) {
                set(block, BlockState::Cached, m_options.blockSize, 0, i);
                m_cached.push_back(block);
            } else {
                cell(block) = {};
            }
        for (std::int32_t b = 0; b < m_pinned; ++b)
            --cell(static_cast<std::uint32_t>(b)).references;
        chat.running = false;
        chat.startStep = m_step + 20 + static_cast<int>(random(60));
        ++m_sample.totalFinished;
        ReceiptRecord receipt;
        receipt.time = m_now;
        receipt.request = chat.request;
        receipt.owner = OwnerId(static_cast<std::int64_t>(i) + 1);
        receipt.reason = reason;
        receipt.promptTokens = chat.prompt;
        receipt.reusedTokens = static_cast<std::int64_t>(m_pinned) * m_options.blockSize;
        receipt.computedTokens = receipt.promptTokens - receipt.reusedTokens;
        receipt.answerTokens = chat.answer;
        receipt.newBlocks = static_cast<std::int32_t>(chat.blocks.size());
        receipt.blockSize = m_options.blockSize;
        receipt.missReason = "diverged";
        receipt.divergingToken = receipt.reusedTokens;
        receipt.ttftMs = static_cast<double>(chat.first - chat.arrival) / 1e6;
        receipt.e2eMs = static_cast<double>(m_now - chat.arrival) / 1e6;
        m_log.records.emplace_back(receipt);
    }

    /// Two cached blocks are on their way to another tier for a second in every four.
    void move() {
        if (m_step % 200 == 100) {
            for (const std::uint32_t block : m_cached)
                if (m_moving.size() < 2 && cell(block).state == BlockState::Cached) {
                    cell(block).state = BlockState::InTransfer;
                    m_moving.push_back(block);
                }
        } else if (m_step % 200 == 150) {
            for (const std::uint32_t block : m_moving)
                if (cell(block).state == BlockState::InTransfer) {
                    cell(block).state = BlockState::Cached;
                    m_cached.push_back(block);
                }
            m_moving.clear();
        }
    }

    void record() {
        ++m_map.epoch;
        m_map.time = m_now;
        StepSample& s = m_sample;
        s.time = m_now;
        s.step = static_cast<std::uint64_t>(m_step);
        s.presence = kHasBlocks | kHasPrefix | kHasTokens | kHasRequests | kHasEngineMemory | kHasPhases;
        s.blocksByState.fill(0);
        s.referencedBlocks = 0;
        s.usedSlots = 0;
        for (const BlockCell& c : m_map.cells) {
            ++s.blocksByState[static_cast<std::size_t>(c.state)];
            if (c.references > 0) {
                ++s.referencedBlocks;
                s.usedSlots += c.fill;
            }
        }
        s.numBlocks = static_cast<std::uint32_t>(m_options.numBlocks);
        s.blockSize = static_cast<std::uint32_t>(m_options.blockSize);
        s.running = static_cast<std::uint32_t>(
            std::count_if(m_chats.begin(), m_chats.end(), [](const Conversation& c) { return c.running; }));
        s.weightsBytes = 94 << 20;
        s.bytesPerBlock = 23040ull * s.blockSize;
        s.poolBytes = s.bytesPerBlock * s.numBlocks;
        s.activationsPeakBytes = 12 << 20;
        s.totalStep += kStep - 1'000'000;
        s.totalAttention += 4'000'000;
        s.totalMlp += 9'000'000;
        if (m_step % kMapEvery == 1)
            if (auto block = m_encoder.encode(m_map, m_step % kKeyEvery == 1))
                m_log.records.emplace_back(std::move(*block));
        recordTable();
        if (m_step % kMemoryEvery == 0)
            m_log.records.emplace_back(MemorySample{
                m_now, 16ull << 30, (9ull << 30) - static_cast<std::uint64_t>(m_step) * 4096, 400ull << 20});
        m_log.records.emplace_back(s);
    }

    void recordTable() {
        SequencesRecord table;
        table.time = m_now;
        for (std::size_t i = 0; i < m_chats.size(); ++i) {
            const Conversation& chat = m_chats[i];
            if (!chat.running)
                continue;
            SequenceEntry row;
            row.request = chat.request;
            row.owner = OwnerId(static_cast<std::int64_t>(i) + 1);
            row.state = chat.computed < chat.prompt ? 1 : 2;
            row.tokens = chat.tokens();
            row.promptTokens = chat.prompt;
            row.computedTokens = chat.computed;
            row.blocks = static_cast<std::int32_t>(chat.blocks.size()) + m_pinned;
            row.sharedBlocks = m_pinned;
            row.cachedPrefix = static_cast<std::int64_t>(m_pinned) * m_options.blockSize;
            if (chat.answer > 0)
                row.ttftMs = static_cast<double>(chat.first - chat.arrival) / 1e6;
            if (chat.answer > 1)
                row.itlMs = static_cast<double>(kStep) / 1e6;
            table.rows.push_back(row);
        }
        if (table.rows != m_table.rows) {
            m_table = table;
            m_log.records.emplace_back(std::move(table));
        }
    }

    TraceOptions m_options;
    std::uint32_t m_random;
    std::int32_t m_pinned;
    SessionLog m_log;
    BlockMapSnapshot m_map;
    BlockMapEncoder m_encoder;
    StepSample m_sample;
    SequencesRecord m_table;
    std::vector<Conversation> m_chats;
    std::deque<std::uint32_t> m_cached; ///< oldest first; entries may have left the state since
    std::vector<std::uint32_t> m_moving;
    std::int64_t m_lastRequest = 0;
    int m_step = 0;
    Nanos m_now = kOrigin;
};

} // namespace

SessionLog makeTrace(const TraceOptions& options) {
    return Simulation(options).run();
}

} // namespace kvscope::test
