// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/eval_run.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/cli/interrupt.h"
#include "engine/api/engine.h"
#include "engine/api/memory_probe.h"
#include "engine/base/figures.h"

namespace kvscope::cli {

namespace {

/// More perplexity than this is a cost that readers notice; the field's tools accept about as much.
constexpr double kMostRatio = 1.005;
/// With 8-bit activations any change of the cache re-randomises their rounding, which alone is worth a third of this.
constexpr double kMostKlNative = 0.010;
constexpr double kMostKlFloat = 0.005;

/// An engine that scores windows; every logit row goes to `sink`.
class Scorer final : private api::EngineListener {
public:
    using Sink = std::function<void(std::int64_t position, std::span<const float> logits)>;

    Result<void> load(api::EngineConfig config, std::int64_t window) {
        config.maxModelLen = window;
        config.maxSequences = 1;
        config.prefixCaching = false; // nothing comes twice
        if (config.numBlocks == 0)
            config.numBlocks = blocksToScore(config, window);
        return m_engine.load(config, Interrupt::flag());
    }
    const api::ModelInfo& model() const { return m_engine.model(); }

    /// Logits after each token but the last.
    Result<void> score(const std::vector<TokenId>& tokens, Sink sink) {
        api::Request request;
        request.id = RequestId(++m_requests);
        request.owner = OwnerId(m_requests);
        request.prompt = api::TokenPrompt{tokens};
        request.sampling.maxTokens = 1;
        for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(tokens.size()); ++i)
            request.logitPositions.push_back(i);
        m_sink = std::move(sink);
        m_error.reset();
        m_finite = true;
        m_engine.submit(std::move(request), m_clock.now());
        while (m_engine.hasWork())
            m_engine.step();
        if (m_error)
            return tl::unexpected(*m_error);
        if (!m_finite)
            return fail(ErrorCode::Corrupt, "The model's logits are no finite numbers: its weights are damaged, or do "
                                            "not fit its configuration. Download it again.");
        return {};
    }

private:
    void onEvent(const api::Event& event) override {
        if (const auto* finished = std::get_if<api::FinishedEvent>(&event))
            if (finished->answer.reason == api::FinishReason::Error)
                m_error = finished->answer.error;
    }
    void onLogits(RequestId, std::int64_t position, std::span<const float> logits) override {
        m_finite = m_finite && std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); });
        if (m_finite)
            m_sink(position, logits);
    }

    MonotonicClock m_clock;
    api::Engine m_engine{{m_clock, *this, nullptr, nullptr, {}, {}}};
    Sink m_sink;
    std::optional<Error> m_error;
    std::int64_t m_requests = 0;
    bool m_finite = true;
};

std::vector<TokenId> windowTokens(const EvalText& text, std::pair<std::size_t, std::size_t> window) {
    std::vector<TokenId> tokens;
    if (text.begin)
        tokens.push_back(*text.begin);
    tokens.insert(tokens.end(), text.tokens.begin() + static_cast<std::ptrdiff_t>(window.first),
                  text.tokens.begin() + static_cast<std::ptrdiff_t>(window.second));
    return tokens;
}

/// The reference's logits of one window. (tokens - 1, vocab)
struct Reference {
    std::vector<float> logits;
    std::size_t vocab = 0;

    std::span<const float> row(std::int64_t position) const {
        return std::span(logits).subspan(static_cast<std::size_t>(position) * vocab, vocab);
    }
};

Result<void> scoreReference(Scorer& scorer, const std::vector<TokenId>& tokens, Reference& reference) {
    return scorer.score(tokens, [&](std::int64_t position, std::span<const float> logits) {
        reference.vocab = logits.size();
        reference.logits.resize((tokens.size() - 1) * logits.size());
        std::copy(logits.begin(), logits.end(),
                  reference.logits.begin() +
                      static_cast<std::ptrdiff_t>(static_cast<std::size_t>(position) * logits.size()));
    });
}

bool isReference(const EvalRow& row) {
    return row.config.kvFormat == kernels::KvFormat();
}

/// How many further copies of the model may be loaded beside the reference.
std::size_t rowsAtOnce(const api::ModelInfo& model) {
    const std::uint64_t each = std::max<std::uint64_t>(1, model.weightsBytes);
    return std::max<std::size_t>(1, static_cast<std::size_t>(api::availableMemory() / 2 / each));
}

/// Some rows of the list, over the whole text.
class Pass {
public:
    Pass(const EvalText& text, Scorer& reference, std::span<EvalRow> rows)
        : m_text(text)
        , m_reference(reference)
        , m_rows(rows) {}

    Result<void> load() {
        for (EvalRow& row : m_rows) {
            auto& scorer = m_scorers.emplace_back();
            if (!isReference(row)) {
                scorer = std::make_unique<Scorer>();
                if (auto ok = scorer->load(row.config, m_text.window); !ok)
                    return ok;
            }
            const api::ModelInfo& model = scorer ? scorer->model() : m_reference.model();
            row.keys = model.keyDtype;
            row.values = model.valueDtype;
            row.bytesPerToken = static_cast<double>(model.bytesPerBlock + model.bytesPerWindowBlock) / model.blockSize;
        }
        return {};
    }

