// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/top_bar.h"

#include <QEvent>
#include <QFontMetrics>
#include <QPainter>
#include <algorithm>

#include "ui/models/format.h"
#include "ui/theme/icons.h"
#include "ui/widgets/button.h"
#include "ui/widgets/icon_button.h"
#include "ui/widgets/pill.h"
#include "ui/widgets/segmented_control.h"

namespace kvscope::ui {
namespace {

constexpr int kHeight = 44;
constexpr int kModelHeight = 32;
constexpr int kGlyph = 16;
constexpr int kGap = 10;
constexpr int kSide = 12;

QFont nameFont() {
    return textFont(TextRole::Control, QFont::Medium);
}
QFont noteFont() {
    return figureFont(TextRole::Table);
}

} // namespace

// ---- model button ----

ModelButton::ModelButton(const Theme& theme, QWidget* parent) : QAbstractButton(parent), m_theme(theme) {
    setFocusPolicy(Qt::TabFocus);
    setToolTip(tr("Choose a model (Ctrl+M)"));
    setModelName({}, {});
}

void ModelButton::setModelName(const QString& name, const QString& quantization) {
    m_name = name;
    m_quantization = quantization;
    setAccessibleName(tr("Model: %1").arg(shownName()));
    updateGeometry();
    update();
}

void ModelButton::setLoading(double fraction) {
    m_loading = fraction;
    updateGeometry();
    update();
}

QString ModelButton::shownName() const {
    return m_name.isEmpty() ? tr("Choose a model") : m_name;
}

void ModelButton::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

QSize ModelButton::sizeHint() const {
    const int name = std::min(280, QFontMetrics(nameFont()).horizontalAdvance(shownName()) + 1);
    const QString note = m_loading >= 0 ? formatPercent(1) : m_quantization;
    const int noteWidth = note.isEmpty() ? 0 : QFontMetrics(noteFont()).horizontalAdvance(note) + kGap;
    return {10 + kGlyph + kGap + name + noteWidth + kGap + kGlyph + 8, kModelHeight};
}

void ModelButton::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF box = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
    painter.setPen(underMouse() ? m_theme.line3 : m_theme.line2);
    painter.setBrush(isDown() ? m_theme.bg4 : m_theme.bg1);
    painter.drawRoundedRect(box, 6, 6);
    const double ratio = devicePixelRatioF();
    const int top = (height() - kGlyph) / 2;
    painter.drawPixmap(QPoint(10, top), iconPixmap(Icon::Chip, kGlyph, m_theme.text2, ratio));
    painter.drawPixmap(QPoint(width() - 8 - kGlyph, top), iconPixmap(Icon::Down, kGlyph, m_theme.text3, ratio));
    const QString note = m_loading >= 0 ? formatPercent(m_loading) : m_quantization;
    const int noteWidth = QFontMetrics(noteFont()).horizontalAdvance(note);
    const int left = 10 + kGlyph + kGap;
    const int right = width() - 8 - kGlyph - kGap;
    painter.setFont(nameFont());
    painter.setPen(m_name.isEmpty() ? m_theme.text2 : m_theme.text1);
    const int nameRoom = right - left - (note.isEmpty() ? 0 : noteWidth + kGap);
    const QString name = QFontMetrics(nameFont()).elidedText(shownName(), Qt::ElideRight, nameRoom);
    painter.drawText(QRect(left, 0, nameRoom, height()), Qt::AlignVCenter, name);
    painter.setFont(noteFont());
    painter.setPen(m_theme.text3);
    painter.drawText(QRect(right - noteWidth, 0, noteWidth + 1, height()), Qt::AlignVCenter, note);
    if (m_loading >= 0) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(m_theme.bg4);
        const QRectF track(left, height() - 6, right - left, 2);
        painter.drawRect(track);
        painter.setBrush(m_theme.accent);
        painter.drawRect(QRectF(track.left(), track.top(), track.width() * std::clamp(m_loading, 0.0, 1.0), 2));
    }
}

// ---- bar ----

