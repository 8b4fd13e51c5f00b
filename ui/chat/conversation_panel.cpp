// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/conversation_panel.h"

#include <QCoreApplication>
#include <QHBoxLayout>
#include <QItemSelectionModel>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPainter>
#include <QVBoxLayout>

#include "ui/chat/message_paint.h"
#include "ui/widgets/bar.h"
#include "ui/widgets/icon_button.h"

namespace kvscope::ui {
namespace {

constexpr int kRow = 56;
constexpr int kHeading = 32;
constexpr QSize kWarmth(28, 4);
using Model = ConversationListModel;

QRect cardOf(const QRect& row) {
    return row.adjusted(8, 0, -8, 0);
}
QRect titleOf(const QRect& row) {
    const QRect card = cardOf(row);
    return {card.left() + 10, card.top() + 8, card.width() - 18, 20};
}

/// What the two bars mean.
class WarmthLegend final : public QWidget, public Themed {
public:
    WarmthLegend(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) { setFixedHeight(32); }
    void setTheme(const Theme& theme) override {
        m_theme = theme;
        update();
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setFont(textFont(TextRole::Axis));
        int x = 18;
        const std::pair<QString, QColor> entries[] = {
            {QCoreApplication::translate("ConversationPanel", "cached"), m_theme.stateCachedRing},
            {QCoreApplication::translate("ConversationPanel", "to recompute"), m_theme.line2}};
        for (const auto& [word, color] : entries) {
            paintBar(painter, QRectF(QPointF(x, 14), kWarmth), {{1.0, color}}, m_theme.line2, m_theme.bg2);
            x += kWarmth.width() + 6;
            painter.setPen(m_theme.text3);
            painter.drawText(QRect(x, 0, width(), height()), Qt::AlignVCenter, word);
            x += painter.fontMetrics().horizontalAdvance(word) + 10;
        }
    }

private:
    Theme m_theme;
};

} // namespace

ConversationDelegate::ConversationDelegate(const Theme& theme, QObject* parent)
    : QStyledItemDelegate(parent)
    , m_theme(theme) {}

QSize ConversationDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
    return {option.rect.width(), index.data(Model::HeadingRole).toBool() ? kHeading : kRow};
}

void ConversationDelegate::paintHeading(QPainter& painter, const QRect& rect, const QString& text) const {
    painter.setFont(textFont(TextRole::Axis, QFont::Medium));
    painter.setPen(m_theme.text3);
    painter.drawText(rect.adjusted(18, 12, -8, -4), Qt::AlignVCenter, text);
}

void ConversationDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                                 const QModelIndex& index) const {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    if (index.data(Model::HeadingRole).toBool()) {
        paintHeading(*painter, option.rect, index.data().toString());
        painter->restore();
        return;
    }
    const bool selected = option.state & QStyle::State_Selected;
    const bool hovered = option.state & QStyle::State_MouseOver;
    const QRect card = cardOf(option.rect);
    if (selected || hovered) {
        painter->setPen(Qt::NoPen);
        painter->setBrush(selected ? m_theme.sel : m_theme.bg3);
        painter->drawRoundedRect(card, 6, 6);
    }
    if (selected && (option.state & QStyle::State_HasFocus)) {
        painter->setPen(QPen(m_theme.focus, 2));
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(QRectF(card).adjusted(1, 1, -1, -1), 6, 6);
    }
    const QRect title = titleOf(option.rect);
    const bool running = index.data(Model::RunningRole).toBool();
    int right = title.right();
    if (running) {
        painter->setPen(Qt::NoPen);
        painter->setBrush(m_theme.accent);
        painter->drawEllipse(QRectF(right - 7, title.center().y() - 3, 8, 8));
        right -= 16;
    } else {
        const QString time = index.data(Model::TimeRole).toString();
        painter->setFont(figureFont(TextRole::Axis));
        painter->setPen(m_theme.text3);
        painter->drawText(title, Qt::AlignRight | Qt::AlignVCenter, time);
        right -= painter->fontMetrics().horizontalAdvance(time) + 8;
    }
    const QFont titleFont = textFont(TextRole::Control, QFont::Medium);
    painter->setFont(titleFont);
    painter->setPen(m_theme.text1);
    const QRect titleText(title.left(), title.top(), right - title.left(), title.height());
    painter->drawText(titleText, Qt::AlignVCenter,
                      QFontMetrics(titleFont).elidedText(index.data().toString(), Qt::ElideRight, titleText.width()));
    const QRect line(title.left(), title.bottom() + 1 + 4, title.width(), 16);
    const QFont subtitleFont = figureFont(TextRole::Table);
    painter->setFont(subtitleFont);
    painter->setPen(selected ? m_theme.text2 : m_theme.text3);
    const QRect subtitle = line.adjusted(0, 0, -kWarmth.width() - 8, 0);
    painter->drawText(subtitle, Qt::AlignVCenter,
                      QFontMetrics(subtitleFont)
                          .elidedText(index.data(Model::SubtitleRole).toString(), Qt::ElideRight, subtitle.width()));
    paintWarmth(*painter, QRectF(QPointF(line.right() + 1 - kWarmth.width(), line.center().y() - 1), kWarmth), index);
    painter->restore();
}

