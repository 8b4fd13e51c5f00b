// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatController, seventh part: the mark where a chat that has outgrown its window is cut. Where that is, is a function
// of the chat, so nothing is stored: the engine is asked again.
#include <algorithm>

#include "ui/models/chat_controller.h"

namespace kvscope::ui {

void ChatSession::showCut(const api::WindowCut& cut, const std::vector<int>& rowsOfDialog) {
    const std::size_t system = rowsOfDialog.empty() || rowsOfDialog.front() >= 0 ? 0 : 1;
    const std::size_t first = system + static_cast<std::size_t>(cut.messages); // message that is still read
    const int marked = cut.messages == 0 || first >= rowsOfDialog.size() ? -1 : rowsOfDialog[first];
    for (int row = 0; row < model->size(); ++row)
        if (model->at(row).windowCut != (row == marked))
            model->edit(row, [&](ChatMessage& m) { m.windowCut = row == marked; });
}

/// The shown chat was read from the database, or has become another one.
void ChatController::findCut() {
    ChatSession& s = *m_current;
    if (!m_trims) {
        s.showCut({}, {});
        return;
    }
    if (!m_modelReady || !s.loaded || s.request.valid() || s.model->size() == 0)
        return;
    const auto rows = s.dialogRows; // those of the newest request
    api::DialogPrompt prompt = s.dialog(m_modelPath);
    const std::vector<int> asked = std::exchange(s.dialogRows, rows);
    while (!prompt.messages.empty() && prompt.messages.back().role == "assistant")
        prompt.messages.pop_back(); // as the newest answer was asked for
    prompt.addGenerationPrompt = true;
    prompt.continueLast = false;
    measure(std::move(prompt), [this, key = s.key, asked, size = s.model->size()](const api::MeasuredEvent& e) {
        ChatSession* session = byKey(key);
        if (!session || e.error || session->request.valid() || session->model->size() != size)
            return; // it has changed, and is marked by what changed it
        session->showCut(e.cut, asked);
        session->model->flush();
    });
}

} // namespace kvscope::ui