TopBar::TopBar(const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_side(new IconButton(Icon::Sidebar, tr("Chats (Ctrl+B)"), theme, this, 20))
    , m_model(new ModelButton(theme, this))
    , m_backend(new Pill(QString(), Pill::Kind::Neutral, theme, this))
    , m_workspaces(new SegmentedControl(tr("Workspace"), {tr("Chat"), tr("Observe")}, theme, this))
    , m_find(new Button(tr("Find or run"), Button::Kind::Normal, theme, this))
    , m_findSmall(new IconButton(Icon::Search, tr("Find or run (Ctrl+K)"), theme, this, 20))
    , m_themeButton(new IconButton(Icon::Sun, tr("Light or dark"), theme, this, 20))
    , m_menu(new IconButton(Icon::Gear, tr("Menu (F10)"), theme, this, 20)) {
    setFixedHeight(kHeight);
    setAttribute(Qt::WA_OpaquePaintEvent);
    m_backend->setHeight(24);
    m_backend->hide();
    m_side->setCheckable(true);
    m_side->setChecked(true);
    connect(m_side, &QAbstractButton::clicked, this, &TopBar::sideToggled);
    connect(m_model, &QAbstractButton::clicked, this, &TopBar::modelRequested);
    connect(m_workspaces, &SegmentedControl::currentChanged, this, &TopBar::workspaceChanged);
    connect(m_themeButton, &QAbstractButton::clicked, this, &TopBar::themeToggled);
    connect(m_menu, &QAbstractButton::clicked, this, &TopBar::menuRequested);
    m_find->setGlyph(Icon::Search);
    m_find->setKeyHint(tr("Ctrl K"));
    m_find->setToolTip(tr("Find a chat or run a command (Ctrl+K)"));
    connect(m_find, &QAbstractButton::clicked, this, &TopBar::findRequested);
    connect(m_findSmall, &QAbstractButton::clicked, this, &TopBar::findRequested);
    setTheme(theme);
}

void TopBar::setBackend(const QString& backend) {
    // The instruction set stands in the tooltip: the pill says what one decides by.
    const QStringList parts = backend.split(QStringLiteral(", "));
    m_backend->setText(parts.mid(0, 2).join(QStringLiteral(", ")));
    m_backend->setToolTip(backend);
    m_hasBackend = !backend.isEmpty();
    place();
}

void TopBar::setWorkspace(int workspace) {
    m_workspaces->setCurrent(workspace);
}

void TopBar::setSideShown(bool shown) {
    m_side->setChecked(shown);
}

void TopBar::setNarrow(bool narrow) {
    m_narrow = narrow;
    place();
}

QWidget* TopBar::menuButton() const {
    return m_menu;
}

void TopBar::setTheme(const Theme& theme) {
    m_theme = theme;
    m_themeButton->setGlyph(theme.kind == ThemeKind::Dark ? Icon::Sun : Icon::Moon);
    update();
}

void TopBar::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    place();
}

/// A part wants another width: the model's name, the backend.
bool TopBar::event(QEvent* event) {
    if (event->type() == QEvent::LayoutRequest)
        place();
    return QWidget::event(event);
}

/// By hand: the workspaces stand in the middle of the window, whatever is at their sides.
void TopBar::place() {
    const auto put = [this](QWidget* widget, int x) {
        const QSize size = widget->sizeHint();
        widget->setGeometry(x, (height() - 1 - size.height()) / 2, size.width(), size.height());
        return x + size.width();
    };
    const int middle = (width() - m_workspaces->sizeHint().width()) / 2;
    put(m_workspaces, middle);
    int x = put(m_side, kSide) + 8;
    const int room = middle - 12 - x;
    x = put(m_model, x);
    if (m_model->width() > room)
        m_model->resize(std::max(80, room), m_model->height());
    x = m_model->geometry().right() + 1 + 8;
    m_backend->setVisible(m_hasBackend && !m_narrow && x + m_backend->sizeHint().width() + 12 <= middle);
    put(m_backend, x);
    int right = width() - kSide - m_menu->sizeHint().width();
    put(m_menu, right);
    right -= 4 + m_themeButton->sizeHint().width();
    put(m_themeButton, right);
    const int left = m_workspaces->geometry().right() + 12; // what is free for finding
    const int wide = right - 8 - m_find->sizeHint().width();
    m_find->setVisible(wide >= left);
    m_findSmall->setVisible(wide < left);
    put(m_find, wide);
    put(m_findSmall, right - 4 - m_findSmall->sizeHint().width());
}

void TopBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg2);
    painter.fillRect(QRect(0, height() - 1, width(), 1), m_theme.line1);
}

} // namespace kvscope::ui
