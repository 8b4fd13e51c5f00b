// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/model/unicode.h"

namespace kvscope::model::jinja {

namespace {

bool isBlank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool isDigit(char c) {
    return c >= '0' && c <= '9';
}
bool isNameStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool isNamePart(char c) {
    return isNameStart(c) || isDigit(c);
}

std::string normalizedLineEnds(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out.push_back(source[i]);
            continue;
        }
        out.push_back('\n');
        if (i + 1 < source.size() && source[i + 1] == '\n')
            ++i;
    }
    if (!out.empty() && out.back() == '\n')
        out.pop_back();
    return out;
}

class Lexer {
public:
    explicit Lexer(std::string_view source) : m_source(normalizedLineEnds(source)) {}

    std::vector<Token> run() {
        while (m_at < m_source.size())
            textAndTag();
        m_tokens.push_back({TokenKind::End, "", m_line});
        return std::move(m_tokens);
    }

private:
    char at(std::size_t ahead = 0) const { return m_at + ahead < m_source.size() ? m_source[m_at + ahead] : '\0'; }
    bool startsWith(std::string_view text) const { return m_source.compare(m_at, text.size(), text) == 0; }
    [[noreturn]] void fail(const std::string& reason) const { throw SyntaxFailure(m_line, reason); }

    void push(TokenKind kind, std::string text = {}) { m_tokens.push_back({kind, std::move(text), m_line}); }

    /// Move on, counting lines.
    void skip(std::size_t count) {
        const auto from = m_source.begin() + static_cast<std::ptrdiff_t>(m_at);
        m_line += static_cast<int>(std::count(from, from + static_cast<std::ptrdiff_t>(count), '\n'));
        m_at += count;
    }
    void skipBlanks() {
        while (m_at < m_source.size() && isBlank(m_source[m_at]))
            skip(1);
    }

    std::size_t nextTag() const {
        for (std::size_t i = m_at; (i = m_source.find('{', i)) != std::string::npos; ++i)
            if (i + 1 < m_source.size() && (m_source[i + 1] == '{' || m_source[i + 1] == '%' || m_source[i + 1] == '#'))
                return i;
        return std::string::npos;
    }

    void textAndTag() {
        const std::size_t tag = nextTag();
        if (tag == std::string::npos) {
            push(TokenKind::Data, m_source.substr(m_at));
            skip(m_source.size() - m_at);
            return;
        }
        const char kind = m_source[tag + 1];
        const char sign = tag + 2 < m_source.size() ? m_source[tag + 2] : '\0';
        std::string text = m_source.substr(m_at, tag - m_at);
        if (sign == '-') {
            while (!text.empty() && isBlank(text.back()))
                text.pop_back();
        } else if (sign != '+' && kind != '{') {
            stripLineStart(text);
        }
        if (!text.empty())
            push(TokenKind::Data, std::move(text));
        skip(tag - m_at + 2);
        if (sign == '-' || sign == '+')
            skip(1);
        if (kind == '#')
            comment();
        else if (kind == '{')
            expressionTokens(TokenKind::VariableBegin, TokenKind::VariableEnd, "}}");
        else if (const std::size_t length = rawTagLength(); length > 0)
            rawBlock(length);
        else
            expressionTokens(TokenKind::BlockBegin, TokenKind::BlockEnd, "%}");
    }

