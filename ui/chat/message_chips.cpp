// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/message_chips.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <QPainter>
#include <algorithm>

#include "ui/chat/message_item.h"
#include "ui/chat/message_paint.h"
#include "ui/models/attachment.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

constexpr int kHeight = 28, kSpacing = 6;
constexpr int kSide = 8, kGlyph = 16, kGap = 6;
constexpr int kNameAtMost = 240;

QString tr(const char* text) {
    return QCoreApplication::translate("MessageChip", text);
}
QFont nameFont() {
    return textFont(TextRole::Table, QFont::Medium);
}
QFont noteFont() {
    return figureFont(TextRole::Table);
}

} // namespace

QString attachmentNote(const Attachment& attachment) {
    const QString size = formatBytes(std::uint64_t(attachmentBytes(attachment)));
    if (attachment.tokens <= 0)
        return size;
    return tr("%1 · %2").arg(size, attachment.tokens == 1 ? tr("1 token")
                                                          : tr("%1 tokens").arg(formatNumber(attachment.tokens)));
}

std::vector<MessageChip> layOutChips(const std::vector<Attachment>& attachments, int width) {
    std::vector<MessageChip> chips;
    const QFontMetrics names(nameFont()), notes(noteFont());
    int x = 0, y = 0;
    for (const Attachment& attachment : attachments) {
        MessageChip chip{{}, attachmentTitle(attachment), attachmentNote(attachment)};
        const int wanted = 2 * kSide + kGlyph + kGap + std::min(kNameAtMost, names.horizontalAdvance(chip.name) + 1) +
                           kGap + 2 + notes.horizontalAdvance(chip.note) + 1;
        const int chipWidth = std::min(wanted, std::max(80, width));
        if (x > 0 && x + chipWidth > width) {
            x = 0;
            y += kHeight + kSpacing;
        }
        chip.rect = QRect(x, y, chipWidth, kHeight);
        x += chipWidth + kSpacing;
        chips.push_back(std::move(chip));
    }
    return chips;
}

QSize sizeOf(const std::vector<MessageChip>& chips) {
    QRect all;
    for (const MessageChip& chip : chips)
        all |= chip.rect;
    return all.isNull() ? QSize(0, 0) : all.size();
}

int guessChipsHeight(std::size_t chips) {
    return int((chips + 1) / 2) * (kHeight + kSpacing);
}

void paintChip(QPainter& painter, const QRect& rect, const MessageChip& chip, const MessageLook& look, bool over) {
    const Theme& t = *look.theme;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(over ? t.line3 : t.line2);
    painter.setBrush(over ? t.bg4 : t.bg3);
    painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
    paintIcon(painter, QRect(rect.left() + kSide, rect.top(), kGlyph, rect.height()), Icon::Attach, kGlyph, t.text2,
              look.devicePixelRatio);
    const int figures = QFontMetrics(noteFont()).horizontalAdvance(chip.note) + 1;
    const int right = rect.right() + 1 - kSide;
    const int left = rect.left() + kSide + kGlyph + kGap;
    const QRect name(left, rect.top(), right - figures - kGap - 2 - left, rect.height());
    painter.setFont(nameFont());
    painter.setPen(t.text1);
    painter.drawText(name, Qt::AlignVCenter,
                     QFontMetrics(nameFont()).elidedText(chip.name, Qt::ElideMiddle, name.width()));
    painter.setFont(noteFont());
    painter.setPen(t.text2);
    painter.drawText(QRect(right - figures, rect.top(), figures, rect.height()), Qt::AlignVCenter, chip.note);
}

} // namespace kvscope::ui
