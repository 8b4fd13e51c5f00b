// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/elided_label.h"

#include <QFontMetrics>
#include <QPainter>
#include <QTextDocument>

namespace kvscope::ui {
namespace {

constexpr int kLeastWidth = 40;

} // namespace

ElidedLabel::ElidedLabel(QWidget* parent) : QWidget(parent) {
    setMinimumWidth(kLeastWidth);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
}

void ElidedLabel::setText(const QString& text) {
    if (m_text == text)
        return;
    m_text = text;
    setToolTip(Qt::convertFromPlainText(text)); // a title may look like markup, and a long one has to wrap
    setAccessibleName(text);
    update();
}

QString ElidedLabel::shownText() const {
    return fontMetrics().elidedText(m_text, Qt::ElideRight, width());
}

QSize ElidedLabel::sizeHint() const {
    return {fontMetrics().horizontalAdvance(m_text), fontMetrics().height()};
}

void ElidedLabel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine, shownText());
}

} // namespace kvscope::ui
