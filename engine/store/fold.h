// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace kvscope::store {

/// The form in which text is searched: Unicode case folding after NFC, invalid bytes and NUL as U+FFFD. Kept in a
/// column of its own, because SQLite's lower() knows ASCII only and the trigram index and the brute-force scan must
/// agree.
std::string foldCase(std::string_view text);

/// What is searched of an attachment: its name, a line end, its text; folded.
std::string searchedText(std::string_view name, std::string_view content);

/// The text with U+FFFD for bytes that are not UTF-8 and for NUL.
std::string validUtf8(std::string_view text);

} // namespace kvscope::store
