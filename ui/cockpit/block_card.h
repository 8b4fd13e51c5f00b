// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <functional>
#include <vector>

#include "engine/api/sources.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// The card beside a pointed block: id, state, text, tokens, owners, users, last read, key. 248 px wide; a child of
/// the window, so that it may reach over the edge of the map.
class BlockCard final : public QWidget, public Themed {
    Q_OBJECT
public:
    struct Row {
        QString name, value;
        bool code = false; ///< the value is a key
        friend bool operator==(const Row&, const Row&) = default;
    };
    struct Content {
        QString title, state, quote, hint;
        kv::BlockState glyph = kv::BlockState::Empty;
        std::vector<Row> rows;
        friend bool operator==(const Content&, const Content&) = default;
    };
    explicit BlockCard(const Theme& theme, QWidget* parent);

    void setContent(Content content);
    /// Shows it beside `cell`, inside `room`, touching neither the cell nor `keepFree` where that is possible (all in
    /// the parent's coordinates).
    void showBeside(const QRect& cell, const QRect& room, const QRect& keepFree);
    void setTheme(const Theme& theme) override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QSize cardSize() const;
    int quoteHeight() const;

    Content m_content;
    QStringList m_quoteLines;
    Theme m_theme;
};

/// What the card says of a block: `detail` = nullptr while the answer is on its way or cannot be given.
BlockCard::Content blockCardContent(BlockId block, kv::BlockState state, const api::BlockDetailEvent* detail,
                                    bool detailReported, Nanos now, const std::function<QString(OwnerId)>& ownerName);

} // namespace kvscope::ui
