// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

#include "engine/base/ids.h"
#include "ui/theme/theme.h"

namespace kvscope::ui {

/// Paints a sequence row: owner square, state as a verb with a progress bar while reading, figures right; a waiting row
/// gives its columns to the reason, an idle one has a bar of what is still cached.
class SequenceDelegate final : public QStyledItemDelegate {
    Q_OBJECT
public:
    SequenceDelegate(const Theme& theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}

    void setTheme(const Theme& theme) { m_theme = theme; }
    void setCurrentOwner(OwnerId owner) { m_current = owner; }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    void paintShare(QPainter& painter, const QRect& text, const QModelIndex& index) const;

    Theme m_theme;
    OwnerId m_current;
};

} // namespace kvscope::ui
