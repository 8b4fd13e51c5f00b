// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <functional>
#include <optional>

#include "engine/api/sources.h"

namespace kvscope::ui {

class BlockMapPanel;
class ChatController;
class ChatView;
class CockpitController;

/// Ties chat and map: a message's blocks light up in the map, a chosen block's text lights up in the chat, and the
/// list shows how much of each chat the cache still holds. All of it by asking the engine, never by guessing.
class BlockLink final : public QObject {
    Q_OBJECT
public:
    struct Ask {
        std::function<void(BlockId)> block;
        std::function<void(OwnerId)> owner;
    };
    BlockLink(ChatController& chat, CockpitController& cockpit, ChatView& view, BlockMapPanel& map, Ask ask,
              QObject* parent = nullptr);

    void handleEvent(const api::Event& event);

public slots:
    void showBlocksOf(int row);
    void clear();

private:
    void showText(const api::BlockDetailEvent& detail);
    void askWarmth();

    ChatController& m_chat;
    CockpitController& m_cockpit;
    ChatView& m_view;
    BlockMapPanel& m_map;
    Ask m_ask;
    int m_wantedRow = -1;                 ///< its owner's blocks were asked for
    std::optional<BlockId> m_wantedBlock; ///< chosen in the map, its detail was asked for
    QTimer m_warmth;
    std::uint64_t m_warmthEpoch = 0;
};

} // namespace kvscope::ui
