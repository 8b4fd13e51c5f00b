// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMap>
#include <QTimer>
#include <QWidget>
#include <optional>

#include "ui/chat/message_box.h"
#include "ui/chat/overlong_box.h"
#include "ui/models/attachment.h"
#include "ui/models/chat_controller.h"
#include "ui/models/model_list_model.h"
#include "ui/theme/apply_theme.h"

class QStackedWidget;
class QVBoxLayout;

namespace kvscope::ui {

class Button;
class ChatView;
class Composer;
class ElidedLabel;
class EmptyState;
class FirstStart;
class IconButton;
class PresetModel;
class SettingsPanel;
class TemplateBanner;

/// The chat column: head with title and settings, notices, messages (or what stands in their place), composer.
class ChatPanel final : public QWidget, public Themed {
    Q_OBJECT
public:
    /// All of them outlive it; `presets` may be null.
    ChatPanel(ChatController* controller, ModelListModel* models, const Theme& theme, PresetModel* presets = nullptr,
              QWidget* parent = nullptr);

    ChatView* view() const { return m_view; }
    Composer* composer() const { return m_composer; }
    SettingsPanel* settings() const { return m_settings; }
    TemplateBanner* templateBanner() const { return m_template; }

    /// One notice per subject; the newer replaces the older of the same subject.
    void notice(const QString& subject, MessageBox::Kind kind, const QString& sentence, const QString& detail = {},
                const std::vector<MessageBox::Action>& actions = {});
    void clearNotice(const QString& subject);
    /// While a model loads: fraction 0..1; < 0 = none is loading.
    void setLoading(double fraction, const QString& name);
    /// There is a model, but it has to be restarted before it answers.
    void setEngineStopped(bool stopped);
    /// `opened`: with a model that was just loaded.
    void setTemplate(const api::TemplateInfo& info, bool opened);
    void setTextSize(int pixels);
    void showSettings();
    void chooseFiles(); ///< asks for text files to attach
    /// What was begun before the program was ended last, in a chat that has no message yet.
    void setNewDraft(const Draft& draft);
    /// Saves what is typed now rather than in a moment.
    void flushDraft();
    /// The program ends before the waiting message could be sent: it becomes the draft.
    void keepQueued();
    /// Another database: its ids name other chats.
    void forgetDrafts();
    /// Leaves the question about a message that is too long; false = there is none.
    bool cancelTooLong();
    void setTheme(const Theme& theme) override;

signals:
    void modelChosen(const QString& path);
    void openModelRequested();
    void renameRequested();
    void deleteRequested();
    void promptTokensRequested();
    void draftChanged(qint64 conversation, const kvscope::ui::Draft& draft); ///< kNoId = the new chat

protected:
    void paintEvent(QPaintEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void buildHead(QVBoxLayout* column);
    void connectParts();
    void showCurrent();
    void refresh();
    void showMore();
    void swapDrafts();
    void spaceNotices();
    void takeFiles(const QStringList& paths);
    // chat_panel_send.cpp
    void connectComposer();
    void putBack(const Draft& message, qint64 edited);
    void send();
    void sendInNewChat(const Draft& message);
    void sendWithout(std::size_t attachment, Draft message, qint64 edited);
    void editMessage(int row, const QString& text);
    void confirmDeleted(qint64 conversation, qint64 message);
    void editQueued();
    void meterSoon();
    void refreshMeter();
    void countAttachments();
    void showCost(const api::MeasuredEvent& cost);
    void refreshTooLong();
    std::vector<OverlongBox::Choice> choicesFor(const OverLong& question) const;
    void answerTooLong(int choice);
    void refreshPreset();

    Theme m_theme;
    ChatController* m_controller;
    ModelListModel* m_models;
    ElidedLabel* m_title;
    Button* m_settingsButton;
    IconButton* m_more;
    QVBoxLayout* m_notices;
    TemplateBanner* m_template;
    QMap<QString, MessageBox*> m_boxes;
    QStackedWidget* m_stack;
    ChatView* m_view;
    QWidget* m_emptyPage;
    EmptyState* m_empty;
    FirstStart* m_firstStart;
    Composer* m_composer;
    SettingsPanel* m_settings;
    PresetModel* m_presets;
    QMap<qint64, Draft> m_drafts; ///< of the chats that were shown, by draftKey
    QTimer m_draftPause;          ///< after which a change of the draft is saved
    QTimer m_deletedPause;        ///< after which a deleted message is not spoken of any more
    bool m_newDraftStays = false; ///< the new chat that gets its id was not made by what the composer holds
    QTimer m_meterPause;          ///< after which a message is counted
    std::int64_t m_meterAsked = 0;
    bool m_asksTooLong = false;
    std::optional<Draft> m_enlarging;                ///< the message that waits for a larger window
    bool m_wasReady = false, m_wasAnswering = false; ///< when the message was counted last
    qint64 m_shownDraft = kNoId, m_shownSession = 0;
    double m_loading = -1;
    bool m_engineStopped = false;
    QString m_loadingName;
};

} // namespace kvscope::ui
