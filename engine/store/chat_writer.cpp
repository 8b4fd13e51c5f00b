// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/chat_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "engine/store/chat_json.h"
#include "engine/store/chat_text.h"

namespace kvscope::store {

namespace fs = std::filesystem;

namespace {

std::string dump(const nlohmann::ordered_json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

std::optional<ChatFormat> chatFormatOf(const std::string& path) {
    std::string ending = fs::path(path).extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
    if (ending == ".md" || ending == ".markdown")
        return ChatFormat::Markdown;
    if (ending == ".html" || ending == ".htm")
        return ChatFormat::Html;
    if (ending == ".json")
        return ChatFormat::Json;
    if (ending == ".jsonl")
        return ChatFormat::JsonLines;
    return std::nullopt;
}

Result<std::unique_ptr<ChatWriter>> ChatWriter::create(const std::string& path, ChatFormat format,
                                                       const std::string& title) {
    std::unique_ptr<ChatWriter> writer(new ChatWriter(format, path));
    std::error_code ignored;
    const bool plain = !fs::exists(path, ignored) || fs::is_regular_file(path, ignored);
    if (plain)
        writer->m_partial = path + ".part";
    writer->m_file = std::fopen(plain ? writer->m_partial.c_str() : path.c_str(), "wbe");
    if (!writer->m_file) {
        writer->m_partial.clear();
        return tl::unexpected<Error>(writer->failed().error());
    }
    writer->begin(title);
    return writer;
}

std::unique_ptr<ChatWriter> ChatWriter::onStream(std::FILE* stream, ChatFormat format, const std::string& title) {
    std::unique_ptr<ChatWriter> writer(new ChatWriter(format, {}));
    writer->m_file = stream;
    writer->begin(title);
    return writer;
}

ChatWriter::~ChatWriter() {
    if (m_file && !m_path.empty())
        std::fclose(m_file);
    if (!m_partial.empty())
        ::unlink(m_partial.c_str());
}

void ChatWriter::begin(const std::string& title) {
    if (m_format == ChatFormat::Html)
        m_head = htmlHead(title);
    else if (m_format == ChatFormat::Json)
        m_head = "{\"format\":\"" + std::string(kChatFormat) + "\",\"version\":" + std::to_string(kChatFormatVersion) +
                 ",\"conversations\":[\n";
}

Result<void> ChatWriter::failed() const {
    const int error = errno;
    const std::string name = m_path.empty() ? "standard output" : "'" + m_path + "'";
    return fail(error == ENOSPC || error == EFBIG || error == EDQUOT ? ErrorCode::Full : ErrorCode::Io,
                name + " cannot be written: " + std::strerror(error) + ".");
}

Result<void> ChatWriter::write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), m_file) != text.size())
        return failed();
    return {};
}

Result<void> ChatWriter::add(const ConversationContent& content) {
    std::string text = std::exchange(m_head, std::string());
    const bool first = m_conversations == 0;
    switch (m_format) {
    case ChatFormat::Markdown:
        text += (first ? "" : "---\n\n") + chatToMarkdown(content);
        break;
    case ChatFormat::Html:
        text += chatToHtmlBody(content);
        break;
    case ChatFormat::Json:
        text += (first ? "" : ",\n") + dump(chatToJson(content));
        break;
    case ChatFormat::JsonLines: {
        nlohmann::ordered_json line;
        line["format"] = kChatFormat;
        line["version"] = kChatFormatVersion;
        line["conversations"].push_back(chatToJson(content));
        text += dump(line) + "\n";
    }
    }
    ++m_conversations;
    m_messages += static_cast<std::int64_t>(content.messages.size());
    return write(text);
}

Result<void> ChatWriter::finish() {
    std::string tail = std::exchange(m_head, std::string());
    if (m_format == ChatFormat::Html)
        tail += htmlFoot();
    else if (m_format == ChatFormat::Json)
        tail += "\n]}\n";
    if (auto written = write(tail); !written)
        return written;
    if (std::fflush(m_file) != 0)
        return failed();
    if (m_path.empty())
        return {};
    const bool synced = m_partial.empty() || ::fsync(::fileno(m_file)) == 0;
    if (std::fclose(std::exchange(m_file, nullptr)) != 0 || !synced)
        return failed();
    if (!m_partial.empty() && std::rename(m_partial.c_str(), m_path.c_str()) != 0)
        return failed();
    m_partial.clear();
    return {};
}

} // namespace kvscope::store
