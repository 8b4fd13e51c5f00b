// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/cockpit_controller.h"

namespace kvscope::ui {
namespace {
constexpr int kFrameMs = 100;  // the map's rate
constexpr int kSlowFrames = 3; // curves, figures and tables: four times a second is as fast as figures can be read
constexpr int kHiddenMs = 500; // often enough for the source's ring
} // namespace

CockpitController::CockpitController(const Clock& clock, SequenceModel::TitleOf titleOf, QObject* parent)
    : QObject(parent)
    , m_clock(clock)
    , m_titleOf(std::move(titleOf))
    , m_samples(kSampleCapacity)
    , m_memory(kMemoryCapacity)
    , m_ownerNumbers{0}
    , m_sequences([this](OwnerId owner) { return this->titleOf(owner); },
                  [this](OwnerId owner) { return numberOf(owner); }) {
    connect(&m_timer, &QTimer::timeout, this, &CockpitController::drain);
}

void CockpitController::setSource(api::CacheSource* source) {
    m_source = source;
    m_samples.clear();
    m_memory.clear();
    m_latest.reset();
    m_map = {};
    m_owners = {};
    m_ownerNumbers = {0};
    m_sequences.setRows({});
    m_sessionStart = 0;
    emit sourceChanged();
    setActive(m_active);
}

void CockpitController::setActive(bool active) {
    m_active = active;
    if (!m_source) {
        m_timer.stop();
        return;
    }
    m_timer.start(active ? kFrameMs : kHiddenMs);
    if (active)
        drain();
}

api::CacheCapabilities CockpitController::capabilities() const {
    return m_source ? m_source->capabilities() : api::CacheCapabilities();
}

std::uint64_t CockpitController::droppedSamples() const {
    return m_source ? m_source->droppedSamples() : 0;
}

MemoryParts CockpitController::memoryParts() const {
    return ui::memoryParts(m_samples.empty() ? nullptr : &m_samples.back(),
                           m_memory.empty() ? nullptr : &m_memory.back());
}

void CockpitController::queryBlock(BlockId block) {
    if (m_source && m_source->capabilities().blockDetail)
        m_source->queryBlock(block);
}

void CockpitController::setBlockDetail(const api::BlockDetailEvent& detail) {
    for (const OwnerId owner : detail.owners)
        numberOf(owner);
    emit blockDetail(detail);
}

void CockpitController::refreshTitles() {
    m_sequences.refreshTitles();
    emit titlesChanged();
}

void CockpitController::drainSamples() {
    metrics::StepSample sample;
    while (m_source->nextSample(sample)) {
        if (!m_latest)
            m_sessionStart = sample.time;
        m_samples.push(CurveSample::from(sample));
        m_latest = sample;
        m_curvesPending = true;
    }
    metrics::MemorySample memory;
    while (m_source->nextMemorySample(memory)) {
        m_memory.push(memory);
        m_curvesPending = true;
    }
}

void CockpitController::drainMap() {
    const metrics::BlockMapSnapshot* map = m_source->takeBlockMap();
    if (!map)
        return;
    m_map = *map; // same size as before: no allocation
    m_ownerNumbers.assign(1, 0);
    for (const OwnerId owner : m_map.owners)
        m_ownerNumbers.push_back(numberOf(owner));
    emit mapChanged();
}

void CockpitController::drain() {
    if (!m_source)
        return;
    if (m_timer.isActive())
        m_timer.start(); // counts from here, so that somebody else's frame and ours become one repaint of the window
    drainSamples();
    if (!m_active)
        return;
    drainMap();
    if (++m_frame % kSlowFrames != 0)
        return;
    if (const std::vector<api::SequenceRow>* rows = m_source->takeSequences()) {
        m_sequences.setRows(*rows);
        emit sequencesChanged();
    }
    emit figuresChanged();
    if (m_curvesPending) {
        m_curvesPending = false;
        emit curvesChanged();
    }
}

} // namespace kvscope::ui
