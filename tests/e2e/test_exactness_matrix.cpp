// SPDX-License-Identifier: GPL-3.0-or-later
//
// The exactness matrix: random workloads (forks, cancellations, repetitions, samples, stop strings) run in random ways,
// each answer compared bit for bit with the same request alone. A difference is traced to the first token, layer and
// operation where the two runs part. 40 runs; with KVSCOPE_LONG=1 480, and 20 on the default model.
#include <QTest>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "app/cli/generate_runner.h"
#include "engine/kv/sink_window.h"
#include "kernels/testing/traced_backend.h"
#include "tests/support/default_model.h"
#include "tests/support/random_workload.h"
#include "tests/support/sanitized.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;
using kernels::testing::ActivationLog;
using kernels::testing::TracedBackend;

namespace {

using kernels::Backend;
using MakeBackend = std::function<kernels::BackendResult<std::unique_ptr<Backend>>(const api::EngineConfig&)>;
/// Something put over a backend, for the test of the test.
using Wrap = std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)>;

/// What happened in the runs, so that a matrix that tests nothing is noticed.
struct Happenings {
    std::uint64_t answers = 0, tokens = 0, preemptions = 0, swaps = 0, loaded = 0, reused = 0, forks = 0, cancelled = 0,
                  stopped = 0, longest = 0;
};

/// The CPU backend, in its debug mode when there is a log, with `wrap` over it.
MakeBackend backendOf(std::shared_ptr<ActivationLog> log, const Wrap& wrap = {}) {
    return [log, wrap](const api::EngineConfig& config) {
        kernels::CpuOptions options;
        options.threads = config.threads;
        options.forceIsa = config.isa;
        options.floatActivations = config.floatActivations;
        auto made = log ? TracedBackend::make(options, log) : kernels::makeCpuBackend(options);
        if (made && wrap)
            made.value = wrap(std::move(*made.value));
        return made;
    };
}

std::vector<cli::GenerateResult> runLines(const MatrixWay& way, const std::vector<cli::GenerateLine>& lines,
                                          const MakeBackend& makeBackend, Happenings* happenings) {
    MonotonicClock clock;
    cli::GenerateRunner runner(clock);
    for (const cli::GenerateLine& line : lines)
        runner.add(line, line.id);
    api::Engine engine({clock, runner, nullptr, nullptr, makeBackend, {}});
    if (auto ok = engine.load(way.config); !ok)
        throw std::runtime_error(ok.error().message);
    std::vector<cli::GenerateResult> results;
    runner.run(engine, [&](const cli::GenerateResult& result) { results.push_back(result); });
    if (happenings) {
        happenings->preemptions += engine.sample().totalPreemptions;
        happenings->swaps += engine.sample().totalSwapsIn;
        happenings->loaded += engine.sample().totalHostHitBlocks;
        happenings->reused += engine.sample().totalPrefixHitTokens;
    }
    return results;
}

/// Requests alone: one engine, nothing cached, one after another, one thread.
class Solo {
public:
    Solo(const MatrixWay& way, const MakeBackend& makeBackend) {
        api::EngineConfig config = way.config;
        config.threads = 1;
        if (!config.kvFormat.quantized()) // blocks of another size are other scales
            config.blockSize = 16;
        config.maxBatchedTokens = 0;
        config.prefixCaching = false;
        config.maxSequences = 1;
        config.numBlocks = (config.maxModelLen + config.blockSize - 1) / config.blockSize + 1;
        m_engine =
            std::make_unique<api::Engine>(api::EngineParts{m_clock, m_listener, nullptr, nullptr, makeBackend, {}});
        if (auto ok = m_engine->load(config); !ok)
            throw std::runtime_error(ok.error().message);
    }
    api::Answer run(const std::vector<TokenId>& prompt, const api::SamplingParams& sampling) {
        api::Request request;
        request.id = RequestId(++m_last);
        request.owner = OwnerId(m_last);
        request.prompt = api::TokenPrompt{prompt};
        request.sampling = sampling;
        m_engine->submit(std::move(request), m_clock.now());
        while (m_engine->hasWork())
            m_engine->step();
        return m_listener.answer;
    }

private:
    struct Listener final : api::EngineListener {
        void onEvent(const api::Event& event) override {
            if (const auto* finished = std::get_if<api::FinishedEvent>(&event))
                answer = finished->answer;
        }
        api::Answer answer;
    };
    MonotonicClock m_clock;
    Listener m_listener;
    std::unique_ptr<api::Engine> m_engine;
    std::int64_t m_last = 0;
};

