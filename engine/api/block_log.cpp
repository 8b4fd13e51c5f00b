// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/block_log.h"

#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

namespace kvscope::api {

namespace {

using nlohmann::json;

template <class... F> struct Overloaded : F... { using F::operator()...; };
template <class... F> Overloaded(F...) -> Overloaded<F...>;

json eventJson(const TraceSubmit& s) {
    json out{{"type", "submit"}, {"id", s.id.value()},           {"owner", s.owner.value()},
             {"time", s.time},   {"max_tokens", s.maxNewTokens}, {"tokens", s.tokens}};
    if (s.adapter != 0)
        out["adapter"] = s.adapter;
    if (s.forkOf.valid())
        out["fork_of"] = s.forkOf.value();
    for (const auto& [name, value] : {std::pair("retain", s.retain), {"scores", s.scores}, {"pin", s.pinPrompt}})
        if (value)
            out[name] = true;
    return out;
}

json eventJson(const TraceEvent& event) {
    json out = std::visit(Overloaded{
                              [](const TraceSubmit& s) { return eventJson(s); },
                              [](const TraceCancel& c) {
                                  return json{{"type", "cancel"},
                                              {"id", c.id.value()},
                                              {"in_flight", c.inFlight},
                                              {"generated", c.generated}};
                              },
                              [](const TraceFail& f) {
                                  return json{{"type", "fail"}, {"id", f.id.value()}};
                              },
                              [](const TraceDropRetained& d) {
                                  return json{{"type", "drop_retained"}, {"id", d.id.value()}};
                              },
                              [](const TraceBudget& b) {
                                  return json{{"type", "budget"}, {"tokens", b.tokens}};
                              },
                              [](const TraceRates& r) {
                                  return json{{"type", "rates"},
                                              {"per_token", r.rates.nanosPerToken},
                                              {"per_token_and_position", r.rates.nanosPerTokenAndPosition},
                                              {"per_byte_stored", r.rates.nanosPerByteStored},
                                              {"per_byte_loaded", r.rates.nanosPerByteLoaded}};
                              },
                              [](const TraceUnpin&) {
                                  return json{{"type", "unpin"}};
                              },
                              [](const TraceEndAll&) {
                                  return json{{"type", "end_all"}};
                              },
                          },
                          event.what);
    out["at"] = event.at;
    return out;
}

} // namespace

BlockLog::BlockLog(std::string path, std::string program, std::FILE* file)
    : m_path(std::move(path))
    , m_program(std::move(program))
    , m_file(file) {}

Result<std::unique_ptr<BlockLog>> BlockLog::create(const std::string& path, std::string program) {
    std::FILE* file = std::fopen(path.c_str(), "wbe");
    if (file == nullptr)
        return fail(ErrorCode::Io, "Cannot write '" + path +
                                       "'; check that its folder exists, may be written to, and that the disk is not "
                                       "full.");
    return std::unique_ptr<BlockLog>(new BlockLog(path, std::move(program), file));
}

BlockLog::~BlockLog() {
    if (m_file != nullptr)
        std::fclose(m_file);
}

void BlockLog::begin(const kv::KvCache& cache, sched::Scheduler& scheduler, const TraceOptions& o,
                     const std::string& modelFingerprint) {
    put(json{{"format", kTraceFormat},
             {"version", std::to_string(kTraceVersionMajor) + "." + std::to_string(kTraceVersionMinor)},
             {"program", m_program},
             {"model_fingerprint", modelFingerprint},
             {"options",
              {{"allocator", kv::allocatorName(o.allocator)},
               {"contiguous_reserve", kv::contiguousReserveName(o.reserve)},
               {"block_size", o.blockSize},
               {"num_blocks", o.numBlocks},
               {"tail_slots", o.tailSlots},
               {"window", o.window},
               {"sinks", o.sinks},
               {"sink_window", o.sinkWindow},
               {"prefix_caching", o.prefixCaching},
               {"eviction", kv::evictionKindName(o.eviction)},
               {"attention_per_token", o.attentionPerToken},
               {"max_num_seqs", o.maxSequences},
               {"max_model_len", o.maxLength},
               {"watermark", o.watermark},
               {"scheduling_policy", sched::schedulingPolicyName(o.policy)},
               {"long_prefill_token_threshold", o.longPrefillThreshold},
               {"max_long_partial_prefills", o.maxLongPartialPrefills},
               {"token_budget", o.tokenBudget},
               {"host_slots", o.hostSlots},
               {"block_bytes", o.blockBytes},
               {"window_block_bytes", o.windowBlockBytes},
               {"tail_bytes", o.tailBytes}}}}
            .dump());
    m_collector = std::make_unique<TraceCollector>(cache, *this);
    scheduler.observe(m_collector.get());
}

void BlockLog::put(const std::string& line) {
    if (m_failed || m_file == nullptr)
        return;
    m_failed = std::fwrite(line.data(), 1, line.size(), m_file) != line.size() || std::fputc('\n', m_file) == EOF;
}

Result<void> BlockLog::finish() {
    std::FILE* file = std::exchange(m_file, nullptr);
    if (file != nullptr && std::fclose(file) != 0)
        m_failed = true;
    if (m_failed)
        return fail(ErrorCode::Io,
                    "The block log '" + m_path + "' could not be written to its end; check that the disk is not full.");
    return {};
}

void BlockLog::add(const TraceEvent& event) {
    put(eventJson(event).dump());
}

void BlockLog::add(const TraceStep& s) {
    json out{{"type", "step"}, {"scheduled", s.scheduled}, {"completed", s.completed}, {"blocks", s.blocksInUse}};
    if (s.aborted)
        out["aborted"] = true;
    put(out.dump());
}

void BlockLog::add(SequenceId id, const TraceAnswer& a) {
    json out{{"type", "end"},
             {"id", id.value()},
             {"stopped", a.stopped},
             {"preemptions", a.preemptions},
             {"tokens", a.tokens}};
    if (a.reason)
        out["reason"] = sched::endReasonName(*a.reason);
    put(out.dump());
}

void BlockLog::add(const TraceAdmission& a) {
    json out{{"type", "admit"}, {"id", a.id.value()}, {"first", a.first}, {"tokens", a.tokens}, {"reused", a.reused}};
    if (a.loaded > 0)
        out["loaded"] = a.loaded;
    put(out.dump());
}

void BlockLog::add(const TracePreemption& p) {
    put(json{{"type", "preempt"}, {"id", p.id.value()}, {"swapped", p.swapped}, {"blocks", p.blocks}}.dump());
}

void BlockLog::add(const TraceEviction& e) {
    put(json{{"type", "evict"},
             {"at", e.at},
             {"block", e.block.value()},
             {"first_position", e.firstPosition},
             {"uses", e.uses},
             {"age", e.age},
             {"reason", kv::evictionReasonName(e.reason)}}
            .dump());
}

} // namespace kvscope::api
