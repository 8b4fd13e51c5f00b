// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace kvscope {

/// A number that cannot be mistaken for another kind of number. `Tag` only makes the types differ.
template <class Tag, class Rep> class StrongId {
public:
    using Value = Rep;
    constexpr StrongId() = default;
    constexpr explicit StrongId(Rep value) : m_value(value) {}
    constexpr Rep value() const { return m_value; }
    constexpr bool valid() const { return m_value != Rep(-1); }
    friend constexpr auto operator<=>(StrongId, StrongId) = default;

private:
    Rep m_value = Rep(-1);
};

using BlockId = StrongId<struct BlockTag, std::int32_t>; ///< a physical block of the pool, 0..numBlocks-1
using RequestId =
    StrongId<struct RequestTag, std::int64_t>; ///< what the user asked for, chosen by the caller, never reused in a run
using SequenceId = StrongId<struct SequenceTag, std::int64_t>; ///< the engine's state of a request
/// Who owns blocks in the eyes of the user: a conversation's database id, or a batch line number. Only the engine's
/// caller gives it meaning.
using OwnerId = StrongId<struct OwnerTag, std::int64_t>;

using TokenId = std::int32_t;

} // namespace kvscope

template <class Tag, class Rep> struct std::hash<kvscope::StrongId<Tag, Rep>> {
    std::size_t operator()(kvscope::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value()); }
};
