// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/jinja/ast.h"
#include "engine/model/jinja/token_stream.h"

namespace kvscope::model::jinja {

/// Expressions by operator precedence, lowest first: conditional, or, and, not, comparison, + -, ~, * / // %, **,
/// unary, then postfix (attribute, item, call), filters and tests. As in Jinja, `**` groups to the left and a unary
/// minus binds tighter than it.
class ExpressionParser {
public:
    explicit ExpressionParser(TokenStream& tokens) : m_tokens(tokens) {}

    ExpressionPtr expression() { return conditional(); }
    /// One expression, or several with commas between as a tuple. Without `withConditional` an `if` ends it.
    ExpressionPtr tupleOrExpression(bool withConditional);
    /// `name(arguments) | name ...` behind a word like `filter`; the innermost has no subject.
    ExpressionPtr filterChain();
    /// A primary with its attributes, items and calls: what `{% call %}` calls.
    ExpressionPtr callExpression() { return unary(true); }
    Target target(bool withAttribute);

private:
    class Nesting;

    ExpressionPtr conditional();
    ExpressionPtr orElse();
    ExpressionPtr andAlso();
    ExpressionPtr notTerm();
    ExpressionPtr comparison();
    ExpressionPtr sum();
    ExpressionPtr concat();
    ExpressionPtr product();
    ExpressionPtr power();
    ExpressionPtr unary(bool withFilters);
    ExpressionPtr primary();
    ExpressionPtr bracketed();
    ExpressionPtr list();
    ExpressionPtr dict();
    ExpressionPtr numberLiteral();
    ExpressionPtr stringLiteral();
    ExpressionPtr postfix(ExpressionPtr subject);
    ExpressionPtr subscript(ExpressionPtr subject);
    ExpressionPtr call(ExpressionPtr callee);
    ExpressionPtr filters(ExpressionPtr subject);
    ExpressionPtr filter(ExpressionPtr subject);
    ExpressionPtr test(ExpressionPtr subject);
    void arguments(Expression& into);
    bool startsTestArgument() const;

    ExpressionPtr make(ExpressionKind kind, std::vector<ExpressionPtr> operands = {});
    ExpressionPtr binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right, std::string name = {});
    void measure(Expression& node) const;

    TokenStream& m_tokens;
    int m_nesting = 0;
};

} // namespace kvscope::model::jinja
