// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/focus_ring.h"

#include <QApplication>
#include <QEvent>
#include <QPainter>

namespace kvscope::ui {
namespace {

constexpr int kOffset = 2;
constexpr int kWidth = 2;
constexpr int kReach = kOffset + kWidth;

class RingWidget final : public QWidget {
public:
    RingWidget(QWidget* window, const QColor& color) : QWidget(window), m_color(color) {
        setAttribute(Qt::WA_TransparentForMouseEvents);
        setAttribute(Qt::WA_NoSystemBackground);
        setFocusPolicy(Qt::NoFocus);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(m_color, kWidth));
        constexpr qreal kHalf = kWidth / 2.0;
        painter.drawRoundedRect(QRectF(rect()).adjusted(kHalf, kHalf, -kHalf, -kHalf), 8, 8);
    }

private:
    QColor m_color;
};

} // namespace

FocusRing::FocusRing(QApplication& application) : QObject(&application) {
    connect(&application, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) { follow(now); });
}

void FocusRing::install(QApplication& application, const Theme& theme) {
    auto* ring = application.findChild<FocusRing*>(QString(), Qt::FindDirectChildrenOnly);
    if (!ring)
        ring = new FocusRing(application);
    ring->m_theme = theme;
    delete ring->m_ring.data();
    ring->follow(QApplication::focusWidget());
}

void FocusRing::follow(QWidget* target) {
    for (const QPointer<QWidget>& widget : std::as_const(m_watched))
        if (widget)
            widget->removeEventFilter(this);
    m_watched.clear();
    m_target = target && !target->isWindow() && !target->property(kFocusInside).toBool() ? target : nullptr;
    if (!m_target) {
        if (m_ring)
            m_ring->hide();
        return;
    }
    for (QWidget* w = m_target; w; w = w->isWindow() ? nullptr : w->parentWidget()) {
        w->installEventFilter(this);
        m_watched.append(w);
    }
    if (m_ring && m_ring->parentWidget() != m_target->window())
        delete m_ring.data();
    if (!m_ring)
        m_ring = new RingWidget(m_target->window(), m_theme.focus);
    place();
}

void FocusRing::place() {
    if (!m_ring)
        return;
    if (!m_target || !m_target->isVisible()) {
        m_ring->hide();
        return;
    }
    const QVariant part = m_target->property(kFocusRect);
    const QRect shown = part.isValid() ? part.toRect() : m_target->rect();
    const QRect inside =
        QRect(m_target->mapTo(m_target->window(), shown.topLeft()), shown.size()) & m_target->window()->rect();
    m_ring->setGeometry(inside.adjusted(-kReach, -kReach, kReach, kReach));
    m_ring->raise();
    m_ring->show();
}

bool FocusRing::eventFilter(QObject*, QEvent* event) {
    switch (event->type()) {
    case QEvent::Move:
    case QEvent::Resize:
    case QEvent::Show:
    case QEvent::Hide:
    case QEvent::EnabledChange:
    case QEvent::DynamicPropertyChange:
        place();
        break;
    default:
        break;
    }
    return false;
}

} // namespace kvscope::ui
