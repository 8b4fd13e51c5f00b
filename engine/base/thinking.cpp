// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/base/thinking.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// Where the lines of a text end, and what opens and closes `code` in them: a run of backticks belongs to the next run
/// of its length in its line; one without a partner is text.
class Lines {
public:
    struct Run {
        std::size_t at = 0, length = 0;
        std::size_t partner = npos; ///< index of the run that closes what this one opens
    };

    explicit Lines(std::string_view text) {
        std::size_t first = 0; // run of the line
        for (std::size_t at = text.find_first_of("`\n"); at != npos; at = text.find_first_of("`\n", at)) {
            if (text[at] == '\n') {
                m_ends.push_back(at++);
                pair(first);
                first = m_runs.size();
                continue;
            }
            const std::size_t end = std::min(text.find_first_not_of('`', at), text.size());
            m_runs.push_back({at, end - at});
            at = end;
        }
        pair(first);
        m_ends.push_back(text.size());
    }
    std::size_t endOf(std::size_t at) const { return *std::lower_bound(m_ends.begin(), m_ends.end(), at); }
    const std::vector<Run>& runs() const { return m_runs; }
    std::size_t firstRun(std::size_t from) const {
        return std::size_t(std::lower_bound(m_runs.begin(), m_runs.end(), from,
                                            [](const Run& run, std::size_t at) { return run.at < at; }) -
                           m_runs.begin());
    }

private:
    void pair(std::size_t first) {
        std::unordered_map<std::size_t, std::size_t> next; // by length
        for (std::size_t i = m_runs.size(); i-- > first;) {
            const auto [known, fresh] = next.try_emplace(m_runs[i].length, i);
            if (!fresh)
                m_runs[i].partner = std::exchange(known->second, i);
        }
    }

    std::vector<std::size_t> m_ends; ///< ascending, the text's own at the end
    std::vector<Run> m_runs;
};

enum class Place { Text, Span, Fence };

/// Where places lie in the part of a text that begins at `from`, outside of code; asked in ascending order, so that all
/// of them together cost one pass over the lines.
class Places {
public:
    Places(std::string_view text, const Lines& lines, std::size_t from)
        : m_text(text)
        , m_lines(lines)
        , m_start(from)
        , m_end(lines.endOf(from))
        , m_run(lines.firstRun(from)) {}

