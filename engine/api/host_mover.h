// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/base/clock.h"
#include "engine/base/result.h"
#include "engine/kv/host_tier.h"
#include "kernels/backend.h"

namespace kvscope::api {

/// Smoothed time per byte. One call that was interrupted does not spoil it.
class MoveRate {
public:
    void add(std::size_t bytes, Nanos took);
    double nanosPerByte() const { return m_rate; }

private:
    double m_rate = 0; ///< 0 = nothing was moved yet
};

/// The host tier's memory, and the bytes between it and the backend's KV cache. Measures what moving takes.
///
/// Thread: the engine thread. The memory is taken whole at creation, every page of it: what does not fit is found out
/// when the model is loaded, not in the middle of an answer.
class HostMover final : public kv::BlockMover {
public:
    /// `slots` slots for blocks of this layout, whose cache the backend has made. Both outlive the mover.
    /// Errors: OutOfMemory.
    static Result<std::unique_ptr<HostMover>> make(kernels::Backend& backend, const kernels::KvLayout& layout,
                                                   std::int32_t slots, const Clock& clock);
    ~HostMover() override;
    HostMover(const HostMover&) = delete;
    HostMover& operator=(const HostMover&) = delete;

    std::size_t bytes() const { return m_bytes; }
    /// Moves some blocks to and fro, so that there are rates before the first one is needed. Only while the pool holds
    /// nothing.
    void calibrate(std::int32_t blocks);
    double nanosPerByteStored() const { return m_storeRate.nanosPerByte(); }
    double nanosPerByteLoaded() const { return m_loadRate.nanosPerByte(); }

    void store(const kv::DeviceBlock& from, std::int32_t slot) override;
    void load(std::int32_t slot, const kv::DeviceBlock& to) override;
    void storeTail(std::int32_t tailSlot, std::int32_t piece, std::int32_t slot) override;
    void loadTail(std::int32_t slot, std::int32_t piece, std::int32_t tailSlot) override;
    kv::MoveTimes times() const override { return m_times; }

private:
    HostMover(kernels::Backend& backend, const kernels::KvLayout& layout, const Clock& clock, std::byte* memory,
              std::size_t bytes);
    std::span<std::byte> slotBytes(std::int32_t slot) const;
    std::size_t pieceBytes(std::int32_t piece) const;
    void stored(std::size_t bytes, Nanos start);
    void loaded(std::size_t bytes, Nanos start);

    kernels::Backend& m_backend;
    const Clock& m_clock;
    std::size_t m_blockBytes, m_windowBytes, m_tailBytes;
    std::byte* m_memory;
    std::size_t m_bytes;
    kv::MoveTimes m_times;
    MoveRate m_storeRate, m_loadRate;
};

} // namespace kvscope::api
