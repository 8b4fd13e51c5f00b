// SPDX-License-Identifier: GPL-3.0-or-later
//
// Messages and text for the tests of the chat view.
#pragma once

#include <QCoreApplication>
#include <QScrollBar>
#include <QTest>
#include <QWheelEvent>

#include "ui/chat/chat_view.h"
#include "ui/models/chat_model.h"

namespace kvscope::ui::test {

inline ChatMessage message(MessageRole role, const QString& text, MessageStatus status = MessageStatus::Done) {
    ChatMessage m;
    m.role = role;
    m.text = text;
    m.status = status;
    if (role == MessageRole::Assistant) {
        m.receipt = Receipt{};
        m.receipt->cache.promptTokens = 40;
        m.receipt->cache.reusedTokens = 32;
        m.receipt->cache.computedTokens = 8;
        m.receipt->ttftMs = 210;
        m.tokenRange = {40, 60};
    }
    return m;
}

/// A chat of `turns` turns with about 200 characters each.
inline void fill(ChatModel& model, int turns) {
    std::vector<ChatMessage> messages;
    for (int i = 0; i < turns; ++i) {
        messages.push_back(message(MessageRole::User, QStringLiteral("Question %1, which is short?").arg(i)));
        messages.push_back(
            message(MessageRole::Assistant,
                    QStringLiteral("Answer %1. ").arg(i) + QStringLiteral("Some words that fill lines. ").repeated(7)));
    }
    model.setMessages(std::move(messages));
}

/// Markdown with everything in it.
inline QString richText() {
    return QString::fromUtf8(
        "# Paged caches\n\nA block holds *16* tokens, **all of one** sequence, ~~never~~ `sometimes` shared; see "
        "[the paper](https://example.org/paper) or https://example.org.\n\n"
        "- one\n- two with a line that is so long that it has to wrap somewhere before the end of the column is near\n"
        "  1. nested\n  2. numbers\n     - deeper\n- [x] done\n- [ ] to do\n\n"
        "> quoted words\n> > and theirs\n\n"
        "| What | Count | Where it is kept, and a long explanation of why it is there |\n|---|--:|:-:|\n"
        "| blocks | 4,096 | in a pool that is allocated once and never grows |\n| tokens | 65,536 | `k` and `v` |\n\n"
        "```python\ndef f(x):\n\treturn x + 1  # a comment that is long enough to wrap in a narrow column, and then "
        "some more of it\n\n\nprint(f(1))\n```\n\n---\n\n"
        "分块缓存把每个序列切成固定大小的块，互相共享前缀。👩‍👩‍👧 🏳️‍🌈 "
        "𠮷\n\n"
        "ذاكرة التخزين المؤقت مقسمة إلى كتل\n\n1. first\n2. second\n\n    indented code\n\nThe end.");
}

inline void wheel(ChatView& view, int notches) {
    const QPointF at(view.viewport()->rect().center());
    QWheelEvent event(at, view.viewport()->mapToGlobal(at), QPoint(), QPoint(0, 120 * notches), Qt::NoButton,
                      Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(view.viewport(), &event);
}

} // namespace kvscope::ui::test
