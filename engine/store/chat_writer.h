// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/store/records.h"

namespace kvscope::store {

enum class ChatFormat {
    Markdown,  ///< the shown path, for people
    Html,      ///< the same as a page of its own
    Json,      ///< everything; one object with a list of conversations
    JsonLines, ///< everything; one conversation a line
};
/// By the ending of a file's name: .md .markdown .html .htm .json .jsonl; none for others.
std::optional<ChatFormat> chatFormatOf(const std::string& path);

/// Writes conversations one after the other, so that memory holds one of them. Thread: any one at a time.
class ChatWriter {
public:
    /// The file appears under its name when `finish` has written it whole. Devices and pipes are written to directly.
    /// Errors: Io, Full. `title`: of the page.
    static Result<std::unique_ptr<ChatWriter>> create(const std::string& path, ChatFormat format,
                                                      const std::string& title);
    /// The stream stays open and the caller's.
    static std::unique_ptr<ChatWriter> onStream(std::FILE* stream, ChatFormat format, const std::string& title);
    ~ChatWriter(); ///< without `finish` nothing is left behind
    ChatWriter(const ChatWriter&) = delete;
    ChatWriter& operator=(const ChatWriter&) = delete;

    Result<void> add(const ConversationContent& content);
    Result<void> finish();
    int conversations() const { return m_conversations; }
    std::int64_t messages() const { return m_messages; }

private:
    ChatWriter(ChatFormat format, std::string path) : m_format(format), m_path(std::move(path)) {}
    Result<void> write(const std::string& text);
    Result<void> failed() const;
    void begin(const std::string& title);

    ChatFormat m_format;
    std::string m_path;    ///< "" = a stream of the caller
    std::string m_partial; ///< "" = written directly
    std::FILE* m_file = nullptr;
    std::string m_head; ///< written before the first conversation
    int m_conversations = 0;
    std::int64_t m_messages = 0;
};

} // namespace kvscope::store
