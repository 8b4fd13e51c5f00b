// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

#include "ui/chat/composer_edit.h"
#include "ui/models/attachment.h"
#include "ui/theme/apply_theme.h"

class QLabel;

namespace kvscope::ui {

class AttachmentChips;
class Bar;
class Button;
class ElidedLabel;
class IconButton;
class OverlongBox;

/// Where messages are written: a waiting message, attachments, the text, and a foot with what it costs. The ring goes
/// around the whole box.
class Composer final : public QFrame, public Themed {
    Q_OBJECT
public:
    explicit Composer(const Theme& theme, QWidget* parent = nullptr);

    ComposerEdit* edit() const { return m_edit; }
    AttachmentChips* chips() const { return m_chips; }

    QString text() const { return m_edit->exactText(); } ///< what is typed
    /// What would be sent: the typed text and the attachments.
    QString message() const;
    bool hasMessage() const;
    Draft draft() const;
    /// Another chat's draft: Undo does not reach back into this one.
    void setDraft(const Draft& draft);
    /// A text too large for the field becomes an attachment.
    void setText(const QString& text);
    /// Puts a text that came back before what has been begun since.
    void giveBack(const Draft& draft);
    void clear(); ///< Undo brings the text back

    /// Reads files and shows them as chips, or says why not.
    void addFiles(const QStringList& paths);
    void addPaste(const QString& text);

    /// `canSend`: a message would be taken; `answering`: an answer runs, so that a message would wait for its end;
    /// `hint`: why nothing can be sent.
    void setState(bool canSend, bool answering, const QString& hint);
    /// The message that waits for the end of the answer; empty = none.
    void setQueued(const QString& text);
    /// What the message would cost, "about 1,940 reused + 62 new": shares of `total` as a bar before the words (0 = no
    /// bar). `warn`: it does not fit.
    struct Meter {
        QString words, explanation;
        bool warn = false;
        std::int64_t reused = 0, computed = 0, total = 0;
    };
    void setMeter(const Meter& meter);
    /// The message is too long: while this box is shown it stands in place of the foot.
    OverlongBox* overlong() const { return m_overlong; }
    void showOverlong(bool show);
    QString meter() const;
    QString refusal() const; ///< what was said about a file that was not attached; empty = nothing
    void setSendKey(SendKey key);
    void setTextSize(int pixels);
    void setTheme(const Theme& theme) override;

signals:
    void sendRequested();
    void stopRequested();
    void contentChanged(); ///< text or attachments
    void attachRequested();
    void filesOffered(const QStringList& paths); ///< dropped on, or pasted into, the text
    void queuedEditRequested();
    void queuedCancelRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* makeQueuedRow();
    QWidget* makeMeter();
    QWidget* makeFoot();
    void contentHasChanged();
    void refuse(const QString& sentence);
    void updateHeight();
    void updateButton();
    bool stops() const { return m_answering && !hasMessage(); } ///< what the button does

    Theme m_theme;
    QWidget* m_queuedRow = nullptr;
    ElidedLabel* m_queuedText = nullptr;
    AttachmentChips* m_chips;
    ComposerEdit* m_edit;
    QLabel* m_refusal;
    IconButton* m_attach = nullptr;
    Bar* m_meterBar = nullptr;
    QLabel* m_meter = nullptr;
    QWidget* m_meterRow = nullptr;
    QWidget* m_foot = nullptr;
    OverlongBox* m_overlong;
    QLabel* m_hint = nullptr;
    Button* m_button;
    QString m_hintText;
    bool m_canSend = false, m_answering = false, m_queued = false;
};

} // namespace kvscope::ui
