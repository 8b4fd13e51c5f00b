// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QRgb>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv/block_state.h"

namespace kvscope::ui {

/// What the colour of a cell says.
enum class ColourBy { State, Owner };

/// The colours that a block map needs, as opaque pixels. The window fills it from its tokens.
struct BlockPalette {
    QRgb well = 0; ///< ground of the map
    QRgb empty = 0, filling = 0, active = 0, shared = 0, cachedRing = 0, cachedInside = 0, pinned = 0, transfer = 0;
    QRgb mark = 0;     ///< second cue inside a coloured square
    QRgb contrast = 0; ///< where a fresh block starts: the colour furthest from the ground
    std::array<QRgb, 12> owners{};

    /// The plain colour of a state, as in legend and curves.
    QRgb stateColor(kv::BlockState state) const;
    /// The colour of an owner's number (1, 2, ...; the twelve are taken in order, then again). 0 = nobody.
    QRgb ownerColor(int number) const;
    friend bool operator==(const BlockPalette&, const BlockPalette&) = default;
};

/// `share` of `a` over `b`, both opaque.
QRgb mixRgb(QRgb a, QRgb b, double share);

/// Gives every owner a number in the order in which they are first seen, so that a chat keeps its colour and number in
/// map, table and card for as long as the session lasts.
class OwnerNumbers {
public:
    /// 1, 2, ...; 0 for an invalid id.
    int numberOf(OwnerId owner);
    int count() const { return int(m_order.size()); }
    OwnerId owner(int number) const; ///< invalid when there is no such number

private:
    std::unordered_map<OwnerId, int> m_numbers;
    std::vector<OwnerId> m_order;
};

} // namespace kvscope::ui
