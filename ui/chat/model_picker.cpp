// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/model_picker.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QScreen>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/chat/message_paint.h"
#include "ui/models/format.h"
#include "ui/widgets/bar.h"
#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr int kRow = 48;
constexpr int kRoomWidth = 132;
constexpr int kMarkWidth = 24;
constexpr int kRowsShown = 6;
constexpr const char* kFetchCommand = "packaging/fetch_model.sh";
using Model = ModelListModel;

QLabel* label(const QString& text, const char* name, const QFont& font, QWidget* parent) {
    auto* out = new QLabel(text, parent);
    out->setObjectName(QLatin1StringView(name));
    out->setFont(font);
    out->setTextFormat(Qt::PlainText);
    out->setWordWrap(true);
    return out;
}

void paintCard(QWidget& widget, const QRect& rect, const QColor& ground, const QColor& line) {
    QPainter painter(&widget);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(line);
    painter.setBrush(ground);
    painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
}

} // namespace

// ---- rows ----

ModelDelegate::ModelDelegate(const Theme& theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}

QSize ModelDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const {
    return {option.rect.width(), kRow + 2};
}

void ModelDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const QRect row = option.rect.adjusted(0, 0, 0, -2);
    const bool fits = index.data(Model::FitsRole).toBool();
    const bool selected = option.state & QStyle::State_Selected;
    const bool hovered = option.state & QStyle::State_MouseOver;
    if (selected || hovered) {
        painter->setPen(Qt::NoPen);
        painter->setBrush(selected ? m_theme.sel : m_theme.bg4);
        painter->drawRoundedRect(row, 6, 6);
    }
    if (selected && (option.state & QStyle::State_HasFocus)) {
        painter->setPen(QPen(m_theme.focus, 2));
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(QRectF(row).adjusted(1, 1, -1, -1), 6, 6);
    }
    const QRect inner = row.adjusted(12, 6, -12, -6);
    const QRect mark(inner.right() - kMarkWidth + 1, inner.top(), kMarkWidth, inner.height());
    const QRect room(mark.left() - 8 - kRoomWidth, inner.top(), kRoomWidth, inner.height());
    const int end = index.data(Model::FitRole).toString().isEmpty() ? mark.left() - 8 : room.left() - 12;
    const QRect words(inner.left(), inner.top(), end - inner.left(), inner.height());
    const QFont name = textFont(TextRole::Control, QFont::Medium);
    painter->setFont(name);
    painter->setPen(fits ? m_theme.text1 : m_theme.text3);
    painter->drawText(QRect(words.left(), words.top(), words.width(), 20), Qt::AlignVCenter,
                      QFontMetrics(name).elidedText(index.data().toString(), Qt::ElideRight, words.width()));
    const QFont detail = figureFont(TextRole::Table);
    painter->setFont(detail);
    painter->setPen(selected ? m_theme.text2 : m_theme.text3);
    painter->drawText(
        QRect(words.left(), words.top() + 20, words.width(), 16), Qt::AlignVCenter,
        QFontMetrics(detail).elidedText(index.data(Model::DetailRole).toString(), Qt::ElideRight, words.width()));
    paintRoom(*painter, room, index);
    if (index.data(Model::CurrentRole).toBool())
        paintIcon(*painter, mark, Icon::Check, 16, m_theme.accent, painter->device()->devicePixelRatioF());
    painter->restore();
}

void ModelDelegate::paintRoom(QPainter& painter, const QRect& rect, const QModelIndex& index) const {
    const QString words = index.data(Model::FitRole).toString();
    if (words.isEmpty())
        return;
    const QRectF bar(rect.left(), rect.top() + 6, rect.width(), 8);
    const bool fits = index.data(Model::FitsRole).toBool();
    if (fits) {
        paintBar(painter, bar,
                 {{index.data(Model::WeightsShareRole).toDouble(), m_theme.memoryWeights},
                  {index.data(Model::RoomShareRole).toDouble(), m_theme.memoryKv}},
                 m_theme.bg4, m_theme.well);
    } else {
        painter.setPen(Qt::NoPen);
        painter.setBrush(QBrush(m_theme.danger, Qt::BDiagPattern));
        painter.drawRoundedRect(bar, 2, 2);
    }
    painter.setFont(figureFont(TextRole::Axis));
    painter.setPen(fits ? m_theme.text2 : m_theme.danger);
    painter.drawText(QRect(rect.left(), rect.top() + 18, rect.width(), 16), Qt::AlignVCenter, words);
}

