// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <array>
#include <optional>
#include <vector>

#include "ui/models/block_map_raster.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// The legend of the block map is its counts. A click on an entry (or Enter on it) leaves only its blocks in colour;
/// once more shows all again.
class Legend final : public QWidget, public Themed {
    Q_OBJECT
public:
    struct Entry {
        int key = 0; ///< BlockState, or an owner's number
        QString name;
        std::int64_t count = 0;
        friend bool operator==(const Entry&, const Entry&) = default;
    };
    explicit Legend(const Theme& theme, QWidget* parent = nullptr);

    /// `glyphs`: each entry is drawn as a cell of its state (or a square of its owner).
    void setEntries(std::vector<Entry> entries, ColourBy colourBy);
    std::optional<int> filter() const { return m_filter; }
    void clearFilter();
    void setTheme(const Theme& theme) override;
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override { return {200, heightForWidth(width())}; }

    /// The seven states of a paged pool in the order of the design: active, shared, cached, pinned, filling, moving,
    /// empty. States that cannot occur in this pool are left out by the caller.
    static const std::array<kv::BlockState, 7> kOrder;

signals:
    void filterChanged(std::optional<int> key);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    std::vector<QRect> places(int width) const;
    void toggle(int index);
    const QImage& glyph(int key);

    std::vector<Entry> m_entries;
    std::vector<int> m_widths; ///< of the entries: measuring text is most of the legend's cost
    ColourBy m_colourBy = ColourBy::State;
    std::optional<int> m_filter;
    int m_current = -1; ///< entry under the keyboard
    std::vector<std::pair<int, QImage>> m_glyphs;
    Theme m_theme;
};

/// A cell of the map at `side` logical pixels, as legend and card show it.
QImage cellGlyph(const Theme& theme, ColourBy colourBy, int key, int side, double devicePixelRatio);

} // namespace kvscope::ui
