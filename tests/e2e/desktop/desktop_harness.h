// SPDX-License-Identifier: GPL-3.0-or-later
//
// The desktop program's object graph in this process: real engine, real database, real window, offscreen.
#pragma once

#include <QFile>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTest>
#include <memory>
#include <optional>
#include <set>

#include "app/desktop/desktop.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"
#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/composer.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/models/chat_settings.h"

namespace kvscope::test {

inline constexpr int kAnswerMs = 60'000;

/// A running program over a folder of its own, or (to start again) over one that a test keeps.
class Program {
public:
    explicit Program(const std::string& model, std::int64_t blocks = 256, const std::string& dataFolder = {}) {
        auto opened = store::DataFolder::open(dataFolder.empty() ? m_dir.file("data") : dataFolder);
        if (!opened)
            qFatal("%s", opened.error().message.c_str());
        m_folder.emplace(std::move(*opened));
        api::EngineConfig config;
        config.modelPath = model;
        config.numBlocks = blocks;
        config.threads = 1;
        m_desktop = std::make_unique<desktop::Desktop>(*m_folder, m_dir.path(), config);
        QSignalSpy loaded(m_desktop.get(), &desktop::Desktop::loaded);
        m_desktop->chat().setAutoTitles(false); // a title would run beside what is measured here
        m_desktop->start();
        if (!loaded.wait(kAnswerMs))
            qFatal("the model did not load");
    }
    desktop::Desktop* operator->() const { return m_desktop.get(); }
    ui::ChatController& chat() const { return m_desktop->chat(); }
    ui::MainWindow& window() const { return m_desktop->window(); }

    void settings(double temperature, int maxTokens) const {
        api::SamplingParams params = ui::defaultChatSettings();
        params.temperature = temperature;
        params.maxTokens = maxTokens;
        params.ignoreEos = true;
        chat().setSettings(params);
    }
    /// Types into the composer, presses Enter, waits for the end.
    const ui::ChatMessage& ask(const QString& text) const {
        begin(text);
        return awaitEnd();
    }
    void begin(const QString& text) const {
        ui::ComposerEdit* edit = m_desktop->window().chatPanel()->composer()->edit();
        edit->setPlainText(text);
        QTest::keyClick(edit, Qt::Key_Return);
        if (!chat().answering())
            qFatal("the message was not taken");
    }
    const ui::ChatMessage& awaitEnd() const {
        if (!QTest::qWaitFor([this] { return !chat().answering(); }, kAnswerMs))
            qFatal("no answer");
        return chat().messages()->at(chat().messages()->size() - 1);
    }
    std::string databasePath() const { return m_folder->databasePath(); }
    /// The answers as they stand in the database.
    std::vector<store::Message> stored() const {
        QTest::qWait(100); // the end is being written
        store::DatabaseOptions options;
        options.path = m_folder->databasePath();
        auto database = store::Database::open(options);
        if (!database)
            qFatal("%s", database.error().message.c_str());
        store::ConversationStore conversations(**database, store::systemWallClock());
        auto content = conversations.load(store::ConversationId(chat().current().conversation.id));
        if (!content)
            qFatal("%s", content.error().message.c_str());
        return content->messages;
    }

    /// Blocks that the map lights for the whole shown chat.
    std::vector<BlockId> blocks() const {
        std::set<std::int32_t> ids;
        for (int row = 0; row < chat().messages()->size(); ++row) {
            ui::BlockMapPanel* map = m_desktop->window().blockMap();
            map->clearSelection();
            emit m_desktop->window().chatPanel()->view()->showBlocksRequested(row);
            if (chat().messages()->at(row).tokenRange.second == 0)
                continue;
            if (!QTest::qWaitFor([&] { return !map->view().selection().empty(); }, 3000))
                qFatal("no blocks were lit");
            for (const BlockId block : map->view().selection())
                ids.insert(block.value());
        }
        std::vector<BlockId> out;
        for (const std::int32_t id : ids)
            out.emplace_back(id);
        return out;
    }

private:
    TempDir m_dir;
    std::optional<store::DataFolder> m_folder;
    std::unique_ptr<desktop::Desktop> m_desktop;
};

inline std::string tinyModel(const TempDir& dir) {
    TinyLlama size;
    size.context = 4096;
    const std::string path = dir.file("tiny.gguf");
    if (!tinyLlama(size).write(path))
        qFatal("the tiny model cannot be written");
    return path;
}

} // namespace kvscope::test
