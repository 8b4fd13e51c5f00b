// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "engine/model/jinja/library.h"

namespace kvscope::model::jinja {

namespace {

/// Levels of an expression. Far above any real template, low enough for the recursion that evaluates it.
constexpr int kMaxDepth = 100;

} // namespace

std::string TokenStream::describe(const Token& token) {
    switch (token.kind) {
    case TokenKind::End:
        return "the end of the template";
    case TokenKind::VariableEnd:
        return "'}}'";
    case TokenKind::BlockEnd:
        return "'%}'";
    case TokenKind::Data:
    case TokenKind::VariableBegin:
    case TokenKind::BlockBegin:
        return "text";
    case TokenKind::String:
        return "a string";
    default:
        return "'" + token.text + "'";
    }
}

/// Brackets inside brackets recurse here before there is a tree to measure.
class ExpressionParser::Nesting {
public:
    explicit Nesting(ExpressionParser& parser) : m_parser(parser) {
        if (++m_parser.m_nesting > kMaxDepth)
            m_parser.m_tokens.fail("the expression is nested too deeply");
    }
    ~Nesting() { --m_parser.m_nesting; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

private:
    ExpressionParser& m_parser;
};

void ExpressionParser::measure(Expression& node) const {
    int below = 0;
    for (const ExpressionPtr& operand : node.operands)
        below = std::max(below, operand ? operand->depth : 0);
    for (const auto& [name, operand] : node.named)
        below = std::max(below, operand->depth);
    node.depth = below + 1;
    if (node.depth > kMaxDepth)
        m_tokens.fail("the expression has too many levels");
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, std::vector<ExpressionPtr> operands) {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    // Operators are made when the reader is already behind the last operand, perhaps in another line.
    node->line = operands.size() > 1 && operands.back() ? operands.back()->line : m_tokens.line();
    node->operands = std::move(operands);
    measure(*node);
    return node;
}

ExpressionPtr ExpressionParser::binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right, std::string name) {
    std::vector<ExpressionPtr> operands;
    operands.push_back(std::move(left));
    operands.push_back(std::move(right));
    ExpressionPtr node = make(kind, std::move(operands));
    node->name = std::move(name);
    return node;
}

ExpressionPtr ExpressionParser::tupleOrExpression(bool withConditional) {
    const auto one = [&] { return withConditional ? conditional() : orElse(); };
    const auto ends = [&] {
        return m_tokens.is(TokenKind::BlockEnd) || m_tokens.is(TokenKind::VariableEnd) || m_tokens.isOperator(")") ||
               m_tokens.isName("if") || m_tokens.isName("recursive");
    };
    ExpressionPtr first = one();
    if (!m_tokens.isOperator(","))
        return first;
    std::vector<ExpressionPtr> items;
    items.push_back(std::move(first));
    while (m_tokens.skipOperator(",") && !ends())
        items.push_back(one());
    return make(ExpressionKind::Tuple, std::move(items));
}

ExpressionPtr ExpressionParser::conditional() {
    const Nesting nesting(*this);
    ExpressionPtr value = orElse();
    while (m_tokens.skipName("if")) {
        std::vector<ExpressionPtr> operands;
        operands.push_back(orElse());
        operands.push_back(std::move(value));
        if (m_tokens.skipName("else"))
            operands.push_back(conditional());
        value = make(ExpressionKind::Conditional, std::move(operands));
    }
    return value;
}

ExpressionPtr ExpressionParser::orElse() {
    ExpressionPtr left = andAlso();
    while (m_tokens.skipName("or"))
        left = binary(ExpressionKind::Or, std::move(left), andAlso());
    return left;
}

ExpressionPtr ExpressionParser::andAlso() {
    ExpressionPtr left = notTerm();
    while (m_tokens.skipName("and"))
        left = binary(ExpressionKind::And, std::move(left), notTerm());
    return left;
}

ExpressionPtr ExpressionParser::notTerm() {
    if (!m_tokens.skipName("not"))
        return comparison();
    const Nesting nesting(*this);
    std::vector<ExpressionPtr> operand;
    operand.push_back(notTerm());
    return make(ExpressionKind::Not, std::move(operand));
}

ExpressionPtr ExpressionParser::comparison() {
    constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<", "<=", ">", ">="};
    ExpressionPtr first = sum();
    std::vector<std::string> operators;
    std::vector<ExpressionPtr> operands;
    operands.push_back(std::move(first));
    for (;;) {
        const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                        [&](std::string_view text) { return m_tokens.isOperator(text); });
        if (found != kOperators.end()) {
            m_tokens.next();
            operators.emplace_back(*found);
        } else if (m_tokens.skipName("in")) {
            operators.emplace_back("in");
        } else if (m_tokens.isName("not") && m_tokens.isName("in", 1)) {
            m_tokens.next();
            m_tokens.next();
            operators.emplace_back("not in");
        } else {
            break;
        }
        operands.push_back(sum());
    }
    if (operators.empty())
        return std::move(operands.front());
    ExpressionPtr node = make(ExpressionKind::Compare, std::move(operands));
    node->operators = std::move(operators);
    return node;
}

