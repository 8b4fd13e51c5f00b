// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/session_player.h"

#include <algorithm>

#include "engine/metrics/block_history.h"

namespace kvscope::api {

using metrics::BlockRecord;
using metrics::LogRecord;
using metrics::MemorySample;
using metrics::SequencesRecord;
using metrics::StepSample;

SessionPlayer::SessionPlayer(metrics::SessionLog log, const Clock& clock)
    : m_log(std::move(log))
    , m_clock(clock)
    , m_baseAt(clock.now()) {
    auto& records = m_log.records;
    // Streams of different threads meet in a log; each is in order, together they may not quite be.
    std::stable_sort(records.begin(), records.end(),
                     [](const LogRecord& a, const LogRecord& b) { return metrics::timeOf(a) < metrics::timeOf(b); });
    m_begin = m_end = m_log.header.clockOrigin;
    if (!records.empty()) {
        m_begin = std::min(m_begin, metrics::timeOf(records.front()));
        m_end = std::max(m_begin, metrics::timeOf(records.back()));
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (std::holds_alternative<StepSample>(records[i]))
            m_samples.records.push_back(i);
        else if (std::holds_alternative<MemorySample>(records[i]))
            m_memory.records.push_back(i);
        else if (std::holds_alternative<SequencesRecord>(records[i]))
            m_sequences.records.push_back(i);
        else if (const auto* block = std::get_if<BlockRecord>(&records[i])) {
            if (block->key)
                m_keyFrames.push_back(m_blocks.records.size());
            m_blocks.records.push_back(i);
        }
    }
}

Result<std::unique_ptr<SessionPlayer>> SessionPlayer::open(const std::string& path, const Clock& clock) {
    return metrics::readLog(path).map(
        [&](metrics::SessionLog log) { return std::make_unique<SessionPlayer>(std::move(log), clock); });
}

Nanos SessionPlayer::position() const {
    if (!m_playing)
        return m_base;
    const double passed = static_cast<double>(m_clock.now() - m_baseAt) * m_speed;
    return std::clamp<Nanos>(m_base + static_cast<Nanos>(passed), 0, duration());
}

void SessionPlayer::rebase() {
    m_base = position();
    m_baseAt = m_clock.now();
}

void SessionPlayer::play() {
    rebase();
    m_playing = true;
}

void SessionPlayer::pause() {
    rebase();
    m_playing = false;
}

void SessionPlayer::setSpeed(double speed) {
    if (!(speed > 0))
        return;
    rebase();
    m_speed = speed;
}

void SessionPlayer::seek(Nanos position) {
    const Nanos from = this->position();
    m_base = std::clamp<Nanos>(position, 0, duration());
    m_baseAt = m_clock.now();
    if (m_base >= from)
        return;
    ++m_generation;
    for (Track* track : {&m_samples, &m_memory, &m_blocks, &m_sequences})
        track->next = 0;
    m_map = {};
}

CacheCapabilities SessionPlayer::capabilities() const {
    CacheCapabilities capabilities;
    capabilities.blockMap = !m_keyFrames.empty();
    capabilities.sequences = !m_sequences.records.empty();
    return capabilities;
}

template <class Record> bool SessionPlayer::nextOf(Track& track, Record& record) {
    if (track.next == track.records.size() || at<Record>(track, track.next).time > m_begin + position())
        return false;
    record = at<Record>(track, track.next++);
    return true;
}

bool SessionPlayer::nextSample(StepSample& sample) {
    return nextOf(m_samples, sample);
}

bool SessionPlayer::nextMemorySample(MemorySample& sample) {
    return nextOf(m_memory, sample);
}

std::size_t SessionPlayer::countUntil(const Track& track, Nanos time) const {
    const auto end = std::upper_bound(track.records.begin(), track.records.end(), time,
                                      [&](Nanos t, std::size_t i) { return t < metrics::timeOf(m_log.records[i]); });
    return static_cast<std::size_t>(end - track.records.begin());
}

const metrics::BlockMapSnapshot* SessionPlayer::takeBlockMap() {
    const std::size_t until = countUntil(m_blocks, m_begin + position());
    // Nothing before the last key frame matters: this is what makes a jump cheap.
    const auto key = std::lower_bound(m_keyFrames.begin(), m_keyFrames.end(), until);
    if (key != m_keyFrames.begin())
        m_blocks.next = std::max(m_blocks.next, *(key - 1));
    bool changed = false;
    for (; m_blocks.next < until; ++m_blocks.next)
        changed |= metrics::applyBlockRecord(at<BlockRecord>(m_blocks, m_blocks.next), m_map);
    return changed ? &m_map : nullptr;
}

const std::vector<SequenceRow>* SessionPlayer::takeSequences() {
    const std::size_t until = countUntil(m_sequences, m_begin + position());
    if (until <= m_sequences.next)
        return nullptr;
    m_sequences.next = until;
    m_rows.clear();
    for (const metrics::SequenceEntry& entry : at<SequencesRecord>(m_sequences, until - 1).rows) {
        SequenceRow row;
        row.request = entry.request;
        row.owner = entry.owner;
        row.state = static_cast<SequenceState>(std::clamp(entry.state, 0, kSequenceStateCount - 1));
        row.tokens = entry.tokens;
        row.promptTokens = entry.promptTokens;
        row.computedTokens = entry.computedTokens;
        row.blocks = entry.blocks;
        row.sharedBlocks = entry.sharedBlocks;
        row.cachedBlocks = entry.cachedBlocks;
        row.cachedPrefix = entry.cachedPrefix;
        row.ttftMs = entry.ttftMs;
        row.itlMs = entry.itlMs;
        row.neededBlocks = entry.neededBlocks;
        row.availableBlocks = entry.availableBlocks;
        row.runningLimit = entry.runningLimit;
        row.longPrefillLimit = entry.longPrefillLimit;
        m_rows.push_back(row);
    }
    return &m_rows;
}

} // namespace kvscope::api
