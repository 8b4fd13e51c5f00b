// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "app/cli/command.h"
#include "app/cli/engine_options.h"
#include "app/cli/interrupt.h"
#include "engine/api/engine.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

struct Query {
    std::vector<std::int32_t> ids;
    std::int32_t top = 10;               ///< 0 = the whole vocabulary
    std::vector<std::int64_t> positions; ///< empty = the last
};

/// The `top` most likely tokens with their log-probabilities, most likely first (lowest id first on ties).
json mostLikely(std::span<const float> logits, std::int32_t top) {
    const float largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits)
        sum += std::exp(static_cast<double>(logit - largest));
    const double normalizer = largest + std::log(sum);
    std::vector<std::int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const std::size_t count = top == 0 ? order.size() : std::min(order.size(), static_cast<std::size_t>(top));
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [&](std::int32_t a, std::int32_t b) {
                          const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
                          return x != y ? x > y : a < b;
                      });
    json out = json::array();
    for (std::size_t i = 0; i < count; ++i)
        out.push_back({order[i], logits[static_cast<std::size_t>(order[i])] - normalizer});
    return out;
}

/// Collects what one query gives.
class Collector final : public api::EngineListener {
public:
    void start(std::int32_t top) {
        m_top = top;
        m_positions.clear();
        m_error.reset();
        m_finite = true;
    }
    void onEvent(const api::Event& event) override {
        if (const auto* finished = std::get_if<api::FinishedEvent>(&event))
            if (finished->answer.reason == api::FinishReason::Error)
                m_error = finished->answer.error;
    }
    void onLogits(RequestId, std::int64_t position, std::span<const float> logits) override {
        // A value that is no number has no place in an order.
        if (std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); }))
            m_positions[position] = mostLikely(logits, m_top);
        else
            m_finite = false;
    }
    bool finite() const { return m_finite; }
    const std::optional<Error>& error() const { return m_error; }
    json positions(const std::vector<std::int64_t>& order) const {
        json out = json::array();
        for (const std::int64_t position : order)
            out.push_back({{"pos", position}, {"top", m_positions.at(position)}});
        return out;
    }

private:
    std::int32_t m_top = 0;
    std::map<std::int64_t, json> m_positions;
    std::optional<Error> m_error;
    bool m_finite = true;
};

Result<json> ask(api::Engine& engine, Collector& collector, const Query& query, std::int64_t number) {
    const auto count = static_cast<std::int64_t>(query.ids.size());
    if (query.ids.empty())
        return fail(ErrorCode::InvalidArgument, "'ids' must name at least one token.");
    const std::vector<std::int64_t> order =
        query.positions.empty() ? std::vector<std::int64_t>{count - 1} : query.positions;
    for (const std::int64_t position : order)
        if (position < 0 || position >= count)
            return fail(ErrorCode::InvalidArgument, "There is no position " + std::to_string(position) + "; " +
                                                        std::to_string(count) + " tokens were given.");
    api::Request request;
    request.id = RequestId(number);
    request.owner = OwnerId(number);
    request.prompt = api::TokenPrompt{query.ids};
    request.sampling.maxTokens = 1;
    request.logitPositions = order;
    std::sort(request.logitPositions.begin(), request.logitPositions.end());
    request.logitPositions.erase(std::unique(request.logitPositions.begin(), request.logitPositions.end()),
                                 request.logitPositions.end());
    collector.start(query.top);
    engine.submit(std::move(request), 0);
    while (engine.hasWork())
        engine.step();
    if (collector.error())
        return tl::unexpected(*collector.error());
    if (!collector.finite())
        return fail(ErrorCode::Corrupt, "The model's logits are no finite numbers: its weights are damaged, or do not "
                                        "fit its configuration. Download it again.");
    return json{{"positions", collector.positions(order)}};
}

template <class Number> bool readNumbers(const json& list, std::vector<Number>& out) {
    if (!list.is_array())
        return false;
    for (const json& item : list) {
        const auto number = smallNumber(item, 0);
        if (!number)
            return false;
        out.push_back(*number);
    }
    return true;
}

