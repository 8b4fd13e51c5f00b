// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/appearance.h"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QGuiApplication>
#include <QPalette>
#include <QSettings>
#include <algorithm>

namespace kvscope::ui {
namespace {

const QString kService = QStringLiteral("org.freedesktop.portal.Desktop");
const QString kPath = QStringLiteral("/org/freedesktop/portal/desktop");
const QString kInterface = QStringLiteral("org.freedesktop.portal.Settings");
const QString kAppearance = QStringLiteral("org.freedesktop.appearance");
const QString kColorScheme = QStringLiteral("color-scheme");
const QString kGnome = QStringLiteral("org.gnome.desktop.interface");
const QString kAnimations = QStringLiteral("enable-animations");
const QString kThemeKey = QStringLiteral("appearance/theme");
const QString kTextKey = QStringLiteral("appearance/text_size");
const QString kSendKey = QStringLiteral("composer/send_key");

const char* nameOf(ThemeChoice choice) {
    return choice == ThemeChoice::Light ? "light" : choice == ThemeChoice::Dark ? "dark" : "system";
}

/// The portal wraps values in variants, some versions twice.
QVariant unwrapped(QVariant value) {
    while (value.canConvert<QDBusVariant>())
        value = value.value<QDBusVariant>().variant();
    return value;
}

} // namespace

Appearance::Appearance(QSettings& settings, QObject* parent) : QObject(parent), m_settings(settings) {
    const QString stored = settings.value(kThemeKey).toString();
    for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark})
        if (stored == QLatin1StringView(nameOf(choice)))
            m_choice = choice;
    m_textSize = std::clamp(settings.value(kTextKey, kNormalText).toInt(), kSmallestText, kLargestText);
    m_sendKey = sendKeyFrom(settings.value(kSendKey).toString());
    m_system =
        QGuiApplication::palette().color(QPalette::Window).lightness() < 128 ? ThemeKind::Dark : ThemeKind::Light;
    QDBusConnection bus = QDBusConnection::sessionBus();
    if (!bus.isConnected())
        return;
    bus.connect(kService, kPath, kInterface, QStringLiteral("SettingChanged"), this,
                SLOT(portalChanged(QString, QString, QDBusVariant)));
    askPortal(kAppearance, kColorScheme);
    askPortal(kGnome, kAnimations);
}

void Appearance::askPortal(const QString& name, const QString& key) {
    QDBusMessage call = QDBusMessage::createMethodCall(kService, kPath, kInterface, QStringLiteral("Read"));
    call << name << key;
    auto* watcher = new QDBusPendingCallWatcher(QDBusConnection::sessionBus().asyncCall(call), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this, name, key](QDBusPendingCallWatcher* done) {
        const QDBusPendingReply<QDBusVariant> reply = *done;
        if (reply.isValid())
            take(name, key, reply.value().variant());
        done->deleteLater();
    });
}

void Appearance::portalChanged(const QString& name, const QString& key, const QDBusVariant& value) {
    take(name, key, value.variant());
}

void Appearance::take(const QString& name, const QString& key, const QVariant& value) {
    const QVariant plain = unwrapped(value);
    if (name == kAppearance && key == kColorScheme) {
        const uint scheme = plain.toUInt(); // 0 = no preference, 1 = dark, 2 = light
        const ThemeKind before = kind();
        if (scheme == 1 || scheme == 2)
            m_system = scheme == 1 ? ThemeKind::Dark : ThemeKind::Light;
        if (kind() != before)
            emit themeChanged();
    } else if (name == kGnome && key == kAnimations && m_reducedMotion == plain.toBool()) {
        m_reducedMotion = !plain.toBool();
        emit motionChanged(m_reducedMotion);
    }
}

ThemeKind Appearance::kind() const {
    return m_choice == ThemeChoice::Light  ? ThemeKind::Light
           : m_choice == ThemeChoice::Dark ? ThemeKind::Dark
                                           : m_system;
}

void Appearance::setChoice(ThemeChoice choice) {
    if (choice == m_choice)
        return;
    const ThemeKind before = kind();
    m_choice = choice;
    m_settings.setValue(kThemeKey, QLatin1StringView(nameOf(choice)));
    if (kind() != before)
        emit themeChanged();
}

void Appearance::setSendKey(SendKey key) {
    if (key == m_sendKey)
        return;
    m_sendKey = key;
    m_settings.setValue(kSendKey, sendKeyName(key));
    emit sendKeyChanged(key);
}

void Appearance::setTextSize(int pixels) {
    pixels = std::clamp(pixels, kSmallestText, kLargestText);
    if (pixels == m_textSize)
        return;
    m_textSize = pixels;
    m_settings.setValue(kTextKey, pixels);
    emit textSizeChanged(pixels);
}

} // namespace kvscope::ui
