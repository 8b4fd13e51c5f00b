// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/jinja/value.h"

namespace kvscope::model::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

using FilterFunction = Value (*)(Runtime&, const Value& subject, Arguments& arguments);
using TestFunction = bool (*)(Runtime&, const Value& subject, Arguments& arguments);

enum class ExpressionKind : std::uint8_t {
    Literal,     ///< value
    Name,        ///< name
    List,        ///< operands
    Tuple,       ///< operands
    Dict,        ///< operands: key, value, key, value, ...
    Not,         ///< operands[0]
    And,         ///< operands[0..1]
    Or,          ///< operands[0..1]
    Negate,      ///< operands[0]
    Plus,        ///< operands[0]
    Arithmetic,  ///< name = operator, operands[0..1]
    Concat,      ///< operands, joined as text
    Compare,     ///< operands[0], then operators[i] against operands[i + 1]
    Conditional, ///< operands: condition, value, and the value otherwise if there is one
    Attribute,   ///< operands[0].name
    Item,        ///< operands[0][operands[1]]
    Slice,       ///< operands[0][from:to:step], each of operands[1..3] may be null
    Call,        ///< operands[0](operands[1..], named)
    Filter,      ///< operands[0] | name(operands[1..], named); without operands[0] in a filter block
    Test,        ///< operands[0] is name(operands[1..], named)
};

/// One node of an expression. One struct for all kinds: the interpreter is a switch, and growing the language is adding
/// a case or, far more often, only a filter, test or method.
struct Expression {
    ExpressionKind kind = ExpressionKind::Literal;
    int line = 1;
    int depth = 1;        ///< levels below, bounded by the parser
    bool negated = false; ///< `is not`
    std::string name;
    Value value;
    std::vector<std::string> operators; ///< Compare: == != < <= > >= in "not in"
    std::vector<ExpressionPtr> operands;
    std::vector<std::pair<std::string, ExpressionPtr>> named;
    FilterFunction filter = nullptr;
    TestFunction test = nullptr;
};

/// What `set` and `for` assign to: a name, an attribute of a namespace, or several of them.
struct Target {
    std::string name;
    std::string attribute;     ///< not empty: `set name.attribute`
    std::vector<Target> parts; ///< not empty: unpacked one by one
};

enum class StatementKind : std::uint8_t {
    Data,        ///< text
    Output,      ///< expression
    If,          ///< branches
    For,         ///< target in expression [if condition]: body, else orElse
    Set,         ///< target = expression
    SetBlock,    ///< target = what body prints, through expression (a filter) if there is one
    Macro,       ///< text(parameters): body
    CallBlock,   ///< expression (a call) with caller(parameters) = body
    FilterBlock, ///< expression (a filter) over what body prints
    With,        ///< assignments, then body, in a scope of its own
    Body,        ///< body as it stands (`generation`)
    Break,
    Continue,
};

struct Statement;
using Statements = std::vector<Statement>;

struct Branch {
    ExpressionPtr condition; ///< null = else
    Statements body;
};

struct Parameter {
    std::string name;
    ExpressionPtr defaultValue; ///< may be null
};

struct Statement {
    StatementKind kind = StatementKind::Data;
    int line = 1;
    std::string text;
    Target target;
    ExpressionPtr expression;
    ExpressionPtr condition;
    Statements body;
    Statements orElse;
    std::vector<Branch> branches;
    std::vector<Parameter> parameters;
    std::vector<std::pair<Target, ExpressionPtr>> assignments;
    bool recursive = false; ///< For: `loop(items)` runs it again
};

} // namespace kvscope::model::jinja
