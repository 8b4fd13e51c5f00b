// SPDX-License-Identifier: GPL-3.0-or-later
//
// One line of text that gives up its end when there is no room, and says it whole in its tooltip. It elides while
// painting, so that it follows whatever changes its width. GUI thread.
#pragma once

#include <QWidget>

namespace kvscope::ui {

class ElidedLabel : public QWidget {
    Q_OBJECT
public:
    explicit ElidedLabel(QWidget* parent = nullptr);

    void setText(const QString& text);
    const QString& text() const { return m_text; } ///< whole
    QString shownText() const;                     ///< what fits now

    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString m_text;
};

} // namespace kvscope::ui
