// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMap>
#include <QWidget>

#include "ui/chat/message_box.h"
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
class SettingsPanel;
class TemplateBanner;

/// The chat column: head with title and settings, notices, messages (or what stands in their place), composer.
class ChatPanel final : public QWidget, public Themed {
    Q_OBJECT
public:
    ChatPanel(ChatController* controller, ModelListModel* models, const Theme& theme, QWidget* parent = nullptr);

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
    void setTheme(const Theme& theme) override;

signals:
    void modelChosen(const QString& path);
    void openModelRequested();
    void renameRequested();
    void deleteRequested();
    void promptTokensRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void buildHead(QVBoxLayout* column);
    void showCurrent();
    void refresh();
    void send();
    void showMore();
    void swapDrafts();
    void spaceNotices();

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
    QMap<qint64, QString> m_drafts; ///< of the chats that are not shown, by draftKey
    qint64 m_shownDraft = 0, m_shownSession = 0;
    double m_loading = -1;
    bool m_engineStopped = false;
    QString m_loadingName;
};

} // namespace kvscope::ui
