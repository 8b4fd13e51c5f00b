// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::model::jinja {

/// The template cannot be used: thrown while loading, with the line where it stands.
class SyntaxFailure : public std::runtime_error {
public:
    SyntaxFailure(int line, const std::string& reason) : std::runtime_error(reason), m_line(line) {}
    int line() const { return m_line; }

private:
    int m_line;
};

enum class TokenKind : std::uint8_t {
    Data,          ///< text between tags
    VariableBegin, ///< {{
    VariableEnd,
    BlockBegin, ///< {%
    BlockEnd,
    Name,
    Operator, ///< + - * ** / // % ~ == != < <= > >= = . : , | ( ) [ ] { }
    String,
    Integer,
    Real,
    End,
};

struct Token {
    TokenKind kind = TokenKind::End;
    std::string text; ///< String: its value; numbers: without underscores
    int line = 1;
};

/// The template as tokens, white space handled as chat programs set it: `trim_blocks` (a line end behind a block tag
/// goes), `lstrip_blocks` (blanks before a block tag that opens its line go), `-` and `+` in tags, line ends become
/// "\n", one line end at the end of the template goes. Comments are left out, raw blocks become text.
std::vector<Token> tokenizeTemplate(std::string_view source);

} // namespace kvscope::model::jinja
