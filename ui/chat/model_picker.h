// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QListView>
#include <QStyledItemDelegate>

#include "ui/models/model_list_model.h"
#include "ui/theme/apply_theme.h"
#include "ui/widgets/popup.h"

class QLabel;

namespace kvscope::ui {

class Button;

/// One model: name and size, what is left for chats as a bar with "228,000 tokens fit" below, and a check or a button
/// word at the right. What does not fit is hatched.
class ModelDelegate final : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit ModelDelegate(const Theme& theme, QObject* parent = nullptr);
    void setTheme(const Theme& theme) { m_theme = theme; }
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    void paintRoom(QPainter& painter, const QRect& rect, const QModelIndex& index) const;

    Theme m_theme;
};

/// List of models with its delegate; Enter or a click chooses, where the model fits.
class ModelListView final : public QListView, public Themed {
    Q_OBJECT
public:
    ModelListView(ModelListModel* model, const Theme& theme, QWidget* parent = nullptr);
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override; ///< all rows, at most six

signals:
    void chosen(const QString& path);

private:
    void choose(const QModelIndex& index);
    ModelDelegate* m_delegate;
};

/// Popup below the model button.
class ModelPicker final : public Popup {
    Q_OBJECT
public:
    ModelPicker(ModelListModel* model, const Theme& theme, QWidget* parent = nullptr);
    void popupBelow(QWidget* anchor);

signals:
    void chosen(const QString& path);
    void openRequested();

private:
    ModelListModel* m_model;
    ModelListView* m_list;
    QLabel* m_empty;
};

/// The chat area while there is no model: what there is, what it leaves for chats, how to get one.
class FirstStart final : public QWidget, public Themed {
    Q_OBJECT
public:
    FirstStart(ModelListModel* model, const Theme& theme, QWidget* parent = nullptr);
    void setTheme(const Theme& theme) override;

signals:
    void chosen(const QString& path);
    void openRequested();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void refresh();

    Theme m_theme;
    ModelListModel* m_model;
    QWidget* m_card;
    QLabel* m_intro;
    ModelListView* m_list;
    QWidget* m_fetch; ///< how to get a model, while there is none
};

} // namespace kvscope::ui
