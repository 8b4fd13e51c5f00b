// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/palette.h"

#include <cmath>

namespace kvscope::ui {

QRgb mixRgb(QRgb a, QRgb b, double share) {
    const auto mix = [share](int x, int y) { return int(std::lround(x * share + y * (1 - share))); };
    return qRgb(mix(qRed(a), qRed(b)), mix(qGreen(a), qGreen(b)), mix(qBlue(a), qBlue(b)));
}

QRgb BlockPalette::stateColor(kv::BlockState state) const {
    switch (state) {
    case kv::BlockState::Empty:
        return empty;
    case kv::BlockState::Filling:
        return filling;
    case kv::BlockState::Active:
        return active;
    case kv::BlockState::Shared:
        return shared;
    case kv::BlockState::Cached:
        return cachedRing;
    case kv::BlockState::Pinned:
        return pinned;
    case kv::BlockState::InTransfer:
        return transfer;
    case kv::BlockState::Reserved:
        return active;
    }
    return empty;
}

QRgb BlockPalette::ownerColor(int number) const {
    return number <= 0 ? empty : owners[std::size_t(number - 1) % owners.size()];
}

int OwnerNumbers::numberOf(OwnerId owner) {
    if (!owner.valid())
        return 0;
    const auto [it, fresh] = m_numbers.try_emplace(owner, int(m_order.size()) + 1);
    if (fresh)
        m_order.push_back(owner);
    return it->second;
}

OwnerId OwnerNumbers::owner(int number) const {
    return number >= 1 && number <= count() ? m_order[std::size_t(number - 1)] : OwnerId();
}

} // namespace kvscope::ui
