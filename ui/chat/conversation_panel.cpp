// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/conversation_panel.h"

#include <QAction>
#include <QContextMenuEvent>
#include <QCoreApplication>
#include <QHBoxLayout>
#include <QItemSelectionModel>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "ui/chat/conversation_delegate.h"
#include "ui/models/format.h"
#include "ui/widgets/bar.h"
#include "ui/widgets/button.h"
#include "ui/widgets/icon_button.h"
#include "ui/widgets/line_edit.h"

namespace kvscope::ui {
namespace {

constexpr QSize kWarmth(28, 4);
constexpr int kHead = 44;

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

void dress(QListView* list, const QString& name) {
    list->setObjectName(QStringLiteral("conversationList"));
    list->setAccessibleName(name);
    list->setFrameShape(QFrame::NoFrame);
    list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    list->setSelectionMode(QAbstractItemView::SingleSelection);
    list->setUniformItemSizes(false);
    list->setMouseTracking(true);
    list->setProperty("kvscopeFocusInside", true);
}

} // namespace

ConversationPanel::ConversationPanel(ConversationListModel* model, SearchModel* search, const Theme& theme,
                                     QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_model(model)
    , m_search(search)
    , m_stack(new QStackedWidget(this))
    , m_list(new QListView(this))
    , m_hits(new QListView(this))
    , m_nothing(new QLabel(this))
    , m_more(new Button(QString(), Button::Kind::Ghost, theme, this))
    , m_delegate(new ConversationDelegate(theme, this))
    , m_hitDelegate(new SearchDelegate(theme, this)) {
    setAccessibleName(tr("Chats"));
    new QVBoxLayout(this);
    layout()->setContentsMargins(0, 0, 1, 0);
    layout()->setSpacing(0);
    buildHead();
    buildList();
    buildHits();
    m_nothing->setObjectName(QStringLiteral("hint"));
    m_nothing->setTextFormat(Qt::PlainText);
    m_nothing->setWordWrap(true);
    m_nothing->setAlignment(Qt::AlignHCenter | Qt::AlignTop);
    m_nothing->setContentsMargins(20, 32, 20, 20);
    m_stack->addWidget(m_list);
    m_stack->addWidget(m_hits);
    m_stack->addWidget(m_nothing);
    layout()->addWidget(m_stack);
    layout()->addWidget(m_more);
    layout()->addWidget(new WarmthLegend(theme, this));
}

void ConversationPanel::buildHead() {
    auto* head = new QHBoxLayout;
    head->setContentsMargins(12, 8, 8, 8);
    head->setSpacing(4);
    if (m_search) {
        m_field = new LineEdit(this);
        m_field->setObjectName(QStringLiteral("searchField"));
        m_field->setPlaceholderText(tr("Search titles and text"));
        m_field->setAccessibleName(tr("Search in titles and texts of all chats"));
        m_field->setClearButtonEnabled(true);
        m_field->addAction(makeIcon(Icon::Search, m_theme.text3, m_theme.textOff), QLineEdit::LeadingPosition);
        m_field->installEventFilter(this);
        head->addWidget(m_field, 1);
        connect(m_field, &QLineEdit::textChanged, m_search, &SearchModel::setQuery);
        connect(m_search, &SearchModel::changed, this, &ConversationPanel::showSearch);
    } else {
        auto* name = new QLabel(tr("Chats"), this);
        name->setObjectName(QStringLiteral("panelTitle"));
        name->setFont(textFont(TextRole::Chat, QFont::DemiBold));
        name->setContentsMargins(6, 0, 0, 0);
        head->addWidget(name, 1);
    }
    auto* plus = new IconButton(Icon::Plus, tr("New chat (Ctrl+N)"), m_theme, this, 20);
    connect(plus, &QAbstractButton::clicked, this, &ConversationPanel::newRequested);
    head->addWidget(plus);
    static_cast<QVBoxLayout*>(layout())->addLayout(head);
}

void ConversationPanel::buildList() {
    // Before the list itself hears of it: a row that leaves makes the list choose a neighbour, which nobody asked for.
    connect(m_model, &QAbstractItemModel::rowsAboutToBeRemoved, this, [this] { m_syncing = true; });
    dress(m_list, tr("Chats"));
    m_list->setModel(m_model);
    m_list->setItemDelegate(m_delegate);
    m_list->setEditTriggers(QAbstractItemView::EditKeyPressed | QAbstractItemView::DoubleClicked);
    m_list->installEventFilter(this);
    m_list->viewport()->installEventFilter(this);
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
        const ConversationId id = m_model->idAt(index.row());
        if (m_syncing || id == kNoId || id == m_current)
            return;
        m_current = id;
        emit selected(id);
    });
    // Rows move when a chat is used: the selection follows its conversation, not its place.
    connect(m_model, &QAbstractItemModel::modelReset, this, &ConversationPanel::syncCurrent);
    connect(m_model, &QAbstractItemModel::rowsInserted, this, &ConversationPanel::syncCurrent);
    connect(m_model, &QAbstractItemModel::rowsRemoved, this, &ConversationPanel::syncCurrent);
}

void ConversationPanel::buildHits() {
    dress(m_hits, tr("Chats found"));
    m_hits->setItemDelegate(m_hitDelegate);
    m_hits->installEventFilter(this);
    m_more->hide();
    if (!m_search)
        return;
    connect(m_more, &QAbstractButton::clicked, m_search, &SearchModel::showMore);
    m_hits->setModel(m_search);
    connect(m_hits, &QListView::clicked, this, &ConversationPanel::chooseHit);
}

