// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/block_map_raster.h"

#include <QFont>
#include <QPainter>
#include <QPolygon>
#include <algorithm>
#include <array>
#include <cstring>

namespace kvscope::ui {
namespace {

using kv::BlockState;
constexpr double kDimmed = 0.45;      // of a cell that is not meant
constexpr double kCachedOwner = 0.45; // an owner's colour on a block that only the cache still holds
constexpr double kReservedOwner = 0.75;
constexpr int kManyUsers = 10; // drawn as "9+"

void fill(QImage& image, int x, int y, int w, int h, QRgb color) {
    for (int row = y; row < y + h; ++row) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(row));
        std::fill(line + x, line + x + w, color);
    }
}

/// Filled by whole pixels, without a painter: tiles must be the same on every machine.
void fillTriangle(QImage& image, int side, QRgb color) {
    const int leg = (side * 6 + 9) / 10;
    for (int y = 0; y < leg; ++y)
        fill(image, 0, y, leg - y, 1, color);
}

void fillDiagonalBand(QImage& image, int side, QRgb color) {
    const int reach = side * 9 / 20;
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x)
            if (const int sum = x + y; sum >= side - 1 && sum <= side - 1 + reach)
                fill(image, x, y, 1, 1, color);
}

void strokeDiagonal(QImage& image, int side, QRgb color) {
    const int width = std::max(1, side / 7);
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x)
            if (const int sum = x + y; sum >= side - 1 && sum < side - 1 + width)
                fill(image, x, y, 1, 1, color);
}

void drawCount(QImage& tile, int side, int users, QRgb color) {
    QPainter painter(&tile);
    QFont font(QStringList{QStringLiteral("Noto Sans")});
    font.setPixelSize(std::max(9, side * 11 / 20));
    font.setWeight(QFont::DemiBold);
    font.setHintingPreference(QFont::PreferNoHinting); // a tile looks the same whatever the desktop prefers
    font.setStyleStrategy(QFont::NoSubpixelAntialias);
    painter.setFont(font);
    painter.setPen(QColor(color));
    painter.drawText(QRect(0, 0, side, side), Qt::AlignCenter,
                     users >= kManyUsers ? QStringLiteral("9+") : QString::number(users));
}

bool isRare(BlockState state) {
    return state == BlockState::Filling || state == BlockState::Pinned || state == BlockState::InTransfer;
}

} // namespace

// 3 bits of state, 8 of level, 4 of users, 4 of owner, 3 of what is inside, 1 of dimmed.
std::uint32_t BlockMapRaster::Look::key() const {
    return std::uint32_t(state) | std::uint32_t(level) << 3 | std::uint32_t(users) << 11 | std::uint32_t(owner) << 15 |
           std::uint32_t(inside) << 19 | std::uint32_t(dimmed) << 22;
}

void BlockMapRaster::forgetTiles() {
    m_tiles.clear();
    m_known.fill({});
}

void BlockMapRaster::setLook(const BlockPalette& palette, ColourBy colourBy) {
    m_palette = palette;
    m_colourBy = colourBy;
    forgetTiles();
}

void BlockMapRaster::setLayout(const BlockMapLayout& layout) {
    if (layout.pitch() != m_layout.pitch() || layout.gap() != m_layout.gap() ||
        layout.showsCounts() != m_layout.showsCounts())
        forgetTiles();
    m_layout = layout;
}

void BlockMapRaster::setBlockSize(int blockSize) {
    m_blockSize = blockSize;
}

BlockMapRaster::Look BlockMapRaster::lookOfBlock(const Source& source, std::int32_t block) const {
    const metrics::BlockCell& cell = source.cells[std::size_t(block)];
    Look look;
    look.state = cell.state;
    look.dimmed = !source.dimmed.empty() && source.dimmed[std::size_t(block)] != 0;
    const int side = m_layout.side();
    if (cell.state == BlockState::Filling) {
        const int full = std::max(m_blockSize, 1);
        const int level = (side * std::min<int>(cell.fill, full) + full / 2) / full;
        // At least one row, so that a block just taken is seen; not the whole square, because it is not full.
        look.level = std::uint8_t(std::clamp(level, 1, std::clamp(side - 1, 1, 255)));
    }
    if (m_colourBy == ColourBy::Owner || cell.state == BlockState::Reserved) {
        const int number = cell.owner < source.ownerNumbers.size() ? source.ownerNumbers[cell.owner] : 0;
        look.owner = std::uint8_t(number == 0 ? 0 : (number - 1) % int(m_palette.owners.size()) + 1);
    } else if (cell.state == BlockState::Shared && m_layout.showsCounts()) {
        look.users = std::uint8_t(std::min<int>(cell.references, kManyUsers));
    }
    return look;
}

