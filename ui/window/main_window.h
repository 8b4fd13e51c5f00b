// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <functional>

#include "engine/api/sources.h"
#include "ui/models/command_registry.h"
#include "ui/theme/apply_theme.h"
#include "ui/window/arrangement.h"

class QMenu;
class QSettings;
class QSplitter;

namespace kvscope::ui {

class Appearance;
class BlockLink;
class BlockMapPanel;
class ChatController;
class ChatPanel;
class ChatStore;
class CockpitController;
class ConversationPanel;
class DockArea;
class ModelListModel;
class PresetModel;
class SearchModel;
class StatusBar;
class TokenView;
class TopBar;

/// What the window shows and asks; all of it outlives the window.
struct WindowParts {
    ChatController& chat;
    CockpitController& cockpit;
    ModelListModel& models;
    Appearance& appearance;
    QSettings& settings; ///< arrangement, size, workspace
    std::function<void(BlockId)> askBlock;
    std::function<void(OwnerId)> askOwner;
    ChatStore* store = nullptr; ///< without it there is no search, no presets and no drafts
};

/// The one window: bar, conversations, chat, cockpit, status. It knows no engine and no database: it is fed events and
/// says by signals what the user wants.
class MainWindow final : public QMainWindow {
    Q_OBJECT
public:
    explicit MainWindow(WindowParts parts);
    ~MainWindow() override;

    /// Events that concern the window: models, engine, blocks. Chat events go to the controller.
    void handleEvent(const api::Event& event);
    /// Presets and the draft of the new chat; call it once the store can be asked.
    void loadFromStore();
    /// The database cannot be written; an empty sentence takes the notice away.
    void setStoreTrouble(const QString& sentence, const QString& detail);
    /// The user goes on without saving, or (false) no longer does.
    void setInMemory(bool inMemory, const QString& path);
    /// Another database: what was deleted before cannot be brought back here.
    void forgetRemoved();
    /// A sentence at the lower end of the chat that goes away by itself.
    void say(const QString& sentence);

    ChatPanel* chatPanel() const { return m_chatPanel; }
    ConversationPanel* conversationPanel() const { return m_side; }
    DockArea* docks() const { return m_docks; }
    TopBar* topBar() const { return m_top; }
    StatusBar* status() const { return m_status; }
    const CommandRegistry& commands() const { return m_commands; }
    BlockMapPanel* blockMap() const { return m_map; }
    TokenView* tokenView() const { return m_tokens; }

    int workspace() const { return m_workspace; }
    void setWorkspace(int workspace);

signals:
    void loadModelRequested(const QString& path);
    void restartEngineRequested();
    void saveReportRequested(const QString& path, const QString& sentence);
    void saveSessionRequested(const QString& path);
    void storeRetryRequested();
    void templateChosen(const QString& name); ///< for the loaded model, see TemplateBanner
    void promptTokensRequested(qint64 key, const api::DialogPrompt& dialog, qint64 maxTokens);
    void storeOtherRequested(const QString& path);
    void storeMemoryRequested();
    void shownChanged(bool shown); ///< false while minimised or hidden

protected:
    void resizeEvent(QResizeEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    // construction
    void buildBody();
    void buildShortcuts();
    // main_window_commands.cpp
    void buildCommands();
    void addChatCommands();
    void addTitleCommand(const QString& group);
    void addMessageCommands();
    void addViewCommands();
    void addProgramCommands();
    void addListedKeys();
    void connectParts();
    void connectChat();
    void connectTimers();
    QMenu* makeMenu();
    void fillMenu(QMenu& menu, const QStringList& ids);
    // layout, main_window_layout.cpp
    QString arrangementKey() const;
    void loadArrangement();
    void saveArrangement();
    void applyWindowClass();
    void applyBodySizes();
    void bodyDragged();
    void toggleSide();
    void showSideOverlay(bool show);
    void resetLayout();
    // behaviour
    void applyAppearance();
    void refreshStatus();
    void refreshTitle();
    void onLoading(const api::LoadingEvent& event);
    void onLoaded(const api::ModelInfo& info);
    void onLoadFailed(const api::LoadFailedEvent& event);
    void onFaulted(const api::FaultedEvent& event);
    void showPromptTokens();
    void openModelFile();
    void openModelPicker();
    void saveSession();
    void showAbout();
    void showShortcuts();
    void openPalette();
    void focusSearch();
    void showHit(qint64 conversation, qint64 message, const QString& query);
    void showPendingHit();
    void stepConversation(int by);
    void stepPane(int by);
    void escape();
    void openOtherStore();
    void confirmRemoved(qint64 id, const QString& title);
    void undoRemove();
    // main_window_files.cpp
    void connectStore();
    void duplicate(qint64 id);
    // main_window_export.cpp
    void exportChats(std::vector<std::int64_t> ids);
    void importChats();
    void backUp();
    void restoreBackup();

    WindowParts m_parts;
    CommandRegistry m_commands;
    SearchModel* m_search = nullptr;
    PresetModel* m_presets = nullptr;
    std::vector<std::pair<qint64, QString>> m_removed; ///< what Undo brings back, the last first
    struct {
        qint64 conversation = -1, message = -1;
        QString query;
        bool asked = false; ///< for the versions that lead to it
    } m_pendingHit;         ///< to be shown once its chat is there
    TopBar* m_top;
    QSplitter* m_body;
    QList<int> m_shownBody; ///< its sizes, until somebody drags them
    ConversationPanel* m_side;
    ChatPanel* m_chatPanel;
    DockArea* m_docks;
    BlockMapPanel* m_map = nullptr;
    StatusBar* m_status;
    TokenView* m_tokens = nullptr; ///< made when it is asked for
    qint64 m_tokensKey = 0;        ///< of the newest question
    BlockLink* m_link = nullptr;
    QString m_exportFolder; ///< where the last file was exported to or imported from
    QTimer m_statusTimer;
    QTimer m_saveLayoutTimer;
    QTimer m_removedNotice; ///< after which the notice with Undo goes
    WindowClass m_class = WindowClass::Normal;
    Arrangement m_arrangement;
    int m_workspace = 1;
    bool m_sideShown = true;    ///< as the user wants it where there is room
    bool m_sideOverlay = false; ///< over the chat, where there is none
    bool m_applying = false;
    bool m_inMemory = false, m_storeTrouble = false;
    api::ModelInfo m_model;
    bool m_hasModel = false;
};

} // namespace kvscope::ui
