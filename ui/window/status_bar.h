// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

#include "ui/models/chat_session.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// 26 px of facts: model, backend and why, context meter; at the right tokens/s, prefix hits, dropped samples. What a
/// source does not report is left out. Each figure explains itself in its tooltip.
class StatusBar final : public QWidget, public Themed {
    Q_OBJECT
public:
    explicit StatusBar(const Theme& theme, QWidget* parent = nullptr);

    struct Facts {
        QString model;
        QString backend; ///< "CPU: no CUDA driver found"
        QString backendDetail;
        ContextUse context;
        double tokensPerSecond = 0; ///< 0 = nothing is being written
        std::optional<double> hitRate;
        std::optional<std::uint64_t> droppedSamples;
        friend bool operator==(const Facts&, const Facts&) = default;
    };
    void setFacts(const Facts& facts); ///< repaints only when something reads differently
    const Facts& facts() const { return m_facts; }
    void setNarrow(bool narrow);
    void setTheme(const Theme& theme) override;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    struct Segment {
        QString text;
        QString hint;
        bool quiet = false, info = false, meter = false;
    };
    std::vector<Segment> leftSegments() const;
    std::vector<Segment> rightSegments() const;
    int widthOf(const Segment& segment) const;
    void paintSegment(QPainter& painter, const Segment& segment, int x) const;
    std::vector<std::pair<QRect, Segment>> placed() const;
    QString spoken() const;

    Theme m_theme;
    Facts m_facts;
    QString m_spoken;
    bool m_narrow = false;
};

} // namespace kvscope::ui