BlockMapRaster::Look BlockMapRaster::aggregate(const Source& source, BlockRange blocks) const {
    std::array<int, kv::kBlockStateCount> count{};
    std::uint8_t rare = 0;
    bool allDimmed = true;
    for (std::int32_t b = blocks.begin; b < blocks.end; ++b) {
        const BlockState state = source.cells[std::size_t(b)].state;
        ++count[std::size_t(state)];
        if (isRare(state))
            rare = std::uint8_t(state);
        allDimmed = allDimmed && !source.dimmed.empty() && source.dimmed[std::size_t(b)] != 0;
    }
    const auto most = BlockState(std::max_element(count.begin(), count.end()) - count.begin());
    // The first block of the most frequent state stands for the cell, its owner included.
    std::int32_t representative = blocks.begin;
    while (source.cells[std::size_t(representative)].state != most)
        ++representative;
    Look look = lookOfBlock(source, representative);
    look.dimmed = allDimmed;
    look.inside = rare == std::uint8_t(most) ? 0 : rare;
    return look;
}

BlockMapRaster::Look BlockMapRaster::lookOf(const Source& source, int cell) const {
    if (m_layout.blocksPerCell() == 1)
        return lookOfBlock(source, cell);
    return aggregate(source, m_layout.blocksOf(cell));
}

const QRgb* BlockMapRaster::tile(const Look& look) {
    const std::uint32_t key = look.key();
    Known& known = m_known[(key ^ key >> 10) % m_known.size()];
    if (known.key == key)
        return known.pixels;
    auto it = m_tiles.find(key);
    if (it == m_tiles.end())
        it = m_tiles.emplace(key, drawTile(look)).first;
    known = {key, it->second.data()};
    return known.pixels;
}

std::vector<QRgb> BlockMapRaster::drawTile(const Look& look) const {
    const int pitch = m_layout.pitch();
    QImage image(pitch, pitch, QImage::Format_RGB32);
    image.fill(m_palette.well);
    if (m_colourBy == ColourBy::Owner)
        drawOwner(image, look);
    else
        drawState(image, look);
    if (look.inside != 0) {
        const QRgb rare = m_palette.stateColor(BlockState(look.inside));
        if (pitch >= 2)
            fill(image, 0, 0, m_layout.side(), 1, rare);
        else // no room for a mark beside the colour
            fill(image, 0, 0, 1, 1, mixRgb(rare, image.pixel(0, 0), 0.5));
    }
    std::vector<QRgb> pixels(std::size_t(pitch) * std::size_t(pitch));
    for (int y = 0; y < pitch; ++y)
        std::memcpy(pixels.data() + std::size_t(y) * std::size_t(pitch), image.constScanLine(y),
                    std::size_t(pitch) * sizeof(QRgb));
    if (look.dimmed)
        for (QRgb& pixel : pixels)
            pixel = mixRgb(pixel, m_palette.well, kDimmed);
    return pixels;
}

void BlockMapRaster::drawState(QImage& tile, const Look& look) const {
    const int side = m_layout.side();
    const BlockPalette& p = m_palette;
    const int level = std::min<int>(look.level, side);
    switch (look.state) {
    case BlockState::Empty:
        fill(tile, 0, 0, side, side, p.empty);
        return;
    case BlockState::Filling:
        fill(tile, 0, 0, side, side, p.empty);
        if (side < 4) // a level cannot be read here, but the block must be seen
            fill(tile, 0, 0, side, side, p.filling);
        else
            fill(tile, 0, side - level, side, level, p.filling);
        return;
    case BlockState::Reserved:
        fill(tile, 0, 0, side, side, p.empty);
        strokeDiagonal(tile, side, mixRgb(p.ownerColor(look.owner), p.well, kReservedOwner));
        return;
    default:
        break;
    }
    fill(tile, 0, 0, side, side, p.stateColor(look.state));
    if (!m_layout.showsMarks()) {
        if (look.state == BlockState::Cached)
            fill(tile, 0, 0, side, side, p.cachedInside);
        return;
    }
    const int dot = side >= 10 ? (side + 2) / 4 : side >= 6 ? 2 : 1;
    switch (look.state) {
    case BlockState::Cached:
        fill(tile, 1, 1, side - 2, side - 2, p.cachedInside);
        break;
    case BlockState::Shared:
        if (look.users > 0)
            drawCount(tile, side, look.users, p.mark);
        else
            fill(tile, (side - dot) / 2, (side - dot) / 2, dot, dot, p.mark);
        break;
    case BlockState::Pinned:
        fillTriangle(tile, side, p.mark);
        break;
    case BlockState::InTransfer:
        fillDiagonalBand(tile, side, p.mark);
        break;
    default:
        break;
    }
}