    Place of(std::size_t at) {
        while (at > m_end && m_end < m_text.size()) {
            const auto mark = fenceOf(m_text.substr(m_start, m_end - m_start));
            if (mark.second > 0) {
                if (m_fence.second == 0)
                    m_fence = mark;
                else if (mark.first == m_fence.first && mark.second >= m_fence.second)
                    m_fence = {0, 0};
            }
            m_start = m_end + 1;
            m_end = m_lines.endOf(m_start);
        }
        if (m_fence.second > 0)
            return Place::Fence;
        const auto& runs = m_lines.runs();
        while (m_run < runs.size() && runs[m_run].at < m_start)
            ++m_run;
        while (m_run < runs.size() && runs[m_run].at < at) {
            const std::size_t partner = runs[m_run].partner;
            if (partner != npos && runs[partner].at > at)
                return Place::Span;
            m_run = partner == npos ? m_run + 1 : partner + 1;
        }
        return Place::Text;
    }

private:
    std::string_view m_text;
    const Lines& m_lines;
    std::size_t m_start, m_end; ///< of the line
    std::size_t m_run;          ///< the first run that may open what is asked
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

/// A mark in a text.
struct Mark {
    std::size_t at = npos; ///< npos = none
    std::size_t pair = 0;  ///< of kMarks
    bool end = false;
    std::string_view text() const { return end ? kMarks[pair].end : kMarks[pair].begin; }
    std::size_t behind() const { return at + text().size(); }
    explicit operator bool() const { return at != npos; }
};

/// All marks that begin at or behind `from`, ascending.
std::vector<Mark> marksOf(std::string_view text, std::size_t from = 0) {
    std::vector<Mark> all;
    for (std::size_t at = text.find_first_of("<[", from); at != npos; at = text.find_first_of("<[", at + 1))
        for (std::size_t pair = 0; pair < std::size(kMarks); ++pair)
            for (const bool end : {false, true})
                if (const Mark mark{at, pair, end}; text.substr(at).starts_with(mark.text()))
                    all.push_back(mark);
    return all;
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

/// What a text was taken apart into, and where its last part begins, which grows when the text does.
struct Parts {
    ThinkingSplit split;
    std::size_t last = 0;                             ///< where the open thought, or the rest of the answer, begins
    std::size_t thinkingBefore = 0, answerBefore = 0; ///< bytes of the parts that do not come from the last one
    bool afterThought = false;                        ///< something was thought before the last part
};

class Splitter {
public:
    Splitter(std::string_view text, bool complete)
        : m_text(text)
        , m_complete(complete)
        , m_marks(marksOf(text))
        , m_lines(m_marks.empty() ? std::string_view() : text) {
        for (const Mark& mark : m_marks)
            if (mark.end)
                m_ends[mark.pair].push_back(mark.at);
        m_fences = text.find("```") != npos || text.find("~~~") != npos;
    }

    Parts run(bool opened) {
        if (opened)
            takeThought(endOfThought(0, std::nullopt));
        else if (const Mark end = loneEnd(); end && !(nextBegin().at < end.at))
            takeThought(endOfThought(0, end.pair));
        while (!m_out.split.open) {
            const Mark begin = nextBegin();
            if (!begin)
                break;
            const std::string_view before = m_text.substr(m_at, begin.at - m_at);
            if (!trim(before).empty())
                takeAnswer(before);
            moveTo(begin.behind());
            takeThought(endOfThought(m_at, begin.pair));
        }
        if (!m_out.split.open)
            takeRest();
        return std::move(m_out);
    }

private:
    void moveTo(std::size_t at) {
        m_at = at;
        while (m_next < m_marks.size() && m_marks[m_next].at < at)
            ++m_next;
    }

    /// The end of the thought that begins at `from`. An end mark in a fence is taken only when there is no other:
    /// thoughts quote code without closing it.
    Mark endOfThought(std::size_t from, std::optional<std::size_t> wanted) {
        Mark quoted;
        if (m_marks.empty())
            return quoted;
        for (std::size_t pair = 0; pair < std::size(kMarks); ++pair) {
            if (wanted && *wanted != pair)
                continue;
            Places places(m_text, m_lines, from);
            const auto& ends = m_ends[pair];
            for (auto end = std::lower_bound(ends.begin(), ends.end(), from); end != ends.end(); ++end) {
                const Place place = places.of(*end);
                if (place == Place::Text)
                    return {*end, pair, true};
                if (place == Place::Fence && *end < quoted.at)
                    quoted = {*end, pair, true};
            }
        }
        return quoted;
    }

    /// A thought whose beginning was in the prompt, though nobody said so.
    Mark loneEnd() const {
        if (m_marks.empty())
            return {};
        Places places(m_text, m_lines, 0);
        for (const Mark& mark : m_marks)
            if (mark.end && (startsLine(m_text, mark.at) || endsLine(m_text, mark.behind())) &&
                places.of(mark.at) == Place::Text)
                return mark;
        return {};
    }

    /// The next beginning of a thought in what is left.
    Mark nextBegin() {
        if (m_next >= m_marks.size())
            return {};
        const std::string_view rest = m_text.substr(m_at);
        const std::size_t firstWord = std::min(rest.find_first_not_of(" \t\r\n"), rest.size()) + m_at;
        Places places(m_text, m_lines, m_at);
        for (std::size_t i = m_next; i < m_marks.size(); ++i) {
            const Mark& mark = m_marks[i];
            if (mark.end)
                continue;
            if (m_out.split.answer.empty() && mark.at == firstWord)
                return mark;
            const auto& ends = m_ends[mark.pair];
            if (!ends.empty() && ends.back() >= mark.behind() && startsLine(rest, mark.at - m_at) &&
                places.of(mark.at) == Place::Text && hasEnd(mark))
                return mark;
        }
        return {};
    }

    /// Without fences in the text, what had no end from one line on has none from a later line on.
    bool hasEnd(const Mark& begin) {
        const bool wholeLine = startsLine(m_text, begin.at);
        if (!m_fences && wholeLine && m_endless[begin.pair])
            return false;
        const bool has = bool(endOfThought(begin.behind(), begin.pair));
        m_endless[begin.pair] = m_endless[begin.pair] || (!has && wholeLine);
        return has;
    }

    void takeThought(const Mark& end) {
        ThinkingSplit& out = m_out.split;
        m_out.last = m_at;
        m_out.thinkingBefore = out.thinking.size();
        std::string_view thought = m_text.substr(m_at, end ? end.at - m_at : npos);
        out.open = !end;
        if (out.open && !m_complete)
            thought.remove_suffix(unsureEnd(thought, true));
        thought = trim(thought);
        if (!thought.empty()) {
            out.thinking += out.thinking.empty() ? "" : "\n\n";
            out.thinking += thought;
        }
        moveTo(end ? end.behind() : m_text.size());
        m_out.answerBefore = out.answer.size();
        m_out.afterThought = true;
    }

    void takeRest() {
        std::string_view rest = m_text.substr(m_at);
        m_out.last = m_at;
        m_out.thinkingBefore = m_out.split.thinking.size();
        m_out.answerBefore = m_out.split.answer.size();
        // While nothing is said yet, the beginning of a mark may still become one.
        if (!m_complete && trim(rest).size() == unsureEnd(trim(rest), false))
            rest = {};
        takeAnswer(rest);
    }

    void takeAnswer(std::string_view text) {
        if (m_out.afterThought && m_out.split.answer.empty())
            text = trimLeft(text);
        m_out.split.answer += text;
    }

    std::string_view m_text;
    bool m_complete;
    std::vector<Mark> m_marks;
    Lines m_lines;
    std::vector<std::size_t> m_ends[std::size(kMarks)]; ///< where the end marks of each pair stand
    bool m_endless[std::size(kMarks)] = {};             ///< a thought of this pair was found to have no end
    bool m_fences = false;
    std::size_t m_at = 0;   ///< what is left begins here ...
    std::size_t m_next = 0; ///< ... and its first mark is this one
    Parts m_out;
};

} // namespace

ThinkingSplit splitThinking(std::string_view text, bool opened, bool complete) {
    return Splitter(text, complete).run(opened).split;
}

// ---- a text that grows ----

ThinkingStream::ThinkingStream(bool opened, std::string text) : m_raw(std::move(text)), m_opened(opened) {
    takeApart();
}

/// All of it anew.
void ThinkingStream::takeApart() {
    ++m_wholeSplits;
    Parts parts = Splitter(m_raw, false).run(m_opened);
    m_split = std::move(parts.split);
    m_last = parts.last;
    m_afterThought = parts.afterThought;
    m_thinkingBefore = parts.thinkingBefore;
    m_answerBefore = parts.answerBefore;
    m_seen = m_last;
    m_firstWord = m_lastWord = npos;
    m_given = npos;
    const std::vector<Mark> marks = marksOf(m_raw);
    m_mark = marks.empty() ? npos : marks.back().behind();
    if (!marks.empty()) {
        const std::size_t line = m_raw.rfind('\n', marks.back().at);
        m_tickBeforeMark = m_raw.find('`', line == npos ? 0 : line) < marks.back().at;
    }
    look();
    if (m_split.open)
        m_given = m_lastWord; // what the split holds of this thought
    else
        m_given = m_split.answer.size() > m_answerBefore ? m_raw.size() : npos;
}

/// Whether what came from `old` on can change what was said of the text before it. All that is decided is decided by
/// the marks and by the lines that they stand in.
bool ThinkingStream::decidesAnew(std::size_t old) const {
    constexpr std::size_t kLongestMark = 13;
    for (const Mark& mark : marksOf(m_raw, old > kLongestMark ? old - kLongestMark : 0))
        if (mark.behind() > old)
            return true;
    if (m_mark == npos)
        return false;
    const std::string_view behind = std::string_view(m_raw).substr(m_mark, old - m_mark);
    const std::size_t word = behind.find_first_not_of(" \t\r");
    if (word == npos)
        return true; // the mark was the end of its line, and may be so no longer
    return m_tickBeforeMark && m_raw.find('`', old) != npos && behind.find('\n') == npos;
}

/// Takes notice of the words that have come to the last part.
void ThinkingStream::look() {
    std::size_t end = m_raw.size();
    if (m_split.open)
        end -= unsureEnd(std::string_view(m_raw).substr(m_last), true);
    for (; m_seen < end; ++m_seen)
        if (!isSpace(m_raw[m_seen])) {
            m_firstWord = std::min(m_firstWord, m_seen);
            m_lastWord = m_seen + 1;
        }
}

ThinkingStream::Growth ThinkingStream::add(std::string_view bytes) {
    const std::size_t old = m_raw.size();
    m_raw += bytes;
    Growth growth{true, m_split.thinking.size(), m_split.answer.size()};
    if (decidesAnew(old)) {
        const ThinkingSplit before = std::exchange(m_split, {});
        takeApart();
        growth.onlyMore = m_split.thinking.starts_with(before.thinking) && m_split.answer.starts_with(before.answer);
        return growth;
    }
    look();
    if (m_firstWord == npos)
        return growth; // nothing but white space yet: it is in neither part
    if (m_split.open) {
        if (m_given == npos) {
            m_split.thinking += m_thinkingBefore == 0 ? "" : "\n\n";
            m_given = m_firstWord;
        }
        m_split.thinking.append(m_raw, m_given, m_lastWord - m_given);
        m_given = m_lastWord;
        return growth;
    }
    if (m_given == npos) {
        const std::string_view said = trim(std::string_view(m_raw).substr(m_firstWord));
        if (said.size() == unsureEnd(said, false))
            return growth;
        m_given = m_afterThought && m_answerBefore == 0 ? m_firstWord : m_last;
    }
    m_split.answer.append(m_raw, m_given);
    m_given = m_raw.size();
    return growth;
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
