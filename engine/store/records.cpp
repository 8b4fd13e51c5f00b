// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/records.h"

namespace kvscope::store {

const char* roleName(Role role) {
    switch (role) {
    case Role::System:
        return "system";
    case Role::User:
        return "user";
    case Role::Assistant:
        return "assistant";
    }
    return "user";
}

const char* messageStatusName(MessageStatus status) {
    switch (status) {
    case MessageStatus::Complete:
        return "complete";
    case MessageStatus::Interrupted:
        return "interrupted";
    case MessageStatus::Generating:
        return "generating";
    case MessageStatus::Error:
        return "error";
    }
    return "error";
}

Draft draftWithWaiting(const Conversation& conversation) {
    Draft draft = conversation.waiting;
    if (!conversation.draft.empty())
        draft.text += (draft.text.empty() ? "" : "\n\n") + conversation.draft;
    draft.attachments.insert(draft.attachments.end(), conversation.draftAttachments.begin(),
                             conversation.draftAttachments.end());
    return draft;
}

} // namespace kvscope::store
