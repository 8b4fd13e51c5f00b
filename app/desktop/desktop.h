// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMap>
#include <QObject>
#include <QSettings>
#include <QTimer>
#include <atomic>
#include <memory>
#include <string>

#include "app/desktop/store_bridge.h"
#include "engine/api/engine_config.h"
#include "engine/api/engine_thread.h"
#include "engine/api/session_recorder.h"
#include "engine/metrics/recorder.h"
#include "engine/store/data_folder.h"
#include "engine/store/store_thread.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/models/chat_controller.h"
#include "ui/models/model_list_model.h"
#include "ui/window/appearance.h"
#include "ui/window/main_window.h"

namespace kvscope::desktop {

/// The composition root: builds everything, owns it, and carries what arrives from the engine and store threads to the
/// window once per frame. While nothing is under way it only looks ten times a second, and while the window is hidden
/// four times.
class Desktop final : public QObject {
    Q_OBJECT
public:
    /// `folder`: one that is not locked is locked by the store, or the window says why it cannot be. `modelsFolder`:
    /// where model files are looked for. `engine.modelPath` may be empty.
    Desktop(const store::DataFolder& folder, const std::string& modelsFolder, api::EngineConfig engine);
    ~Desktop() override;

    /// Shows the window and begins to load: the model asked for, the one used last, or the only one there is.
    void start();
    void raiseWindow();

    ui::MainWindow& window() { return *m_window; }
    ui::ChatController& chat() { return m_chat; }
    ui::CockpitController& cockpit() { return m_cockpit; }
    void loadModel(const QString& path);
    /// One frame now; the own timer does it.
    void frame();

signals:
    void loaded(const api::ModelInfo& info);
    void loadFailed(const QString& sentence);
    void storeOpened(const QString& path); ///< the database in this file is open and its folder is locked

private:
    void connectWindow();
    void connectStore();
    void dispatch(const api::Event& event);
    void onLoaded(const api::ModelInfo& info);
    void noteModel();
    void readTemplateChoices();
    void chooseTemplate(const QString& name);
    void retime();
    QString modelToLoad() const;
    void saveSession(const QString& path);
    void saveReport(const QString& path, const QString& sentence);
    void takeRecorderResults();
    Result<api::ModelProbe> probe(const std::string& path) const;

    MonotonicClock m_clock;
    QSettings m_settings;
    api::EngineConfig m_config;
    metrics::Recorder m_recorder;
    api::SessionRecorder m_sessionRecorder;
    store::StoreThread m_store;
    StoreBridge m_bridge;
    api::EngineThread m_engine;
    ui::Appearance m_appearance;
    ui::ModelListModel m_models;
    ui::ChatController m_chat;
    ui::CockpitController m_cockpit;
    std::unique_ptr<ui::MainWindow> m_window;
    QTimer m_frame;
    QMap<QString, QString> m_templates; ///< chosen, by model path
    api::ModelInfo m_model;             ///< loaded; its path is empty while none is
    bool m_storeClosed = false;         ///< it could not be opened
    bool m_loading = false;
    bool m_shown = false;
    int m_saves = 0; ///< sessions being saved
    /// Of the loaded model: what the machine would have more if it were not there. Read by the probe's worker.
    std::atomic<std::uint64_t> m_engineBytes{0};
};

} // namespace kvscope::desktop
