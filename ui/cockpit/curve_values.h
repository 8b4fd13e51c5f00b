// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <utility>
#include <vector>

#include "ui/cockpit/curve_strips.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// Where blocks with these tops and heights begin: in order, none over another, each as near as can be to its top and
/// within `room`. Where all do not fit, the last ones stand below it.
std::vector<int> stacked(const std::vector<std::pair<int, int>>& wanted, int room);

/// The values at the cursor, each group beside its strip. Repaints only the lines that read differently.
class CurveValues final : public QWidget, public Themed {
    Q_OBJECT
public:
    struct Group {
        int top = 0, height = 0; ///< of the strip beside it
        bool oneColumn = false;
        std::vector<CurveValue> values;
        friend bool operator==(const Group&, const Group&) = default;
    };
    explicit CurveValues(const Theme& theme, QWidget* parent = nullptr);

    void setGroups(std::vector<Group> groups);
    void setTheme(const Theme& theme) override;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void stack();
    QRect place(std::size_t group, std::size_t index) const;
    void paintValue(QPainter& painter, const QRect& rect, const CurveValue& value) const;

    std::vector<Group> m_groups;
    std::vector<int> m_tops; ///< of the groups' first lines
    Theme m_theme;
};

} // namespace kvscope::ui
