// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringView>
#include <cstdint>
#include <vector>

#include "engine/base/result.h"
#include "ui/models/chat_types.h"

namespace kvscope::ui {

inline constexpr std::int64_t kAttachmentLimit = 1 << 20; ///< bytes of a file
inline constexpr std::int64_t kPasteLimit = 64LL << 20;   ///< bytes of a paste: beyond it nothing could read it
inline constexpr qsizetype kLongestTyped = 64 * 1024;     ///< what a text field lays out without a stall ...
inline constexpr qsizetype kLongestTypedLine = 8 * 1024;  ///< ... and one line of it

/// Reads a text file. Errors, each a sentence that says what to do: not there, not a file, larger than the limit,
/// empty, binary, text that is not UTF-8 (UTF-16 with a byte order mark is read too).
Result<Attachment> readAttachment(const QString& path);
/// A paste that is too large for the text field: an attachment without a name.
Attachment pastedAttachment(const QString& text);
inline bool isPaste(const Attachment& attachment) {
    return attachment.name.isEmpty();
}
QString attachmentTitle(const Attachment& attachment);      ///< its name, or "Pasted text"
std::int64_t attachmentBytes(const Attachment& attachment); ///< as UTF-8
/// Is this too much for the text field? Then it becomes an attachment.
bool isLargePaste(QStringView text);

/// "server.log:" and the text in a fence that nothing in it can close. A paste stands as it is.
QString attachmentAsText(const Attachment& attachment);
/// What is sent: the typed text, then each attachment, with empty lines between.
QString messageWith(const QString& typed, const std::vector<Attachment>& attachments);
inline QString messageWith(const Draft& message) {
    return messageWith(message.text, message.attachments);
}
/// The same of a message: what the model reads of one of the user's, and what is copied of it.
QString wholeText(const ChatMessage& message);
/// What a chat that begins with this message is called until there is a better title: its first words, or the name of
/// what is attached to it.
QString firstWords(const Draft& message);
/// The same text and files, whether their tokens are counted or not.
bool sameMessage(const Draft& a, const Draft& b);

} // namespace kvscope::ui
