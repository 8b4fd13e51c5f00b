// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/template_banner.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPlainTextEdit>
#include <QVBoxLayout>

#include "ui/chat/literal_font.h"
#include "ui/chat/message_paint.h"
#include "ui/widgets/button.h"

namespace kvscope::ui {
namespace {

constexpr int kPreviewLines = 7;

QString templateSentence(const api::TemplateInfo& info) {
    const QString name = QString::fromStdString(info.name);
    if (info.problem.empty())
        return TemplateBanner::tr("Chats use the template “%1” in place of the file's own").arg(name);
    const bool none = info.problem.find("no chat template") != std::string::npos;
    return (none ? TemplateBanner::tr("No chat template in this file, using “%1”")
                 : TemplateBanner::tr("The chat template in this file is broken, using “%1”"))
        .arg(name);
}

QString templateDetail(const api::TemplateInfo& info) {
    QStringList words;
    if (!info.problem.empty() && info.problem.find("no chat template") == std::string::npos)
        words << QString::fromStdString(info.problem);
    words << (info.guessed
                  ? info.name == "Plain text"
                        ? TemplateBanner::tr("Its vocabulary suggests none: answers may not end by themselves.")
                        : TemplateBanner::tr("A guess: the vocabulary has the tokens of this template.")
                  : TemplateBanner::tr("You chose it for this file."));
    return words.join(QLatin1Char(' '));
}

} // namespace

TemplateBanner::TemplateBanner(const Theme& theme, QWidget* parent)
    : QFrame(parent)
    , m_theme(theme)
    , m_sentence(new QLabel(this))
    , m_detail(new QLabel(this))
    , m_choose(new Button(tr("Choose another"), Button::Kind::Ghost, theme, this))
    , m_show(new Button(tr("Show prompt"), Button::Kind::Ghost, theme, this))
    , m_close(new Button(tr("Keep"), Button::Kind::Primary, theme, this))
    , m_previewTitle(new QLabel(tr("The message “Hello” becomes"), this))
    , m_preview(new QPlainTextEdit(this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14 + 16 + 12, 12, 14, 12);
    column->setSpacing(8);
    auto* row = new QHBoxLayout;
    row->setSpacing(12);
    auto* words = new QVBoxLayout;
    words->setSpacing(0);
    m_sentence->setFont(textFont(TextRole::Control));
    m_detail->setFont(textFont(TextRole::Table));
    m_detail->setObjectName(QStringLiteral("quiet"));
    for (QLabel* label : {m_sentence, m_detail}) {
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
        words->addWidget(label);
    }
    row->addLayout(words, 1);
    m_choose->setTrailingGlyph(Icon::Down);
    m_close->setObjectName(QStringLiteral("keep"));
    for (Button* button : {m_show, m_choose, m_close})
        row->addWidget(button, 0, Qt::AlignVCenter);
    column->addLayout(row);
    m_previewTitle->setFont(textFont(TextRole::Table));
    m_previewTitle->setObjectName(QStringLiteral("quiet"));
    column->addWidget(m_previewTitle);
    m_preview->setReadOnly(true);
    m_preview->setFont(literalFont(TextRole::Table));
    m_preview->setLineWrapMode(QPlainTextEdit::WidgetWidth);
    m_preview->setFixedHeight(kPreviewLines * lineHeight(TextRole::Table) + 12);
    m_preview->setAccessibleName(tr("Rendered prompt"));
    column->addWidget(m_preview);
    connect(m_choose, &QAbstractButton::clicked, this, &TemplateBanner::openMenu);
    connect(m_show, &QAbstractButton::clicked, this, [this] { showPreview(m_preview->isHidden()); });
    connect(m_close, &QAbstractButton::clicked, this, [this] {
        hide();
        emit closed();
        if (m_info.guessed) // kept: from now on a choice, no guess
            emit chosen(QString::fromStdString(m_info.name));
    });
    showPreview(false);
    hide();
}

void TemplateBanner::setTemplate(const api::TemplateInfo& info, bool opened) {
    const bool wasOpen = !isHidden();
    m_info = info;
    m_sentence->setText(templateSentence(info));
    m_detail->setText(templateDetail(info));
    m_preview->setPlainText(QString::fromStdString(info.preview));
    m_close->setText(info.guessed ? tr("Keep") : tr("Close"));
    setAccessibleName(m_sentence->text());
    setVisible(!info.name.empty() && (opened || wasOpen));
    update();
}

void TemplateBanner::clear() {
    m_info = {};
    hide();
}

QString TemplateBanner::sentence() const {
    return m_sentence->text();
}

QString TemplateBanner::preview() const {
    return m_preview->toPlainText();
}

void TemplateBanner::openMenu() {
    QMenu menu(this);
    for (const std::string& choice : m_info.choices) {
        const QString name = QString::fromStdString(choice);
        QAction* action = menu.addAction(name, this, [this, name] { emit chosen(name); });
        action->setCheckable(true);
        action->setChecked(choice == m_info.name);
    }
    menu.addSeparator();
    menu.addAction(m_info.problem.empty() ? tr("The file's own") : tr("What the vocabulary suggests"), this,
                   [this] { emit chosen(QString()); });
    menu.exec(m_choose->mapToGlobal(QPoint(0, m_choose->height() + 4)));
}

void TemplateBanner::showPreview(bool show) {
    m_previewTitle->setVisible(show);
    m_preview->setVisible(show);
    m_show->setText(show ? tr("Hide prompt") : tr("Show prompt"));
}

void TemplateBanner::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void TemplateBanner::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    const bool warn = m_info.guessed;
    painter.setBrush(warn ? m_theme.warnFill : m_theme.bg3);
    painter.drawRoundedRect(rect(), 8, 8);
    const int firstLine = m_sentence->y() + m_sentence->fontMetrics().height() / 2;
    paintIcon(painter, QRect(14, firstLine - 8, 16, 16), warn ? Icon::Warn : Icon::Info, 16,
              warn ? m_theme.warn : m_theme.text2, devicePixelRatioF());
}

} // namespace kvscope::ui
