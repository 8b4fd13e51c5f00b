// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/op_trace.h"
#include "kernels/testing/forwarding_backend.h"

namespace kvscope::kernels::testing {

/// What every operation computed for every token of a run, found by what the token follows: two runs that are exact
/// have the same hashes for the same beginning of tokens, however they were batched, cut and cached.
class ActivationLog {
public:
    /// Identity of the token sequence that ends with `token`; `before` is that of the sequence before it.
    static std::uint64_t contextAfter(std::uint64_t before, std::int32_t token);
    static constexpr std::uint64_t kEmptyContext = 0x9E3779B97F4A7C15ull;

    void setProgram(const Program& program);
    void add(std::uint64_t context, std::size_t op, std::uint64_t hash);

    /// Where the two first part along these tokens: "token 37 (id 12), layer 1, attention". Empty: nowhere.
    std::string firstDifference(const ActivationLog& other, std::span<const std::int32_t> tokens) const;
    std::size_t contexts() const { return m_hashes.size(); }

private:
    struct Hashes {
        std::vector<std::uint64_t> byOp;      ///< 0 = not computed
        std::vector<std::uint64_t> differing; ///< by op; of a later computation that gave something else, else 0
    };
    std::vector<std::string> m_opNames;
    std::unordered_map<std::uint64_t, Hashes> m_hashes;
};

/// The CPU backend in its debug mode, writing into an ActivationLog.
class TracedBackend final : public ForwardingBackend, private OpTrace {
public:
    /// The same failures as makeCpuBackend. `options.trace` is not used.
    static BackendResult<std::unique_ptr<Backend>> make(CpuOptions options, std::shared_ptr<ActivationLog> log);

    BackendResult<bool> createKvCache(const KvLayout& layout) override;
    BackendResult<bool> setProgram(const Program& program) override;
    Ticket submit(const StepInputs& inputs) override;

private:
    explicit TracedBackend(std::shared_ptr<ActivationLog> log) : m_log(std::move(log)) {}
    void opDone(std::size_t op, std::span<const std::uint64_t> rows) override;

    std::shared_ptr<ActivationLog> m_log;
    std::size_t m_blockSize = 0;
    std::vector<std::uint64_t> m_slotContexts; ///< of the token whose K and V stand there
    std::vector<std::uint64_t> m_rowContexts;  ///< (T) of the step in flight
};

} // namespace kvscope::kernels::testing
