// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/single_instance.h"

#include <QLocalSocket>

namespace kvscope::desktop {
namespace {

constexpr int kPatienceMs = 2000;
const char kRaise[] = "raise\n";

} // namespace

SingleInstance::SingleInstance(QObject* parent) : QObject(parent) {
    m_server.setSocketOptions(QLocalServer::UserAccessOption);
    connect(&m_server, &QLocalServer::newConnection, this, [this] {
        while (QLocalSocket* socket = m_server.nextPendingConnection()) {
            connect(socket, &QLocalSocket::disconnected, socket, &QObject::deleteLater);
            connect(socket, &QLocalSocket::readyRead, this, [this, socket] {
                if (socket->readAll().contains("raise"))
                    emit raiseRequested();
                socket->disconnectFromServer();
            });
        }
    });
}

bool SingleInstance::listen(const QString& socketPath) {
    if (m_server.isListening())
        return true;
    QLocalServer::removeServer(socketPath);
    return m_server.listen(socketPath);
}

bool SingleInstance::raiseOther(const QString& socketPath) {
    QLocalSocket socket;
    socket.connectToServer(socketPath);
    if (!socket.waitForConnected(kPatienceMs))
        return false;
    socket.write(kRaise);
    if (!socket.waitForBytesWritten(kPatienceMs))
        return false;
    socket.waitForDisconnected(kPatienceMs); // it hangs up once it has read
    return true;
}

} // namespace kvscope::desktop
