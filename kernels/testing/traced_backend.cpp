// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/testing/traced_backend.h"

#include <algorithm>

namespace kvscope::kernels::testing {

namespace {

std::string opName(const Op& op) {
    const auto inLayer = [](std::int32_t layer, const char* what) {
        return "layer " + std::to_string(layer) + ", " + what;
    };
    if (const auto* qkv = std::get_if<QkvOp>(&op))
        return inLayer(qkv->layer, "query, key and value");
    if (const auto* attention = std::get_if<AttentionOp>(&op))
        return inLayer(attention->layer, "attention");
    if (std::holds_alternative<EmbedOp>(op))
        return "embedding";
    return std::holds_alternative<LogitsOp>(op) ? "logits" : "MLP";
}

} // namespace

std::uint64_t ActivationLog::contextAfter(std::uint64_t before, std::int32_t token) {
    std::uint64_t x = before ^ (static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

void ActivationLog::setProgram(const Program& program) {
    m_opNames.clear();
    std::string layer = "layer ?, ";
    for (const Op& op : program.ops) {
        if (const auto* attention = std::get_if<AttentionOp>(&op))
            layer = "layer " + std::to_string(attention->layer) + ", ";
        m_opNames.push_back((std::holds_alternative<MlpOp>(op) ? layer : std::string()) + opName(op));
    }
}

void ActivationLog::add(std::uint64_t context, std::size_t op, std::uint64_t hash) {
    Hashes& hashes = m_hashes[context];
    hashes.byOp.resize(m_opNames.size(), 0);
    hashes.differing.resize(m_opNames.size(), 0);
    if (hashes.byOp[op] == 0)
        hashes.byOp[op] = hash;
    else if (hash != 0 && hash != hashes.byOp[op])
        hashes.differing[op] = hash;
}

std::string ActivationLog::firstDifference(const ActivationLog& other, std::span<const std::int32_t> tokens) const {
    std::uint64_t context = kEmptyContext;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        context = contextAfter(context, tokens[i]);
        const auto mine = m_hashes.find(context), theirs = other.m_hashes.find(context);
        if (mine == m_hashes.end() || theirs == other.m_hashes.end())
            continue;
        for (std::size_t op = 0; op < m_opNames.size(); ++op) {
            const std::uint64_t a = mine->second.byOp[op], b = theirs->second.byOp[op];
            const bool twice = mine->second.differing[op] != 0 || theirs->second.differing[op] != 0;
            if (twice || (a != 0 && b != 0 && a != b))
                return "token " + std::to_string(i) + " (id " + std::to_string(tokens[i]) + "), " + m_opNames[op] +
                       (twice ? ", computed twice in one run with different results" : "");
        }
    }
    return {};
}

BackendResult<std::unique_ptr<Backend>> TracedBackend::make(CpuOptions options, std::shared_ptr<ActivationLog> log) {
    std::unique_ptr<TracedBackend> traced(new TracedBackend(std::move(log)));
    options.trace = traced.get();
    auto inner = makeCpuBackend(options);
    if (!inner)
        return inner;
    traced->m_inner = std::move(*inner.value);
    return {std::move(traced), {}};
}

BackendResult<bool> TracedBackend::createKvCache(const KvLayout& layout) {
    m_blockSize = static_cast<std::size_t>(layout.blockSize);
    m_slotContexts.assign(m_blockSize * static_cast<std::size_t>(layout.numBlocks), 0);
    return m_inner->createKvCache(layout);
}

BackendResult<bool> TracedBackend::setProgram(const Program& program) {
    m_log->setProgram(program);
    return m_inner->setProgram(program);
}

Ticket TracedBackend::submit(const StepInputs& in) {
    for (const BlockCopy& copy : in.copies)
        std::copy_n(m_slotContexts.begin() + static_cast<std::ptrdiff_t>(copy.from * m_blockSize), m_blockSize,
                    m_slotContexts.begin() + static_cast<std::ptrdiff_t>(copy.to * m_blockSize));
    m_rowContexts.clear();
    for (std::size_t s = 0; s + 1 < in.cuQueryLens.size(); ++s) {
        const std::span<const std::int32_t> table = in.blockTables.subspan(static_cast<std::size_t>(in.tableStarts[s]));
        for (auto row = static_cast<std::size_t>(in.cuQueryLens[s]);
             row < static_cast<std::size_t>(in.cuQueryLens[s + 1]); ++row) {
            std::uint64_t before = ActivationLog::kEmptyContext;
            if (in.positions[row] > 0) {
                const std::size_t last = static_cast<std::size_t>(in.positions[row]) - 1;
                before = m_slotContexts[static_cast<std::size_t>(table[last / m_blockSize]) * m_blockSize +
                                        last % m_blockSize];
            }
            const std::uint64_t context = ActivationLog::contextAfter(before, in.tokenIds[row]);
            m_slotContexts[static_cast<std::size_t>(in.slotMapping[row])] = context;
            m_rowContexts.push_back(context);
        }
    }
    return m_inner->submit(in);
}

void TracedBackend::opDone(std::size_t op, std::span<const std::uint64_t> rows) {
    for (std::size_t row = 0; row < rows.size(); ++row)
        m_log->add(m_rowContexts[row], op, rows[row]);
}

} // namespace kvscope::kernels::testing
