// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/chat_text.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include "engine/store/fold.h"

namespace kvscope::store {

namespace {

/// "2026-03-01 09:30" in UTC, "" for an unknown time.
std::string timeText(WallMillis millis) {
    const std::time_t seconds = static_cast<std::time_t>(millis / 1000);
    std::tm parts{};
    char text[32];
    if (millis <= 0 || !gmtime_r(&seconds, &parts) ||
        std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts) == 0)
        return {};
    return text;
}

/// One line of a heading, whatever the title holds.
std::string oneLine(const std::string& text) {
    std::string line = validUtf8(text);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return line.empty() ? "Untitled chat" : line;
}

std::string nameOf(const Attachment& attachment) {
    return attachment.name.empty() ? "pasted text" : oneLine(attachment.name);
}

std::string speaker(const Message& message) {
    if (message.role == Role::User)
        return "You";
    if (message.role == Role::System)
        return "System";
    const std::size_t slash = message.model.rfind('/');
    const std::string model = slash == std::string::npos ? message.model : message.model.substr(slash + 1);
    return model.empty() ? "Answer" : "Answer (" + oneLine(model) + ")";
}

/// What a reader should know of an answer that did not end by itself.
std::string remark(const Message& message) {
    if (message.status == MessageStatus::Error)
        return message.error.empty() ? "This answer failed." : message.error;
    if (message.status == MessageStatus::Complete)
        return {};
    return "This answer was interrupted.";
}

/// A run of '`' or '~' that opens or closes a fence: its character and length; 0 = none.
std::pair<char, std::size_t> fenceOf(std::string_view line) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos || indent > 3 || (line[indent] != '`' && line[indent] != '~'))
        return {' ', 0};
    const char mark = line[indent];
    const std::size_t end = std::min(line.find_first_not_of(mark, indent), line.size());
    if (end - indent < 3 || (mark == '`' && line.find('`', end) != std::string_view::npos))
        return {' ', 0};
    return {mark, end - indent};
}

/// Walks the lines of a text; the fence that is open at the end, as it must be closed ("" = none).
template <class Line> std::string walkFences(std::string_view text, Line line) {
    std::pair<char, std::size_t> open{' ', 0};
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view one = text.substr(at, end - at);
        const auto fence = fenceOf(one);
        const bool closes = open.second > 0 && fence.first == open.first && fence.second >= open.second &&
                            one.find_last_not_of(" \t\r") == one.rfind(open.first);
        const bool opens = open.second == 0 && fence.second > 0;
        line(one, opens, closes, open.second > 0);
        if (opens)
            open = fence;
        else if (closes)
            open.second = 0;
        at = end + 1;
    }
    return std::string(open.second, open.first);
}

/// A fence longer than any in the text, so that the text cannot end it.
std::string fenceAround(const std::string& text) {
    std::size_t longest = 2, run = 0;
    for (const char c : text)
        longest = std::max(longest, run = c == '`' ? run + 1 : 0);
    return std::string(longest + 1, '`');
}

std::string inQuotes(const std::string& text) {
    std::string all = "> ";
    for (const char c : text)
        all += c == '\n' ? std::string("\n> ") : std::string(1, c);
    return all;
}

std::string escaped(std::string_view text) {
    std::string all;
    for (const char c : validUtf8(text)) {
        switch (c) {
        case '&':
            all += "&amp;";
            break;
        case '<':
            all += "&lt;";
            break;
        case '>':
            all += "&gt;";
            break;
        case '"':
            all += "&quot;";
            break;
        case '\'':
            all += "&#39;";
            break;
        default:
            // Controls are not allowed in a page, not even escaped.
            if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t')
                all += c;
        }
    }
    return all;
}

/// Text in paragraphs that keep their lines, code in boxes; the Markdown in it is left as it was typed.
std::string htmlText(const std::string& text) {
    std::string html, block;
    bool code = false;
    const auto flush = [&] {
        if (!block.empty() && block.back() == '\n')
            block.pop_back();
        if (!block.empty() || code)
            html += (code ? "<pre><code>" : "<p>") + escaped(block) + (code ? "</code></pre>\n" : "</p>\n");
        block.clear();
    };
    walkFences(text, [&](std::string_view line, bool opens, bool closes, bool) {
        if (opens || closes) {
            flush();
            code = opens;
            return;
        }
        block += line;
        block += '\n';
    });
    flush();
    return html;
}

} // namespace

