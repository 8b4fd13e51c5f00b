// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>

#include "app/desktop/desktop.h"

namespace kvscope::desktop {

/// Plays a chat of two turns through the real window, as a user would: writes into the composer and sends. Prints both
/// answers with their cache receipts, saves a screenshot and ends the program.
class Demo final : public QObject {
    Q_OBJECT
public:
    Demo(Desktop& desktop, const QString& folder, QObject* parent = nullptr);

private:
    void begin();
    void ask();
    void lookAtAnswer();
    void printAnswer();
    void finish();
    void giveUp(const QString& sentence);

    Desktop& m_desktop;
    QString m_folder;
    QStringList m_questions;
    qsizetype m_next = 0;
    bool m_asked = false, m_begun = false;
};

} // namespace kvscope::desktop
