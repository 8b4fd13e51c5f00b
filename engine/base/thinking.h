// SPDX-License-Identifier: GPL-3.0-or-later
//
// An answer of a model that thinks aloud, taken apart: what it thought, and what it says. A pure function of the text,
// so that engine, window, store and export agree.
#pragma once

#include <string>
#include <string_view>

namespace kvscope {

struct ThinkingSplit {
    std::string thinking; ///< without its marks and the white space around it; several thoughts are joined
    std::string answer;   ///< the rest; byte for byte the text where nothing was thought
    bool open = false;    ///< the last thought has no end
};

/// The marks are pairs such as <think> and </think>. They count
///  * at the beginning of the text, and at the beginning of a line if the thought that begins there also ends;
///  * as an end alone, on a line of its own or at the end of one: then the beginning was in the prompt;
///  * never inside of code, where somebody writes about them.
/// `opened`: the prompt ended inside of a thought, so that the text begins in it. `complete` = false while the text
/// still grows: what may become a mark at its end is in neither part yet. Bytes may be any; UTF-8 stays UTF-8.
ThinkingSplit splitThinking(std::string_view text, bool opened, bool complete = true);

/// The same for a text that grows: after every `add` the parts are those of splitThinking(all that came, opened,
/// false), and an `add` costs as much as it brings. Only where a mark has come, or what follows it in its line may say
/// that it is none, everything is taken apart anew.
class ThinkingStream {
public:
    explicit ThinkingStream(bool opened = false, std::string text = {});
    struct Growth {
        bool onlyMore = true;                             ///< both parts begin with what they were before
        std::size_t thinkingBefore = 0, answerBefore = 0; ///< their bytes before
    };
    Growth add(std::string_view bytes);
    const ThinkingSplit& split() const { return m_split; }
    int wholeSplits() const { return m_wholeSplits; } ///< how often everything was taken apart

private:
    void takeApart();
    bool decidesAnew(std::size_t old) const;
    void look();

    std::string m_raw;
    bool m_opened = false;
    ThinkingSplit m_split;
    int m_wholeSplits = 0;
    std::size_t m_last = 0;                               ///< where the open thought, or the rest of the answer, begins
    std::size_t m_thinkingBefore = 0, m_answerBefore = 0; ///< bytes that do not come from that last part
    bool m_afterThought = false;
    std::size_t m_seen = 0; ///< looked at so far
    std::size_t m_firstWord = 0,
                m_lastWord = 0;    ///< first, and behind the last, that is no white space in the last part
    std::size_t m_given = 0;       ///< how far the last part has gone into the split; npos = not begun
    std::size_t m_mark = 0;        ///< behind the last mark; npos = there is none
    bool m_tickBeforeMark = false; ///< its line has a backtick before it
};

/// Does a prompt end inside of a thought, so that its answer begins in one?
bool endsInThought(std::string_view prompt);
/// What a template wrote at the end of a prompt to begin a thought, white space included; empty = nothing.
std::string_view thoughtOpener(std::string_view prompt);
/// The end mark that belongs to `opener`, as thoughtOpener gave it; empty for one that is not known.
std::string_view thoughtEnd(std::string_view opener);

} // namespace kvscope
