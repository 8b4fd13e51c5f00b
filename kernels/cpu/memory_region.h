// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <vector>

namespace kvscope::kernels {

/// Anonymous memory straight from the system: aligned to 2 MiB, huge pages asked for, zero until written (and not
/// resident until touched). Move-only.
class MemoryRegion {
public:
    MemoryRegion() = default;
    /// Empty (data() == nullptr) when the system refuses.
    explicit MemoryRegion(std::size_t bytes);
    MemoryRegion(MemoryRegion&& other) noexcept;
    MemoryRegion& operator=(MemoryRegion&& other) noexcept;
    MemoryRegion(const MemoryRegion&) = delete;
    MemoryRegion& operator=(const MemoryRegion&) = delete;
    ~MemoryRegion();

    std::byte* data() const { return m_data; }
    std::size_t size() const { return m_size; }
    /// For the protecting test backend: false makes every access fault.
    void setAccessible(bool accessible) const;

private:
    void release();
    std::byte* m_data = nullptr; ///< aligned start inside the mapping
    std::size_t m_size = 0;
    void* m_mapping = nullptr;
    std::size_t m_mappingSize = 0;
};

/// Bump allocator over regions; nothing is given back before the arena ends. Counts what it handed out.
class Arena {
public:
    /// Aligned to 64 bytes, zeroed; nullptr when the system refuses memory.
    std::byte* allocate(std::size_t bytes);
    template <class T> T* allocateArray(std::size_t count) { return reinterpret_cast<T*>(allocate(count * sizeof(T))); }
    std::size_t usedBytes() const { return m_used; }
    void setAccessible(bool accessible) const;
    void clear();

private:
    std::vector<MemoryRegion> m_regions;
    std::size_t m_offset = 0; ///< into the newest region
    std::size_t m_used = 0;
};

} // namespace kvscope::kernels
