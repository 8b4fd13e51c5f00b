// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

#include "engine/api/sources.h"
#include "ui/theme/apply_theme.h"

class QLabel;
class QPlainTextEdit;

namespace kvscope::ui {

class Button;

/// Says that chats do not go through the model file's own template and through which instead, shows what a message
/// becomes, and lets another one be chosen. Hidden while the file's own is used, and after it was closed.
class TemplateBanner final : public QFrame, public Themed {
    Q_OBJECT
public:
    explicit TemplateBanner(const Theme& theme, QWidget* parent = nullptr);

    /// `opened`: a model was loaded, so that a banner that was closed may come back.
    void setTemplate(const api::TemplateInfo& info, bool opened);
    void clear();
    QString sentence() const;
    QString preview() const;
    void setTheme(const Theme& theme) override;

signals:
    /// A name of TemplateInfo::choices, to be used and remembered for this file; empty = what fits the file.
    void chosen(const QString& name);
    void closed();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void openMenu();
    void showPreview(bool show);

    Theme m_theme;
    api::TemplateInfo m_info;
    QLabel* m_sentence;
    QLabel* m_detail;
    Button* m_choose;
    Button* m_show;
    Button* m_close;
    QLabel* m_previewTitle;
    QPlainTextEdit* m_preview;
};

} // namespace kvscope::ui
