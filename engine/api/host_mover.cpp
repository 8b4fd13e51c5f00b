// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/host_mover.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

#include "engine/base/figures.h"

namespace kvscope::api {

namespace {

constexpr double kNewest = 0.1; ///< weight of one move in the smoothed rate
constexpr double kOutlier = 4;  ///< a move that took so many times the rate was interrupted

} // namespace

void MoveRate::add(std::size_t bytes, Nanos took) {
    if (bytes == 0)
        return;
    const double rate = static_cast<double>(std::max<Nanos>(1, took)) / static_cast<double>(bytes);
    m_rate = m_rate <= 0 ? rate : m_rate + kNewest * (std::min(rate, kOutlier * m_rate) - m_rate);
}

Result<std::unique_ptr<HostMover>> HostMover::make(kernels::Backend& backend, const kernels::KvLayout& layout,
                                                   std::int32_t slots, const Clock& clock) {
    const std::size_t bytes = static_cast<std::size_t>(slots) * (layout.bytesPerBlock() + layout.bytesPerWindowBlock());
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fail(ErrorCode::OutOfMemory,
                    "The system refused " + sizeText(bytes) + " for the host cache; give --host-cache-bytes less.");
    ::madvise(memory, bytes, MADV_HUGEPAGE); // only a hint
    std::memset(memory, 0, bytes);
    return std::unique_ptr<HostMover>(new HostMover(backend, layout, clock, static_cast<std::byte*>(memory), bytes));
}

HostMover::HostMover(kernels::Backend& backend, const kernels::KvLayout& layout, const Clock& clock, std::byte* memory,
                     std::size_t bytes)
    : m_backend(backend)
    , m_clock(clock)
    , m_blockBytes(layout.bytesPerBlock())
    , m_windowBytes(layout.bytesPerWindowBlock())
    , m_tailBytes(layout.bytesPerTail())
    , m_memory(memory)
    , m_bytes(bytes) {}

HostMover::~HostMover() {
    ::munmap(m_memory, m_bytes);
}

std::span<std::byte> HostMover::slotBytes(std::int32_t slot) const {
    const std::size_t size = m_blockBytes + m_windowBytes;
    return {m_memory + static_cast<std::size_t>(slot) * size, size};
}

std::size_t HostMover::pieceBytes(std::int32_t piece) const {
    const std::size_t size = m_blockBytes + m_windowBytes;
    return std::min(size, m_tailBytes - static_cast<std::size_t>(piece) * size);
}

void HostMover::stored(std::size_t bytes, Nanos start) {
    const Nanos took = m_clock.now() - start;
    m_times.store += took;
    m_storeRate.add(bytes, took);
}
void HostMover::loaded(std::size_t bytes, Nanos start) {
    const Nanos took = m_clock.now() - start;
    m_times.load += took;
    m_loadRate.add(bytes, took);
}

void HostMover::store(const kv::DeviceBlock& from, std::int32_t slot) {
    const Nanos start = m_clock.now();
    const auto bytes = slotBytes(slot);
    if (from.block.valid())
        m_backend.readKv(kernels::KvPart::Block, from.block.value(), 0, bytes.first(m_blockBytes));
    if (from.companion.valid())
        m_backend.readKv(kernels::KvPart::WindowBlock, from.companion.value(), 0, bytes.last(m_windowBytes));
    stored(from.bytes(m_blockBytes, m_windowBytes), start);
}

void HostMover::load(std::int32_t slot, const kv::DeviceBlock& to) {
    const Nanos start = m_clock.now();
    const auto bytes = slotBytes(slot);
    if (to.block.valid())
        m_backend.writeKv(kernels::KvPart::Block, to.block.value(), 0, bytes.first(m_blockBytes));
    if (to.companion.valid())
        m_backend.writeKv(kernels::KvPart::WindowBlock, to.companion.value(), 0, bytes.last(m_windowBytes));
    loaded(to.bytes(m_blockBytes, m_windowBytes), start);
}

void HostMover::storeTail(std::int32_t tailSlot, std::int32_t piece, std::int32_t slot) {
    const Nanos start = m_clock.now();
    const auto bytes = slotBytes(slot);
    m_backend.readKv(kernels::KvPart::Tail, tailSlot, static_cast<std::size_t>(piece) * bytes.size(),
                     bytes.first(pieceBytes(piece)));
    stored(pieceBytes(piece), start);
}

void HostMover::loadTail(std::int32_t slot, std::int32_t piece, std::int32_t tailSlot) {
    const Nanos start = m_clock.now();
    const auto bytes = slotBytes(slot);
    m_backend.writeKv(kernels::KvPart::Tail, tailSlot, static_cast<std::size_t>(piece) * bytes.size(),
                      bytes.first(pieceBytes(piece)));
    loaded(pieceBytes(piece), start);
}

void HostMover::calibrate(std::int32_t blocks) {
    constexpr int kRounds = 3; // the first one touches the pool's pages
    for (int round = 0; round < kRounds; ++round) {
        m_times = {};
        m_storeRate = m_loadRate = {};
        for (std::int32_t i = 0; i < blocks; ++i)
            store({BlockId(i), BlockId()}, i);
        for (std::int32_t i = 0; i < blocks; ++i)
            load(i, {BlockId(i), BlockId()});
    }
    m_times = {};
}

} // namespace kvscope::api