/// Empty: the same to the last bit; a cancelled answer, as far as it came.
std::string difference(const api::Answer& solo, const api::Answer& answer) {
    if (answer.error || solo.error)
        return "error: " + (answer.error ? answer.error->message : solo.error->message);
    const bool cancelled = answer.reason == api::FinishReason::Cancelled;
    if (cancelled ? answer.tokenIds.size() > solo.tokenIds.size() : answer.tokenIds.size() != solo.tokenIds.size())
        return std::to_string(answer.tokenIds.size()) + " tokens instead of " + std::to_string(solo.tokenIds.size());
    for (std::size_t i = 0; i < answer.tokenIds.size(); ++i) {
        if (answer.tokenIds[i] != solo.tokenIds[i])
            return "token " + std::to_string(i) + " of the answer";
        if (answer.logprobs[i].logprob != solo.logprobs[i].logprob || answer.logprobs[i].top != solo.logprobs[i].top)
            return "log-probability of token " + std::to_string(i) + " of the answer";
    }
    if (cancelled)
        return {};
    if (answer.text != solo.text || answer.reason != solo.reason || answer.stopReason != solo.stopReason)
        return "text or reason of the end";
    return {};
}

/// The answers of all samples of a result, in order.
std::vector<const api::Answer*> answersOf(const cli::GenerateResult& result) {
    std::vector<const api::Answer*> out{&*result.answer};
    for (const api::Answer& further : result.furtherAnswers)
        out.push_back(&further);
    return out;
}

/// The line that a result belongs to: its id without "#repetition".
const cli::GenerateLine& lineOf(const cli::GenerateResult& result, const std::vector<cli::GenerateLine>& lines) {
    const int number = result.id.is_string() ? std::stoi(result.id.get<std::string>()) : result.id.get<int>();
    return lines[static_cast<std::size_t>(number)];
}

/// Both runs again in the debug mode, to the place where this answer's differ.
std::string whereTheyPart(const MatrixWay& way, const std::vector<cli::GenerateLine>& lines, const Wrap& wrap,
                          const api::Answer& answer, const api::SamplingParams& sampling) {
    const auto together = std::make_shared<ActivationLog>(), alone = std::make_shared<ActivationLog>();
    runLines(way, lines, backendOf(together, wrap), nullptr);
    Solo solo(way, backendOf(alone));
    const api::Answer again = solo.run(answer.promptTokenIds, sampling);
    std::vector<TokenId> tokens = answer.promptTokenIds;
    tokens.insert(tokens.end(), again.tokenIds.begin(), again.tokenIds.end());
    const std::string place = alone->firstDifference(*together, tokens);
    return place.empty() ? "no activation differs: the sampler, or what comes after it" : place;
}

/// One run of the matrix. Empty, or what differs and where the computation parts.
std::string compareWithSolo(const MatrixWay& way, const std::vector<cli::GenerateLine>& lines, Happenings& happenings,
                            const Wrap& wrap = {}) {
    const std::vector<cli::GenerateResult> results = runLines(way, lines, backendOf(nullptr, wrap), &happenings);
    Solo solo(way, backendOf(nullptr));
    for (const cli::GenerateResult& result : results) {
        if (!result.answer)
            return "line " + result.id.dump() + " was refused: " + (result.error ? result.error->message : "");
        const cli::GenerateLine& line = lineOf(result, lines);
        happenings.forks += line.forkOf.is_null() ? 0 : 1;
        std::int32_t sample = 0;
        for (const api::Answer* answer : answersOf(result)) {
            api::SamplingParams sampling = line.sampling;
            sampling.seed = cli::sampleSeed(line.sampling.seed, sample++);
            ++happenings.answers;
            happenings.tokens += answer->tokenIds.size();
            happenings.cancelled += answer->reason == api::FinishReason::Cancelled;
            happenings.stopped += std::holds_alternative<std::string>(answer->stopReason);
            happenings.longest =
                std::max<std::uint64_t>(happenings.longest, answer->promptTokenIds.size() + answer->tokenIds.size());
            const std::string what = difference(solo.run(answer->promptTokenIds, sampling), *answer);
            if (!what.empty())
                return way.name + ", line " + result.id.dump() + ": " + what +
                       "; first difference: " + whereTheyPart(way, lines, wrap, *answer, sampling);
        }
    }
    return {};
}

