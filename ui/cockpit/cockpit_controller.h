// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <array>
#include <optional>
#include <vector>

#include "engine/api/sources.h"
#include "ui/models/history.h"
#include "ui/models/memory_parts.h"
#include "ui/models/palette.h"
#include "ui/models/sequence_model.h"

namespace kvscope::ui {

/// Takes what a CacheSource has to say, on the GUI thread, and tells the cockpit's views what is new: the map at most
/// 13 times a second, curves, figures and sequences 4 times. While nothing is shown it only empties the source's ring,
/// twice a second, so that no sample is lost.
///
/// The views read its state; they never talk to the source.
class CockpitController final : public QObject {
    Q_OBJECT
public:
    /// `titleOf` gives the title of an owner's chat. The clock is the one that samples are stamped with.
    CockpitController(const Clock& clock, SequenceModel::TitleOf titleOf, QObject* parent = nullptr);

    /// The source outlives its stay here; nullptr = none. Another source starts with an empty history.
    void setSource(api::CacheSource* source);
    /// Shown or not (minimised, another workspace).
    void setActive(bool active);
    /// Drains now. The own timer does it; tests and a frame tick of the application may, too.
    void drain();

    const Clock& clock() const { return m_clock; }
    api::CacheCapabilities capabilities() const;
    const History<CurveSample>& samples() const { return m_samples; }
    const History<metrics::MemorySample>& memory() const { return m_memory; }
    /// The newest step sample; nullptr before the first.
    const metrics::StepSample* latest() const { return m_latest ? &*m_latest : nullptr; }
    MemoryParts memoryParts() const;
    std::uint64_t droppedSamples() const;
    /// When the session began: the time of the first sample.
    Nanos sessionStart() const { return m_sessionStart; }

    /// The newest map; empty cells before the first.
    const metrics::BlockMapSnapshot& map() const { return m_map; }
    /// Number of each small owner number of the map, entry 0 = nobody.
    const std::vector<int>& ownerNumbers() const { return m_ownerNumbers; }
    const OwnerNumbers& owners() const { return m_owners; }
    int numberOf(OwnerId owner) { return m_owners.numberOf(owner); }
    QString titleOf(OwnerId owner) const { return m_titleOf ? m_titleOf(owner) : QString(); }
    SequenceModel* sequences() { return &m_sequences; }

    /// Asks for the hover card's facts; they come back through `setBlockDetail`.
    void queryBlock(BlockId block);

public slots:
    /// Fed by whoever dispatches the engine's events.
    void setBlockDetail(const kvscope::api::BlockDetailEvent& detail);
    /// Titles of chats have changed.
    void refreshTitles();

signals:
    void mapChanged();
    void curvesChanged();
    void figuresChanged(); ///< counts and other figures of the map should be written anew
    void sequencesChanged();
    void sourceChanged(); ///< history and map are empty again
    void blockDetail(const kvscope::api::BlockDetailEvent& detail);
    void titlesChanged();

private:
    void drainSamples();
    void drainMap();

    const Clock& m_clock;
    SequenceModel::TitleOf m_titleOf;
    api::CacheSource* m_source = nullptr;
    QTimer m_timer;
    History<CurveSample> m_samples;
    History<metrics::MemorySample> m_memory;
    std::optional<metrics::StepSample> m_latest;
    metrics::BlockMapSnapshot m_map;
    std::vector<int> m_ownerNumbers;
    OwnerNumbers m_owners;
    SequenceModel m_sequences;
    Nanos m_sessionStart = 0;
    bool m_active = false;
    bool m_curvesPending = false;
    int m_frame = 0;
};

} // namespace kvscope::ui
