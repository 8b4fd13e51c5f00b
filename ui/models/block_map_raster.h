// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/metrics/block_map_snapshot.h"
#include "ui/models/block_map_layout.h"
#include "ui/models/palette.h"

namespace kvscope::ui {

/// Paints cells into an image by palette: each different look of a cell is drawn once, as a small tile, and copied.
/// 65,536 cells take well under a millisecond a megapixel that way, against several as rectangles.
///
/// The image has format RGB32 and device pixels; thread: any, one at a time.
class BlockMapRaster {
public:
    struct Source {
        std::span<const metrics::BlockCell> cells;
        /// Number (OwnerNumbers) of each small owner number of `cells`; entry 0 stands for nobody.
        std::span<const int> ownerNumbers;
        /// One flag a block: drawn at 45 % over the ground. Empty = none is.
        std::span<const std::uint8_t> dimmed;
    };

    void setLook(const BlockPalette& palette, ColourBy colourBy);
    void setLayout(const BlockMapLayout& layout);
    void setBlockSize(int blockSize); ///< slots of a full block: turns a fill into a level
    const BlockMapLayout& layout() const { return m_layout; }
    ColourBy colourBy() const { return m_colourBy; }

    /// Ground and every cell that lies in the image. `origin`: where the layout's first cell lies in the image.
    void paint(QImage& image, QPoint origin, const Source& source);
    /// One cell, as it is (`blend` = 1) or mixed with `over` (0 = only `over`).
    void paintCell(QImage& image, QPoint origin, const Source& source, int cell);
    void paintCellBlended(QImage& image, QPoint origin, const Source& source, int cell, QRgb over, double blend);
    /// One cell in a frame of one pixel: how a fresh block is told without motion.
    void paintCellFramed(QImage& image, QPoint origin, const Source& source, int cell, QRgb frame);

private:
    struct Look { ///< everything that the pixels of a tile depend on
        kv::BlockState state = kv::BlockState::Empty;
        std::uint8_t level = 0;  ///< filled rows of the square
        std::uint8_t users = 0;  ///< drawn count of a shared block, 0 = the dot
        std::uint8_t owner = 0;  ///< 1..12 in owner colours, 0 = nobody
        std::uint8_t inside = 0; ///< aggregated cell: the state of the rare block it holds, 0 = none
        bool dimmed = false;
        std::uint32_t key() const;
    };
    Look lookOf(const Source& source, int cell) const;
    Look aggregate(const Source& source, BlockRange blocks) const;
    Look lookOfBlock(const Source& source, std::int32_t block) const;
    void forgetTiles();
    const QRgb* tile(const Look& look);
    std::vector<QRgb> drawTile(const Look& look) const;
    void drawState(QImage& tile, const Look& look) const;
    void drawOwner(QImage& tile, const Look& look) const;
    void copyTile(QImage& image, QPoint at, const QRgb* pixels) const;

    BlockPalette m_palette;
    ColourBy m_colourBy = ColourBy::State;
    BlockMapLayout m_layout;
    int m_blockSize = 0;
    std::unordered_map<std::uint32_t, std::vector<QRgb>> m_tiles;
    struct Known {
        std::uint32_t key = ~0u;
        const QRgb* pixels = nullptr;
    };
    std::array<Known, 1024> m_known; ///< direct-mapped: a map has few looks, each of them thousands of times
};

} // namespace kvscope::ui
