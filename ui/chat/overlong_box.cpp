// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/overlong_box.h"

#include <QButtonGroup>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QRadioButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr int kRow = 32;
constexpr int kMark = 14;

/// A radio button as wide as the box: the choice at the left, what it costs at the right.
class ChoiceRow final : public QAbstractButton, public Themed {
public:
    ChoiceRow(const OverlongBox::Choice& choice, const Theme& theme, QWidget* parent)
        : QAbstractButton(parent)
        , m_theme(theme)
        , m_cost(choice.cost) {
        setText(choice.text);
        setCheckable(true);
        setAutoExclusive(true);
        setEnabled(choice.enabled);
        setFocusPolicy(Qt::StrongFocus);
        setAccessibleName(choice.text + QStringLiteral(", ") + choice.cost);
        setToolTip(choice.cost);
        setFixedHeight(kRow);
    }
    QSize sizeHint() const override { return {360, kRow}; }
    void setTheme(const Theme& theme) override {
        m_theme = theme;
        update();
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        if (isChecked() || (underMouse() && isEnabled())) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(isChecked() ? m_theme.sel : m_theme.bg3);
            painter.drawRoundedRect(rect(), 6, 6);
        }
        const QRectF mark(8.5, (height() - kMark) / 2.0, kMark, kMark);
        painter.setPen(QPen(isChecked() ? m_theme.accent : m_theme.line3, isChecked() ? 5 : 1));
        painter.setBrush(Qt::NoBrush);
        const double inset = isChecked() ? 2.5 : 0.5;
        painter.drawEllipse(mark.adjusted(inset, inset, -inset, -inset));
        const QFont costFont = figureFont(TextRole::Table);
        const int left = 8 + kMark + 10, right = width() - 8;
        painter.setFont(textFont(TextRole::Control));
        painter.setPen(isEnabled() ? m_theme.text1 : m_theme.textOff);
        const int wide = std::min(painter.fontMetrics().horizontalAdvance(text()) + 1, right - left);
        painter.drawText(QRect(left, 0, wide, height()), Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(text(), Qt::ElideMiddle, wide));
        const QRect cost(left + wide + 12, 0, std::max(0, right - left - wide - 12), height());
        painter.setFont(costFont);
        painter.setPen(isEnabled() ? m_theme.text2 : m_theme.textOff);
        painter.drawText(cost, Qt::AlignRight | Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(m_cost, Qt::ElideRight, cost.width()));
    }
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    Theme m_theme;
    QString m_cost;
};

} // namespace

OverlongBox::OverlongBox(const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_theme(theme)
    , m_sentence(new QLabel(this))
    , m_rows(new QVBoxLayout)
    , m_group(new QButtonGroup(this))
    , m_cancel(new Button(tr("Cancel"), Button::Kind::Ghost, theme, this))
    , m_confirm(new Button(QString(), Button::Kind::Primary, theme, this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 4, 6, 0);
    column->setSpacing(6);
    m_sentence->setObjectName(QStringLiteral("warning"));
    m_sentence->setFont(figureFont(TextRole::Table));
    m_sentence->setTextFormat(Qt::PlainText);
    m_sentence->setWordWrap(true);
    column->addWidget(m_sentence);
    m_rows->setSpacing(2);
    column->addLayout(m_rows);
    auto* foot = new QHBoxLayout;
    foot->setSpacing(8);
    foot->addStretch(1);
    foot->addWidget(m_cancel);
    foot->addWidget(m_confirm);
    column->addLayout(foot);
    connect(m_cancel, &QAbstractButton::clicked, this, &OverlongBox::cancelled);
    connect(m_confirm, &QAbstractButton::clicked, this, [this] {
        if (chosen() >= 0)
            emit confirmed(chosen());
    });
    connect(m_group, &QButtonGroup::idToggled, this, &OverlongBox::showChoice);
    hide();
}

void OverlongBox::ask(const QString& sentence, const std::vector<Choice>& choices) {
    m_sentence->setText(sentence);
    setAccessibleName(sentence);
    m_choices = choices;
    for (QAbstractButton* row : m_group->buttons()) {
        m_group->removeButton(row);
        m_rows->removeWidget(row);
        delete row;
    }
    QAbstractButton* first = nullptr;
    for (const Choice& choice : choices) {
        auto* row = new ChoiceRow(choice, m_theme, this);
        m_rows->addWidget(row);
        m_group->addButton(row, choice.id);
        if (!first && choice.enabled)
            first = row;
    }
    show();
    if (first) {
        first->setChecked(true);
        first->setFocus(Qt::OtherFocusReason);
    }
    showChoice();
}

int OverlongBox::chosen() const {
    return m_group->checkedId();
}

QString OverlongBox::sentence() const {
    return m_sentence->text();
}

void OverlongBox::choose(int id) {
    if (QAbstractButton* row = m_group->button(id))
        row->setChecked(true);
}

void OverlongBox::showChoice() {
    const auto it =
        std::find_if(m_choices.begin(), m_choices.end(), [this](const Choice& c) { return c.id == chosen(); });
    m_confirm->setEnabled(it != m_choices.end());
    m_confirm->setText(it == m_choices.end() ? tr("Send") : it->button);
    m_confirm->setAccessibleName(m_confirm->text());
    m_confirm->updateGeometry();
}

/// Enter takes the choice, as in a dialog; Esc leaves everything as it was.
void OverlongBox::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
        m_confirm->click();
    else
        QWidget::keyPressEvent(event);
}

void OverlongBox::setTheme(const Theme& theme) {
    m_theme = theme;
}

} // namespace kvscope::ui
