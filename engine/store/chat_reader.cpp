// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/chat_reader.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/json_nesting.h"
#include "engine/store/chat_fingerprint.h"
#include "engine/store/fold.h"
#include "engine/store/json_split.h"

namespace kvscope::store {

namespace {

using nlohmann::json;

constexpr std::size_t kNone = std::string_view::npos;

std::string megabytes(std::size_t bytes) {
    return std::to_string(bytes >> 20) + " MiB";
}

/// One reading of a text: finds the conversations, whatever form the file has.
class Reading {
public:
    Reading(const std::function<Result<void>(ReadChat&&)>& take, const ChatReadOptions& options)
        : m_take(take)
        , m_options(options) {}

    Result<ChatReadReport> run(std::string_view text) {
        if (text.starts_with("\xEF\xBB\xBF"))
            text.remove_prefix(3);
        const std::size_t at = skipBlanks(text, 0);
        if (at == text.size())
            return fail(ErrorCode::Corrupt, "The file is empty; there is nothing to import.");
        if (text[at] == '[')
            readArray(text, at, false);
        else if (text[at] == '{')
            looksLikeLines(text, at) ? readLines(text) : readObject(text, at);
        else
            return fail(ErrorCode::Corrupt,
                        "The file is not JSON; conversations are read from KVScope, OpenAI-style and "
                        "ShareGPT JSON, or JSON lines.");
        if (m_error)
            return tl::unexpected<Error>(*m_error);
        if (m_report.chats == 0 && m_report.skippedCount > 0 && !m_stopped)
            return fail(ErrorCode::Corrupt, "Nothing could be imported. " + upper(m_report.skipped.front().what) +
                                                ": " + m_report.skipped.front().why);
        return std::move(m_report);
    }

private:
    static std::string upper(std::string text) {
        if (!text.empty())
            text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
        return text;
    }

    bool goOn() {
        if (!m_stopped && m_options.stop && m_options.stop())
            m_stopped = true;
        return !m_error && !m_stopped;
    }

    void skip(const std::string& what, const std::string& why, bool whole = true) {
        ++m_report.skippedCount;
        m_report.skippedChats += whole ? 1 : 0;
        if (m_report.skipped.size() < kMostSkippedTold)
            m_report.skipped.push_back({what, why});
    }

    /// Parses a piece; null, and told, when it cannot be.
    std::optional<json> parse(std::string_view piece, const std::string& what) {
        if (piece.size() > m_options.mostChatBytes) {
            skip(what, "It has " + megabytes(piece.size()) + "; at most " + megabytes(m_options.mostChatBytes) +
                           " are read.");
            return std::nullopt;
        }
        if (jsonNestsTooDeep(piece)) {
            skip(what, "It is nested too deep.");
            return std::nullopt;
        }
        try {
            return json::parse(piece);
        } catch (const json::parse_error& error) {
            if (const std::string valid = validUtf8(piece); valid != piece) // a bad byte does not cost the rest
                if (json value = json::parse(valid, nullptr, false); !value.is_discarded()) {
                    skip(what + ", bytes of it", "They are not UTF-8; \xEF\xBF\xBD stands in their place.", false);
                    return value;
                }
            skip(what, "It is not valid JSON (byte " + std::to_string(error.byte) + " of it).");
        } catch (const json::exception&) { // a number beyond all bounds
            skip(what, "It holds a number that cannot be read.");
        }
        return std::nullopt;
    }

    void readArray(std::string_view text, std::size_t at, bool ours) {
        JsonEnd list;
        if (!ours && isListOfMessages(text, at)) {
            list = splitJson(text, at, [](const std::string&, std::string_view) { return true; });
            if (list.cut)
                skip("the conversation", "The file ends inside of it: it was cut off.");
            else if (auto value = parse(text.substr(at, list.end - at), "the conversation"))
                addForeign(*value, "the conversation");
        } else {
            std::size_t count = 0;
            list = splitJson(text, at, [&](const std::string&, std::string_view piece) {
                if (!goOn())
                    return false;
                readPiece(piece, "chat " + std::to_string(++count), ours);
                return true;
            });
            if (list.cut && goOn())
                skip("chat " + std::to_string(count + 1), "The file ends inside of it: it was cut off.");
        }
        if (!ours && !list.cut && skipBlanks(text, list.end) != text.size() && goOn())
            skip("what follows the list", "It does not belong to it.");
    }

    /// By the first element of the list that begins at `at`.
    static bool isListOfMessages(std::string_view text, std::size_t at) {
        std::string_view first;
        splitJson(text, at, [&](const std::string&, std::string_view piece) {
            first = piece;
            return false;
        });
        return !first.empty() && first.size() <= (std::size_t(8) << 20) && !jsonNestsTooDeep(first) &&
               isForeignMessage(json::parse(first, nullptr, false));
    }

    /// A string or a number, as it should be there; null for anything else, however large it is.
    static json smallValue(std::string_view piece) {
        return piece.size() > 64 || piece.starts_with('[') || piece.starts_with('{')
                   ? json()
                   : json::parse(piece, nullptr, false);
    }

    void readPiece(std::string_view piece, const std::string& what, bool ours) {
        auto value = parse(piece, what);
        if (!value)
            return;
        if (!ours && value->is_object() && value->value("format", json()) == kChatFormat)
            readObject(piece, 0);
        else if (ours)
            addOurs(*value, what);
        else
            addForeign(*value, what);
    }

