// SPDX-License-Identifier: GPL-3.0-or-later
//
// What stands in words and figures beside the strips: titles, labels of the axes, values at the cursor.
#include "ui/cockpit/curve_strips.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "ui/cockpit/look.h"
#include "ui/models/format.h"
#include "ui/models/palette.h"

namespace kvscope::ui {
namespace {

using kv::BlockState;

struct Words {
    Q_DECLARE_TR_FUNCTIONS(kvscope::ui::Curves)
};

constexpr double kGiB = 1024.0 * 1024 * 1024;

} // namespace

QString StripPainter::title(Strip strip) const {
    switch (strip) {
    case Strip::Blocks:
        return Words::tr("blocks");
    case Strip::Percent:
        return Words::tr("per cent");
    case Strip::Memory:
        return Words::tr("memory, GiB");
    case Strip::Rates:
        return Words::tr("tokens/s");
    }
    return {};
}

std::vector<StripPainter::Tick> StripPainter::ticks(Strip strip) const {
    std::vector<Tick> out;
    switch (strip) {
    case Strip::Blocks:
        if (m_scales.blocks > 0) {
            // In units of 1,024 where the pool is made of them: 4,096 blocks are 4K.
            const bool binary = std::fmod(m_scales.blocks, 2048) == 0;
            for (const double share : {0.0, 0.5, 1.0}) {
                const double value = share * m_scales.blocks;
                out.push_back({value, binary && value > 0 ? formatTick(value / 1024) + u'K' : formatTick(value)});
            }
        }
        break;
    case Strip::Percent:
        for (const int value : {0, 50, 100})
            out.push_back({double(value), QString::number(value)});
        break;
    case Strip::Memory:
        if (m_scales.memoryTop > 0) {
            const bool toLimit = m_scales.memoryTop > m_scales.memoryLimit && m_scales.memoryLimit > 0;
            const double top = toLimit ? m_scales.memoryLimit : m_scales.memoryTop;
            for (const double share : {0.0, 0.5, 1.0})
                out.push_back({share * top, formatTick(share * top / kGiB)});
        }
        break;
    case Strip::Rates: {
        // At most three decades: the labels of more would touch.
        std::vector<double> decades;
        for (double decade = 0.1; decade <= m_scales.rateHigh; decade *= 10)
            if (decade >= m_scales.rateLow)
                decades.push_back(decade);
        const std::size_t step = (decades.size() + 2) / 3;
        for (std::size_t i = 0; i < decades.size(); i += std::max<std::size_t>(step, 1))
            out.push_back({decades[i], formatTick(decades[i])});
        break;
    }
    }
    return out;
}

std::vector<CurveValue> StripPainter::values(Strip strip, int column) const {
    using Mark = CurveValue::Mark;
    const CurveBucket* b = m_window.column(column);
    const QString none(kEnDash);
    std::vector<CurveValue> out;
    switch (strip) {
    case Strip::Blocks: {
        const bool known = b && b->hasBlocks();
        const auto count = [&](BlockState state) {
            return known ? formatNumber(b->last.blocks[std::size_t(state)]) : none;
        };
        for (const BlockState state : {BlockState::Cached, BlockState::Pinned, BlockState::Shared, BlockState::Filling,
                                       BlockState::Active, BlockState::InTransfer, BlockState::Empty})
            out.push_back({state == BlockState::Empty ? Mark::Outline : Mark::Area,
                           stateColor(state),
                           stateWord(state),
                           {},
                           count(state)});
        if (b && b->preemptions > 0)
            out.push_back({Mark::Preemption, m_theme.danger, Words::tr("preempted"), {}, formatNumber(b->preemptions)});
        else if (b && b->evictions > 0)
            out.push_back({Mark::Eviction, m_theme.warn, Words::tr("evicted"), {}, formatNumber(b->evictions)});
        break;
    }
    case Strip::Percent:
        out.push_back({Mark::Line, m_theme.plotLines[1], Words::tr("prefix hits"), Words::tr("last 32 requests"),
                       b && !b->hitRate.empty() ? formatPercent(b->hitRate.last) : none});
        out.push_back({Mark::Line, m_theme.plotLines[3], Words::tr("fragmentation"), Words::tr("inside blocks"),
                       b && !b->fragmentation.empty() ? formatPercent(b->fragmentation.last, 1) : none});
        break;
    case Strip::Memory: {
        const MemoryParts parts = b ? b->memory() : MemoryParts();
        const auto engine = [&](std::uint64_t bytes) { return parts.hasEngine ? formatGib(bytes) : none; };
        const auto& n = parts.bytes;
        out = {
            {Mark::Area, m_theme.stateActive, Words::tr("KV in use"), {}, engine(n[MemoryParts::KvInUse])},
            {Mark::Area, m_theme.memoryWeights, Words::tr("weights"), {}, engine(n[MemoryParts::Weights])},
            {Mark::Area, m_theme.stateCachedRing, Words::tr("KV cached"), {}, engine(n[MemoryParts::KvCached])},
            {Mark::Area, m_theme.memoryActivations, Words::tr("activations"), {}, engine(n[MemoryParts::Activations])},
            {Mark::Outline, m_theme.stateEmpty, Words::tr("KV empty"), {}, engine(n[MemoryParts::KvEmpty])},
            {Mark::Area, m_theme.memoryOther, Words::tr("other"), {}, parts.hasHost ? formatGib(parts.other()) : none}};
        if (n[MemoryParts::HostTier] > 0)
            out.push_back(
                {Mark::Area, hostTierColor(m_theme), Words::tr("host cache"), {}, engine(n[MemoryParts::HostTier])});
        break;
    }
    case Strip::Rates: {
        const CurveBucket* bin = m_window.bin(m_window.binOf(column));
        const QString note = Words::tr("mean of %1").arg(formatSeconds(double(m_window.binWidth()) * 1e-9));
        const auto rate = [&](double value) {
            return value < 0 ? none : value < 9.95 ? formatDecimal(value, 1) : formatNumber(std::llround(value));
        };
        out = {{Mark::Line, m_theme.plotLines[0], Words::tr("writing"), note, bin ? rate(bin->writeRate()) : none},
               {Mark::Column, m_theme.plotLines[2], Words::tr("reading"), note, bin ? rate(bin->readRate()) : none}};
        break;
    }
    }
    return out;
}

} // namespace kvscope::ui
