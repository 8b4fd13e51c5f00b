// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/memory_region.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <sys/mman.h>

namespace kvscope::kernels {

namespace {
constexpr std::size_t kHugePage = std::size_t(2) << 20;
constexpr std::size_t kSlabBytes = std::size_t(32) << 20;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t roundUp(std::size_t value, std::size_t to) {
    return (value + to - 1) / to * to;
}
} // namespace

MemoryRegion::MemoryRegion(std::size_t bytes) {
    // Huge pages are only used where a whole aligned 2 MiB lies inside the mapping: map more and start at the border.
    const std::size_t size = roundUp(std::max<std::size_t>(bytes, 1), kHugePage);
    void* mapping = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return;
    m_mapping = mapping;
    m_mappingSize = size + kHugePage;
    m_data = reinterpret_cast<std::byte*>(roundUp(reinterpret_cast<std::uintptr_t>(mapping), kHugePage));
    m_size = bytes;
    // Advice: a system without huge pages serves small ones, and that is all right.
    (void)madvise(m_data, size, MADV_HUGEPAGE);
}

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept
    : m_data(std::exchange(other.m_data, nullptr))
    , m_size(std::exchange(other.m_size, 0))
    , m_mapping(std::exchange(other.m_mapping, nullptr))
    , m_mappingSize(std::exchange(other.m_mappingSize, 0)) {}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
    if (this != &other) {
        release();
        m_data = std::exchange(other.m_data, nullptr);
        m_size = std::exchange(other.m_size, 0);
        m_mapping = std::exchange(other.m_mapping, nullptr);
        m_mappingSize = std::exchange(other.m_mappingSize, 0);
    }
    return *this;
}

MemoryRegion::~MemoryRegion() {
    release();
}

void MemoryRegion::release() {
    if (m_mapping)
        munmap(m_mapping, m_mappingSize);
    m_mapping = nullptr;
    m_data = nullptr;
}

void MemoryRegion::setAccessible(bool accessible) const {
    if (m_mapping)
        mprotect(m_mapping, m_mappingSize, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
}

std::byte* Arena::allocate(std::size_t bytes) {
    const std::size_t size = roundUp(std::max<std::size_t>(bytes, 1), kAlignment);
    if (m_regions.empty() || m_offset + size > m_regions.back().size()) {
        MemoryRegion region(std::max(size, kSlabBytes));
        if (!region.data())
            return nullptr;
        m_regions.push_back(std::move(region));
        m_offset = 0;
    }
    std::byte* at = m_regions.back().data() + m_offset;
    m_offset += size;
    m_used += size;
    return at;
}

void Arena::setAccessible(bool accessible) const {
    for (const MemoryRegion& region : m_regions)
        region.setAccessible(accessible);
}

void Arena::clear() {
    m_regions.clear();
    m_offset = 0;
    m_used = 0;
}

} // namespace kvscope::kernels
