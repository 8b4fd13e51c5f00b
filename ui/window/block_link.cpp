// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/block_link.h"

#include "ui/chat/chat_view.h"
#include "ui/cockpit/block_map_panel.h"
#include "ui/cockpit/cockpit_controller.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_link.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

constexpr int kWarmthMs = 1000;

} // namespace

BlockLink::BlockLink(ChatController& chat, CockpitController& cockpit, ChatView& view, BlockMapPanel& map, Ask ask,
                     QObject* parent)
    : QObject(parent)
    , m_chat(chat)
    , m_cockpit(cockpit)
    , m_view(view)
    , m_map(map)
    , m_ask(std::move(ask)) {
    connect(&view, &ChatView::showBlocksRequested, this, &BlockLink::showBlocksOf);
    connect(&map, &BlockMapPanel::blockSelected, this, [this](BlockId block) {
        m_wantedBlock = block;
        m_ask.block(block);
    });
    connect(&chat, &ChatController::currentChanged, this, &BlockLink::clear);
    // At the end of an answer the engine says how long its sequence is now: the meter shows that, no sum of our own.
    connect(&chat, &ChatController::lengthChanged, this, [this](qint64 id) { m_ask.owner(OwnerId(id)); });
    m_warmth.setInterval(kWarmthMs);
    connect(&m_warmth, &QTimer::timeout, this, &BlockLink::askWarmth);
    m_warmth.start();
}

void BlockLink::showBlocksOf(int row) {
    if (m_view.litMessage() == row) { // the second time puts it out
        clear();
        return;
    }
    m_wantedRow = row;
    m_ask.owner(OwnerId(m_chat.current().conversation.id));
}

void BlockLink::clear() {
    m_wantedRow = -1;
    m_wantedBlock.reset();
    m_map.clearSelection();
    m_view.setLitMessage(-1, 0);
    m_view.setLitText(-1, {});
}

void BlockLink::handleEvent(const api::Event& event) {
    if (const auto* detail = std::get_if<api::BlockDetailEvent>(&event)) {
        if (m_wantedBlock == detail->block) {
            m_wantedBlock.reset();
            showText(*detail);
        }
        return;
    }
    const auto* owner = std::get_if<api::OwnerBlocksEvent>(&event);
    if (!owner)
        return;
    m_chat.conversations()->setWarmth(owner->owner.value(), warmthOf(*owner, m_cockpit.map()));
    if (m_wantedRow < 0 || owner->owner.value() != m_chat.current().conversation.id)
        return;
    const int row = std::exchange(m_wantedRow, -1);
    if (row >= m_chat.messages()->size())
        return;
    const ChatMessage& message = m_chat.messages()->at(row);
    std::vector<BlockId> blocks = blocksOfTokens(*owner, message.tokenRange);
    const int count = int(blocks.size());
    const QString tag = message.role == MessageRole::User ? tr("This message, %1") : tr("This answer, %1");
    m_view.setLitText(-1, {});
    m_view.setLitMessage(row, count);
    m_map.select(std::move(blocks), tag.arg(count == 1 ? tr("1 block") : tr("%1 blocks").arg(formatNumber(count))));
}

void BlockLink::showText(const api::BlockDetailEvent& detail) {
    const OwnerId current(m_chat.current().conversation.id);
    bool ours = false;
    for (const OwnerId owner : detail.owners)
        ours = ours || owner == current;
    m_view.setLitMessage(-1, 0);
    m_map.select({detail.block}, tr("Block %1").arg(formatNumber(detail.block.value())));
    if (!ours && !detail.owners.empty() && m_chat.conversations()->find(detail.owners.front().value())) {
        // Another chat's block: show that chat. Its text lights up once its messages are here.
        m_chat.select(detail.owners.front().value());
        m_map.select({detail.block}, tr("Block %1").arg(formatNumber(detail.block.value())));
    }
    m_view.setLitText(-1, {});
    if (detail.firstPosition < 0)
        return;
    const QString text = QString::fromStdString(detail.text);
    const auto count = std::int64_t(detail.tokens.size());
    for (const int row : m_chat.rowsOfTokens(detail.firstPosition, count)) {
        const ChatMessage& message = m_chat.messages()->at(row);
        const double length = double(std::max<std::int64_t>(1, message.tokenRange.second - message.tokenRange.first));
        const double share = double(detail.firstPosition - message.tokenRange.first) / length;
        const auto [from, to] = charactersOfBlock(message.text, text, share);
        if (to > from) {
            m_view.setLitText(row, {from, to});
            return;
        }
    }
}

/// Once a second and only when the pool has changed: each chat that ran since the program started.
void BlockLink::askWarmth() {
    const metrics::BlockMapSnapshot& map = m_cockpit.map();
    if (map.epoch == m_warmthEpoch)
        return;
    m_warmthEpoch = map.epoch;
    for (const ConversationId id : m_chat.conversations()->ids())
        m_ask.owner(OwnerId(id));
}

} // namespace kvscope::ui
