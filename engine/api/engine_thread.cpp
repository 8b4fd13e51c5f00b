// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/engine_thread.h"

#include <thread>
#include <variant>

#include "engine/api/engine.h"
#include "engine/api/memory_probe.h"
#include "engine/api/session_observer.h"
#include "engine/api/step_abort.h"
#include "engine/api/wake_up.h"
#include "engine/base/channel.h"
#include "engine/base/thread_name.h"
#include "engine/base/triple_buffer.h"

namespace kvscope::api {

namespace {

constexpr std::chrono::milliseconds kIdleTick{100};
constexpr Nanos kIdleTickNanos = 100'000'000;

struct Load {
    EngineConfig config;
};
struct Unload {};
struct Restart {};
struct Submit {
    Request request;
    Nanos arrival = 0;
};
struct Measure {
    Request request;
};
struct Cancel {
    RequestId id;
};
struct QueryBlock {
    BlockId block;
};
struct QueryOwner {
    OwnerId owner;
};
struct UseTemplate {
    std::string name;
};
struct QueryPrompt {
    std::int64_t key = 0;
    DialogPrompt dialog;
    std::int64_t maxTokens = 0;
};
using Command = std::variant<std::monostate, Load, Unload, Restart, Submit, Measure, Cancel, QueryBlock, QueryOwner,
                             UseTemplate, QueryPrompt>;

template <class... F> struct Overloaded : F... { using F::operator()...; };
template <class... F> Overloaded(F...) -> Overloaded<F...>;

} // namespace

/// Everything that both threads reach is one of: an SPSC channel, a triple buffer, an atomic, the bell.
struct EngineThread::Impl final : EngineListener {
    Impl(const Clock& clockIn, SessionObserver* observerIn)
        : clock(clockIn)
        , observer(observerIn)
        , probe(clockIn)
        , thread([this] { run(); }) {}

    ~Impl() override {
        stop.store(true);
        abort.abortNow();
        bell.ring();
        thread.join();
    }

    // ---- consumer thread ----
    void post(Command command) {
        commands.push(std::move(command));
        bell.ring();
    }

    // ---- engine thread ----
    void onEvent(const Event& event) override { events.push(event); }
    void onSample(const metrics::StepSample& sample) override {
        if (!samples.push(sample))
            dropped.fetch_add(1, std::memory_order_relaxed);
        lastSample = sample.time;
    }
    metrics::BlockMapSnapshot* blockMapSlot() override { return &maps.writeSlot(); }
    void blockMapReady() override { maps.publish(); }
    std::vector<SequenceRow>* sequencesSlot() override { return &sequences.writeSlot(); }
    void sequencesReady() override { sequences.publish(); }

    void run();
    void handle(Engine& engine, Command& command);
    void handOnMemory(const Engine& engine);

    const Clock& clock;
    SessionObserver* observer;
    std::atomic<bool> stop{false}; ///< also ends a load that is under way
    StepAbort abort;
    WakeUp bell;
    EventChannel<Command> commands{256};
    EventChannel<Event> events{4096};
    SampleRing<metrics::StepSample> samples{4096};
    std::atomic<std::uint64_t> dropped{0};
    TripleBuffer<metrics::BlockMapSnapshot> maps;
    TripleBuffer<std::vector<SequenceRow>> sequences;
    Nanos lastSample = 0; ///< engine thread only
    MemoryProbe probe;
    std::thread thread; ///< last: it uses all of the above
};

void EngineThread::Impl::run() {
    nameThisThread("kv-engine");
    Engine engine({clock, *this, observer, &abort, {}, {}});
    while (!stop.load()) {
        while (std::optional<Command> command = commands.pop()) {
            handle(engine, *command);
            if (stop.load())
                break;
        }
        handOnMemory(engine);
        events.flush();
        const bool worked = engine.hasWork() && !engine.faulted() && engine.step() != Engine::StepResult::Blocked;
        if (clock.now() - lastSample >= kIdleTickNanos)
            engine.tick();
        if (!worked)
            bell.sleepFor(kIdleTick);
    }
}

void EngineThread::Impl::handle(Engine& engine, Command& command) {
    std::visit(Overloaded{
                   [](std::monostate) {},
                   [&](Load& c) { (void)engine.load(c.config, &stop); },
                   [&](Unload&) { engine.unload(); },
                   [&](Restart&) { (void)engine.restart(&stop); },
                   [&](Submit& c) { engine.submit(std::move(c.request), c.arrival); },
                   [&](Measure& c) { engine.measure(c.request); },
                   [&](Cancel& c) {
                       abort.handledCancel();
                       engine.cancel(c.id);
                   },
                   [&](QueryBlock& c) { engine.queryBlock(c.block); },
                   [&](QueryOwner& c) { engine.queryOwner(c.owner); },
                   [&](UseTemplate& c) { engine.useTemplate(c.name); },
                   [&](QueryPrompt& c) { engine.queryPrompt(c.key, c.dialog, c.maxTokens); },
               },
               command);
}

void EngineThread::Impl::handOnMemory(const Engine& engine) {
    metrics::MemorySample sample;
    while (probe.nextForEngine(sample))
        if (observer && engine.loaded())
            observer->memorySample(sample);
}

EngineThread::EngineThread(const Clock& clock, SessionObserver* observer)
    : m_impl(std::make_unique<Impl>(clock, observer)) {}
EngineThread::~EngineThread() = default;

void EngineThread::load(EngineConfig config) {
    m_impl->post(Load{std::move(config)});
}
void EngineThread::unload() {
    m_impl->post(Unload{});
}
void EngineThread::restart() {
    m_impl->post(Restart{});
}
void EngineThread::useTemplate(std::string name) {
    m_impl->post(UseTemplate{std::move(name)});
}
void EngineThread::queryPrompt(std::int64_t key, DialogPrompt dialog, std::int64_t maxTokens) {
    m_impl->post(QueryPrompt{key, std::move(dialog), maxTokens});
}
void EngineThread::submit(Request request) {
    m_impl->post(Submit{std::move(request), m_impl->clock.now()});
}
void EngineThread::measure(Request request) {
    m_impl->post(Measure{std::move(request)});
}
void EngineThread::cancel(RequestId id) {
    m_impl->post(Cancel{id});
    m_impl->abort.cancel(id);
}
std::optional<Event> EngineThread::nextEvent() {
    m_impl->commands.flush(); // commands that did not fit when they were given
    return m_impl->events.pop();
}

CacheCapabilities EngineThread::capabilities() const {
    return {.blockMap = true, .sequences = true, .blockDetail = true};
}
bool EngineThread::nextSample(metrics::StepSample& sample) {
    return m_impl->samples.pop(sample);
}
bool EngineThread::nextMemorySample(metrics::MemorySample& sample) {
    return m_impl->probe.nextForWindow(sample);
}
std::uint64_t EngineThread::droppedSamples() const {
    return m_impl->dropped.load(std::memory_order_relaxed);
}
const metrics::BlockMapSnapshot* EngineThread::takeBlockMap() {
    return m_impl->maps.take() ? &m_impl->maps.readSlot() : nullptr;
}
const std::vector<SequenceRow>* EngineThread::takeSequences() {
    return m_impl->sequences.take() ? &m_impl->sequences.readSlot() : nullptr;
}
void EngineThread::queryBlock(BlockId block) {
    m_impl->post(QueryBlock{block});
}
void EngineThread::queryOwner(OwnerId owner) {
    m_impl->post(QueryOwner{owner});
}

} // namespace kvscope::api
