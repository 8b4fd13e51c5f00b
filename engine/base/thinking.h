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

/// Does a prompt end inside of a thought, so that its answer begins in one?
bool endsInThought(std::string_view prompt);
/// What a template wrote at the end of a prompt to begin a thought, white space included; empty = nothing.
std::string_view thoughtOpener(std::string_view prompt);
/// The end mark that belongs to `opener`, as thoughtOpener gave it; empty for one that is not known.
std::string_view thoughtEnd(std::string_view opener);

} // namespace kvscope
