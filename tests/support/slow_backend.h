// SPDX-License-Identifier: GPL-3.0-or-later
//
// A CPU backend on which computing, or moving, takes longer than it does here: which of the two is cheaper decides
// about swaps and loads, and with the tiny models of the tests it is nearly a tie.
#pragma once

#include <chrono>
#include <thread>

#include "engine/api/engine.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/testing/forwarding_backend.h"
#include "tests/support/sanitized.h"

namespace kvscope::test {

struct Slowness {
    std::chrono::microseconds token{0}; ///< for each token of a step
    std::chrono::microseconds move{0};  ///< for each read or write of K/V bytes
};

/// Moving is cheaper, also where a sanitizer slows it down.
inline constexpr Slowness kSlowSteps{std::chrono::microseconds(kSanitized ? 300 : 50), {}};
/// Computing again is cheaper.
inline constexpr Slowness kSlowMoves{{}, std::chrono::milliseconds(kSanitized ? 30 : 2)};

class SlowBackend final : public kernels::testing::ForwardingBackend {
public:
    SlowBackend(std::unique_ptr<Backend> inner, const Slowness& slowness)
        : ForwardingBackend(std::move(inner))
        , m_slowness(slowness) {}
    kernels::Ticket submit(const kernels::StepInputs& inputs) override {
        std::this_thread::sleep_for(m_slowness.token * static_cast<std::int64_t>(inputs.tokenIds.size()));
        return ForwardingBackend::submit(inputs);
    }
    void readKv(kernels::KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) override {
        std::this_thread::sleep_for(m_slowness.move);
        ForwardingBackend::readKv(part, index, offset, out);
    }
    void writeKv(kernels::KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) override {
        std::this_thread::sleep_for(m_slowness.move);
        ForwardingBackend::writeKv(part, index, offset, in);
    }

private:
    Slowness m_slowness;
};

/// For EngineHarness::makeBackend.
inline auto slowBackend(const Slowness& slowness) {
    return [slowness](const api::EngineConfig& config) {
        kernels::CpuOptions options;
        options.threads = config.threads;
        options.forceIsa = config.isa;
        options.floatActivations = config.floatActivations;
        auto made = kernels::makeCpuBackend(options);
        if (made)
            made.value = std::make_unique<SlowBackend>(std::move(*made.value), slowness);
        return made;
    };
}

} // namespace kvscope::test