Result<Query> parseQuery(const std::string& text) {
    const json line = parseJson<json>(text);
    if (!line.is_object())
        return fail(ErrorCode::InvalidArgument, "This line " + jsonFault(text));
    Query query;
    bool good = true;
    for (const auto& [field, value] : line.items()) {
        if (field == "top") {
            const auto top = smallNumber(value, 0);
            good = good && top;
            query.top = top.value_or(0);
        } else if (field == "ids") {
            good = good && readNumbers(value, query.ids);
        } else if (field == "positions") {
            good = good && readNumbers(value, query.positions);
        } else {
            return fail(ErrorCode::InvalidArgument, "There is no field '" + field + "'.");
        }
    }
    if (!good)
        return fail(ErrorCode::InvalidArgument, "'ids' and 'positions' are lists of whole numbers of at least 0, 'top' "
                                                "is one.");
    return query;
}

struct Options {
    std::shared_ptr<EngineOptions> engine;
    std::string ids, positions, linesFile;
    CLI::Option* idsOption = nullptr; ///< may be given and empty
    std::int32_t top = 10;
    bool asJson = false;
};

void printReadable(const json& answer) {
    for (const json& position : answer["positions"]) {
        std::printf("position %s\n", position["pos"].dump().c_str());
        for (const json& token : position["top"])
            std::printf("  %8d  %.6f\n", token[0].get<int>(), token[1].get<double>());
    }
}

int runLogits(const Options& o) {
    const api::EngineConfig config = o.engine->config();
    if ((o.idsOption->count() > 0) != o.linesFile.empty())
        throw UsageError("Give exactly one of --prompt-ids and --jsonl.");
    if (o.top < 0)
        throw UsageError("--top must be at least 0.");
    std::vector<Result<Query>> queries;
    if (o.linesFile.empty()) {
        Query query;
        query.ids = parseIds(o.ids, "--prompt-ids");
        query.top = o.top;
        if (!o.positions.empty())
            for (const std::int32_t position : parseIds(o.positions, "--positions"))
                query.positions.push_back(position);
        queries.emplace_back(std::move(query));
    } else {
        for (const std::string& line : readLines(o.linesFile))
            queries.push_back(parseQuery(line));
    }
    MonotonicClock clock;
    Collector collector;
    o.engine->checkStatsFile();
    const Interrupt interrupt;
    const std::unique_ptr<api::BlockLog> blockLog = o.engine->openBlockLog();
    api::Engine engine({clock, collector, nullptr, nullptr, {}, {}, blockLog.get()});
    if (auto ok = engine.load(config, Interrupt::flag()); !ok) {
        interrupt.passOn();
        throwNotLoaded(ok.error());
    }
    printWarnings(engine.model());
    std::int64_t number = 0;
    for (const Result<Query>& query : queries) {
        if (interrupt.asked())
            break;
        const Result<json> answer = query ? ask(engine, collector, *query, number++) : tl::unexpected(query.error());
        if (!answer && o.linesFile.empty())
            throw CommandError(answer.error());
        if (!answer)
            printJson({{"error", errorJson(answer.error())}});
        else if (o.asJson || !o.linesFile.empty())
            printJson(*answer);
        else
            printReadable(*answer);
    }
    o.engine->writeStats(engine);
    closeBlockLog(blockLog.get());
    interrupt.passOn();
    return 0;
}

} // namespace

Verb addLogits(CLI::App& app) {
    auto options = std::make_shared<Options>();
    Verb verb;
    verb.app = app.add_subcommand("logits", "Show the most likely next tokens after given ones");
    options->idsOption = verb.app->add_option("--prompt-ids", options->ids, "Token ids, separated by commas");
    verb.app->add_option("--positions", options->positions, "Positions to show; default: the last");
    verb.app->add_option("--top", options->top, "How many tokens each; 0 = all")->capture_default_str();
    verb.app->add_option("--jsonl", options->linesFile, "JSON lines {ids, top, positions}, one answer line each");
    options->engine = addEngineOptions(*verb.app);
    verb.app->add_flag("--json", options->asJson, "JSON on standard output and nothing else");
    verb.run = [options] { return runLogits(*options); };
    return verb;
}

} // namespace kvscope::cli