// ---- search ----

void ConversationPanel::showSearch() {
    m_hitDelegate->setQuery(m_search->query());
    m_more->setVisible(m_search->active() && m_search->more());
    m_more->setText(tr("%1 of %2 chats · Show more")
                        .arg(formatNumber(m_search->rowCount()), formatNumber(m_search->conversations())));
    if (!m_search->active()) {
        m_stack->setCurrentWidget(m_list);
        return;
    }
    const bool found = m_search->rowCount() > 0;
    if (!found && m_search->waiting() && m_search->problem().isEmpty()) {
        m_stack->setCurrentWidget(m_hits); // empty for a moment, rather than a sentence that flashes up
        return;
    }
    m_nothing->setText(m_search->problem().isEmpty() ? tr("No chat contains “%1”").arg(m_search->query().left(60))
                                                     : m_search->problem());
    m_stack->setCurrentWidget(found ? static_cast<QWidget*>(m_hits) : m_nothing);
    m_hits->viewport()->update();
}

void ConversationPanel::chooseHit(const QModelIndex& index) {
    if (!index.isValid())
        return;
    const ConversationId id = index.data(SearchModel::ConversationRole).toLongLong();
    m_current = id;
    emit hitChosen(id, index.data(SearchModel::MessageRole).toLongLong(), m_search->query());
}

void ConversationPanel::focusSearch() {
    if (!m_field)
        return;
    m_field->setFocus(Qt::ShortcutFocusReason);
    m_field->selectAll();
}

bool ConversationPanel::clearSearch() {
    if (!m_field || m_field->text().isEmpty())
        return false;
    m_field->clear();
    syncCurrent();
    return true;
}

// ---- choosing ----

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
    clearSearch();
    const int row = m_model->rowOf(m_current);
    if (row < 0)
        return;
    m_list->scrollTo(m_model->index(row));
    m_list->edit(m_model->index(row));
}

void ConversationPanel::showMenu(const QContextMenuEvent& event) {
    const bool byKey = event.reason() == QContextMenuEvent::Keyboard;
    const QModelIndex index =
        byKey ? m_list->currentIndex() : m_list->indexAt(m_list->viewport()->mapFromGlobal(event.globalPos()));
    const ConversationId id = m_model->idAt(index.row());
    if (id == kNoId)
        return;
    QMenu menu(this);
    const auto add = [&](Icon icon, const QString& text, auto&& run) {
        menu.addAction(makeIcon(icon, m_theme.text2, m_theme.textOff), text, this, run);
    };
    add(Icon::Edit, tr("Rename\tF2"), [this, index = QPersistentModelIndex(index)] { m_list->edit(index); });
    add(Icon::Copy, tr("Duplicate"), [this, id] { emit duplicateRequested(id); });
    add(Icon::Export, tr("Export…"), [this, id] { emit exportRequested(id); });
    menu.addSeparator();
    add(Icon::Trash, tr("Delete\tDel"), [this, id] { emit deleteRequested(id); });
    menu.exec(byKey ? m_list->viewport()->mapToGlobal(m_list->visualRect(index).center()) : event.globalPos());
}

bool ConversationPanel::listKey(int key) {
    if (key == Qt::Key_Delete && m_current != kNoId) {
        emit deleteRequested(m_current);
        return true;
    }
    if ((key == Qt::Key_Return || key == Qt::Key_Enter) && m_current != kNoId) {
        emit entered();
        return true;
    }
    return false;
}

bool ConversationPanel::fieldKey(int key) {
    const bool found = m_search->rowCount() > 0;
    switch (key) {
    case Qt::Key_Down:
        if (m_stack->currentWidget() == m_list) {
            m_list->setFocus(Qt::TabFocusReason);
        } else if (found) {
            if (!m_hits->currentIndex().isValid())
                m_hits->setCurrentIndex(m_search->index(0));
            m_hits->setFocus(Qt::TabFocusReason);
        }
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (found)
            chooseHit(m_hits->currentIndex().isValid() ? m_hits->currentIndex() : m_search->index(0));
        return true;
    default:
        return false;
    }
}

bool ConversationPanel::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::ContextMenu && (watched == m_list || watched == m_list->viewport())) {
        showMenu(*static_cast<QContextMenuEvent*>(event));
        return true;
    }
    if (event->type() != QEvent::KeyPress)
        return QWidget::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (watched == m_list && listKey(key))
        return true;
    if (watched == m_field && !m_field->composing() && fieldKey(key))
        return true;
    if (watched == m_hits) {
        if (key == Qt::Key_Return || key == Qt::Key_Enter) {
            chooseHit(m_hits->currentIndex());
            return true;
        }
        if (key == Qt::Key_Up && m_hits->currentIndex().row() <= 0) {
            m_field->setFocus(Qt::BacktabFocusReason);
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

// ---- looks ----

void ConversationPanel::setTheme(const Theme& theme) {
    m_theme = theme;
    m_delegate->setTheme(theme);
    m_hitDelegate->setTheme(theme);
    if (m_field)
        for (QAction* action : m_field->actions())
            if (!action->icon().isNull() && action->objectName().isEmpty())
                action->setIcon(makeIcon(Icon::Search, theme.text3, theme.textOff));
    m_list->viewport()->update();
    m_hits->viewport()->update();
    update();
}

void ConversationPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg2);
    painter.fillRect(QRect(width() - 1, 0, 1, height()), m_theme.line1);
    painter.fillRect(QRect(0, kHead, width(), 1), m_theme.line1);
}

} // namespace kvscope::ui