    /// Blanks between the start of the line and a tag go, but only if nothing else stands there.
    void stripLineStart(std::string& text) const {
        const std::size_t newline = text.rfind('\n');
        const std::size_t start = newline == std::string::npos ? 0 : newline + 1;
        if (start == 0 && !m_lineStarting)
            return;
        if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(start), text.end(), isBlank))
            text.resize(start);
    }

    /// Behind a block tag or comment: `-` takes all blanks, otherwise one line end goes (unless `+`).
    void afterTag(char sign, bool trimLineEnd) {
        const std::size_t from = m_at;
        if (sign == '-')
            skipBlanks();
        else if (trimLineEnd && sign != '+' && at() == '\n')
            skip(1);
        m_lineStarting = m_at > from && m_source[m_at - 1] == '\n';
    }

    void comment() {
        const std::size_t end = m_source.find("#}", m_at);
        if (end == std::string::npos)
            fail("a comment is not closed");
        const char sign = end > m_at ? m_source[end - 1] : '\0';
        skip(end + 2 - m_at);
        afterTag(sign, true);
    }

    /// Behind "{%": length of `raw %}` with its blanks, 0 if something else stands there.
    std::size_t rawTagLength() const { return namedTagLength(m_at, "raw"); }
    std::size_t namedTagLength(std::size_t from, std::string_view name) const {
        std::size_t i = from;
        const auto blanks = [&] {
            while (i < m_source.size() && isBlank(m_source[i]))
                ++i;
        };
        blanks();
        if (m_source.compare(i, name.size(), name) != 0)
            return 0;
        i += name.size();
        blanks();
        if (i < m_source.size() && (m_source[i] == '-' || m_source[i] == '+'))
            ++i;
        return m_source.compare(i, 2, "%}") == 0 ? i + 2 - from : 0;
    }

    void rawBlock(std::size_t tagLength) {
        const char openSign = m_source[m_at + tagLength - 3];
        skip(tagLength);
        afterTag(openSign, true);
        for (std::size_t i = m_at; (i = m_source.find("{%", i)) != std::string::npos; i += 2) {
            const char sign = i + 2 < m_source.size() ? m_source[i + 2] : '\0';
            const std::size_t begin = i + (sign == '-' || sign == '+' ? 3 : 2);
            const std::size_t length = namedTagLength(begin, "endraw");
            if (length == 0)
                continue;
            std::string text = m_source.substr(m_at, i - m_at);
            if (sign == '-') {
                while (!text.empty() && isBlank(text.back()))
                    text.pop_back();
            } else if (sign != '+') {
                stripLineStart(text);
            }
            push(TokenKind::Data, std::move(text));
            skip(begin + length - m_at);
            afterTag(m_source[m_at - 3], true);
            return;
        }
        fail("a raw block is not closed by {% endraw %}");
    }

    void expressionTokens(TokenKind begin, TokenKind end, std::string_view close) {
        push(begin);
        std::vector<char> open;
        for (;;) {
            skipBlanks();
            if (m_at >= m_source.size())
                fail("a tag is not closed by '" + std::string(close) + "'");
            const char sign = at();
            const bool signedEnd =
                (sign == '-' || (sign == '+' && close == "%}")) && m_source.compare(m_at + 1, close.size(), close) == 0;
            if (open.empty() && (signedEnd || startsWith(close))) {
                push(end);
                skip(close.size() + (signedEnd ? 1 : 0));
                afterTag(signedEnd ? sign : '\0', close == "%}");
                return;
            }
            if (isNameStart(sign))
                name();
            else if (isDigit(sign))
                number();
            else if (sign == '"' || sign == '\'')
                string();
            else
                operatorToken(open);
        }
    }

    void name() {
        std::size_t length = 1;
        while (isNamePart(at(length)))
            ++length;
        push(TokenKind::Name, m_source.substr(m_at, length));
        skip(length);
    }

    std::string digits() {
        std::string text;
        while (isDigit(at()) || (at() == '_' && !text.empty() && isDigit(at(1)))) {
            if (at() != '_')
                text.push_back(at());
            ++m_at;
        }
        return text;
    }

    /// 0x1F, 0o17, 0b11
    void prefixedNumber(int base) {
        const std::size_t begin = m_at + 2;
        std::uint64_t value = 0;
        const auto [end, error] =
            std::from_chars(m_source.data() + begin, m_source.data() + m_source.size(), value, base);
        m_at = static_cast<std::size_t>(end - m_source.data());
        if (error != std::errc() || isNamePart(at()))
            fail("a number with a prefix lacks digits, or is too large");
        push(TokenKind::Integer, std::to_string(value));
    }

    void number() {
        const std::size_t base = at() == '0' ? std::string_view("bBoOxX").find(at(1)) : std::string_view::npos;
        if (base != std::string_view::npos && at(1) != '\0') {
            constexpr std::array<int, 3> kBases = {2, 8, 16};
            prefixedNumber(kBases[base / 2]);
            return;
        }
        std::string text = digits();
        bool real = false;
        if (at() == '.' && isDigit(at(1))) {
            ++m_at;
            text += "." + digits();
            real = true;
        }
        const std::size_t sign = at(1) == '+' || at(1) == '-' ? 1 : 0;
        if ((at() == 'e' || at() == 'E') && isDigit(at(1 + sign))) {
            text += m_source.substr(m_at, 1 + sign);
            m_at += 1 + sign;
            text += digits();
            real = true;
        }
        push(real ? TokenKind::Real : TokenKind::Integer, std::move(text));
    }

    void string() {
        const char quote = at();
        const int line = m_line;
        std::string value;
        std::size_t i = m_at + 1;
        while (i < m_source.size() && m_source[i] != quote) {
            if (m_source[i] == '\\')
                escape(i, value);
            else
                value.push_back(m_source[i++]);
        }
        if (i >= m_source.size())
            fail("a string is not closed");
        skip(i + 1 - m_at);
        m_tokens.push_back({TokenKind::String, std::move(value), line});
    }

    /// The escape sequence at `i`, as in Python's strings.
    void escape(std::size_t& i, std::string& value) const {
        const char c = i + 1 < m_source.size() ? m_source[i + 1] : '\0';
        constexpr std::string_view kNames = "nrtbfav\\'\"0";
        constexpr std::string_view kValues("\n\r\t\b\f\a\v\\'\"\0", 11);
        if (const std::size_t known = kNames.find(c); c != '\0' && known != std::string_view::npos) {
            value.push_back(kValues[known]);
            i += 2;
        } else if (c == '\n') {
            i += 2; // a line continued
        } else if (c == 'x' || c == 'u' || c == 'U') {
            codePointEscape(i, c == 'x' ? 2 : (c == 'u' ? 4 : 8), value);
        } else {
            value.push_back('\\'); // an unknown escape stands for itself
            ++i;
        }
    }

    char32_t hexDigits(std::size_t begin, int count) const {
        char32_t codePoint = 0;
        for (int k = 0; k < count; ++k) {
            const char c = begin + k < m_source.size() ? m_source[begin + k] : '\0';
            constexpr std::string_view kDigits = "0123456789abcdef";
            const std::size_t digit = c == '\0' ? std::string_view::npos : kDigits.find(static_cast<char>(c | 0x20));
            if (digit == std::string_view::npos || (c < '0') || (c > '9' && c < 'A'))
                fail("a \\x or \\u escape lacks digits");
            codePoint = codePoint * 16 + static_cast<char32_t>(digit);
        }
        return codePoint;
    }

    void codePointEscape(std::size_t& i, int count, std::string& value) const {
        char32_t codePoint = hexDigits(i + 2, count);
        i += 2 + count;
        const bool high = codePoint >= 0xD800 && codePoint < 0xDC00;
        if (high && m_source.compare(i, 2, "\\u") == 0) {
            const char32_t low = hexDigits(i + 2, 4);
            if (low >= 0xDC00 && low < 0xE000) {
                codePoint = 0x10000 + ((codePoint - 0xD800) << 10) + (low - 0xDC00);
                i += 6;
            }
        }
        if (codePoint > 0x10FFFF || (codePoint >= 0xD800 && codePoint < 0xE000))
            fail("an escape names no character");
        appendUtf8(value, codePoint);
    }

    void operatorToken(std::vector<char>& open) {
        constexpr std::array<std::string_view, 6> kDouble = {"**", "//", "==", "!=", ">=", "<="};
        for (const std::string_view text : kDouble) {
            if (startsWith(text)) {
                push(TokenKind::Operator, std::string(text));
                skip(2);
                return;
            }
        }
        const char c = at();
        if (std::string_view("+-*/%~[](){}<>=.:|,").find(c) == std::string_view::npos || c == '\0')
            fail("the character '" + printable(m_at) + "' is not expected here");
        if (c == '(' || c == '[' || c == '{')
            open.push_back(c == '(' ? ')' : static_cast<char>(c + 2));
        if (c == ')' || c == ']' || c == '}') {
            if (open.empty() || open.back() != c)
                fail(std::string("'") + c + "' closes nothing" +
                     (open.empty() ? "" : std::string("; expected '") + open.back() + "'"));
            open.pop_back();
        }
        push(TokenKind::Operator, std::string(1, c));
        skip(1);
    }

    std::string printable(std::size_t index) const {
        return toValidUtf8(std::string_view(m_source).substr(index, decodeUtf8(m_source, index).length));
    }

    std::string m_source;
    std::size_t m_at = 0;
    int m_line = 1;
    bool m_lineStarting = true; ///< the text read so far ended with a line end
    std::vector<Token> m_tokens;
};

} // namespace

std::vector<Token> tokenizeTemplate(std::string_view source) {
    return Lexer(source).run();
}

} // namespace kvscope::model::jinja
