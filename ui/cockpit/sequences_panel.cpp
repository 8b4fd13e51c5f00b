// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/sequences_panel.h"

#include <QHeaderView>
#include <QPainter>
#include <QScrollBar>
#include <QTableView>
#include <utility>

#include "ui/cockpit/look.h"
#include "ui/cockpit/quiet_header.h"
#include "ui/cockpit/sequence_delegate.h"
#include "ui/models/format.h"
#include "ui/widgets/empty_state.h"

namespace kvscope::ui {
namespace {

constexpr int kRow = 24;
constexpr int kLeastTitle = 120;

/// Widest figure each column has to hold, as text.
QString widestOf(int column) {
    switch (column) {
    case SequenceModel::Tokens:
    case SequenceModel::CachedPrefix:
        return QStringLiteral("88,888");
    case SequenceModel::Blocks:
    case SequenceModel::Shared:
        return QStringLiteral("8,888");
    case SequenceModel::FirstToken:
        return QStringLiteral("88.88\u202fs");
    case SequenceModel::PerToken:
        return QStringLiteral("8,888\u202fms");
    default:
        return {};
    }
}

} // namespace

SequencesPanel::SequencesPanel(CockpitController& controller, const Theme& theme, QWidget* parent)
    : Panel(parent)
    , m_controller(controller)
    , m_theme(theme)
    , m_table(new QTableView(this))
    , m_header(new QuietHeader(theme, m_table))
    , m_delegate(new SequenceDelegate(theme, this))
    , m_empty(new EmptyState(Icon::Table, tr("Send a message and follow its sequence here"), theme, this)) {
    setAccessibleName(name());
    m_table->setModel(controller.sequences());
    m_table->setItemDelegate(m_delegate);
    m_table->setAccessibleName(tr("Live sequences"));
    m_table->setShowGrid(false);
    m_table->setSelectionMode(QAbstractItemView::NoSelection);
    m_table->setTabKeyNavigation(false);
    m_table->setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(kRow);
    m_table->verticalHeader()->setMinimumSectionSize(kRow);
    m_table->setHorizontalHeader(m_header);
    m_header->setSectionResizeMode(QHeaderView::Fixed);
    connect(&controller, &CockpitController::sequencesChanged, this, &SequencesPanel::takeRows);
    connect(&controller, &CockpitController::sourceChanged, this, &SequencesPanel::takeRows);
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex& index) {
        emit ownerActivated(OwnerId(index.data(SequenceModel::OwnerRole).toLongLong()));
    });
    takeRows();
}

QString SequencesPanel::name() const {
    return tr("Sequences");
}

QString SequencesPanel::note() const {
    const SequenceModel& model = *m_controller.sequences();
    if (model.rowCount() == 0)
        return {};
    QStringList parts{tr("%1 running").arg(formatNumber(model.running()))};
    if (model.waiting() > 0)
        parts.append(tr("%1 waiting").arg(formatNumber(model.waiting())));
    if (model.idle() > 0)
        parts.append(tr("%1 idle").arg(formatNumber(model.idle())));
    return parts.join(QStringLiteral(", "));
}

void SequencesPanel::setTheme(const Theme& theme) {
    m_theme = theme;
    m_header->setTheme(theme);
    m_delegate->setTheme(theme);
    m_table->viewport()->update();
    update();
}

void SequencesPanel::setCurrentOwner(OwnerId owner) {
    m_delegate->setCurrentOwner(owner);
    m_table->viewport()->update();
}

void SequencesPanel::takeRows() {
    const bool none = m_controller.sequences()->rowCount() == 0;
    m_table->setVisible(!none);
    m_empty->setVisible(none);
    updateSpans();
    fitColumns();
    if (const QString text = note(); text != m_note) {
        m_note = text;
        emit titleChanged();
    }
}

void SequencesPanel::updateSpans() {
    const SequenceModel& model = *m_controller.sequences();
    for (int row = 0; row < model.rowCount(); ++row) {
        const bool waits = model.index(row, SequenceModel::State).data(SequenceModel::WaitingRole).isValid();
        const int columns = waits ? SequenceModel::kColumns - SequenceModel::State : 1;
        if (m_table->columnSpan(row, SequenceModel::State) != columns)
            m_table->setSpan(row, SequenceModel::State, 1, columns);
    }
}

void SequencesPanel::fitColumns() {
    const QSize now(width(), m_controller.sequences()->rowCount());
    if (std::exchange(m_fittedFor, now) == now)
        return;
    const QFontMetrics figures(figureFont(TextRole::Table));
    const QFontMetrics names(QuietHeader::wordFont());
    const SequenceModel& model = *m_controller.sequences();
    int used = 0;
    for (int column = SequenceModel::State; column < SequenceModel::kColumns; ++column) {
        const QString head = model.headerData(column, Qt::Horizontal).toString();
        int width = qMax(names.horizontalAdvance(head), figures.horizontalAdvance(widestOf(column)));
        if (column == SequenceModel::State)
            width = figures.horizontalAdvance(tr("Reading 100 %")) + 46;
        const QMargins padding = QuietHeader::padding(column, SequenceModel::kColumns);
        width += padding.left() + padding.right();
        m_table->setColumnWidth(column, width);
        used += width;
    }
    // The title takes what is left. Where that is nothing, the least telling columns leave.
    const bool scrolls = m_table->verticalHeader()->length() + m_header->height() > height();
    const int room = width() - (scrolls ? m_table->verticalScrollBar()->sizeHint().width() : 0);
    for (const int column :
         {SequenceModel::Shared, SequenceModel::CachedPrefix, SequenceModel::FirstToken, SequenceModel::PerToken}) {
        const bool hide = room - used < kLeastTitle;
        m_table->setColumnHidden(column, hide);
        if (hide)
            used -= m_table->columnWidth(column);
    }
    m_table->setColumnWidth(SequenceModel::Conversation, qMax(kLeastTitle, room - used));
}

void SequencesPanel::resizeEvent(QResizeEvent*) {
    m_table->setGeometry(rect());
    m_empty->setGeometry(rect());
    fitColumns();
}

void SequencesPanel::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), m_theme.bg1);
}

} // namespace kvscope::ui
