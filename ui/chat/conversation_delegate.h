// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

#include "ui/theme/theme.h"

namespace kvscope::ui {

/// Draws headings and conversation rows: title, time or running dot, subtitle, warmth bar. The editor covers the title;
/// what an input method composes in it belongs to the input method.
class ConversationDelegate final : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit ConversationDelegate(const Theme& theme, QObject* parent = nullptr);
    void setTheme(const Theme& theme) { m_theme = theme; }

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                              const QModelIndex& index) const override;

protected:
    bool eventFilter(QObject* editor, QEvent* event) override;

private:
    void paintHeading(QPainter& painter, const QRect& rect, const QString& text) const;
    void paintWarmth(QPainter& painter, const QRectF& rect, const QModelIndex& index) const;
    /// Time, or the dot of a running one; the x where it begins.
    int paintTime(QPainter& painter, const QRect& title, const QModelIndex& index) const;

    Theme m_theme;
};

/// A row of what was found: title, time, the text around the hit with the hit marked, how many messages.
class SearchDelegate final : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit SearchDelegate(const Theme& theme, QObject* parent = nullptr)
        : QStyledItemDelegate(parent)
        , m_theme(theme) {}
    void setTheme(const Theme& theme) { m_theme = theme; }
    void setQuery(const QString& query) { m_query = query; }
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    Theme m_theme;
    QString m_query;
};

} // namespace kvscope::ui