    /// A file of one object: KVScope's own, a container of conversations, or one conversation.
    void readObject(std::string_view text, std::size_t at) {
        std::string_view format, version, chats;
        const JsonEnd object = splitJson(text, at, [&](const std::string& name, std::string_view value) {
            if (name == "format")
                format = value;
            else if (name == "version")
                version = value;
            else if (name == "conversations" || name == "data" || name == "chats")
                chats = value;
            return true;
        });
        const bool ours = smallValue(format) == kChatFormat;
        if (ours) {
            const json number = smallValue(version);
            if (!number.is_number_integer() || number > kChatFormatVersion) {
                m_error = Error{ErrorCode::Newer, "The file was written by a newer KVScope; use that one."};
                return;
            }
        }
        if (object.cut && chats.empty()) { // perhaps cut inside of the list
            const std::size_t list = text.find('[', object.end);
            if (list == kNone || object.end != skipBlanks(text, list)) {
                skip("the conversation", "The file ends inside of it: it was cut off.");
                return;
            }
            chats = text.substr(list);
        }
        if (!chats.empty() && chats.front() == '[' && (ours || !isListOfMessages(chats, 0))) {
            readArray(chats, 0, ours);
        } else if (object.cut) {
            skip("the conversation", "The file ends inside of it: it was cut off.");
        } else if (auto value = parse(text.substr(at, object.end - at), "the conversation")) {
            addForeign(*value, "the conversation");
        }
        if (!object.cut && skipBlanks(text, object.end) != text.size() && goOn())
            skip("what follows the conversation", "It does not belong to it.");
    }

    /// One object a line. A file that is one object in one line is read as an object.
    static bool looksLikeLines(std::string_view text, std::size_t at) {
        const std::size_t end = text.find('\n', at);
        if (end == kNone || skipBlanks(text, end) == text.size())
            return false;
        const std::size_t value = endOfValue(text.substr(0, end), at);
        return value != kNone && skipBlanks(text.substr(0, end), value) == end;
    }

    void readLines(std::string_view text) {
        std::size_t number = 0;
        for (std::size_t at = 0; at < text.size() && goOn();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            const std::string_view line = text.substr(at, end - at);
            ++number;
            if (skipBlanks(line, 0) < line.size())
                readPiece(line, "line " + std::to_string(number), false);
            at = end + 1;
        }
    }

    void addOurs(const json& value, const std::string& what) {
        SkippedParts parts;
        auto content = chatFromJson(value, parts);
        finish(std::move(content), what, parts, "kvscope");
    }

    void addForeign(const json& value, const std::string& what) {
        SkippedParts parts;
        auto content = chatFromForeign(value, parts);
        std::string source;
        if (value.is_object())
            for (const char* name : {"id", "conversation_id", "uuid"})
                if (value.contains(name) && source.empty())
                    source = value[name].dump(-1, ' ', false, json::error_handler_t::replace);
        finish(std::move(content), what, parts, source);
    }

    void finish(Result<ConversationContent> content, const std::string& what, const SkippedParts& parts,
                std::string source) {
        for (const SkippedPart& part : parts.first())
            skip(what + ", " + part.what, part.why, false);
        m_report.skippedCount += parts.count() - static_cast<std::int64_t>(parts.first().size());
        if (!content) {
            skip(what, content.error().message);
            return;
        }
        if (content->conversation.created > 0)
            source += "@" + std::to_string(content->conversation.created);
        ReadChat chat{std::move(*content), {}};
        chat.fingerprint = chatFingerprint(chat.content, source);
        ++m_report.chats;
        if (auto taken = m_take(std::move(chat)); !taken)
            m_error = taken.error();
    }

    const std::function<Result<void>(ReadChat&&)>& m_take;
    const ChatReadOptions& m_options;
    ChatReadReport m_report;
    std::optional<Error> m_error;
    bool m_stopped = false;
};

/// The bytes of a file, by reads: a file that shrinks meanwhile is a short text, not a signal.
Result<std::string> readFile(const std::string& path, std::size_t most) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
                    "'" + path + "' cannot be opened: " + std::strerror(errno) + ".");
    struct stat info {};
    std::string text;
    int error = ::fstat(file, &info) == 0 ? 0 : errno;
    if (error == 0 && S_ISDIR(info.st_mode))
        error = EISDIR;
    char buffer[1 << 16];
    while (error == 0 && text.size() <= most) {
        const ssize_t got = ::read(file, buffer, sizeof buffer);
        if (got == 0)
            break;
        if (got < 0)
            error = errno == EINTR ? 0 : errno;
        else
            text.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(file);
    if (error != 0)
        return fail(ErrorCode::Io, "'" + path + "' cannot be read: " + std::strerror(error) + ".");
    if (text.size() > most)
        return fail(ErrorCode::TooLong, "'" + path + "' is larger than " + megabytes(most) +
                                            ", the most that is imported at once; split it.");
    return text;
}

} // namespace

Result<ChatReadReport> readChats(std::string_view text, const std::function<Result<void>(ReadChat&&)>& take,
                                 const ChatReadOptions& options) {
    return Reading(take, options).run(text);
}

Result<ChatReadReport> readChatFile(const std::string& path, const std::function<Result<void>(ReadChat&&)>& take,
                                    const ChatReadOptions& options) {
    auto text = readFile(path, options.mostFileBytes);
    if (!text)
        return tl::unexpected<Error>(text.error());
    return readChats(*text, take, options);
}

} // namespace kvscope::store
