// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/link_question.h"

#include <QClipboard>
#include <QCoreApplication>
#include <QDesktopServices>
#include <QGuiApplication>
#include <QMessageBox>
#include <QPushButton>
#include <QUrl>

#include "ui/models/markdown_blocks.h"

namespace kvscope::ui {
namespace {

constexpr qsizetype kShownAtMost = 600;

QString tr(const char* text) {
    return QCoreApplication::translate("LinkQuestion", text);
}

} // namespace

QMessageBox* askToOpen(const QString& address, QWidget* parent) {
    if (!md::mayOpen(address))
        return nullptr;
    const QUrl url(address, QUrl::StrictMode);
    const bool mail = url.scheme() == QLatin1StringView("mailto");
    auto* box = new QMessageBox(parent);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setTextFormat(Qt::PlainText);
    box->setText(mail ? tr("Write to this address?")
                      : tr("Open this link in your browser? It leads to %1.").arg(url.host()));
    // As it will be opened: foreign letters that only look like others are shown in their code.
    const QString whole = QString::fromUtf8(url.toEncoded());
    box->setInformativeText(whole.size() > kShownAtMost ? whole.left(kShownAtMost) + u'…' : whole);
    QPushButton* open = box->addButton(mail ? tr("Write") : tr("Open"), QMessageBox::AcceptRole);
    QPushButton* copy = box->addButton(tr("Copy address"), QMessageBox::ActionRole);
    QPushButton* cancel = box->addButton(QMessageBox::Cancel);
    box->setDefaultButton(cancel);
    box->setEscapeButton(cancel);
    QObject::connect(box, &QMessageBox::buttonClicked, box, [=](QAbstractButton* button) {
        if (button == open)
            QDesktopServices::openUrl(url);
        else if (button == copy)
            QGuiApplication::clipboard()->setText(address);
    });
    box->open();
    return box;
}

} // namespace kvscope::ui
