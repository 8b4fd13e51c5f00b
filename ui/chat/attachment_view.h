// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "ui/models/chat_types.h"
#include "ui/theme/apply_theme.h"

class QPlainTextEdit;

namespace kvscope::ui {

/// A window of its own with the text of an attachment, to be read and copied. Esc closes it.
class AttachmentView final : public QDialog, public Themed {
    Q_OBJECT
public:
    AttachmentView(const Attachment& attachment, const Theme& theme, QWidget* parent);
    /// What is shown: the text, with lines that are too long for a text field broken.
    QString shownText() const;
    void copyAll(); ///< the text as it was attached
    void setTheme(const Theme& theme) override;

private:
    Attachment m_attachment;
    QPlainTextEdit* m_text;
};

/// A line end after every `most` characters of a line that has none; whole characters.
QString withShortLines(const QString& text, qsizetype most);

} // namespace kvscope::ui
