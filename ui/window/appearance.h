// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <optional>

#include "ui/models/send_key.h"
#include "ui/theme/theme.h"

class QSettings;
class QDBusVariant;
class QDBusPendingCallWatcher;

namespace kvscope::ui {

enum class ThemeChoice { System, Light, Dark };

/// Theme, text size, motion and the key that sends: what the user chose, and what the desktop says where the choice is
/// "System" (its portal over D-Bus, without waiting for it; else the lightness of the palette that the program started
/// with).
class Appearance final : public QObject {
    Q_OBJECT
public:
    static constexpr int kSmallestText = 12, kNormalText = 14, kLargestText = 20;

    /// `settings` outlives it.
    explicit Appearance(QSettings& settings, QObject* parent = nullptr);

    ThemeChoice choice() const { return m_choice; }
    void setChoice(ThemeChoice choice);
    /// The choice with "System" resolved.
    ThemeKind kind() const;
    int textSize() const { return m_textSize; }
    void setTextSize(int pixels); ///< clamped
    SendKey sendKey() const { return m_sendKey; }
    void setSendKey(SendKey key);
    bool reducedMotion() const { return m_reducedMotion; }

signals:
    void themeChanged();
    void textSizeChanged(int pixels);
    void sendKeyChanged(SendKey key);
    void motionChanged(bool reduced);

private slots:
    void portalChanged(const QString& name, const QString& key, const QDBusVariant& value);

private:
    void askPortal(const QString& name, const QString& key);
    void take(const QString& name, const QString& key, const QVariant& value);

    QSettings& m_settings;
    ThemeChoice m_choice = ThemeChoice::System;
    ThemeKind m_system = ThemeKind::Dark;
    int m_textSize = kNormalText;
    SendKey m_sendKey = SendKey::Enter;
    bool m_reducedMotion = false;
};

} // namespace kvscope::ui
