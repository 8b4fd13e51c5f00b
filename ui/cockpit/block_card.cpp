// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/block_card.h"

#include <QPainter>
#include <QTextLayout>

#include "ui/cockpit/legend.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

constexpr int kWidth = 248;
constexpr int kShadow = 16; ///< margin around the card for its shadow
constexpr int kShadowDrop = 4;
constexpr int kPadX = 12, kPadY = 10;
constexpr int kTitle = 20;
constexpr int kRowHeight = 18;
constexpr int kNameColumn = 72;
constexpr int kDistance = 10; ///< from the cell
constexpr int kQuoteLines = 3;

/// One line of readable text: control characters become spaces.
QString readable(const std::string& bytes) {
    QString text = QString::fromUtf8(bytes.data(), qsizetype(bytes.size()));
    for (QChar& c : text)
        if (c.category() == QChar::Other_Control)
            c = u' ';
    return text.simplified();
}

/// At most `most` lines, the last one cut with an ellipsis.
QStringList wrapped(const QString& text, const QFont& font, int width, int most) {
    QTextLayout layout(text, font);
    QTextOption option;
    option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    layout.setTextOption(option);
    QStringList out;
    layout.beginLayout();
    for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
        line.setLineWidth(width);
        const bool last = out.size() + 1 == most;
        out << (last ? QFontMetrics(font).elidedText(text.mid(line.textStart()), Qt::ElideRight, width)
                     : text.mid(line.textStart(), line.textLength()).trimmed());
        if (last)
            break;
    }
    layout.endLayout();
    return out;
}

QString ownersText(const api::BlockDetailEvent& detail, const std::function<QString(OwnerId)>& ownerName) {
    if (detail.owners.empty())
        return QString(kEnDash);
    const QString first = ownerName(detail.owners.front());
    return detail.owners.size() == 1
               ? first
               : QStringLiteral("%1 +%2").arg(first, formatNumber(std::int64_t(detail.owners.size()) - 1));
}

} // namespace

BlockCard::Content blockCardContent(BlockId block, kv::BlockState state, const api::BlockDetailEvent* detail,
                                    bool detailReported, Nanos now, const std::function<QString(OwnerId)>& ownerName) {
    BlockCard::Content out;
    out.title = BlockCard::tr("Block %1").arg(formatNumber(block.value()));
    out.state = stateWord(state);
    out.glyph = state;
    if (!detailReported) {
        out.hint = BlockCard::tr("Its contents are not reported");
        return out;
    }
    if (state == kv::BlockState::Empty) {
        out.hint = BlockCard::tr("Holds nothing, ready to be used");
        return out;
    }
    const QString dash(kEnDash);
    QString tokens = dash, owners = dash, users = dash, read = dash, key = dash;
    if (detail) {
        out.quote = readable(detail->text);
        const std::int64_t first = detail->firstPosition;
        if (first >= 0 && detail->fill > 0)
            tokens = formatNumber(first) + kEnDash + formatNumber(first + detail->fill - 1);
        else if (detail->fill > 0)
            tokens = formatNumber(detail->fill);
        owners = ownersText(*detail, ownerName);
        users = detail->references == 0   ? BlockCard::tr("nobody, kept in the cache")
                : detail->references == 1 ? BlockCard::tr("1 sequence")
                                          : BlockCard::tr("%1 sequences").arg(formatNumber(detail->references));
        if (detail->lastRead > 0)
            read = formatAgo(now - detail->lastRead);
        const QString hex = QString::fromStdString(detail->key);
        key = hex.isEmpty()    ? BlockCard::tr("none until it is full")
              : hex.size() > 9 ? hex.left(4) + QChar(0x2026) + hex.right(4)
                               : hex;
    }
    out.rows = {{BlockCard::tr("Tokens"), tokens, false},
                {BlockCard::tr("Owner"), owners, false},
                {BlockCard::tr("Used by"), users, false},
                {BlockCard::tr("Last read"), read, false},
                {BlockCard::tr("Key"), key, detail && !detail->key.empty()}};
    return out;
}

BlockCard::BlockCard(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setFocusPolicy(Qt::NoFocus);
    hide();
}

void BlockCard::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void BlockCard::setContent(Content content) {
    if (content == m_content)
        return;
    m_content = std::move(content);
    m_quoteLines.clear();
    if (!m_content.quote.isEmpty())
        m_quoteLines = wrapped(QChar(0x201C) + m_content.quote + QChar(0x201D), textFont(TextRole::Table),
                               kWidth - 2 * kPadX - 16, kQuoteLines);
    QStringList spoken{m_content.title, m_content.state};
    for (const Row& row : m_content.rows)
        spoken << row.name + u' ' + row.value;
    setAccessibleName(spoken.join(QStringLiteral(", ")));
    update();
}

int BlockCard::quoteHeight() const {
    return m_quoteLines.isEmpty() ? 0 : int(m_quoteLines.size()) * lineHeight(TextRole::Table) + 8;
}

