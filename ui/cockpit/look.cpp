// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/look.h"

namespace kvscope::ui {
namespace {
constexpr double kQuieterInside = 0.8; // of a cached block on the dark ground; the light token is quiet already
constexpr double kFarther = 0.45;
} // namespace

BlockPalette blockPalette(const Theme& t) {
    BlockPalette p;
    p.well = t.well.rgb();
    p.empty = t.stateEmpty.rgb();
    p.filling = t.stateFilling.rgb();
    p.active = t.stateActive.rgb();
    p.shared = t.stateShared.rgb();
    p.cachedRing = t.stateCachedRing.rgb();
    p.cachedInside =
        t.kind == ThemeKind::Dark ? mixRgb(t.stateCached.rgb(), p.well, kQuieterInside) : t.stateCached.rgb();
    p.pinned = t.statePinned.rgb();
    p.transfer = t.stateTransfer.rgb();
    p.mark = t.stateMark.rgb();
    p.contrast = t.stateFilling.rgb();
    for (std::size_t i = 0; i < p.owners.size(); ++i)
        p.owners[i] = t.owners[i].rgb();
    return p;
}

QColor hostTierColor(const Theme& theme) {
    return mixRgb(theme.memoryKv.rgb(), theme.well.rgb(), kFarther);
}

} // namespace kvscope::ui
