// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/base/thinking.h"

#include <algorithm>
#include <optional>

namespace kvscope {
namespace {

constexpr auto npos = std::string_view::npos;

struct Marks {
    std::string_view begin, end;
};
constexpr Marks kMarks[] = {{"<think>", "</think>"},           {"<thinking>", "</thinking>"},
                            {"<thought>", "</thought>"},       {"<reasoning>", "</reasoning>"},
                            {"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"}};

bool isSpace(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view trimLeft(std::string_view text) {
    while (!text.empty() && isSpace(text.front()))
        text.remove_prefix(1);
    return text;
}

std::string_view trim(std::string_view text) {
    text = trimLeft(text);
    while (!text.empty() && isSpace(text.back()))
        text.remove_suffix(1);
    return text;
}

/// A fence of ``` or ~~~ at the beginning of a line: its character and length; 0 = no fence.
std::pair<char, std::size_t> fenceOf(std::string_view line) {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t' || line.front() == '>'))
        line.remove_prefix(1);
    if (line.empty() || (line.front() != '`' && line.front() != '~'))
        return {0, 0};
    const char c = line.front();
    const std::size_t length = std::min(line.find_first_not_of(c), line.size());
    if (length < 3 || (c == '`' && line.find('`', length) != npos))
        return {0, 0};
    return {c, length};
}

/// Is `at` inside of `code` of its line? A run of backticks without a partner is text.
bool inCodeSpan(std::string_view line, std::size_t at) {
    for (std::size_t tick = line.find('`'); tick < at;) {
        const std::size_t end = std::min(line.find_first_not_of('`', tick), line.size());
        const std::string run(end - tick, '`');
        std::size_t close = line.find(run, end);
        while (close != npos && close + run.size() < line.size() && line[close + run.size()] == '`') // a longer run
            close = line.find(run, std::min(line.find_first_not_of('`', close), line.size()));
        if (close != npos && close > at)
            return true;
        tick = line.find('`', close == npos ? end : close + run.size());
        if (tick == npos)
            return false;
    }
    return false;
}

enum class Place { Text, Span, Fence };

/// Where places lie in a text that begins outside of code, asked in ascending order: so all of them together cost one
/// pass over the lines.
class Places {
public:
    explicit Places(std::string_view text) : m_text(text) {}

    Place of(std::size_t at) {
        for (;;) {
            const std::size_t end = std::min(m_text.find('\n', m_start), m_text.size());
            const std::string_view line = m_text.substr(m_start, end - m_start);
            const bool here = at <= end || end == m_text.size();
            if (here && m_fence.second == 0)
                return inCodeSpan(line, at - m_start) ? Place::Span : Place::Text;
            if (here)
                return Place::Fence;
            const auto mark = fenceOf(line);
            if (mark.second > 0) {
                if (m_fence.second == 0)
                    m_fence = mark;
                else if (mark.first == m_fence.first && mark.second >= m_fence.second)
                    m_fence = {0, 0};
            }
            m_start = end + 1;
        }
    }

private:
    std::string_view m_text;
    std::size_t m_start = 0; ///< of the line
    std::pair<char, std::size_t> m_fence{0, 0};
};

bool startsLine(std::string_view text, std::size_t at) {
    while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t'))
        --at;
    return at == 0 || text[at - 1] == '\n';
}

bool endsLine(std::string_view text, std::size_t at) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r'))
        ++at;
    return at == text.size() || text[at] == '\n';
}

/// A mark in a text: where, and which pair.
struct Found {
    std::size_t at = npos;
    const Marks* marks = nullptr;
    std::size_t behindEnd() const { return at + marks->end.size(); }
};

/// The end of the thought that `text` begins in. An end mark in a fence is taken only when there is no other: thoughts
/// quote code without closing it.
Found endOfThought(std::string_view text, const Marks* marks) {
    Found quoted;
    for (const Marks& pair : kMarks) {
        if (marks && marks->end != pair.end)
            continue;
        Found found;
        Places places(text);
        for (std::size_t at = text.find(pair.end); at != npos; at = text.find(pair.end, at + 1)) {
            const Place place = places.of(at);
            if (place == Place::Text)
                found = {at, &pair};
            else if (place == Place::Fence && at < quoted.at)
                quoted = {at, &pair};
            if (found.marks)
                break;
        }
        if (found.marks)
            return found;
    }
    return quoted;
}

/// A thought whose beginning was in the prompt, though nobody said so.
Found loneEnd(std::string_view text) {
    Found first;
    for (const Marks& pair : kMarks) {
        Places places(text);
        for (std::size_t at = text.find(pair.end); at != npos && at < first.at; at = text.find(pair.end, at + 1))
            if ((startsLine(text, at) || endsLine(text, at + pair.end.size())) && places.of(at) == Place::Text)
                first = {at, &pair};
    }
    return first;
}

/// The next beginning of a thought at or behind `from`.
Found nextBegin(std::string_view text, std::size_t from, bool atStart) {
    Found first;
    for (const Marks& pair : kMarks) {
        const bool ends = text.find(pair.end, from) != npos;
        Places places(text);
        for (std::size_t at = text.find(pair.begin, from); at != npos && at < first.at;
             at = text.find(pair.begin, at + 1)) {
            const bool opens = atStart && trim(text.substr(0, at)).empty();
            if (!opens && !ends)
                break;
            const bool inside = !opens && startsLine(text, at) && places.of(at) == Place::Text &&
                                endOfThought(text.substr(at + pair.begin.size()), &pair).marks;
            if (opens || inside)
                first = {at, &pair};
        }
    }
    return first;
}

/// How many bytes at the end may become one of the marks.
std::size_t unsureEnd(std::string_view text, bool inThought) {
    std::size_t most = 0;
    for (const Marks& pair : kMarks)
        for (const std::string_view mark : {pair.begin, pair.end}) {
            if (inThought != (mark == pair.end))
                continue;
            for (std::size_t n = std::min(mark.size() - 1, text.size()); n > most; --n)
                if (text.ends_with(mark.substr(0, n)))
                    most = n;
        }
    return most;
}

class Splitter {
public:
    Splitter(std::string_view text, bool complete) : m_text(text), m_complete(complete) {}

