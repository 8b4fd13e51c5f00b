// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/composer.h"

#include <QAbstractTextDocumentLayout>
#include <QApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QStyle>
#include <QVBoxLayout>

#include "ui/chat/attachment_chips.h"
#include "ui/chat/overlong_box.h"
#include "ui/models/format.h"
#include "ui/widgets/bar.h"
#include "ui/widgets/button.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/field_frame.h"
#include "ui/widgets/icon_button.h"

namespace kvscope::ui {
namespace {

constexpr int kLinesAtMost = 8;
constexpr std::size_t kAttachmentsAtMost = 20;
constexpr qsizetype kQueuedShown = 300;

} // namespace

Composer::Composer(const Theme& theme, QWidget* parent)
    : QFrame(parent)
    , m_theme(theme)
    , m_chips(new AttachmentChips(theme, this))
    , m_edit(new ComposerEdit(this))
    , m_refusal(new QLabel(this))
    , m_overlong(new OverlongBox(theme, this))
    , m_button(new Button(QString(), Button::Kind::Primary, theme, this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14, 10, 8, 8);
    column->setSpacing(6);
    m_queuedRow = makeQueuedRow();
    column->addWidget(m_queuedRow);
    column->addWidget(m_edit);
    column->addWidget(m_chips);
    m_refusal->setObjectName(QStringLiteral("refusal"));
    m_refusal->setFont(textFont(TextRole::Table));
    m_refusal->setTextFormat(Qt::PlainText);
    m_refusal->setWordWrap(true);
    m_refusal->hide();
    column->addWidget(m_refusal);
    m_meterRow = makeMeter();
    m_foot = makeFoot();
    column->addWidget(m_meterRow);
    column->addWidget(m_foot);
    column->addWidget(m_overlong);
    connect(m_edit, &ComposerEdit::sendRequested, this, &Composer::sendRequested);
    connect(m_edit, &ComposerEdit::focusChanged, this, [this] { update(); });
    connect(m_edit, &ComposerEdit::filesOffered, this, &Composer::filesOffered);
    connect(m_edit, &ComposerEdit::largePasteOffered, this, &Composer::addPaste);
    connect(m_edit, &QPlainTextEdit::textChanged, this, [this] {
        updateHeight();
        contentHasChanged();
    });
    connect(m_chips, &AttachmentChips::changed, this, &Composer::contentHasChanged);
    connect(m_edit->document()->documentLayout(), &QAbstractTextDocumentLayout::documentSizeChanged, this,
            [this] { updateHeight(); });
    connect(m_button, &QAbstractButton::clicked, this,
            [this] { stops() ? emit stopRequested() : emit sendRequested(); });
    setTextSize(14);
    updateButton();
}

QWidget* Composer::makeQueuedRow() {
    auto* row = new QWidget(this);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(4);
    auto* says = new QLabel(tr("Sends when this answer ends:"), row);
    says->setObjectName(QStringLiteral("hint"));
    says->setFont(textFont(TextRole::Table));
    line->addWidget(says);
    m_queuedText = new ElidedLabel(row);
    m_queuedText->setFont(textFont(TextRole::Table, QFont::Medium));
    line->addWidget(m_queuedText, 1);
    auto* edit = new IconButton(Icon::Edit, tr("Take it back and edit it"), m_theme, row);
    auto* cancel = new IconButton(Icon::Close, tr("Do not send it"), m_theme, row);
    edit->setObjectName(QStringLiteral("queuedEdit"));
    cancel->setObjectName(QStringLiteral("queuedCancel"));
    edit->setSide(24);
    cancel->setSide(24);
    line->addWidget(edit);
    line->addWidget(cancel);
    connect(edit, &QAbstractButton::clicked, this, &Composer::queuedEditRequested);
    connect(cancel, &QAbstractButton::clicked, this, &Composer::queuedCancelRequested);
    row->hide();
    return row;
}

QWidget* Composer::makeMeter() {
    auto* row = new QWidget(this);
    row->setFixedHeight(20);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 6, 0);
    line->setSpacing(8);
    m_meterBar = new Bar(m_theme, row);
    m_meterBar->setFixedWidth(56);
    m_meterBar->hide();
    m_meter = new QLabel(row);
    m_meter->setObjectName(QStringLiteral("hint"));
    m_meter->setFont(figureFont(TextRole::Table));
    m_meter->setTextFormat(Qt::PlainText);
    m_meter->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    line->addWidget(m_meterBar);
    line->addWidget(m_meter, 1);
    return row;
}

QWidget* Composer::makeFoot() {
    auto* row = new QWidget(this);
    auto* foot = new QHBoxLayout(row);
    foot->setContentsMargins(0, 0, 0, 0);
    foot->setSpacing(8);
    m_attach = new IconButton(Icon::Attach, tr("Attach text files (Ctrl+Shift+A)"), m_theme, row, 20);
    m_attach->setObjectName(QStringLiteral("attach"));
    connect(m_attach, &QAbstractButton::clicked, this, &Composer::attachRequested);
    m_hint = new QLabel(row);
    m_hint->setObjectName(QStringLiteral("hint"));
    m_hint->setFont(figureFont(TextRole::Table));
    m_hint->setTextFormat(Qt::PlainText);
    m_hint->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_button->setFixedSize(32, 28);
    foot->addWidget(m_attach);
    foot->addWidget(m_hint, 1);
    foot->addWidget(m_button);
    return row;
}

// ---- content ----

QString Composer::message() const {
    return messageWith(m_edit->exactText(), m_chips->attachments());
}

bool Composer::hasMessage() const {
    return !m_chips->attachments().empty() || m_edit->hasWords();
}

Draft Composer::draft() const {
    return {m_edit->exactText(), m_chips->attachments()};
}

