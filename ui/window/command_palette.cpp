// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/command_palette.h"

#include <QKeyEvent>
#include <QLabel>
#include <QListView>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/widgets/line_edit.h"
#include "ui/widgets/marked_text.h"

namespace kvscope::ui {
namespace {

constexpr int kWidth = 580;
constexpr int kRow = 36;
constexpr int kRowsSeen = 10;
constexpr int kFromTop = 72;
using Model = PaletteModel;

} // namespace

QSize PaletteDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const {
    return {option.rect.width(), kRow};
}

void PaletteDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const bool selected = option.state & QStyle::State_Selected;
    if (selected || (option.state & QStyle::State_MouseOver)) {
        painter->setPen(Qt::NoPen);
        painter->setBrush(selected ? m_theme.sel : m_theme.bg2);
        painter->drawRoundedRect(option.rect.adjusted(6, 0, -6, 0), 6, 6);
    }
    QRect line = option.rect.adjusted(18, 0, -18, 0);
    const QString keys = index.data(Model::KeysRole).toString();
    if (!keys.isEmpty()) {
        painter->setFont(monoFont(TextRole::Axis));
        const int wide = painter->fontMetrics().horizontalAdvance(keys);
        painter->setPen(m_theme.text2);
        painter->drawText(line, Qt::AlignRight | Qt::AlignVCenter, keys);
        line.setRight(line.right() - wide - 12);
    }
    const QString detail = index.data(Model::DetailRole).toString();
    painter->setFont(figureFont(TextRole::Table));
    const int wide = painter->fontMetrics().horizontalAdvance(detail);
    MarkedText title{index.data().toString(), {}, false};
    for (const QVariant& range : index.data(Model::RangesRole).toList())
        title.marks.emplace_back(range.toPoint().x(), range.toPoint().y());
    const QRect words(line.left(), line.top(), line.width() - wide - 12, line.height());
    const int end =
        paintMarked(*painter, words, title, textFont(TextRole::Control), m_theme.text1, m_theme.accent, QColor());
    painter->setFont(figureFont(TextRole::Table));
    painter->setPen(m_theme.text3);
    painter->drawText(QRect(end + 12, line.top(), line.right() - end - 12, line.height()), Qt::AlignVCenter, detail);
    painter->restore();
}

CommandPalette::CommandPalette(const CommandRegistry* commands, const ConversationListModel* conversations,
                               const Theme& theme, QWidget* parent)
    : Popup(theme, parent)
    , m_model(commands, conversations)
    , m_field(new LineEdit(this))
    , m_list(new QListView(this))
    , m_nothing(new QLabel(tr("Nothing is called like this"), this)) {
    setAccessibleName(tr("Find or run"));
    setFixedWidth(kWidth);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 12, 0, 8);
    column->setSpacing(8);
    auto* top = new QHBoxLayout;
    top->setContentsMargins(12, 0, 12, 0);
    m_field->setPlaceholderText(tr("Find a chat or run a command"));
    m_field->setAccessibleName(tr("Find or run"));
    m_field->setMinimumHeight(34);
    m_field->setProperty("kvscopeFocusInside", true);
    m_field->installEventFilter(this);
    top->addWidget(m_field);
    column->addLayout(top);
    m_list->setObjectName(QStringLiteral("paletteList"));
    m_list->setAccessibleName(tr("Commands and chats"));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setModel(&m_model);
    m_list->setItemDelegate(new PaletteDelegate(theme, m_list));
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setMouseTracking(true);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->setFixedHeight(kRow * kRowsSeen);
    column->addWidget(m_list);
    m_nothing->setObjectName(QStringLiteral("hint"));
    m_nothing->setAlignment(Qt::AlignCenter);
    m_nothing->setFixedHeight(kRow * 2);
    m_nothing->hide();
    column->addWidget(m_nothing);
    connect(m_field, &QLineEdit::textChanged, this, &CommandPalette::search);
    connect(m_list, &QListView::clicked, this, &CommandPalette::choose);
    search({});
}

void CommandPalette::open() {
    adjustSize();
    const QWidget* window = parentWidget()->window();
    QWidget::move(window->mapToGlobal(QPoint((window->width() - width()) / 2, kFromTop)));
    show();
    m_field->setFocus();
}

void CommandPalette::search(const QString& query) {
    m_model.setQuery(query);
    const int rows = m_model.rowCount();
    m_list->setVisible(rows > 0);
    m_nothing->setVisible(rows == 0);
    m_list->setFixedHeight(kRow * std::clamp(rows, 1, kRowsSeen));
    if (rows > 0)
        m_list->setCurrentIndex(m_model.index(0));
    m_list->scrollToTop();
    adjustSize();
}

void CommandPalette::move(int by) {
    const int rows = m_model.rowCount();
    if (rows == 0)
        return;
    const int now = m_list->currentIndex().row();
    // Steps go around, pages stop at the ends.
    const int next = std::abs(by) == 1 ? (now + by + rows) % rows : std::clamp(now + by, 0, rows - 1);
    m_list->setCurrentIndex(m_model.index(next));
}

void CommandPalette::choose(const QModelIndex& index) {
    if (!index.isValid())
        return;
    const bool command = index.data(Model::IsCommandRole).toBool();
    const QString id = index.data(Model::IdRole).toString();
    close(); // before: a command may open another popup
    if (command)
        emit commandChosen(id);
    else
        emit conversationChosen(id.toLongLong());
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (watched != m_field || event->type() != QEvent::KeyPress || m_field->composing())
        return Popup::eventFilter(watched, event);
    switch (static_cast<QKeyEvent*>(event)->key()) {
    case Qt::Key_Down:
        move(1);
        return true;
    case Qt::Key_Up:
        move(-1);
        return true;
    case Qt::Key_PageDown:
        move(kRowsSeen);
        return true;
    case Qt::Key_PageUp:
        move(-kRowsSeen);
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        choose(m_list->currentIndex());
        return true;
    default:
        return Popup::eventFilter(watched, event);
    }
}

} // namespace kvscope::ui
