// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "engine/api/block_trace.h"
#include "engine/base/json_nesting.h"

namespace kvscope::api {

namespace {

using nlohmann::json;

/// What is wrong with a line, in words that end a sentence.
using Wrong = std::runtime_error;

struct Newer {
    std::string version;
};

/// A field with a value between the two.
template <class Number> Number number(const json& line, const char* name, Number low, Number high) {
    const auto& field = line.at(name);
    const bool whole = field.is_number_integer() && (field.is_number_unsigned() || std::is_signed_v<Number>);
    if (!(std::is_floating_point_v<Number> ? field.is_number() : whole))
        throw Wrong(std::string(name) + " is no number that can be there");
    const auto value = field.template get<Number>();
    if (!(value >= low && value <= high))
        throw Wrong(std::string(name) + " is out of range");
    return value;
}
constexpr std::int32_t kMost = 1 << 30;
constexpr std::int64_t kMostWide = std::int64_t(1) << 60;

template <class Kind> Kind named(const json& line, const char* name, std::optional<Kind> (*of)(std::string_view)) {
    const auto kind = of(line.at(name).get<std::string>());
    if (!kind)
        throw Wrong(std::string(name) + " has a value that this version does not know");
    return *kind;
}

kv::EvictionReason reasonOf(const std::string& name) {
    for (std::size_t i = 0; i < kv::kEvictionReasonCount; ++i)
        if (name == kv::evictionReasonName(static_cast<kv::EvictionReason>(i)))
            return static_cast<kv::EvictionReason>(i);
    throw Wrong("reason has a value that this version does not know");
}

TraceOptions readOptions(const json& o) {
    TraceOptions out;
    out.allocator = named(o, "allocator", kv::allocatorOf);
    out.reserve = named(o, "contiguous_reserve", kv::contiguousReserveOf);
    out.blockSize = number(o, "block_size", 1, 64);
    out.numBlocks = number(o, "num_blocks", 1, kMost / 64);
    out.tailSlots = o.contains("tail_slots") ? number(o, "tail_slots", 0, kMost) : 0;
    out.window = o.contains("window") ? number(o, "window", 0, kMost) : 0;
    out.sinks = o.contains("sinks") ? number<std::int64_t>(o, "sinks", 0, kMostWide) : 0;
    out.sinkWindow = o.contains("sink_window") ? number<std::int64_t>(o, "sink_window", 0, kMostWide) : 0;
    out.prefixCaching = o.at("prefix_caching").get<bool>();
    out.eviction = named(o, "eviction", kv::evictionKindOf);
    out.attentionPerToken = number(o, "attention_per_token", 0.0, 1e9);
    out.maxSequences = number(o, "max_num_seqs", 1, kMost);
    out.maxLength = number<std::int64_t>(o, "max_model_len", 0, kMostWide);
    out.watermark = number(o, "watermark", 0.0, 0.999999);
    out.policy = named(o, "scheduling_policy", sched::schedulingPolicyOf);
    out.longPrefillThreshold = number(o, "long_prefill_token_threshold", 0, kMost);
    out.maxLongPartialPrefills = number(o, "max_long_partial_prefills", 1, kMost);
    out.tokenBudget = number(o, "token_budget", 1, kMost);
    if (out.sinkWindow > 0 && (out.window > 0 || out.allocator != kv::AllocatorKind::Paged))
        throw Wrong("sink_window goes with neither a window group nor extents");
    if (!o.contains("host_slots")) // before version 1.2
        return out;
    out.hostSlots = number(o, "host_slots", 0, kMost / 64);
    for (const auto& [name, bytes] : {std::pair("block_bytes", &out.blockBytes),
                                      {"window_block_bytes", &out.windowBlockBytes},
                                      {"tail_bytes", &out.tailBytes}})
        *bytes = number<std::uint64_t>(o, name, 0, std::uint64_t(1) << 40);
    if (out.hostSlots > 0 && (out.sinkWindow > 0 || out.allocator != kv::AllocatorKind::Paged))
        throw Wrong("host_slots goes with neither sink_window nor extents");
    if (out.hostSlots > 0 && out.blockBytes == 0)
        throw Wrong("block_bytes is 0 although there is a host tier");
    return out;
}

class Reader {
public:
    explicit Reader(BlockTrace& trace) : m_trace(trace) {}

    void header(const json& line) {
        if (!line.is_object() || line.value("format", "") != kTraceFormat)
            throw Wrong("it does not begin like one");
        const std::string version = line.at("version").get<std::string>();
        if (std::atoi(version.c_str()) > kTraceVersionMajor)
            throw Newer{version};
        m_trace.program = line.value("program", "");
        m_trace.modelFingerprint = line.value("model_fingerprint", "");
        m_trace.options = readOptions(line.at("options"));
    }

    void record(const json& line) {
        const std::string type = line.at("type").get<std::string>();
        if (type == "step")
            m_trace.steps.push_back({line.at("scheduled").get<Nanos>(), line.at("completed").get<Nanos>(),
                                     line.value("aborted", false), number(line, "blocks", 0, kMost)});
        else if (type == "admit")
            m_trace.admissions.push_back({known(line, "id"), line.at("first").get<bool>(),
                                          line.at("tokens").get<std::int64_t>(), line.at("reused").get<std::int64_t>(),
                                          line.contains("loaded") ? number(line, "loaded", 0, kMost) : 0});
        else if (type == "preempt")
            m_trace.preemptions.push_back(
                {known(line, "id"), line.at("swapped").get<bool>(), number(line, "blocks", 0, kMost)});
        else if (type == "evict")
            m_trace.evictions.push_back({line.at("at").get<std::uint64_t>(), BlockId(number(line, "block", 0, kMost)),
                                         number(line, "first_position", 0, kMost), line.at("uses").get<std::uint32_t>(),
                                         line.at("age").get<Nanos>(), reasonOf(line.at("reason").get<std::string>())});
        else if (type == "end")
            readEnd(line);
        else
            readEvent(type, line);
    }

private:
    SequenceId known(const json& line, const char* name) const {
        return SequenceId(number<std::int64_t>(line, name, 1, m_submitted));
    }

