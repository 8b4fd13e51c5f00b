// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/evaluator.h"

#include <algorithm>
#include <limits>

#include "engine/model/jinja/library.h"

namespace kvscope::model::jinja {

void Scope::set(std::string_view name, Value value) {
    for (auto& [key, old] : variables) {
        if (key == name) {
            old = std::move(value);
            return;
        }
    }
    variables.emplace_back(name, std::move(value));
}

const Value* Scope::find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get())
        for (const auto& [key, value] : scope->variables)
            if (key == name)
                return &value;
    return nullptr;
}

Value Evaluator::lookUp(const std::string& name, const ScopePtr& scope) {
    std::size_t variables = 0; // looked at one after the other
    for (const Scope* around = scope.get(); around != nullptr; around = around->parent.get())
        variables += around->variables.size();
    m_runtime.step(static_cast<std::int64_t>(variables / kVariablesPerStep));
    if (const Value* found = scope->find(name))
        return *found;
    Value global = findGlobal(name);
    return global.isUndefined() ? Value::undefined("'" + name + "' is undefined") : global;
}

Value Evaluator::evaluate(const Expression& e, const ScopePtr& scope) {
    return inLine(e.line, [&] { return evaluateNode(e, scope); });
}

Value Evaluator::evaluateNode(const Expression& e, const ScopePtr& scope) {
    const Runtime::Level level(m_runtime);
    m_runtime.step();
    switch (e.kind) {
    case ExpressionKind::Literal:
        return e.value;
    case ExpressionKind::Name:
        return lookUp(e.name, scope);
    case ExpressionKind::List:
    case ExpressionKind::Tuple:
    case ExpressionKind::Dict:
        return literalCollection(e, scope);
    case ExpressionKind::Not:
    case ExpressionKind::And:
    case ExpressionKind::Or:
        return logical(e, scope);
    case ExpressionKind::Negate:
    case ExpressionKind::Plus:
        return sign(e, scope);
    case ExpressionKind::Arithmetic: {
        const Value left = evaluate(*e.operands[0], scope);
        return arithmetic(m_runtime, e.name, left, evaluate(*e.operands[1], scope));
    }
    case ExpressionKind::Concat:
        return concat(e, scope);
    case ExpressionKind::Compare:
        return comparison(e, scope);
    case ExpressionKind::Conditional:
        return conditional(e, scope);
    case ExpressionKind::Attribute:
        return attributeOf(m_runtime, evaluate(*e.operands[0], scope), e.name);
    case ExpressionKind::Item: {
        const Value subject = evaluate(*e.operands[0], scope);
        return itemOf(m_runtime, subject, evaluate(*e.operands[1], scope));
    }
    case ExpressionKind::Slice:
        return slice(e, scope);
    case ExpressionKind::Call:
        return call(e, scope, nullptr);
    case ExpressionKind::Filter: {
        const Value subject = evaluate(*e.operands[0], scope);
        Arguments given = arguments(e, scope);
        return e.filter(m_runtime, subject, given);
    }
    case ExpressionKind::Test:
        return test(e, scope);
    }
    throw Failure("an expression of unknown kind");
}

Arguments Evaluator::arguments(const Expression& e, const ScopePtr& scope) {
    Arguments out;
    for (std::size_t i = 1; i < e.operands.size(); ++i)
        out.positional.push_back(evaluate(*e.operands[i], scope));
    for (const auto& [name, expression] : e.named)
        out.named.emplace_back(name, evaluate(*expression, scope));
    return out;
}

Value Evaluator::literalCollection(const Expression& e, const ScopePtr& scope) {
    if (e.kind != ExpressionKind::Dict) {
        std::vector<Value> items;
        for (const ExpressionPtr& operand : e.operands)
            items.push_back(evaluate(*operand, scope));
        return m_runtime.list(std::move(items), e.kind == ExpressionKind::Tuple);
    }
    std::vector<std::pair<Value, Value>> items;
    for (std::size_t i = 0; i < e.operands.size(); i += 2) {
        Value key = evaluate(*e.operands[i], scope);
        Value value = evaluate(*e.operands[i + 1], scope);
        const auto same = std::find_if(items.begin(), items.end(),
                                       [&](const auto& item) { return equal(m_runtime, item.first, key); });
        if (same != items.end())
            same->second = std::move(value);
        else
            items.emplace_back(std::move(key), std::move(value));
    }
    m_runtime.charge(items.size() * sizeof(Value) * 2);
    return Value::dict(std::move(items));
}

Value Evaluator::logical(const Expression& e, const ScopePtr& scope) {
    Value left = evaluate(*e.operands[0], scope);
    if (e.kind == ExpressionKind::Not)
        return Value::boolean(!left.truthy());
    const bool decided = left.truthy() == (e.kind == ExpressionKind::Or);
    return decided ? left : evaluate(*e.operands[1], scope);
}