std::vector<const Message*> shownPath(const ConversationContent& content) {
    std::vector<const Message*> path;
    MessageId wanted = content.conversation.activeLeaf;
    for (auto it = content.messages.rbegin(); it != content.messages.rend() && wanted.valid(); ++it)
        if (it->id == wanted) { // parents stand before their children
            path.push_back(&*it);
            wanted = it->parent;
        }
    std::reverse(path.begin(), path.end());
    return path;
}

std::string chatToMarkdown(const ConversationContent& content) {
    const Conversation& c = content.conversation;
    std::string all = "# " + oneLine(c.title) + "\n\n";
    if (const std::string created = timeText(c.created); !created.empty())
        all += created + "\n\n";
    if (!c.systemPrompt.empty())
        all += "## System prompt\n\n" + inQuotes(validUtf8(c.systemPrompt)) + "\n\n";
    for (const Message* message : shownPath(content)) {
        all += "## " + speaker(*message) + "\n\n";
        if (!message->thinking.empty())
            all += "> *Thought*\n>\n" + inQuotes(validUtf8(message->thinking)) + "\n\n";
        const std::string text = validUtf8(message->text);
        all += text + "\n";
        if (const std::string open = walkFences(text, [](auto...) {}); !open.empty())
            all += open + "\n";
        for (const Attachment& attachment : message->attachments) {
            const std::string inside = validUtf8(attachment.content), fence = fenceAround(inside);
            all += "\nAttached: " + nameOf(attachment) + "\n\n" + fence + "\n" + inside +
                   (inside.ends_with('\n') ? "" : "\n") + fence + "\n";
        }
        if (const std::string note = remark(*message); !note.empty())
            all += "\n*" + oneLine(note) + "*\n";
        all += "\n";
    }
    return all;
}

std::string htmlHead(const std::string& title) {
    return "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
           "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
           escaped(oneLine(title)) +
           "</title>\n<style>\n"
           "body{font:16px/1.5 sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#171B21;"
           "background:#fff}\n"
           "h1{font-size:1.4rem}h2{font-size:1rem;margin:1.5rem 0 .3rem}"
           "p,blockquote{white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}\n"
           ".user p{background:#E6EDFC;padding:.5rem .8rem;border-radius:10px}\n"
           "pre{background:#F6F7F9;border:1px solid #CBD2DA;border-radius:6px;padding:.6rem;overflow-x:auto}\n"
           "blockquote,.note{color:#586271}blockquote{border-left:2px solid #CBD2DA;padding-left:.8rem}\n"
           "@media (prefers-color-scheme:dark){body{color:#E9ECF0;background:#14171B}.user p{background:#222C42}"
           "pre{background:#0B0D10;border-color:#353D48}blockquote,.note{color:#97A1AE}}\n"
           "</style>\n</head>\n<body>\n";
}

std::string htmlFoot() {
    return "</body>\n</html>\n";
}

std::string chatToHtmlBody(const ConversationContent& content) {
    const Conversation& c = content.conversation;
    std::string all = "<section>\n<h1>" + escaped(oneLine(c.title)) + "</h1>\n";
    if (const std::string created = timeText(c.created); !created.empty())
        all += "<div class=\"note\">" + created + "</div>\n";
    if (!c.systemPrompt.empty())
        all += "<h2>System prompt</h2>\n<blockquote>" + escaped(c.systemPrompt) + "</blockquote>\n";
    for (const Message* message : shownPath(content)) {
        all += std::string("<article class=\"") + roleName(message->role) + "\">\n<h2>" + escaped(speaker(*message)) +
               "</h2>\n";
        if (!message->thinking.empty())
            all += "<blockquote>" + escaped(message->thinking) + "</blockquote>\n";
        all += htmlText(message->text);
        for (const Attachment& attachment : message->attachments)
            all += "<div class=\"note\">Attached: " + escaped(nameOf(attachment)) + "</div>\n<pre><code>" +
                   escaped(attachment.content) + "</code></pre>\n";
        if (const std::string note = remark(*message); !note.empty())
            all += "<div class=\"note\">" + escaped(note) + "</div>\n";
        all += "</article>\n";
    }
    return all + "</section>\n";
}

} // namespace kvscope::store