ModelListView::ModelListView(ModelListModel* model, const Theme& theme, QWidget* parent)
    : QListView(parent)
    , m_delegate(new ModelDelegate(theme, this)) {
    setObjectName(QStringLiteral("modelList"));
    setAccessibleName(tr("Models"));
    setModel(model);
    setItemDelegate(m_delegate);
    setFrameShape(QFrame::NoFrame);
    setMouseTracking(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    setProperty("kvscopeFocusInside", true);
    connect(this, &QListView::clicked, this, &ModelListView::choose);
    connect(this, &QListView::activated, this, &ModelListView::choose);
    for (const auto signal : {&QAbstractItemModel::rowsInserted, &QAbstractItemModel::rowsRemoved})
        connect(model, signal, this, [this] { updateGeometry(); });
    connect(model, &QAbstractItemModel::modelReset, this, [this] { updateGeometry(); });
}

void ModelListView::choose(const QModelIndex& index) {
    // A model that does not fit may fit by now (memory was freed): loading it says so in its own words.
    if (index.isValid())
        emit chosen(index.data(Model::PathRole).toString());
}

void ModelListView::setTheme(const Theme& theme) {
    m_delegate->setTheme(theme);
    viewport()->update();
}

QSize ModelListView::sizeHint() const {
    return {420, std::clamp(model()->rowCount(), 1, kRowsShown) * (kRow + 2)};
}

// ---- popup ----

ModelPicker::ModelPicker(ModelListModel* model, const Theme& theme, QWidget* parent)
    : Popup(theme, parent)
    , m_model(model)
    , m_list(new ModelListView(model, theme, this))
    , m_empty(label(tr("No model in %1").arg(model->folder()), "hint", textFont(TextRole::Table), this)) {
    setFixedWidth(480);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 8, 8, 8);
    column->setSpacing(8);
    column->addWidget(m_empty);
    column->addWidget(m_list);
    auto* open = new Button(tr("Open a GGUF file…"), Button::Kind::Normal, theme, this);
    open->setGlyph(Icon::Folder);
    column->addWidget(open, 0, Qt::AlignLeft);
    connect(open, &QAbstractButton::clicked, this, [this] {
        hide();
        emit openRequested();
    });
    connect(m_list, &ModelListView::chosen, this, [this](const QString& path) {
        hide();
        emit chosen(path);
    });
}

void ModelPicker::popupBelow(QWidget* anchor) {
    m_model->rescan();
    m_empty->setVisible(m_model->rowCount() == 0);
    m_list->setFixedHeight(m_list->sizeHint().height());
    m_list->setVisible(m_model->rowCount() > 0);
    adjustSize();
    const QRect screen = anchor->screen()->availableGeometry();
    QPoint at = anchor->mapToGlobal(QPoint(0, anchor->height() + 4));
    at.setX(std::min(at.x(), screen.right() - width() - 4));
    move(at);
    show();
    m_list->setFocus();
}

// ---- first start ----

FirstStart::FirstStart(ModelListModel* model, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_model(model)
    , m_card(new QWidget(this))
    , m_intro(label(QString(), "quiet", textFont(TextRole::Control), m_card))
    , m_list(new ModelListView(model, theme, m_card))
    , m_fetch(new QWidget(m_card)) {
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(20, 24, 20, 24);
    m_card->setMaximumWidth(560);
    outer->addWidget(m_card);
    outer->addStretch(1);
    auto* column = new QVBoxLayout(m_card);
    column->setContentsMargins(20, 18, 20, 18);
    column->setSpacing(8);
    column->addWidget(
        label(tr("Choose a model to talk to"), "headline", textFont(TextRole::Headline, QFont::DemiBold), m_card));
    column->addWidget(m_intro);
    column->addWidget(m_list);

    auto* fetch = new QHBoxLayout(m_fetch);
    fetch->setContentsMargins(0, 0, 0, 0);
    auto* command = label(QLatin1StringView(kFetchCommand), "command", monoFont(TextRole::Table), m_fetch);
    command->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    fetch->addWidget(command, 1);
    auto* copy = new Button(tr("Copy"), Button::Kind::Normal, theme, m_fetch);
    copy->setGlyph(Icon::Copy);
    connect(copy, &QAbstractButton::clicked, this,
            [] { QGuiApplication::clipboard()->setText(QLatin1StringView(kFetchCommand)); });
    fetch->addWidget(copy);
    column->addWidget(m_fetch);

    auto* foot = new QHBoxLayout;
    auto* open = new Button(tr("Open a GGUF file…"), Button::Kind::Normal, theme, m_card);
    connect(open, &QAbstractButton::clicked, this, &FirstStart::openRequested);
    foot->addWidget(open);
    foot->addStretch(1);
    foot->addWidget(label(tr("or drop a file here"), "hint", textFont(TextRole::Table), m_card));
    column->addLayout(foot);
    connect(m_list, &ModelListView::chosen, this, &FirstStart::chosen);
    connect(model, &QAbstractItemModel::modelReset, this, &FirstStart::refresh);
    connect(model, &QAbstractItemModel::rowsInserted, this, &FirstStart::refresh);
    connect(model, &QAbstractItemModel::dataChanged, this, &FirstStart::refresh);
    refresh();
}

void FirstStart::refresh() {
    const bool none = m_model->rowCount() == 0;
    m_list->setVisible(!none);
    m_list->setFixedHeight(m_list->sizeHint().height());
    m_fetch->setVisible(none);
    const std::uint64_t available = m_model->availableBytes();
    m_intro->setText(none ? tr("There is none in %1 yet. This command gets one of about 94 MiB:").arg(m_model->folder())
                     : available > 0 ? tr("This computer has %1 free. The bar shows what each model leaves for chats.")
                                           .arg(formatBytes(available))
                                     : tr("The bar shows what each model leaves for chats."));
}

void FirstStart::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void FirstStart::paintEvent(QPaintEvent*) {
    {
        QPainter painter(this);
        painter.fillRect(rect(), m_theme.bg1);
    }
    paintCard(*this, m_card->geometry(), m_theme.bg1, m_theme.line2);
}

} // namespace kvscope::ui