/// Turns the sign of one cached value of the last layer, once, before a step that writes on.
class Spoiler final : public kernels::testing::ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    kernels::BackendResult<bool> createKvCache(const kernels::KvLayout& layout) override {
        m_blockBytes = layout.bytesPerBlock();
        return ForwardingBackend::createKvCache(layout);
    }
    kernels::Ticket submit(const kernels::StepInputs& in) override {
        if (!m_done && in.sequenceLengths.front() > 64 && in.cuQueryLens[1] == 1) {
            m_done = true;
            std::vector<std::byte> block(m_blockBytes);
            readBlock(in.blockTables.front(), block);
            block.back() ^= std::byte(0x80);
            writeBlock(in.blockTables.front(), block);
        }
        return ForwardingBackend::submit(in);
    }

private:
    std::size_t m_blockBytes = 0;
    bool m_done = false;
};

/// The form in which a run keeps its keys and values; seven, so that every model comes to have each.
kernels::KvFormat formOf(unsigned run, std::int32_t blockSize) {
    const char* forms[] = {"f16", "fp8", "int8", "k8v4", "bf16", "int4", "f16"};
    kernels::KvFormat form = *kernels::kvFormatByName(forms[run % 7]);
    if (run % 7 == 6)
        form.values = kernels::KvDType::Int8; // one half of 16 bits, the other quantized
    if (form.keys == kernels::KvDType::Int4 && blockSize < 16)
        form.keys = kernels::KvDType::Int8;
    return form;
}

bool longRun() {
    return qEnvironmentVariableIntValue("KVSCOPE_LONG") != 0;
}

} // namespace

