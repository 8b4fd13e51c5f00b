// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/icons.h"

#include <QFile>
#include <QPainter>
#include <QPixmapCache>
#include <QSvgRenderer>
#include <array>

namespace kvscope::ui {
namespace {

// In the order of the enum; the tests render every one.
constexpr std::array kNames = {
    "again",   "attach", "brain",  "branch", "check",   "chip",  "close", "copy",     "down",    "edit",     "export",
    "fit",     "float",  "folder", "gear",   "grid",    "info",  "left",  "menu",     "monitor", "moon",     "more",
    "pause",   "pin",    "play",   "plus",   "restart", "right", "save",  "scissors", "search",  "send",     "sidebar",
    "sliders", "stop",   "sun",    "table",  "target",  "trash", "up",    "warn",     "zoom-in", "zoom-out",
};
static_assert(kNames.size() == std::size_t(Icon::ZoomOut) + 1);

QByteArray source(Icon icon, const QColor& color) {
    QFile file(QStringLiteral(":/kvscope/icons/%1.svg").arg(QLatin1StringView(kNames[std::size_t(icon)])));
    if (!file.open(QIODevice::ReadOnly))
        qFatal("resources/icons/%s.svg is not compiled into this program", kNames[std::size_t(icon)]);
    return file.readAll().replace("#000", color.name().toLatin1());
}

} // namespace

QPixmap iconPixmap(Icon icon, int size, const QColor& color, qreal devicePixelRatio) {
    const QString key = QStringLiteral("kvscope-icon-%1-%2-%3-%4")
                            .arg(int(icon))
                            .arg(size)
                            .arg(color.rgba(), 0, 16)
                            .arg(int(devicePixelRatio * 100));
    QPixmap pixmap;
    if (QPixmapCache::find(key, &pixmap))
        return pixmap;
    const int side = qRound(size * devicePixelRatio);
    pixmap = QPixmap(side, side);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    QSvgRenderer(source(icon, color)).render(&painter, QRectF(0, 0, side, side));
    painter.end();
    pixmap.setDevicePixelRatio(devicePixelRatio);
    QPixmapCache::insert(key, pixmap);
    return pixmap;
}

QIcon makeIcon(Icon icon, const QColor& color, const QColor& disabled) {
    QIcon out;
    for (const qreal ratio : {1.0, 2.0}) {
        out.addPixmap(iconPixmap(icon, 16, color, ratio), QIcon::Normal);
        out.addPixmap(iconPixmap(icon, 16, disabled, ratio), QIcon::Disabled);
    }
    return out;
}

} // namespace kvscope::ui