void ConversationDelegate::paintWarmth(QPainter& painter, const QRectF& rect, const QModelIndex& index) const {
    if (!index.data(Model::WarmthKnownRole).toBool())
        return;
    paintBar(painter, rect,
             {{index.data(Model::WarmthInUseRole).toDouble(), m_theme.stateActive},
              {index.data(Model::WarmthCachedRole).toDouble(), m_theme.stateCachedRing}},
             m_theme.line2, m_theme.bg2);
}

QWidget* ConversationDelegate::createEditor(QWidget* parent, const QStyleOptionViewItem&, const QModelIndex&) const {
    auto* editor = new QLineEdit(parent);
    editor->setObjectName(QStringLiteral("renameEditor"));
    editor->setFont(textFont(TextRole::Control, QFont::Medium));
    editor->setProperty("kvscopeFocusInside", true);
    return editor;
}

void ConversationDelegate::updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                                                const QModelIndex&) const {
    const QRect card = cardOf(option.rect);
    editor->setGeometry(card.adjusted(2, 3, -2, -25));
}

ConversationPanel::ConversationPanel(ConversationListModel* model, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_model(model)
    , m_list(new QListView(this))
    , m_delegate(new ConversationDelegate(theme, this)) {
    setAccessibleName(tr("Chats"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 1, 0);
    column->setSpacing(0);
    auto* head = new QHBoxLayout;
    head->setContentsMargins(18, 8, 8, 8);
    auto* name = new QLabel(tr("Chats"), this);
    name->setObjectName(QStringLiteral("panelTitle"));
    QFont font = textFont(TextRole::Chat, QFont::DemiBold);
    name->setFont(font);
    head->addWidget(name, 1);
    auto* plus = new IconButton(Icon::Plus, tr("New chat (Ctrl+N)"), theme, this, 20);
    connect(plus, &QAbstractButton::clicked, this, &ConversationPanel::newRequested);
    head->addWidget(plus);
    column->addLayout(head);

    // Before the list itself hears of it: a row that leaves makes the list choose a neighbour, which nobody asked for.
    connect(model, &QAbstractItemModel::rowsAboutToBeRemoved, this, [this] { m_syncing = true; });
    m_list->setModel(model);
    m_list->setItemDelegate(m_delegate);
    m_list->setObjectName(QStringLiteral("conversationList"));
    m_list->setAccessibleName(tr("Chats"));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->setSelectionMode(QAbstractItemView::SingleSelection);
    m_list->setEditTriggers(QAbstractItemView::EditKeyPressed | QAbstractItemView::DoubleClicked);
    m_list->setContextMenuPolicy(Qt::CustomContextMenu);
    m_list->setMouseTracking(true);
    m_list->setProperty("kvscopeFocusInside", true);
    m_list->installEventFilter(this);
    column->addWidget(m_list, 1);
    column->addWidget(new WarmthLegend(theme, this));

    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
        const ConversationId id = m_model->idAt(index.row());
        if (m_syncing || id == kNoId || id == m_current)
            return;
        m_current = id;
        emit selected(id);
    });
    connect(m_list, &QWidget::customContextMenuRequested, this, &ConversationPanel::showMenu);
    // Rows move when a chat is used: the selection follows its conversation, not its place.
    connect(model, &QAbstractItemModel::modelReset, this, &ConversationPanel::syncCurrent);
    connect(model, &QAbstractItemModel::rowsInserted, this, &ConversationPanel::syncCurrent);
    connect(model, &QAbstractItemModel::rowsRemoved, this, &ConversationPanel::syncCurrent);
}

void ConversationPanel::setCurrent(ConversationId id) {
    m_current = id;
    syncCurrent();
}

void ConversationPanel::syncCurrent() {
    m_syncing = true;
    const int row = m_model->rowOf(m_current);
    if (row < 0) {
        m_list->clearSelection();
        m_list->setCurrentIndex({});
    } else {
        m_list->setCurrentIndex(m_model->index(row));
    }
    m_syncing = false;
}

void ConversationPanel::renameCurrent() {
    const int row = m_model->rowOf(m_current);
    if (row >= 0)
        m_list->edit(m_model->index(row));
}

void ConversationPanel::showMenu(const QPoint& at) {
    const QModelIndex index = m_list->indexAt(at);
    const ConversationId id = m_model->idAt(index.row());
    if (id == kNoId)
        return;
    QMenu menu(this);
    menu.addAction(makeIcon(Icon::Edit, m_theme.text2, m_theme.textOff), tr("Rename\tF2"), this,
                   [this, index = QPersistentModelIndex(index)] { m_list->edit(index); });
    menu.addAction(makeIcon(Icon::Trash, m_theme.text2, m_theme.textOff), tr("Delete\tDel"), this,
                   [this, id] { emit deleteRequested(id); });
    menu.exec(m_list->viewport()->mapToGlobal(at));
}

bool ConversationPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_list && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Delete && m_current != kNoId) {
        emit deleteRequested(m_current);
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void ConversationPanel::setTheme(const Theme& theme) {
    m_theme = theme;
    m_delegate->setTheme(theme);
    m_list->viewport()->update();
    update();
}

void ConversationPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg2);
    painter.fillRect(QRect(width() - 1, 0, 1, height()), m_theme.line1);
}

} // namespace kvscope::ui
