// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/parser.h"

#include <algorithm>
#include <initializer_list>

#include "engine/model/jinja/expression_parser.h"

namespace kvscope::model::jinja {

namespace {

/// Statements inside statements.
constexpr int kMaxBlocks = 60;

class StatementParser {
public:
    explicit StatementParser(std::string_view source) : m_tokens(tokenizeTemplate(source)), m_expressions(m_tokens) {}

    Statements run() {
        Statements statements = body({});
        if (!m_tokens.is(TokenKind::End))
            m_tokens.unexpected("the end of the template");
        return statements;
    }

private:
    /// Up to (and behind `{%` of) a tag whose name is one of `ends`; up to the end of the template if there are none.
    Statements body(std::initializer_list<std::string_view> ends) {
        if (++m_blocks > kMaxBlocks)
            m_tokens.fail("blocks are nested too deeply");
        const int opened = m_tokens.line();
        Statements statements;
        for (;;) {
            if (m_tokens.is(TokenKind::End)) {
                if (ends.size() > 0)
                    throw SyntaxFailure(opened, "the block opened here is not closed by {% " +
                                                    std::string(*(ends.end() - 1)) + " %}");
                break;
            }
            if (m_tokens.is(TokenKind::BlockBegin) && isOneOf(m_tokens.peek(1), ends)) {
                m_tokens.next();
                break;
            }
            statements.push_back(statement());
        }
        --m_blocks;
        return statements;
    }

    static bool isOneOf(const Token& token, std::initializer_list<std::string_view> names) {
        return token.kind == TokenKind::Name && std::find(names.begin(), names.end(), token.text) != names.end();
    }

    void endTag(std::string_view name) {
        if (!m_tokens.skipName(name))
            m_tokens.unexpected("'" + std::string(name) + "'");
        blockEnd();
    }
    void blockEnd() { m_tokens.expect(TokenKind::BlockEnd, "'%}'"); }

    Statement make(StatementKind kind) const {
        Statement statement;
        statement.kind = kind;
        statement.line = m_tokens.line();
        return statement;
    }

    Statement statement() {
        if (m_tokens.is(TokenKind::Data)) {
            Statement data = make(StatementKind::Data);
            data.text = m_tokens.next().text;
            return data;
        }
        if (m_tokens.is(TokenKind::VariableBegin)) {
            m_tokens.next();
            Statement output = make(StatementKind::Output);
            output.expression = m_expressions.tupleOrExpression(true);
            m_tokens.expect(TokenKind::VariableEnd, "'}}'");
            return output;
        }
        m_tokens.expect(TokenKind::BlockBegin, "text or a tag");
        return tag();
    }

    Statement tag() {
        const std::string name = m_tokens.is(TokenKind::Name) ? m_tokens.peek().text : std::string();
        if (name == "if")
            return ifTag();
        if (name == "for")
            return forTag();
        if (name == "set")
            return setTag();
        if (name == "macro")
            return macroTag();
        if (name == "call")
            return callTag();
        if (name == "filter")
            return filterTag();
        if (name == "with")
            return withTag();
        if (name == "generation")
            return generationTag();
        if (name == "break" || name == "continue")
            return jumpTag();
        if (name.empty())
            m_tokens.unexpected("a statement");
        if (name == "else" || name == "elif" || name.rfind("end", 0) == 0)
            m_tokens.fail("'" + name + "' does not belong here");
        m_tokens.fail("the statement '" + name + "' is not supported");
    }

    Statement ifTag() {
        Statement statement = make(StatementKind::If);
        while (m_tokens.isName("if") || m_tokens.isName("elif")) {
            m_tokens.next();
            Branch branch;
            branch.condition = m_expressions.tupleOrExpression(true);
            blockEnd();
            branch.body = body({"elif", "else", "endif"});
            statement.branches.push_back(std::move(branch));
        }
        if (m_tokens.skipName("else")) {
            blockEnd();
            statement.branches.push_back({nullptr, body({"endif"})});
        }
        endTag("endif");
        return statement;
    }