    void readEnd(const json& line) {
        const SequenceId id = known(line, "id");
        m_trace.answers[id] = {line.at("tokens").get<std::vector<TokenId>>(), line.at("stopped").get<bool>(),
                               number(line, "preemptions", 0, kMost), sched::endReasonOf(line.value("reason", ""))};
        m_trace.ended.push_back(id);
    }

    void readEvent(const std::string& type, const json& line) {
        TraceEvent event;
        event.endedBefore = m_trace.ended.size();
        if (type == "submit")
            event.what = readSubmit(line);
        else if (type == "cancel")
            event.what = TraceCancel{known(line, "id"), line.at("in_flight").get<bool>(),
                                     line.at("generated").get<std::int64_t>()};
        else if (type == "fail")
            event.what = TraceFail{known(line, "id")};
        else if (type == "drop_retained")
            event.what = TraceDropRetained{known(line, "id")};
        else if (type == "budget")
            event.what = TraceBudget{number(line, "tokens", 1, kMost)};
        else if (type == "rates")
            event.what = readRates(line);
        else if (type == "unpin")
            event.what = TraceUnpin{};
        else if (type == "end_all")
            event.what = TraceEndAll{};
        else
            return; // of a newer version
        event.at = line.at("at").get<std::uint64_t>();
        m_trace.events.push_back(std::move(event));
    }

    static TraceRates readRates(const json& line) {
        constexpr double kMostNanos = 1e15;
        return {{number(line, "per_token", 0.0, kMostNanos), number(line, "per_token_and_position", 0.0, kMostNanos),
                 number(line, "per_byte_stored", 0.0, kMostNanos), number(line, "per_byte_loaded", 0.0, kMostNanos)}};
    }

    TraceSubmit readSubmit(const json& line) {
        TraceSubmit out;
        ++m_submitted;
        out.id = SequenceId(number<std::int64_t>(line, "id", m_submitted, m_submitted));
        out.owner = OwnerId(line.at("owner").get<std::int64_t>());
        out.time = line.at("time").get<Nanos>();
        out.tokens = line.at("tokens").get<std::vector<TokenId>>();
        if (out.tokens.empty())
            throw Wrong("a request has no tokens");
        out.maxNewTokens = number<std::int64_t>(line, "max_tokens", 1, kMostWide);
        out.adapter = line.value("adapter", std::uint64_t(0));
        out.forkOf = SequenceId(line.value("fork_of", std::int64_t(-1)));
        out.retain = line.value("retain", false);
        out.scores = line.value("scores", false);
        out.pinPrompt = line.value("pin", false);
        return out;
    }

    BlockTrace& m_trace;
    std::int64_t m_submitted = 0;
};

constexpr std::size_t kLongestLine = std::size_t(64) << 20; ///< a prompt of millions of tokens; devices have no lines

/// False at the end, or with kLongestLine characters and no end in sight.
bool readLine(std::ifstream& in, std::string& text) {
    using Traits = std::ifstream::traits_type;
    text.clear();
    for (auto c = in.rdbuf()->sbumpc(); !Traits::eq_int_type(c, Traits::eof()); c = in.rdbuf()->sbumpc()) {
        if (c == '\n')
            return true;
        if (text.size() == kLongestLine)
            return false;
        text.push_back(Traits::to_char_type(c));
    }
    return !text.empty();
}

} // namespace

Result<BlockTrace> readBlockTrace(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (std::error_code ignored; !in || std::filesystem::is_directory(path, ignored))
        return fail(ErrorCode::NotFound, "Cannot read '" + path + "'; check that it is a file and may be read.");
    BlockTrace trace;
    Reader reader(trace);
    std::string text;
    std::size_t number = 0;
    const auto corrupt = [&](const std::string& why) {
        return fail(ErrorCode::Corrupt, "'" + path + "' is no whole block log (line " + std::to_string(number) + ": " +
                                            why + "); give a file that --log-blocks wrote.");
    };
    try {
        for (;;) {
            ++number;
            if (!readLine(in, text)) {
                if (text.size() == kLongestLine)
                    return corrupt("it has no end");
                --number;
                break;
            }
            const json line =
                jsonNestsTooDeep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
            if (line.is_discarded() || !line.is_object()) {
                if (number > 1 && in.peek() == std::ifstream::traits_type::eof())
                    break; // the program was killed while it wrote
                return corrupt("it is no JSON object");
            }
            if (number == 1)
                reader.header(line);
            else
                reader.record(line);
        }
    } catch (const Newer& newer) {
        return fail(ErrorCode::Unsupported, "'" + path + "' was written by a newer version of KVScope (format " +
                                                newer.version + "); use that one.");
    } catch (const Wrong& wrong) {
        return corrupt(wrong.what());
    } catch (const json::exception&) {
        return corrupt("a field is missing or of another kind");
    } catch (const std::exception& other) { // the disk
        return corrupt(other.what());
    }
    if (number == 0)
        return corrupt("it is empty");
    return trace;
}

} // namespace kvscope::api
