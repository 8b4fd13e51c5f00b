// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "engine/base/check.h"
#include "engine/sched/scheduler.h"

namespace kvscope::sched {

void Scheduler::checkInvariants() const {
    m_cache.checkInvariants();
    const auto byArrival = [](const Sequence* a, const Sequence* b) { return a->id < b->id; };
    KV_CHECK(std::is_sorted(m_running.begin(), m_running.end(), byArrival) &&
                 std::is_sorted(m_waiting.begin(), m_waiting.end(), byArrival),
             "sequences are not kept in order of arrival");
    KV_CHECK(m_running.size() + m_waiting.size() == m_sequences.size(), "a sequence is lost, or in two places");
    KV_CHECK(m_running.size() <= static_cast<std::size_t>(m_config.maxSequences), "more sequences run than may");
    for (const Sequence* sequence : m_running) {
        KV_CHECK(sequence->phase != SequencePhase::Waiting && sequence->table, "a running sequence has no table");
        KV_CHECK(sequence->table.tokens() == sequence->computed, "a table and its sequence count different tokens");
        KV_CHECK(sequence->uncomputed() > 0, "a running sequence has nothing left to compute");
    }
    for (const Sequence* sequence : m_running)
        KV_CHECK(!sequence->swapped, "a running sequence still holds what it left in the host tier");
    for (const Sequence* sequence : m_waiting)
        KV_CHECK(sequence->phase == SequencePhase::Waiting && !sequence->table && sequence->computed == 0,
                 "a waiting sequence still holds blocks");
}

} // namespace kvscope::sched