void BlockMapRaster::drawOwner(QImage& tile, const Look& look) const {
    const int side = m_layout.side();
    const BlockPalette& p = m_palette;
    const QRgb owner =
        look.owner == 0 ? (look.state == BlockState::Pinned ? p.pinned : p.empty) : p.ownerColor(look.owner);
    switch (look.state) {
    case BlockState::Empty:
        fill(tile, 0, 0, side, side, p.empty);
        break;
    case BlockState::Cached:
        fill(tile, 0, 0, side, side, mixRgb(owner, p.well, kCachedOwner));
        break;
    case BlockState::Reserved:
        fill(tile, 0, 0, side, side, p.empty);
        strokeDiagonal(tile, side, mixRgb(owner, p.well, kReservedOwner));
        break;
    case BlockState::Filling: {
        const int level = side < 4 ? side : std::min<int>(look.level, side);
        fill(tile, 0, 0, side, side, p.empty);
        fill(tile, 0, side - level, side, level, owner);
        break;
    }
    default:
        fill(tile, 0, 0, side, side, owner);
        break;
    }
}

void BlockMapRaster::copyTile(QImage& image, QPoint at, const QRgb* pixels) const {
    const int pitch = m_layout.pitch();
    const int left = std::max(at.x(), 0), right = std::min(at.x() + pitch, image.width());
    const int top = std::max(at.y(), 0), bottom = std::min(at.y() + pitch, image.height());
    if (left >= right)
        return;
    for (int y = top; y < bottom; ++y)
        std::memcpy(reinterpret_cast<QRgb*>(image.scanLine(y)) + left, pixels + (y - at.y()) * pitch + (left - at.x()),
                    std::size_t(right - left) * sizeof(QRgb));
}

void BlockMapRaster::paint(QImage& image, QPoint origin, const Source& source) {
    image.fill(m_palette.well);
    const QRect visible = m_layout.cellsIn(QRect(-origin, image.size()));
    const int pitch = m_layout.pitch();
    const bool single = m_layout.blocksPerCell() == 1;
    const int known = single ? std::min(int(source.cells.size()), m_layout.cells()) : m_layout.cells();
    uchar* const bits = image.bits();
    const qsizetype stride = image.bytesPerLine();
    for (int row = visible.top(); row <= visible.bottom(); ++row) {
        const int y0 = origin.y() + row * pitch;
        const bool wholeRow = y0 >= 0 && y0 + pitch <= image.height();
        for (int column = visible.left(); column <= visible.right(); ++column) {
            const int cell = row * m_layout.columns() + column;
            if (cell >= known)
                break;
            const QRgb* pixels = tile(single ? lookOfBlock(source, cell) : lookOf(source, cell));
            const int x0 = origin.x() + column * pitch;
            if (!wholeRow || x0 < 0 || x0 + pitch > image.width()) {
                copyTile(image, {x0, y0}, pixels);
                continue;
            }
            auto* out = reinterpret_cast<QRgb*>(bits + y0 * stride) + x0;
            for (int y = 0; y < pitch; ++y, out += stride / qsizetype(sizeof(QRgb)), pixels += pitch)
                std::copy_n(pixels, pitch, out);
        }
    }
}

void BlockMapRaster::paintCell(QImage& image, QPoint origin, const Source& source, int cell) {
    copyTile(image, origin + m_layout.cellRect(cell).topLeft(), tile(lookOf(source, cell)));
}

void BlockMapRaster::paintCellBlended(QImage& image, QPoint origin, const Source& source, int cell, QRgb over,
                                      double blend) {
    const int pitch = m_layout.pitch(), side = m_layout.side();
    const QRgb* pixels = tile(lookOf(source, cell));
    std::vector<QRgb> mixed(pixels, pixels + pitch * pitch);
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x) {
            QRgb& pixel = mixed[std::size_t(y * pitch + x)];
            pixel = mixRgb(pixel, over, blend);
        }
    copyTile(image, origin + m_layout.cellRect(cell).topLeft(), mixed.data());
}

void BlockMapRaster::paintCellFramed(QImage& image, QPoint origin, const Source& source, int cell, QRgb frame) {
    const int pitch = m_layout.pitch(), side = m_layout.side();
    const QRgb* pixels = tile(lookOf(source, cell));
    std::vector<QRgb> framed(pixels, pixels + pitch * pitch);
    for (int i = 0; i < side; ++i)
        for (const int at : {i, (side - 1) * pitch + i, i * pitch, i * pitch + side - 1})
            framed[std::size_t(at)] = frame;
    copyTile(image, origin + m_layout.cellRect(cell).topLeft(), framed.data());
}

} // namespace kvscope::ui
