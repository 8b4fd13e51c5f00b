// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QDialog>

#include "engine/api/sources.h"
#include "ui/theme/apply_theme.h"

class QLabel;
class QTableView;

namespace kvscope::ui {

/// The tokens of a prompt, one a row: place, id, text with its blanks and line ends made visible, what it is.
class PromptTokensModel final : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Place, Id, Text, What, Columns };
    using QAbstractTableModel::QAbstractTableModel;

    void setTokens(const api::PromptTokensEvent& event);
    void setTheme(const Theme& theme) { m_theme = theme; }
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QString what(std::size_t row) const;

    Theme m_theme;
    api::PromptTokensEvent m_event;
};

/// How many begin tokens a prompt has, wherever they stand.
int beginTokens(const api::PromptTokensEvent& event);

/// A window of its own that shows the tokens that an answer's prompt consists of, as the engine computes them.
class TokenView final : public QDialog, public Themed {
    Q_OBJECT
public:
    TokenView(const Theme& theme, QWidget* parent);

    /// `title`: whose prompt it is. Shown until the tokens come by `setTokens`.
    void showFor(const QString& title);
    void setTokens(const api::PromptTokensEvent& event);
    QString summary() const;
    const PromptTokensModel& tokens() const { return *m_tokens; }
    void setTheme(const Theme& theme) override;

private:
    PromptTokensModel* m_tokens;
    QLabel* m_title;
    QLabel* m_summary;
    QTableView* m_table;
};

} // namespace kvscope::ui
