// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/attachment_chips.h"

#include <QPainter>
#include <QResizeEvent>
#include <algorithm>

#include "ui/models/format.h"
#include "ui/theme/icons.h"
#include "ui/widgets/icon_button.h"

namespace kvscope::ui {
namespace {

constexpr int kHeight = 28;
constexpr int kGlyph = 16;
constexpr int kLeft = 8, kGap = 6;
constexpr int kRemove = 22;
constexpr int kNameAtMost = 200;
constexpr int kSpacing = 6;
constexpr qsizetype kPreview = 300;

QFont nameFont() {
    return textFont(TextRole::Table, QFont::Medium);
}
QFont noteFont() {
    return figureFont(TextRole::Table);
}

} // namespace

AttachmentChip::AttachmentChip(const Attachment& attachment, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_name(attachmentTitle(attachment))
    , m_bytes(attachmentBytes(attachment))
    , m_tokens(attachment.tokens)
    , m_remove(new IconButton(Icon::Close, tr("Remove %1").arg(attachmentTitle(attachment)), theme, this)) {
    m_remove->setSide(kRemove);
    connect(m_remove, &QAbstractButton::clicked, this, &AttachmentChip::removeRequested);
    const QString beginning = attachment.text.left(kPreview);
    const QString shown = beginning + (attachment.text.size() > kPreview ? QStringLiteral("…") : QString());
    // As rich text, so that it wraps; escaped, so that it stays what it is.
    setToolTip(QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(shown.toHtmlEscaped()));
    setAccessibleName(tr("Attachment %1, %2").arg(m_name, note()));
}

QString AttachmentChip::note() const {
    const QString size = formatBytes(std::uint64_t(m_bytes));
    if (m_tokens <= 0)
        return size;
    return tr("%1 · %2").arg(size, m_tokens == 1 ? tr("1 token") : tr("%1 tokens").arg(formatNumber(m_tokens)));
}

void AttachmentChip::setTokens(std::int64_t tokens) {
    if (tokens == m_tokens)
        return;
    m_tokens = tokens;
    setAccessibleName(tr("Attachment %1, %2").arg(m_name, note()));
    updateGeometry();
    update();
}

QSize AttachmentChip::sizeHint() const {
    const int name = std::min(kNameAtMost, QFontMetrics(nameFont()).horizontalAdvance(m_name) + 1);
    const int figures = QFontMetrics(noteFont()).horizontalAdvance(note()) + 1;
    return {kLeft + kGlyph + kGap + name + kGap + 2 + figures + 4 + kRemove + 3, kHeight};
}

void AttachmentChip::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    m_remove->setGeometry(width() - kRemove - 3, (height() - kRemove) / 2, kRemove, kRemove);
}

void AttachmentChip::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_theme.bg3);
    painter.drawRoundedRect(rect(), 6, 6);
    painter.drawPixmap(QPoint(kLeft, (height() - kGlyph) / 2),
                       iconPixmap(Icon::Attach, kGlyph, m_theme.text2, devicePixelRatioF()));
    const int figures = QFontMetrics(noteFont()).horizontalAdvance(note()) + 1;
    const int right = m_remove->x() - 4;
    const QRect name(kLeft + kGlyph + kGap, 0, right - figures - kGap - 2 - (kLeft + kGlyph + kGap), height());
    painter.setFont(nameFont());
    painter.setPen(m_theme.text1);
    painter.drawText(name, Qt::AlignVCenter,
                     QFontMetrics(nameFont()).elidedText(m_name, Qt::ElideMiddle, name.width()));
    painter.setFont(noteFont());
    painter.setPen(m_theme.text3);
    painter.drawText(QRect(right - figures, 0, figures, height()), Qt::AlignVCenter, note());
}

void AttachmentChip::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

AttachmentChips::AttachmentChips(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setFixedHeight(0);
    hide();
}

void AttachmentChips::append(Attachment attachment) {
    auto* chip = new AttachmentChip(attachment, m_theme, this);
    connect(chip, &AttachmentChip::removeRequested, this, [this, chip] { removeChip(chip); });
    m_attachments.push_back(std::move(attachment));
    m_chips.push_back(chip);
    chip->show();
}

void AttachmentChips::add(Attachment attachment) {
    append(std::move(attachment));
    place();
    emit changed();
}

void AttachmentChips::set(std::vector<Attachment> attachments) {
    if (attachments.empty() && m_attachments.empty())
        return;
    for (AttachmentChip* chip : m_chips) {
        chip->hide();
        chip->deleteLater();
    }
    m_chips.clear();
    m_attachments.clear();
    for (Attachment& attachment : attachments)
        append(std::move(attachment));
    place();
    emit changed();
}

void AttachmentChips::removeChip(AttachmentChip* chip) {
    const auto it = std::find(m_chips.begin(), m_chips.end(), chip);
    if (it == m_chips.end())
        return;
    const auto index = it - m_chips.begin();
    m_chips.erase(it);
    m_attachments.erase(m_attachments.begin() + index);
    const bool focused = chip->removeButton()->hasFocus();
    chip->hide();
    chip->deleteLater();
    if (focused && !m_chips.empty())
        m_chips[std::min(std::size_t(index), m_chips.size() - 1)]->removeButton()->setFocus();
    place();
    emit changed();
}

void AttachmentChips::setTokens(std::size_t index, std::int64_t tokens) {
    if (index >= m_chips.size() || m_attachments[index].tokens == tokens)
        return;
    m_attachments[index].tokens = tokens;
    m_chips[index]->setTokens(tokens);
    place();
}

void AttachmentChips::place() {
    setVisible(!m_chips.empty());
    int x = 0, y = 0;
    for (AttachmentChip* chip : m_chips) {
        const QSize wanted = chip->sizeHint();
        const int chipWidth = std::min(wanted.width(), std::max(80, width()));
        if (x > 0 && x + chipWidth > width()) {
            x = 0;
            y += kHeight + kSpacing;
        }
        chip->setGeometry(x, y, chipWidth, kHeight);
        x += chipWidth + kSpacing;
    }
    const int needed = m_chips.empty() ? 0 : y + kHeight;
    if (needed != minimumHeight() || needed != maximumHeight())
        setFixedHeight(needed);
}

void AttachmentChips::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if (event->oldSize().width() != width())
        place();
}

} // namespace kvscope::ui
