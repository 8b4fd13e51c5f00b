// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTest>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

#include "engine/base/clock.h"
#include "engine/store/store_thread.h"
#include "tests/support/temp_dir.h"

namespace kvscope::test {

inline constexpr Nanos kMillisecond = 1'000'000;

/// A store thread on a folder of its own, and what a window would do with its events.
struct StoreHarness {
    TempDir dir;
    MonotonicClock clock;
    store::StoreOptions options;
    std::optional<store::StoreThread> store;
    std::vector<store::StoreEvent> seen;

    StoreHarness() {
        options.database.path = dir.file("kvscope.db");
        options.programVersion = "test";
        options.retryInterval = 5 * kMillisecond;
        options.progressInterval = 0;
    }
    store::StoreThread& start() {
        store.emplace(clock, options);
        return *store;
    }
    /// The next event of this type; the others before it stay in `seen`.
    template <class Wanted> Wanted wait() {
        const Nanos until = clock.now() + 60'000 * kMillisecond;
        while (clock.now() < until) {
            auto event = store->nextEvent();
            if (!event) {
                QTest::qSleep(1);
                continue;
            }
            seen.push_back(*event);
            if (auto* wanted = std::get_if<Wanted>(&seen.back()))
                return *wanted;
        }
        qFatal("the store did not answer");
    }
    store::ConversationId newChat(const std::string& title = "chat") {
        store->createConversation({title, "", "", ""});
        return wait<store::ConversationCreatedEvent>().conversation.id;
    }
    store::TurnCommittedEvent turn(store::ConversationId chat, const std::string& text, store::MessageId parent = {}) {
        store::NewTurn turn;
        turn.conversation = chat;
        turn.text = text;
        turn.parent = parent;
        store->addUserMessage(turn);
        return wait<store::TurnCommittedEvent>();
    }
    /// What is on the disk, seen by another connection.
    static std::string onDisk(const std::string& path, const std::string& sql) {
        SQLite::Database db(path, SQLite::OPEN_READONLY, 5000);
        SQLite::Statement select(db, sql);
        return select.executeStep() ? select.getColumn(0).getString() : "(nothing)";
    }
    std::string onDisk(const std::string& sql) const { return onDisk(options.database.path, sql); }
};

} // namespace kvscope::test