    ThinkingSplit run(bool opened) {
        if (opened)
            takeThought(nullptr);
        else if (const Found end = loneEnd(m_text); end.marks && nextBegin(m_text, 0, true).at > end.at)
            takeThought(end.marks);
        while (!m_out.open) {
            const Found begin = nextBegin(m_text, 0, m_out.answer.empty());
            if (!begin.marks)
                break;
            if (!trim(m_text.substr(0, begin.at)).empty())
                takeAnswer(m_text.substr(0, begin.at));
            m_text.remove_prefix(begin.at + begin.marks->begin.size());
            takeThought(begin.marks);
        }
        if (!m_out.open) {
            // While nothing is said yet, the beginning of a mark may still become one.
            if (!m_complete && trim(m_text).size() == unsureEnd(trim(m_text), false))
                m_text = {};
            takeAnswer(m_text);
        }
        return std::move(m_out);
    }

private:
    void takeThought(const Marks* marks) {
        const Found end = endOfThought(m_text, marks);
        std::string_view thought = m_text.substr(0, end.at);
        m_out.open = !end.marks;
        if (m_out.open && !m_complete)
            thought.remove_suffix(unsureEnd(thought, true));
        thought = trim(thought);
        if (!thought.empty()) {
            m_out.thinking += m_out.thinking.empty() ? "" : "\n\n";
            m_out.thinking += thought;
        }
        m_text.remove_prefix(end.marks ? end.behindEnd() : m_text.size());
        m_thought = true;
    }
    void takeAnswer(std::string_view text) {
        if (m_thought && m_out.answer.empty())
            text = trimLeft(text);
        m_out.answer += text;
    }

    std::string_view m_text; ///< what is left
    bool m_complete;
    bool m_thought = false;
    ThinkingSplit m_out;
};

} // namespace

ThinkingSplit splitThinking(std::string_view text, bool opened, bool complete) {
    return Splitter(text, complete).run(opened);
}

std::string_view thoughtOpener(std::string_view prompt) {
    const std::string_view body = prompt.substr(0, prompt.find_last_not_of(" \t\r\n") + 1);
    for (const Marks& pair : kMarks)
        if (body.ends_with(pair.begin))
            return prompt.substr(body.size() - pair.begin.size());
    return {};
}

bool endsInThought(std::string_view prompt) {
    return !thoughtOpener(prompt).empty();
}

std::string_view thoughtEnd(std::string_view opener) {
    for (const Marks& pair : kMarks)
        if (trim(opener) == pair.begin)
            return pair.end;
    return {};
}

} // namespace kvscope