class TestExactnessMatrix : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        const auto file = [&](const TinyLlama& size, const char* name) {
            const std::string path = m_dir.file(name);
            QVERIFY(tinyLlama(size).write(path));
            m_models.push_back({path, 288, 1500, longRun() ? 4000 : 1000});
        };
        for (const char* name : {"llama-f32", "llama-f16", "llama-bf16", "llama-q8_0", "llama-q4_0", "llama-q4_1",
                                 "llama-mha", "llama-mqa", "llama-rope-linear"})
            m_models.push_back(
                {std::string(KVSCOPE_TEST_DATA) + "/models/" + name + ".gguf", 320, 1500, longRun() ? 4000 : 1000});
        // Odd shapes: heads of 20 dimensions, eight query heads to a KV head, widths that are no multiple of 32.
        file({2, 60, 3, 1, 52, 2048, true, TensorType::F16, 3}, "odd.gguf");
        file({3, 128, 8, 1, 96, 2048, false, TensorType::Q8_0, 4}, "wide.gguf");
        file({1, 64, 4, 4, 160, 2048, true, TensorType::Q4_0, 5}, "flat.gguf");
    }

    void everyRunEqualsItsRequestsAlone() {
        const unsigned runs = longRun() ? 480 : kSanitized ? 6 : 40;
        Happenings happenings;
        for (unsigned run = 0; run < runs; ++run) {
            MatrixModel model = m_models[run % m_models.size()];
            if (!longRun() && run % 10 != 9) { // short enough that a tight pool is full soon
                model.longest = 300;
                model.tokens = 2000;
            }
            MatrixWay way = matrixWay(model, run);
            way.config.kvFormat = formOf(run, way.config.blockSize);
            const std::vector<cli::GenerateLine> lines = linesFor(way, model, run);
            const std::string wrong = compareWithSolo(way, lines, happenings);
            QVERIFY2(wrong.empty(), ("run " + std::to_string(run) + ", " + model.path + ": " + wrong).c_str());
        }
        report(happenings, runs);
        // A matrix without these would show nothing.
        QVERIFY(happenings.forks >= runs);
        QVERIFY(happenings.reused > 0);
        QVERIFY(happenings.cancelled > 0);
        if (runs < 40) // too few for the rest
            return;
        QVERIFY(happenings.preemptions > runs / 10);
        QVERIFY(happenings.swaps > runs / 20);
        QVERIFY(happenings.stopped > 0);
        QVERIFY(happenings.longest > (longRun() ? 1000u : 300u));
    }

    /// Sequences that keep sinks and a window, in pools that hold two or three of them.
    void theSameWithSinks() {
        const unsigned runs = longRun() ? 120 : kSanitized ? 3 : 12;
        Happenings happenings;
        for (unsigned run = 0; run < runs; ++run) {
            MatrixModel model = m_models[run % m_models.size()];
            model.longest = longRun() && run % 10 == 9 ? 1500 : 400;
            model.tokens = longRun() ? 4000 : 1500;
            MatrixWay way = matrixWay(model, run + 1000);
            api::EngineConfig& c = way.config;
            c.kvFormat = formOf(run, c.blockSize);
            c.allocator = kv::AllocatorKind::Paged;
            c.windowPolicy = kv::WindowPolicy::Sinks;
            c.hostCacheBytes = 0; // refused beside sinks
            c.sinks = std::array{0, 4, 20}[run % 3];
            c.window = std::array{33, 70, 200, 280}[run % 4];
            const std::vector<cli::GenerateLine> lines = linesFor(way, model, 2000 + run);
            if (way.tight)
                c.numBlocks = 3 * static_cast<std::int64_t>(kv::SinkWindow{c.sinks, c.window, c.blockSize}.mostHeld(1));
            const std::string wrong = compareWithSolo(way, lines, happenings);
            QVERIFY2(wrong.empty(), ("run " + std::to_string(run) + ", " + model.path + ": " + wrong).c_str());
        }
        report(happenings, runs);
        QVERIFY(happenings.forks >= runs && happenings.reused > 0 && happenings.longest > 300);
    }

    void theDefaultModelToo() {
        if (!longRun())
            QSKIP("Long: KVSCOPE_LONG=1 runs it.");
        const auto path = defaultModel();
        if (!path)
            QSKIP(kNoDefaultModel);
        Happenings happenings;
        constexpr unsigned kRuns = 20;
        for (unsigned run = 0; run < kRuns; ++run) {
            // Most runs of moderate length on the best instruction set, every fifth on the next one; the portable one
            // takes six times as long, so it gets less to do. Every tenth goes up to the whole 1,500 tokens.
            const std::vector<kernels::Isa> sets = supportedIsas();
            const kernels::Isa isa = sets[(sets.size() - 1 + run / 5 * (run % 5 == 0)) % sets.size()];
            MatrixModel model{*path, 49152, 400, 600, std::uint64_t(32) << 20};
            if (isa == kernels::Isa::Portable)
                std::tie(model.longest, model.tokens) = std::pair(160, 200);
            else if (run % 10 == 9)
                std::tie(model.longest, model.tokens) = std::pair(1500, 2000);
            MatrixWay way = matrixWay(model, run, isa);
            way.config.kvFormat = formOf(run, way.config.blockSize);
            const std::vector<cli::GenerateLine> lines = linesFor(way, model, 1000 + run);
            const std::string wrong = compareWithSolo(way, lines, happenings);
            QVERIFY2(wrong.empty(), ("run " + std::to_string(run) + ": " + wrong).c_str());
        }
        report(happenings, kRuns);
    }

    void aFaultIsFoundAndPlaced() {
        const MatrixModel model{std::string(KVSCOPE_TEST_DATA) + "/models/llama-f32.gguf", 320, 500, 1000};
        MatrixWay way = matrixWay(model, 0);
        way.config.prefixCaching = false;
        const auto spoil = [](std::unique_ptr<Backend> inner) -> std::unique_ptr<Backend> {
            return std::make_unique<Spoiler>(std::move(inner));
        };
        cli::GenerateLine line;
        line.id = 0;
        line.prompt = api::TokenPrompt{std::vector<TokenId>(70, 33)};
        line.sampling.ignoreEos = true;
        line.sampling.logprobs = 1;
        line.sampling.maxTokens = 5;
        Happenings happenings;
        QCOMPARE(compareWithSolo(way, {line}, happenings), std::string());
        const std::string found = compareWithSolo(way, {line}, happenings, spoil);
        QVERIFY2(found.find("first difference: token 70 (id ") != std::string::npos, found.c_str());
        QVERIFY2(found.find("layer 1, attention") != std::string::npos, found.c_str());
    }

private:
    static void report(const Happenings& h, unsigned runs) {
        std::printf("%u runs: %llu answers, %llu tokens, longest sequence %llu, %llu preemptions, %llu swaps (%llu "
                    "blocks loaded), %llu tokens reused, "
                    "%llu forks, %llu cancelled, %llu ended by a stop string\n",
                    runs, static_cast<unsigned long long>(h.answers), static_cast<unsigned long long>(h.tokens),
                    static_cast<unsigned long long>(h.longest), static_cast<unsigned long long>(h.preemptions),
                    static_cast<unsigned long long>(h.swaps), static_cast<unsigned long long>(h.loaded),
                    static_cast<unsigned long long>(h.reused), static_cast<unsigned long long>(h.forks),
                    static_cast<unsigned long long>(h.cancelled), static_cast<unsigned long long>(h.stopped));
    }

    TempDir m_dir;
    std::vector<MatrixModel> m_models;
};

QTEST_APPLESS_MAIN(TestExactnessMatrix)
#include "test_exactness_matrix.moc"
