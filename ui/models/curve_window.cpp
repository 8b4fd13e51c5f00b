// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/curve_window.h"

#include <algorithm>
#include <cmath>

namespace kvscope::ui {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kLiveSpans[] = {60 * kSecond, 120 * kSecond, 300 * kSecond, 600 * kSecond};
constexpr Nanos kShortest = 5 * kSecond;
constexpr Nanos kLongest = 3600 * kSecond;
constexpr Nanos kHold = kSecond; // an idle source still ticks ten times a second; a longer silence is a gap
constexpr Nanos kBins[] = {kSecond / 10, kSecond / 5,  kSecond / 2,  kSecond,      2 * kSecond,
                           5 * kSecond,  10 * kSecond, 20 * kSecond, 30 * kSecond, 60 * kSecond};
constexpr int kBinsInView = 60;

Nanos binFor(Nanos span) {
    for (const Nanos bin : kBins)
        if (bin * kBinsInView >= span)
            return bin;
    return kBins[std::size(kBins) - 1];
}

} // namespace

CurveWindow::CurveWindow(const History<CurveSample>& samples, const History<metrics::MemorySample>& memory)
    : m_samples(samples)
    , m_memory(memory) {}

Nanos CurveWindow::newest() const {
    return m_samples.empty() ? 0 : m_samples.back().time;
}

void CurveWindow::setColumns(int pixels) {
    if (pixels == m_columns)
        return;
    m_columns = pixels;
    m_buckets.reset();
}

void CurveWindow::reset() {
    m_buckets.reset();
    m_end.reset();
    m_chosenSpan.reset();
}

void CurveWindow::pause() {
    m_end = m_viewEnd;
}

void CurveWindow::resume() {
    m_end.reset();
    m_chosenSpan.reset();
}

bool CurveWindow::refresh(Nanos sessionStart) {
    if (m_columns < 2)
        return false;
    Nanos span = m_chosenSpan.value_or(m_span);
    if (!m_chosenSpan && (!m_end || m_span == 0)) {
        const Nanos age = newest() - sessionStart;
        span = kLiveSpans[std::size(kLiveSpans) - 1];
        for (const Nanos candidate : kLiveSpans)
            if (age <= candidate) {
                span = candidate;
                break;
            }
    }
    const bool otherSpan = span != m_span || !m_buckets;
    m_span = span;
    const Nanos width = std::max<Nanos>(1, m_span / m_columns);
    const Nanos endBefore = m_viewEnd;
    const Nanos end = m_end.value_or(newest() + 1);
    m_viewEnd = (end + width - 1) / width * width; // on the grid: a column never changes what it shows while it moves
    if (otherSpan || (m_end && m_viewEnd != endBefore))
        rebuild();
    if (!m_end) {
        m_buckets->consume(m_samples, m_memory);
        m_bins->consume(m_samples, m_memory);
    }
    return otherSpan || m_viewEnd != endBefore;
}

void CurveWindow::rebuild() {
    const Nanos width = std::max<Nanos>(1, m_span / m_columns);
    const Nanos bin = binFor(m_span);
    const auto held = std::size_t(kHold / width) + 2;
    m_buckets = std::make_unique<CurveBuckets>(width, std::size_t(m_columns) + held);
    m_bins = std::make_unique<CurveBuckets>(bin, std::size_t(m_span / bin) + 3);
    const Nanos from = m_viewEnd - m_span;
    const Nanos until = m_end ? m_viewEnd : std::numeric_limits<Nanos>::max();
    m_buckets->consumeUntil(m_samples, m_memory, from - kHold, until);
    // Bins reach over both ends of the view: their means must not depend on where it was cut.
    m_bins->consumeUntil(m_samples, m_memory, from / bin * bin, m_end ? (m_viewEnd + bin - 1) / bin * bin : until);
}

void CurveWindow::zoom(double factor, int anchor) {
    if (m_span == 0 || m_columns == 0)
        return;
    const auto wanted = Nanos(double(m_span) / factor);
    const Nanos span = std::clamp(wanted, kShortest, kLongest);
    if (span == m_span)
        return;
    if (m_end) {
        const double share = std::clamp(double(anchor) / m_columns, 0.0, 1.0);
        const double fixed = double(begin()) + share * double(m_span);
        m_end = std::min(Nanos(fixed + (1 - share) * double(span)), newest() + 1);
    }
    m_chosenSpan = span;
    m_buckets.reset();
}

void CurveWindow::pan(int columns) {
    if (columns == 0 || m_columns == 0 || m_samples.empty())
        return;
    const Nanos by = m_span / m_columns * columns;
    const Nanos oldest = m_samples.at(m_samples.begin()).time;
    const Nanos end = std::max(m_viewEnd - by, std::min(oldest + m_span, newest() + 1));
    m_chosenSpan = m_span;
    if (end > newest())
        m_end.reset();
    else
        m_end = end;
    m_buckets.reset();
}

Nanos CurveWindow::timeOf(int column) const {
    return m_columns == 0 ? m_viewEnd : begin() + m_span / m_columns * column + m_span / m_columns / 2;
}

const CurveBucket* CurveWindow::column(int column) const {
    if (!m_buckets || m_columns == 0)
        return nullptr;
    const std::int64_t last = m_viewEnd / m_buckets->width() - 1;
    return m_buckets->bucketAtOrBefore(last - (m_columns - 1 - column), kHold / m_buckets->width() + 1);
}

std::int64_t CurveWindow::binOf(int column) const {
    return m_bins ? m_bins->indexOf(timeOf(column)) : 0;
}

std::pair<int, int> CurveWindow::columnsOfBin(std::int64_t index) const {
    if (!m_bins || m_span == 0)
        return {0, 0};
    const double scale = double(m_columns) / double(m_span);
    const auto at = [&](Nanos time) { return int(std::lround(double(time - begin()) * scale)); };
    return {at(index * m_bins->width()), at((index + 1) * m_bins->width())};
}

} // namespace kvscope::ui
