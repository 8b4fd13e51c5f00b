// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLocalServer>
#include <QObject>
#include <QString>

namespace kvscope::desktop {

/// The local socket of a data folder: the first program listens, a second start asks it to raise its window.
class SingleInstance final : public QObject {
    Q_OBJECT
public:
    explicit SingleInstance(QObject* parent = nullptr);
    /// Call it only while the data folder is locked: a socket that a crash left behind is removed.
    bool listen(const QString& socketPath);
    /// Asks the program that listens there; false = nobody does.
    static bool raiseOther(const QString& socketPath);

signals:
    void raiseRequested();

private:
    QLocalServer m_server;
};

} // namespace kvscope::desktop