Value Evaluator::sign(const Expression& e, const ScopePtr& scope) {
    const Value value = evaluate(*e.operands[0], scope);
    const bool negate = e.kind == ExpressionKind::Negate;
    if (const auto whole = value.wholeNumber()) {
        if (negate && *whole == std::numeric_limits<std::int64_t>::min())
            throw Failure("a number is too large");
        return Value::integer(negate ? -*whole : *whole);
    }
    if (const double* real = value.asReal())
        return Value::real(negate ? -*real : *real);
    if (value.isUndefined())
        throw Failure(value.asUndefined()->what());
    throw Failure(std::string("bad operand type for unary ") + (negate ? "-" : "+") + ": '" + value.typeName() + "'");
}

Value Evaluator::concat(const Expression& e, const ScopePtr& scope) {
    Text out;
    for (const ExpressionPtr& operand : e.operands) {
        out.append(toText(evaluate(*operand, scope)));
        if (out.size() > kMaxTextBytes) // refused at once: one long text may stand there a thousand times
            break;
    }
    return m_runtime.text(std::move(out));
}

bool Evaluator::compareOnce(const std::string& op, const Value& left, const Value& right) {
    if (op == "==")
        return equal(m_runtime, left, right);
    if (op == "!=")
        return !equal(m_runtime, left, right);
    if (op == "in")
        return contains(m_runtime, right, left);
    if (op == "not in")
        return !contains(m_runtime, right, left);
    const int order = compare(m_runtime, left, right);
    if (op == "<")
        return order < 0;
    if (op == "<=")
        return order <= 0;
    return op == ">" ? order > 0 : order >= 0;
}

Value Evaluator::comparison(const Expression& e, const ScopePtr& scope) {
    Value left = evaluate(*e.operands[0], scope);
    for (std::size_t i = 0; i < e.operators.size(); ++i) {
        Value right = evaluate(*e.operands[i + 1], scope);
        if (!compareOnce(e.operators[i], left, right))
            return Value::boolean(false);
        left = std::move(right);
    }
    return Value::boolean(true);
}

Value Evaluator::conditional(const Expression& e, const ScopePtr& scope) {
    if (evaluate(*e.operands[0], scope).truthy())
        return evaluate(*e.operands[1], scope);
    if (e.operands.size() > 2)
        return evaluate(*e.operands[2], scope);
    return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
}

Value Evaluator::slice(const Expression& e, const ScopePtr& scope) {
    const auto bound = [&](std::size_t i) { return e.operands[i] ? evaluate(*e.operands[i], scope) : Value(); };
    const Value subject = evaluate(*e.operands[0], scope);
    const Value from = bound(1);
    const Value to = bound(2);
    return sliceOf(m_runtime, subject, from, to, bound(3));
}

Value Evaluator::call(const Expression& e, const ScopePtr& scope, const Value* caller) {
    const Value callee = evaluate(*e.operands[0], scope);
    Arguments given = arguments(e, scope);
    if (caller != nullptr)
        given.named.emplace_back("caller", *caller);
    if (callee.isUndefined())
        throw Failure(callee.asUndefined()->what());
    const Runtime::Level level(m_runtime);
    if (const LoopData* loop = callee.asLoop(); loop != nullptr && loop->again) {
        if (given.positional.size() != 1 || !given.named.empty())
            throw Failure("a recursive loop is called with the items of the next level");
        return loop->again(given.positional.front());
    }
    const Function* function = callee.asFunction();
    if (function == nullptr)
        throw Failure(std::string("'") + callee.typeName() + "' object is not callable");
    return function->call(m_runtime, given);
}

Value Evaluator::applyFilters(const Expression& chain, Value subject, const ScopePtr& scope) {
    if (chain.operands[0])
        subject = applyFilters(*chain.operands[0], std::move(subject), scope);
    return inLine(chain.line, [&] {
        Arguments given = arguments(chain, scope);
        return chain.filter(m_runtime, subject, given);
    });
}

Value Evaluator::test(const Expression& e, const ScopePtr& scope) {
    const Value subject = evaluate(*e.operands[0], scope);
    Arguments given = arguments(e, scope);
    return Value::boolean(e.test(m_runtime, subject, given) != e.negated);
}

void Evaluator::setItem(NamespaceData& space, const std::string& name, const Value& value) {
    m_runtime.step(static_cast<std::int64_t>(space.items.size() / 16));
    for (auto& [key, old] : space.items) {
        if (key == name) {
            old = value;
            return;
        }
    }
    space.items.emplace_back(name, value);
}

} // namespace kvscope::model::jinja
