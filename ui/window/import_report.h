// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "ui/models/chat_store.h"

namespace kvscope::ui {

/// What an import brought, and what it left out and why.
class ImportReportDialog final : public QDialog {
    Q_OBJECT
public:
    ImportReportDialog(const ChatStore::ImportReport& report, QWidget* parent);
};

/// "3 chats with 41 messages were added. 2 were here already."
QString importSummary(const ChatStore::ImportReport& report);

} // namespace kvscope::ui