QSize BlockCard::cardSize() const {
    int height = 2 * kPadY + kTitle;
    if (const int quote = quoteHeight(); quote > 0)
        height += 6 + quote;
    if (!m_content.hint.isEmpty())
        height += 2 + kRowHeight;
    if (!m_content.rows.empty())
        height += 8 + kRowHeight * int(m_content.rows.size());
    return {kWidth, height};
}

void BlockCard::showBeside(const QRect& cell, const QRect& room, const QRect& keepFree) {
    const QSize size = cardSize();
    const int middle = cell.center().y() - size.height() / 2;
    const QPoint candidates[] = {
        {cell.left() - kDistance - size.width(), middle},
        {cell.right() + kDistance, middle},
        {cell.center().x() - size.width() / 2, cell.bottom() + kDistance},
        {cell.center().x() - size.width() / 2, cell.top() - kDistance - size.height()},
    };
    QRect best;
    for (const QPoint& candidate : candidates) {
        QRect card(candidate, size);
        // Along the cell it may slide to stay in the room; across it must fit.
        card.moveTop(qBound(room.top(), card.top(), qMax(room.top(), room.bottom() + 1 - size.height())));
        card.moveLeft(qBound(room.left(), card.left(), qMax(room.left(), room.right() + 1 - size.width())));
        if (card.intersects(cell.adjusted(-2, -2, 2, 2)))
            continue;
        if (best.isNull())
            best = card;
        if (!card.intersects(keepFree)) {
            best = card;
            break;
        }
    }
    if (best.isNull())
        best = QRect(candidates[1], size);
    setGeometry(best.adjusted(-kShadow, -kShadow, kShadow, kShadow));
    raise();
    show();
}

void BlockCard::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    const QRectF card = QRectF(rect()).adjusted(kShadow, kShadow, -kShadow, -kShadow);
    const QColor shade = m_theme.kind == ThemeKind::Dark ? QColor(0, 0, 0, 9) : QColor(20, 28, 40, 3);
    p.setPen(Qt::NoPen);
    p.setBrush(shade);
    for (int spread = kShadow - kShadowDrop; spread > 0; --spread) // many thin layers fall off like a blur
        p.drawRoundedRect(card.adjusted(-spread, kShadowDrop - spread, spread, kShadowDrop + spread), 8 + spread,
                          8 + spread);
    const bool light = m_theme.kind == ThemeKind::Light;
    p.setPen(m_theme.line2);
    p.setBrush(light ? m_theme.bg1 : m_theme.bg3);
    p.drawRoundedRect(card.adjusted(.5, .5, -.5, -.5), 8, 8);

    const int left = kShadow + kPadX, width = kWidth - 2 * kPadX;
    int y = kShadow + kPadY;
    p.drawImage(QPoint(left, y + (kTitle - 12) / 2),
                cellGlyph(m_theme, ColourBy::State, int(m_content.glyph), 12, devicePixelRatioF()));
    p.setPen(m_theme.text1);
    p.setFont(figureFont(TextRole::Control, QFont::DemiBold));
    p.drawText(QRect(left + 20, y, width - 20, kTitle), Qt::AlignVCenter, m_content.title);
    p.setPen(m_theme.text2);
    p.setFont(textFont(TextRole::Table));
    p.drawText(QRect(left, y, width, kTitle), Qt::AlignVCenter | Qt::AlignRight, m_content.state);
    y += kTitle;
    if (!m_content.hint.isEmpty()) {
        p.setPen(m_theme.text3);
        p.drawText(QRect(left, y + 2, width, kRowHeight), Qt::AlignVCenter, m_content.hint);
        y += kRowHeight + 2;
    }
    if (const int quote = quoteHeight(); quote > 0) {
        y += 6;
        p.setPen(Qt::NoPen);
        p.setBrush(light ? m_theme.bg2 : m_theme.bg1);
        p.drawRoundedRect(QRect(left, y, width, quote), 4, 4);
        p.setPen(m_theme.text2);
        p.setFont(textFont(TextRole::Table));
        for (qsizetype i = 0; i < m_quoteLines.size(); ++i)
            p.drawText(
                QRect(left + 8, y + 4 + int(i) * lineHeight(TextRole::Table), width - 16, lineHeight(TextRole::Table)),
                Qt::AlignVCenter, m_quoteLines[i]);
        y += quote;
    }
    y += 8;
    for (const Row& row : m_content.rows) {
        p.setFont(textFont(TextRole::Table));
        p.setPen(m_theme.text3);
        p.drawText(QRect(left, y, kNameColumn, kRowHeight), Qt::AlignVCenter, row.name);
        p.setFont(row.code ? monoFont(TextRole::Table) : figureFont(TextRole::Table));
        p.setPen(m_theme.text1);
        const QRect value(left + kNameColumn, y, width - kNameColumn, kRowHeight);
        p.drawText(value, Qt::AlignVCenter, p.fontMetrics().elidedText(row.value, Qt::ElideRight, value.width()));
        y += kRowHeight;
    }
}

} // namespace kvscope::ui
