// SPDX-License-Identifier: GPL-3.0-or-later
//
// A whole window over an engine, a database and a cache that do only what the test says.
#pragma once

#include <QAbstractButton>
#include <QCoreApplication>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/fake_chat_source.h"
#include "tests/support/fake_chat_store.h"
#include "tests/support/synthetic_cache.h"
#include "ui/chat/chat_panel.h"
#include "ui/chat/composer.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/models/chat_controller.h"
#include "ui/models/model_list_model.h"
#include "ui/window/appearance.h"
#include "ui/window/main_window.h"

namespace kvscope::test {

class WindowStage {
public:
    struct Options {
        QSize size{1280, 800};
        ui::ThemeChoice theme = ui::ThemeChoice::Dark;
        std::int32_t blocks = 0; ///< of a simulated cache; 0 = there is none
        int chats = 0;           ///< that the database holds, with `messages` messages each
        int messages = 4;
        bool loaded = false; ///< a model is
    };

private:
    class CacheClock final : public Clock { ///< time passes by `advance` and by steps of the cache
    public:
        Nanos now() const override { return time; }
        Nanos time = 1'000'000'000;
    };

public: // in order of construction
    QTemporaryDir folder;
    QSettings settings{folder.filePath(QStringLiteral("window.ini")), QSettings::IniFormat};
    CacheClock clock;
    FakeChatSource engine;
    FakeChatStore store;
    std::optional<SyntheticCache> cache;
    ui::Appearance appearance{settings};
    ui::ChatController chat{engine, store, clock, [] { return std::int64_t(1'773'327'600'000); }};
    ui::CockpitController cockpit{clock, [](OwnerId owner) { return QStringLiteral("Chat %1").arg(owner.value()); }};
    ui::ModelListModel models{folder.path(), [](const std::string&) -> Result<api::ModelProbe> {
                                  return fail(ErrorCode::NotFound, "no file here");
                              }};
    std::unique_ptr<ui::MainWindow> window;

    WindowStage() : WindowStage(Options{}) {}
    explicit WindowStage(const Options& options) {
        appearance.setChoice(options.theme);
        for (int i = 1; i <= options.chats; ++i)
            addChat(i, options.messages);
        window = std::make_unique<ui::MainWindow>(ui::WindowParts{chat, cockpit, models, appearance, settings,
                                                                  [this](BlockId block) {
                                                                      if (cache)
                                                                          cache->queryBlock(block);
                                                                  },
                                                                  [](OwnerId) {}, &store});
        chat.setAutoTitles(false);
        if (options.blocks > 0) {
            SyntheticCache::Options simulated;
            simulated.blocks = options.blocks;
            cache.emplace(simulated);
            cache->onDetail = [this](const api::BlockDetailEvent& detail) { cockpit.setBlockDetail(detail); };
            cockpit.setSource(&*cache);
        }
        window->resize(options.size);
        window->show();
        chat.start();
        window->loadFromStore();
        store.settleAll();
        if (options.loaded)
            say(FakeChatSource::loaded(8192));
        if (cache)
            runCache(400);
        QCoreApplication::processEvents();
    }
    ~WindowStage() {
        window.reset();
        cockpit.setSource(nullptr);
    }

    /// An event of the engine, told to everybody who hears of it in the program.
    void say(const api::Event& event) {
        chat.handleEvent(event);
        window->handleEvent(event);
        QCoreApplication::processEvents();
    }
    void runCache(int steps) {
        cache->run(steps);
        clock.time = cache->now();
        for (int frame = 0; frame < 4; ++frame) // curves and tables take every fourth
            cockpit.drain();
    }
    /// Types a message and sends it; the request as the engine got it.
    const api::Request& ask(const QString& text) {
        ui::ComposerEdit* edit = window->chatPanel()->composer()->edit();
        edit->setPlainText(text);
        QTest::keyClick(edit, Qt::Key_Return);
        store.settleAll();
        if (engine.submitted.empty())
            qFatal("the message was not sent");
        return engine.submitted.back();
    }
    /// A piece of the answer, shown.
    void write(const api::Request& request, const std::string& text) {
        ++m_written;
        chat.handleEvent(FakeChatSource::tokens(request.id, text, {TokenId(m_written)}, 40 + m_written));
        clock.time += 80'000'000;
        chat.tick();
    }
    ui::MessageBox* box(const QString& start) const {
        for (ui::MessageBox* candidate : window->findChildren<ui::MessageBox*>())
            if (candidate->isVisible() && candidate->sentence().startsWith(start))
                return candidate;
        return nullptr;
    }
    static QAbstractButton* button(const QWidget* parent, const QString& text) {
        for (QAbstractButton* candidate : parent->findChildren<QAbstractButton*>())
            if (candidate->text() == text || candidate->accessibleName() == text)
                return candidate;
        return nullptr;
    }
    /// For a look at it: KVSCOPE_TEST_PICTURES names a folder.
    void picture(const QString& name) const {
        const QString folderName = qEnvironmentVariable("KVSCOPE_TEST_PICTURES");
        if (!folderName.isEmpty())
            QVERIFY(window->grab().save(folderName + QLatin1Char('/') + name + QStringLiteral(".png")));
    }

private:
    void addChat(int id, int messages) {
        ui::Conversation conversation;
        conversation.id = id;
        conversation.title = QStringLiteral("Chat %1 about the pages of a cache").arg(id);
        conversation.preview = QStringLiteral("Answer %1, and words that fill the line").arg(messages);
        conversation.updatedMs = 1'773'327'600'000 - id * 60'000;
        store.conversations[id] = conversation;
        for (int i = 0; i < messages; ++i) {
            ui::ChatMessage m;
            m.id = id * 100'000 + i + 1;
            m.role = i % 2 == 0 ? ui::MessageRole::User : ui::MessageRole::Assistant;
            m.status = ui::MessageStatus::Done;
            m.text = i % 2 == 0 ? QStringLiteral("Question %1, which is short?").arg(i)
                                : QStringLiteral("Answer %1. ").arg(i) +
                                      QStringLiteral("Some **words** that fill `lines`. ").repeated(7);
            store.messages[id].push_back(std::move(m));
        }
    }
    int m_written = 0;
};

} // namespace kvscope::test