    Statement forTag() {
        Statement statement = make(StatementKind::For);
        m_tokens.next();
        statement.target = m_expressions.target(false);
        if (!m_tokens.skipName("in"))
            m_tokens.unexpected("'in'");
        statement.expression = m_expressions.tupleOrExpression(false);
        if (m_tokens.skipName("if"))
            statement.condition = m_expressions.expression();
        statement.recursive = m_tokens.skipName("recursive");
        blockEnd();
        ++m_loops;
        statement.body = body({"else", "endfor"});
        --m_loops;
        if (m_tokens.skipName("else")) {
            blockEnd();
            statement.orElse = body({"endfor"});
        }
        endTag("endfor");
        return statement;
    }

    Statement setTag() {
        Statement statement = make(StatementKind::Set);
        m_tokens.next();
        statement.target = m_expressions.target(true);
        if (m_tokens.skipOperator("=")) {
            statement.expression = m_expressions.tupleOrExpression(true);
            blockEnd();
            return statement;
        }
        statement.kind = StatementKind::SetBlock;
        if (!statement.target.parts.empty())
            m_tokens.fail("a set block has one target");
        if (m_tokens.skipOperator("|"))
            statement.expression = m_expressions.filterChain();
        blockEnd();
        statement.body = detachedBody("endset");
        return statement;
    }

    /// The body of something that is not part of the loop around it: break and continue cannot reach that loop.
    Statements detachedBody(std::string_view end) {
        const int loops = m_loops;
        m_loops = 0;
        Statements statements = body({end});
        m_loops = loops;
        endTag(end);
        return statements;
    }

    std::vector<Parameter> parameters() {
        std::vector<Parameter> out;
        m_tokens.expectOperator("(");
        while (!m_tokens.isOperator(")")) {
            Parameter parameter;
            parameter.name = m_tokens.expectName();
            if (m_tokens.skipOperator("="))
                parameter.defaultValue = m_expressions.expression();
            else if (!out.empty() && out.back().defaultValue)
                m_tokens.fail("a parameter without a default follows one with a default");
            out.push_back(std::move(parameter));
            if (!m_tokens.skipOperator(","))
                break;
        }
        m_tokens.expectOperator(")");
        return out;
    }

    Statement macroTag() {
        Statement statement = make(StatementKind::Macro);
        m_tokens.next();
        statement.text = m_tokens.expectName();
        statement.parameters = parameters();
        blockEnd();
        statement.body = detachedBody("endmacro");
        return statement;
    }

    Statement callTag() {
        Statement statement = make(StatementKind::CallBlock);
        m_tokens.next();
        if (m_tokens.isOperator("("))
            statement.parameters = parameters();
        statement.expression = m_expressions.callExpression();
        if (statement.expression->kind != ExpressionKind::Call)
            m_tokens.fail("a call block needs a call");
        blockEnd();
        statement.body = detachedBody("endcall");
        return statement;
    }

    Statement filterTag() {
        Statement statement = make(StatementKind::FilterBlock);
        m_tokens.next();
        statement.expression = m_expressions.filterChain();
        blockEnd();
        statement.body = detachedBody("endfilter");
        return statement;
    }

    Statement withTag() {
        Statement statement = make(StatementKind::With);
        m_tokens.next();
        while (!m_tokens.is(TokenKind::BlockEnd)) {
            Target target;
            target.name = m_tokens.expectName();
            m_tokens.expectOperator("=");
            statement.assignments.emplace_back(std::move(target), m_expressions.expression());
            if (!m_tokens.skipOperator(","))
                break;
        }
        blockEnd();
        statement.body = body({"endwith"});
        endTag("endwith");
        return statement;
    }

    Statement generationTag() {
        Statement statement = make(StatementKind::Body);
        m_tokens.next();
        blockEnd();
        statement.body = body({"endgeneration"});
        endTag("endgeneration");
        return statement;
    }

    Statement jumpTag() {
        if (m_loops == 0)
            m_tokens.fail("'" + m_tokens.peek().text + "' outside of a loop");
        Statement statement = make(m_tokens.isName("break") ? StatementKind::Break : StatementKind::Continue);
        m_tokens.next();
        blockEnd();
        return statement;
    }

    TokenStream m_tokens;
    ExpressionParser m_expressions;
    int m_blocks = 0;
    int m_loops = 0; ///< loops around, up to the next macro or block that is rendered apart
};

} // namespace

Statements parseTemplate(std::string_view source) {
    return StatementParser(source).run();
}

} // namespace kvscope::model::jinja
