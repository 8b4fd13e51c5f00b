// SPDX-License-Identifier: GPL-3.0-or-later
//
// Cuts large JSON text into its values without building it in memory. Says nothing of their validity: each piece is
// parsed by itself, so that one broken piece does not cost the others.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kvscope::store {

/// First place at or after `at` that is not JSON white space.
std::size_t skipBlanks(std::string_view text, std::size_t at);

/// One past the end of the value that begins at `at`; npos: the text ends inside of it.
std::size_t endOfValue(std::string_view text, std::size_t at);

struct JsonEnd {
    bool cut = false;    ///< the text ends before the list or object does; the piece that was cut is left out
    std::size_t end = 0; ///< one past what was read
};

/// Gives the elements of the list, or the members of the object, that begins at `at` of `text`, one by one: member name
/// ("" in a list) and value. A list of millions of elements needs no memory. `visit` returns false to end it.
JsonEnd splitJson(std::string_view text, std::size_t at,
                  const std::function<bool(const std::string& name, std::string_view value)>& visit);

} // namespace kvscope::store