    /// `scored`: so many positions of one row are through.
    Result<void> window(std::pair<std::size_t, std::size_t> window, const std::function<void(std::int64_t)>& scored) {
        const std::vector<TokenId> tokens = windowTokens(m_text, window);
        if (auto ok = scoreReference(m_reference, tokens, m_logits); !ok)
            return ok;
        const auto count = static_cast<std::int64_t>(tokens.size()) - 1;
        std::vector<double> surprise(static_cast<std::size_t>(count));
        const auto next = [&](std::int64_t position) { return tokens[static_cast<std::size_t>(position) + 1]; };
        for (std::int64_t i = 0; i < count; ++i)
            surprise[static_cast<std::size_t>(i)] = scorePosition(m_logits.row(i), m_logits.row(i), next(i)).surprise;
        for (std::size_t r = 0; r < m_rows.size(); ++r) {
            TextScore& score = m_rows[r].score;
            const auto add = [&](std::int64_t position, std::span<const float> logits) {
                score.add(scorePosition(m_logits.row(position), logits, next(position)),
                          surprise[static_cast<std::size_t>(position)]);
            };
            if (m_scorers[r]) {
                if (auto ok = m_scorers[r]->score(tokens, add); !ok)
                    return ok;
            } else {
                for (std::int64_t i = 0; i < count; ++i)
                    add(i, m_logits.row(i));
            }
            scored(count);
        }
        return {};
    }

private:
    const EvalText& m_text;
    Scorer& m_reference;
    std::span<EvalRow> m_rows;
    std::vector<std::unique_ptr<Scorer>> m_scorers; ///< by row; null = the reference itself
    Reference m_logits;
};

} // namespace

std::int64_t blocksToScore(const api::EngineConfig& config, std::int64_t window) {
    return (window + config.blockSize - 1) / config.blockSize + 1;
}

std::vector<std::pair<std::size_t, std::size_t>> windowsOf(const EvalText& text) {
    const auto size = static_cast<std::size_t>(text.window) - (text.begin ? 1 : 0);
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (std::size_t first = 0; first < text.tokens.size(); first += size)
        if (const std::size_t last = std::min(first + size, text.tokens.size()); last - first >= (text.begin ? 1 : 2))
            out.emplace_back(first, last);
    return out;
}

Result<void> evaluate(const EvalText& text, std::vector<EvalRow>& rows,
                      const std::function<void(std::int64_t, std::int64_t)>& progress,
                      const std::function<bool()>& stop) {
    Scorer reference;
    api::EngineConfig config = rows.front().config;
    config.kvFormat = {};
    if (auto ok = reference.load(config, text.window); !ok)
        return ok;
    const auto windows = windowsOf(text);
    std::int64_t positions = 0, done = 0;
    for (const auto& [first, last] : windows)
        positions += static_cast<std::int64_t>(last - first) - (text.begin ? 0 : 1);
    const std::int64_t all = positions * static_cast<std::int64_t>(rows.size());
    const std::size_t atOnce = rowsAtOnce(reference.model());
    for (std::size_t first = 0; first < rows.size(); first += atOnce) {
        Pass pass(text, reference, std::span(rows).subspan(first, std::min(atOnce, rows.size() - first)));
        if (auto ok = pass.load(); !ok)
            return ok;
        for (const auto& window : windows) {
            if (stop())
                return {};
            const auto scored = [&](std::int64_t count) { progress(done += count, all); };
            if (auto ok = pass.window(window, scored); !ok)
                return ok;
        }
    }
    return {};
}

namespace {

std::string nameOf(const EvalRow& row) {
    return row.keys == row.values ? row.keys : "keys " + row.keys + " and values " + row.values;
}

} // namespace

std::string recommendation(const std::vector<EvalRow>& rows, bool floatActivations) {
    const double mostKl = floatActivations ? kMostKlFloat : kMostKlNative;
    const auto good = [&](const EvalRow& row) {
        return row.score.positions() > 0 && row.score.klMean() <= mostKl &&
               row.score.perplexityRatio() - 2 * row.score.ratioStandardError() <= kMostRatio;
    };
    const EvalRow* best = nullptr;
    const EvalRow* smaller = nullptr; // the largest of those that are smaller than the best, and not good
    double largest = 0;
    for (const EvalRow& row : rows) {
        largest = std::max(largest, row.bytesPerToken);
        if (good(row) && (!best || row.bytesPerToken < best->bytesPerToken))
            best = &row;
    }
    const std::string rule = "the mean KL below " + formatted("%.3f", mostKl) +
                             " and perplexity within 0.5 % (or not surely above it: within 2 standard errors)";
    if (!best)
        return "None of these keeps " + rule + ": stay with f16.";
    for (const EvalRow& row : rows)
        if (row.score.positions() > 0 && row.bytesPerToken < best->bytesPerToken &&
            (!smaller || row.bytesPerToken > smaller->bytesPerToken))
            smaller = &row;
    std::string text = nameOf(*best) + ": of those that keep " + rule + ", it takes the fewest bytes (" +
                       formatted("%.0f", best->bytesPerToken) + " a token";
    if (largest > best->bytesPerToken)
        text += ", the largest here " + formatted("%.2f", largest / best->bytesPerToken) + " times as many";
    text += ").";
    if (!smaller)
        return text;
    text += " " + nameOf(*smaller) + " would take " + formatted("%.0f", smaller->bytesPerToken) + ", but ";
    if (smaller->score.klMean() > mostKl)
        return text + "its KL is " + formatted("%.4f", smaller->score.klMean()) + ".";
    return text + "its perplexity is " + formatted("%.2f", (smaller->score.perplexityRatio() - 1) * 100) + " % higher.";
}

} // namespace kvscope::cli