void Composer::setDraft(const Draft& draft) {
    refuse({});
    m_chips->set(draft.attachments);
    setText(draft.text);
}

void Composer::setText(const QString& text) {
    if (isLargePaste(text)) {
        m_edit->setPlainText({});
        addPaste(text);
        return;
    }
    m_edit->setPlainText(text);
    m_edit->moveCursor(QTextCursor::End);
}

void Composer::giveBack(const Draft& draft) {
    std::vector<Attachment> attachments = draft.attachments;
    const std::vector<Attachment>& since = m_chips->attachments();
    attachments.insert(attachments.end(), since.begin(), since.end());
    QString text = draft.text;
    const QString begun = m_edit->exactText();
    if (!begun.isEmpty())
        text += (text.isEmpty() ? QString() : QStringLiteral("\n\n")) + begun;
    m_chips->set(std::move(attachments));
    isLargePaste(text) ? setText(text) : m_edit->replaceText(text);
}

void Composer::clear() {
    refuse({});
    m_edit->replaceText({});
    m_chips->set({});
}

void Composer::addFiles(const QStringList& paths) {
    refuse({});
    for (const QString& path : paths) {
        if (m_chips->attachments().size() >= kAttachmentsAtMost) {
            refuse(tr("A message takes at most %1 attachments.").arg(kAttachmentsAtMost));
            return;
        }
        Result<Attachment> attachment = readAttachment(path);
        if (attachment)
            m_chips->add(std::move(*attachment));
        else
            refuse(QString::fromStdString(attachment.error().message));
    }
    m_edit->setFocus();
}

void Composer::addPaste(const QString& text) {
    if (text.size() > kPasteLimit || m_chips->attachments().size() >= kAttachmentsAtMost) {
        refuse(tr("This is too much text for one message; paste the part that matters."));
        return;
    }
    refuse({});
    m_chips->add(pastedAttachment(text));
}

void Composer::refuse(const QString& sentence) {
    m_refusal->setText(sentence);
    m_refusal->setVisible(!sentence.isEmpty());
}

QString Composer::refusal() const {
    return m_refusal->isHidden() ? QString() : m_refusal->text();
}

void Composer::contentHasChanged() {
    updateButton();
    emit contentChanged();
}

// ---- state ----

void Composer::setState(bool canSend, bool answering, const QString& hint) {
    m_canSend = canSend;
    m_answering = answering;
    m_hintText = hint;
    updateButton();
}

void Composer::setQueued(const QString& text) {
    m_queued = !text.isEmpty();
    m_queuedRow->setVisible(m_queued);
    m_queuedText->setText(text.left(kQueuedShown).simplified());
    updateButton();
}

void Composer::setMeter(const Meter& meter) {
    const QString name = meter.warn ? QStringLiteral("warning") : QStringLiteral("hint");
    m_meter->setText(meter.words);
    m_meter->setToolTip(meter.explanation);
    m_meterBar->setVisible(meter.total > 0);
    if (meter.total > 0)
        m_meterBar->setParts({{double(meter.reused) / double(meter.total), m_theme.stateCachedRing},
                              {double(meter.computed) / double(meter.total), m_theme.stateActive}},
                             meter.words);
    if (m_meter->objectName() != name) {
        m_meter->setObjectName(name);
        m_meter->style()->polish(m_meter);
    }
}

void Composer::showOverlong(bool show) {
    if (show == !m_overlong->isHidden())
        return;
    const bool focused = isAncestorOf(QApplication::focusWidget());
    m_overlong->setVisible(show);
    m_meterRow->setVisible(!show);
    m_foot->setVisible(!show);
    m_edit->setReadOnly(show); // what is asked about is what is there
    m_chips->setEnabled(!show);
    if (!show && focused)
        m_edit->setFocus();
}

QString Composer::meter() const {
    return m_meter->text();
}

void Composer::setSendKey(SendKey key) {
    m_edit->setSendKey(key);
    contentHasChanged(); // what is said about the keys
}

void Composer::updateButton() {
    const bool stop = stops();
    m_button->setGlyph(stop ? Icon::Stop : Icon::Send);
    m_button->setAccessibleName(stop ? tr("Stop") : m_answering ? tr("Send when this answer ends") : tr("Send"));
    m_button->setToolTip(stop ? tr("Stop (Esc)") : tr("Send (%1)").arg(sendKeyText(m_edit->sendKey())));
    m_button->setEnabled(stop || (m_canSend && hasMessage()));
    QString hint = m_hintText;
    if (hint.isEmpty() && m_answering && hasMessage())
        hint = m_queued ? tr("one message waits already") : tr("sends when this answer ends");
    m_hint->setText(hint);
}

// ---- looks ----

void Composer::setTextSize(int pixels) {
    QFont font = textFont(TextRole::Chat);
    font.setPixelSize(pixels);
    m_edit->setFont(font);
    updateHeight();
}

void Composer::setTheme(const Theme& theme) {
    m_theme = theme;
    QPalette palette = m_edit->palette();
    palette.setColor(QPalette::PlaceholderText, theme.text3);
    m_edit->setPalette(palette);
    update();
}

void Composer::updateHeight() {
    const int wanted = m_edit->wantedHeight();
    if (m_edit->height() != wanted || m_edit->minimumHeight() != wanted)
        m_edit->setFixedHeight(wanted);
    m_edit->setVerticalScrollBarPolicy(
        int(m_edit->document()->size().height()) > kLinesAtMost ? Qt::ScrollBarAsNeeded : Qt::ScrollBarAlwaysOff);
}

void Composer::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    updateHeight();
}

void Composer::paintEvent(QPaintEvent*) {
    paintFieldFrame(*this, m_theme, m_edit->hasFocus());
}

} // namespace kvscope::ui
