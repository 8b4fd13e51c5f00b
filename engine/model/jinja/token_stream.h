// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/model/jinja/lexer.h"

namespace kvscope::model::jinja {

/// Reading position over the tokens of a template, shared by the parsers of expressions and statements.
class TokenStream {
public:
    explicit TokenStream(std::vector<Token> tokens) : m_tokens(std::move(tokens)) {}

    const Token& peek(std::size_t ahead = 0) const {
        return m_tokens[m_at + ahead < m_tokens.size() ? m_at + ahead : m_tokens.size() - 1];
    }
    Token next() {
        Token token = peek();
        if (m_at + 1 < m_tokens.size())
            ++m_at;
        return token;
    }
    int line() const { return peek().line; }

    bool is(TokenKind kind) const { return peek().kind == kind; }
    bool isOperator(std::string_view text, std::size_t ahead = 0) const {
        return peek(ahead).kind == TokenKind::Operator && peek(ahead).text == text;
    }
    bool isName(std::string_view text, std::size_t ahead = 0) const {
        return peek(ahead).kind == TokenKind::Name && peek(ahead).text == text;
    }
    bool skipOperator(std::string_view text) { return isOperator(text) && (next(), true); }
    bool skipName(std::string_view text) { return isName(text) && (next(), true); }

    void expectOperator(std::string_view text) {
        if (!skipOperator(text))
            unexpected("'" + std::string(text) + "'");
    }
    std::string expectName() {
        if (!is(TokenKind::Name))
            unexpected("a name");
        return next().text;
    }
    void expect(TokenKind kind, const std::string& what) {
        if (!is(kind))
            unexpected(what);
        next();
    }
    [[noreturn]] void fail(const std::string& reason) const { throw SyntaxFailure(line(), reason); }
    [[noreturn]] void unexpected(const std::string& expected) const {
        fail("expected " + expected + ", found " + describe(peek()));
    }
    static std::string describe(const Token& token);

private:
    std::vector<Token> m_tokens;
    std::size_t m_at = 0;
};

} // namespace kvscope::model::jinja