ExpressionPtr ExpressionParser::sum() {
    ExpressionPtr left = concat();
    while (m_tokens.isOperator("+") || m_tokens.isOperator("-")) {
        std::string op = m_tokens.next().text;
        left = binary(ExpressionKind::Arithmetic, std::move(left), concat(), std::move(op));
    }
    return left;
}

ExpressionPtr ExpressionParser::concat() {
    ExpressionPtr first = product();
    if (!m_tokens.isOperator("~"))
        return first;
    std::vector<ExpressionPtr> parts;
    parts.push_back(std::move(first));
    while (m_tokens.skipOperator("~"))
        parts.push_back(product());
    return make(ExpressionKind::Concat, std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
    ExpressionPtr left = power();
    while (m_tokens.isOperator("*") || m_tokens.isOperator("/") || m_tokens.isOperator("//") ||
           m_tokens.isOperator("%")) {
        std::string op = m_tokens.next().text;
        left = binary(ExpressionKind::Arithmetic, std::move(left), power(), std::move(op));
    }
    return left;
}

ExpressionPtr ExpressionParser::power() {
    ExpressionPtr left = unary(true);
    while (m_tokens.skipOperator("**"))
        left = binary(ExpressionKind::Arithmetic, std::move(left), unary(true), "**");
    return left;
}

ExpressionPtr ExpressionParser::unary(bool withFilters) {
    ExpressionPtr node;
    if (m_tokens.isOperator("-") || m_tokens.isOperator("+")) {
        const Nesting nesting(*this);
        const ExpressionKind kind = m_tokens.next().text == "-" ? ExpressionKind::Negate : ExpressionKind::Plus;
        std::vector<ExpressionPtr> operand;
        operand.push_back(unary(false));
        const int line = operand.front()->line;
        node = make(kind, std::move(operand));
        node->line = line;
    } else {
        node = primary();
    }
    node = postfix(std::move(node));
    return withFilters ? filters(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::primary() {
    const Nesting nesting(*this);
    switch (m_tokens.peek().kind) {
    case TokenKind::String:
        return stringLiteral();
    case TokenKind::Integer:
    case TokenKind::Real:
        return numberLiteral();
    case TokenKind::Name: {
        ExpressionPtr node = make(ExpressionKind::Literal);
        const std::string name = m_tokens.next().text;
        if (name == "true" || name == "True" || name == "false" || name == "False") {
            node->value = Value::boolean(name == "true" || name == "True");
        } else if (name == "none" || name == "None") {
            node->value = Value::none();
        } else {
            node->kind = ExpressionKind::Name;
            node->name = name;
        }
        return node;
    }
    default:
        break;
    }
    if (m_tokens.isOperator("("))
        return bracketed();
    if (m_tokens.isOperator("["))
        return list();
    if (m_tokens.isOperator("{"))
        return dict();
    m_tokens.unexpected("a value");
}

ExpressionPtr ExpressionParser::stringLiteral() {
    ExpressionPtr node = make(ExpressionKind::Literal);
    std::string text = m_tokens.next().text;
    while (m_tokens.is(TokenKind::String)) // strings side by side are one
        text += m_tokens.next().text;
    node->value = Value::string(std::move(text));
    return node;
}

ExpressionPtr ExpressionParser::numberLiteral() {
    ExpressionPtr node = make(ExpressionKind::Literal);
    const Token token = m_tokens.next();
    const char* end = token.text.data() + token.text.size();
    if (token.kind == TokenKind::Integer) {
        std::int64_t value = 0;
        if (std::from_chars(token.text.data(), end, value).ec != std::errc())
            m_tokens.fail("the number " + token.text + " is too large");
        node->value = Value::integer(value);
    } else {
        double value = 0;
        if (std::from_chars(token.text.data(), end, value).ec != std::errc())
            m_tokens.fail("the number " + token.text + " is out of range");
        node->value = Value::real(value);
    }
    return node;
}

ExpressionPtr ExpressionParser::bracketed() {
    m_tokens.expectOperator("(");
    if (m_tokens.skipOperator(")"))
        return make(ExpressionKind::Tuple);
    ExpressionPtr node = tupleOrExpression(true);
    m_tokens.expectOperator(")");
    return node;
}

ExpressionPtr ExpressionParser::list() {
    m_tokens.expectOperator("[");
    std::vector<ExpressionPtr> items;
    while (!m_tokens.isOperator("]")) {
        items.push_back(expression());
        if (!m_tokens.skipOperator(","))
            break;
    }
    m_tokens.expectOperator("]");
    return make(ExpressionKind::List, std::move(items));
}

ExpressionPtr ExpressionParser::dict() {
    m_tokens.expectOperator("{");
    std::vector<ExpressionPtr> items;
    while (!m_tokens.isOperator("}")) {
        items.push_back(expression());
        m_tokens.expectOperator(":");
        items.push_back(expression());
        if (!m_tokens.skipOperator(","))
            break;
    }
    m_tokens.expectOperator("}");
    return make(ExpressionKind::Dict, std::move(items));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr subject) {
    for (;;) {
        if (m_tokens.skipOperator(".")) {
            ExpressionPtr node;
            if (m_tokens.is(TokenKind::Integer)) {
                node = binary(ExpressionKind::Item, std::move(subject), numberLiteral());
            } else {
                std::vector<ExpressionPtr> operand;
                operand.push_back(std::move(subject));
                node = make(ExpressionKind::Attribute, std::move(operand));
                node->name = m_tokens.expectName();
            }
            subject = std::move(node);
        } else if (m_tokens.isOperator("[")) {
            subject = subscript(std::move(subject));
        } else if (m_tokens.isOperator("(")) {
            subject = call(std::move(subject));
        } else {
            return subject;
        }
    }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr subject) {
    m_tokens.expectOperator("[");
    std::vector<ExpressionPtr> bounds;
    bounds.push_back(m_tokens.isOperator(":") ? nullptr : expression());
    if (!m_tokens.isOperator(":")) {
        m_tokens.expectOperator("]");
        return binary(ExpressionKind::Item, std::move(subject), std::move(bounds.front()));
    }
    while (bounds.size() < 3 && m_tokens.skipOperator(":"))
        bounds.push_back(m_tokens.isOperator(":") || m_tokens.isOperator("]") ? nullptr : expression());
    m_tokens.expectOperator("]");
    bounds.resize(3);
    bounds.insert(bounds.begin(), std::move(subject));
    return make(ExpressionKind::Slice, std::move(bounds));
}

void ExpressionParser::arguments(Expression& into) {
    m_tokens.expectOperator("(");
    while (!m_tokens.isOperator(")")) {
        if (m_tokens.isOperator("*") || m_tokens.isOperator("**"))
            m_tokens.fail("unpacking arguments with * is not supported");
        if (m_tokens.is(TokenKind::Name) && m_tokens.isOperator("=", 1)) {
            std::string name = m_tokens.next().text;
            m_tokens.next();
            into.named.emplace_back(std::move(name), expression());
        } else {
            if (!into.named.empty())
                m_tokens.fail("an argument without a name follows one with a name");
            into.operands.push_back(expression());
        }
        if (!m_tokens.skipOperator(","))
            break;
    }
    m_tokens.expectOperator(")");
    measure(into);
}

ExpressionPtr ExpressionParser::call(ExpressionPtr callee) {
    std::vector<ExpressionPtr> operands;
    operands.push_back(std::move(callee));
    ExpressionPtr node = make(ExpressionKind::Call, std::move(operands));
    arguments(*node);
    return node;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr subject) {
    for (;;) {
        if (m_tokens.skipOperator("|"))
            subject = filter(std::move(subject));
        else if (m_tokens.skipName("is"))
            subject = test(std::move(subject));
        else if (m_tokens.isOperator("("))
            subject = call(std::move(subject));
        else
            return subject;
    }
}

ExpressionPtr ExpressionParser::filterChain() {
    ExpressionPtr chain = filter(nullptr);
    while (m_tokens.skipOperator("|"))
        chain = filter(std::move(chain));
    return chain;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr subject) {
    std::vector<ExpressionPtr> operands;
    operands.push_back(std::move(subject));
    ExpressionPtr node = make(ExpressionKind::Filter, std::move(operands));
    node->name = m_tokens.expectName();
    node->filter = findFilter(node->name);
    if (node->filter == nullptr)
        throw SyntaxFailure(node->line, "the filter '" + node->name + "' is not supported");
    if (m_tokens.isOperator("("))
        arguments(*node);
    return node;
}

bool ExpressionParser::startsTestArgument() const {
    const Token& token = m_tokens.peek();
    switch (token.kind) {
    case TokenKind::String:
    case TokenKind::Integer:
    case TokenKind::Real:
        return true;
    case TokenKind::Name:
        return token.text != "else" && token.text != "or" && token.text != "and" && token.text != "if" &&
               token.text != "is" && token.text != "not" && token.text != "in";
    case TokenKind::Operator:
        return token.text == "[" || token.text == "{";
    default:
        return false;
    }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr subject) {
    std::vector<ExpressionPtr> operands;
    operands.push_back(std::move(subject));
    ExpressionPtr node = make(ExpressionKind::Test, std::move(operands));
    node->negated = m_tokens.skipName("not");
    node->name = m_tokens.expectName();
    node->test = findTest(node->name);
    if (node->test == nullptr)
        throw SyntaxFailure(node->line, "the test '" + node->name + "' is not supported");
    if (m_tokens.isOperator("(")) {
        arguments(*node);
    } else if (startsTestArgument()) {
        node->operands.push_back(postfix(primary()));
        measure(*node);
    }
    if (m_tokens.isName("is"))
        m_tokens.fail("tests cannot be chained with 'is'");
    return node;
}

Target ExpressionParser::target(bool withAttribute) {
    const auto one = [&] {
        Target part;
        if (m_tokens.skipOperator("(")) {
            part = target(false);
            m_tokens.expectOperator(")");
            return part;
        }
        part.name = m_tokens.expectName();
        constexpr std::array<std::string_view, 6> kConstants = {"true", "True", "false", "False", "none", "None"};
        if (std::find(kConstants.begin(), kConstants.end(), part.name) != kConstants.end())
            m_tokens.fail("'" + part.name + "' cannot be assigned to");
        if (withAttribute && m_tokens.skipOperator("."))
            part.attribute = m_tokens.expectName();
        return part;
    };
    const Nesting nesting(*this);
    Target first = one();
    if (!m_tokens.isOperator(","))
        return first;
    Target several;
    several.parts.push_back(std::move(first));
    while (m_tokens.skipOperator(",") && (m_tokens.is(TokenKind::Name) || m_tokens.isOperator("(")) &&
           !m_tokens.isName("in"))
        several.parts.push_back(one());
    return several;
}

} // namespace kvscope::model::jinja
