// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "ui/models/attachment.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

class IconButton;

/// One attachment: name, size and tokens, a button that removes it. Its beginning shows as a tooltip.
class AttachmentChip final : public QWidget, public Themed {
    Q_OBJECT
public:
    AttachmentChip(const Attachment& attachment, const Theme& theme, QWidget* parent = nullptr);
    void setTokens(std::int64_t tokens); ///< 0 = not counted
    void setTheme(const Theme& theme) override;
    QSize sizeHint() const override;
    QString note() const; ///< "12 KiB · 4,610 tokens"
    IconButton* removeButton() const { return m_remove; }

signals:
    void removeRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    Theme m_theme;
    QString m_name;
    std::int64_t m_bytes = 0, m_tokens = 0;
    IconButton* m_remove;
};

/// The chips in rows. As high as its rows need at the width that it has; nothing at all without attachments.
class AttachmentChips final : public QWidget, public Themed {
    Q_OBJECT
public:
    explicit AttachmentChips(const Theme& theme, QWidget* parent = nullptr);

    const std::vector<Attachment>& attachments() const { return m_attachments; }
    void add(Attachment attachment);
    void set(std::vector<Attachment> attachments);
    void setTokens(std::size_t index, std::int64_t tokens);
    AttachmentChip* chip(std::size_t index) const { return m_chips[index]; }
    void setTheme(const Theme& theme) override { m_theme = theme; }

signals:
    void changed();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void append(Attachment attachment);
    void removeChip(AttachmentChip* chip);
    void place();

    Theme m_theme;
    std::vector<Attachment> m_attachments;
    std::vector<AttachmentChip*> m_chips;
};

} // namespace kvscope::ui
