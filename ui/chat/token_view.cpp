// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/token_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QStringDecoder>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/chat/literal_font.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

constexpr int kWidth = 560, kHeight = 520;
constexpr int kRowHeight = 24;

/// One line whatever the token holds; bytes of an unfinished character as numbers.
QString visibleText(const std::string& piece) {
    const QByteArray bytes = QByteArray::fromStdString(piece);
    QStringDecoder decode(QStringDecoder::Utf8, QStringDecoder::Flag::Stateless);
    QString text = decode(bytes);
    if (decode.hasError())
        return QStringLiteral("0x") + QString::fromLatin1(bytes.toHex(' '));
    text.replace(QLatin1Char('\n'), QStringLiteral("↵")).replace(QLatin1Char('\t'), QStringLiteral("⇥"));
    text.replace(QLatin1Char('\r'), QStringLiteral("␍")).replace(QLatin1Char(' '), QStringLiteral("·"));
    return text;
}

} // namespace

int beginTokens(const api::PromptTokensEvent& event) {
    return int(std::count_if(event.tokens.begin(), event.tokens.end(),
                             [&](const auto& token) { return event.beginToken && token.id == *event.beginToken; }));
}

void PromptTokensModel::setTokens(const api::PromptTokensEvent& event) {
    beginResetModel();
    m_event = event;
    endResetModel();
}

int PromptTokensModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(m_event.tokens.size());
}

int PromptTokensModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(Columns);
}

QString PromptTokensModel::what(std::size_t row) const {
    const api::PromptTokensEvent::Token& token = m_event.tokens[row];
    if (m_event.beginToken && token.id == *m_event.beginToken)
        return tr("begin token");
    if (token.special)
        return tr("control token");
    for (std::size_t i = 0; i < m_event.messageRanges.size(); ++i)
        if (std::int64_t(row) >= m_event.messageRanges[i].first && std::int64_t(row) < m_event.messageRanges[i].second)
            return tr("message %1").arg(i + 1);
    return tr("template");
}

QVariant PromptTokensModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid))
        return {};
    const auto row = std::size_t(index.row());
    const api::PromptTokensEvent::Token& token = m_event.tokens[row];
    if (role == Qt::DisplayRole) {
        switch (index.column()) {
        case Place:
            return index.row();
        case Id:
            return token.id;
        case Text:
            return visibleText(token.piece);
        default:
            return what(row);
        }
    }
    if (role == Qt::TextAlignmentRole && index.column() <= Id)
        return int(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::FontRole)
        return index.column() == Text ? literalFont(TextRole::Table) : figureFont(TextRole::Table);
    if (role == Qt::ForegroundRole)
        return token.special ? m_theme.accent : index.column() == Text ? m_theme.text1 : m_theme.text2;
    return {};
}

QVariant PromptTokensModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return int((section <= Id ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    return QStringList{tr("Place"), tr("Id"), tr("Text"), tr("What it is")}.value(section);
}

TokenView::TokenView(const Theme& theme, QWidget* parent)
    : QDialog(parent)
    , m_tokens(new PromptTokensModel(this))
    , m_title(new QLabel(this))
    , m_summary(new QLabel(this))
    , m_table(new QTableView(this)) {
    setWindowTitle(tr("Prompt tokens"));
    resize(kWidth, kHeight);
    m_tokens->setTheme(theme);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(16, 16, 16, 16);
    column->setSpacing(4);
    m_title->setFont(textFont(TextRole::Dialog, QFont::DemiBold));
    m_title->setTextFormat(Qt::PlainText);
    m_summary->setFont(figureFont(TextRole::Control));
    m_summary->setWordWrap(true);
    m_summary->setTextFormat(Qt::PlainText);
    column->addWidget(m_title);
    column->addWidget(m_summary);
    column->addSpacing(8);
    m_table->setModel(m_tokens);
    m_table->setShowGrid(false);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(kRowHeight);
    m_table->horizontalHeader()->setSectionResizeMode(PromptTokensModel::Text, QHeaderView::Stretch);
    m_table->setAccessibleName(tr("Tokens of the prompt"));
    column->addWidget(m_table, 1);
}

void TokenView::showFor(const QString& title) {
    m_title->setText(title);
    m_summary->setText(tr("Asking the engine …"));
    m_tokens->setTokens({});
    show();
    raise();
}

void TokenView::setTokens(const api::PromptTokensEvent& event) {
    m_tokens->setTokens(event);
    if (event.error) {
        m_summary->setText(QString::fromStdString(event.error->message));
        return;
    }
    const int begins = beginTokens(event);
    const QString all =
        event.tokens.size() == 1 ? tr("1 token") : tr("%1 tokens").arg(formatNumber(std::int64_t(event.tokens.size())));
    const QString begin = begins == 0   ? tr("no begin token")
                          : begins == 1 ? tr("1 begin token")
                                        : tr("%1 begin tokens").arg(formatNumber(std::int64_t(begins)));
    QString sentence = all + QStringLiteral(", ") + begin;
    if (begins > 1)
        sentence += tr(": more than one, which makes answers worse");
    m_summary->setText(sentence);
}

QString TokenView::summary() const {
    return m_summary->text();
}

void TokenView::setTheme(const Theme& theme) {
    m_tokens->setTheme(theme);
    m_table->viewport()->update();
}

} // namespace kvscope::ui
