// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/interpreter.h"

#include <algorithm>

#include "engine/model/jinja/evaluator.h"

namespace kvscope::model::jinja {

namespace {

enum class Flow { On, Break, Continue };

/// Walks statements. Expressions are the Evaluator's.
class Interpreter {
public:
    Interpreter(const Variables& variables, const std::tm& now, const Limits& limits)
        : m_runtime(limits, now)
        , m_evaluator(m_runtime)
        , m_global(std::make_shared<Scope>()) {
        m_global->variables = variables;
    }

    Output run(const Statements& statements) {
        Output output;
        m_output = &output;
        runAll(statements, m_global, output.text);
        return output;
    }

private:
    Flow runAll(const Statements& statements, const ScopePtr& scope, Text& out) {
        const Runtime::Level level(m_runtime);
        for (const Statement& statement : statements) {
            const Flow flow = inLine(statement.line, [&] {
                m_runtime.step();
                return runOne(statement, scope, out);
            });
            if (flow != Flow::On)
                return flow;
        }
        return Flow::On;
    }

    Flow runOne(const Statement& statement, const ScopePtr& scope, Text& out) {
        switch (statement.kind) {
        case StatementKind::Data:
            print(statement.text, out);
            return Flow::On;
        case StatementKind::Output:
            print(toText(evaluate(*statement.expression, scope)), out);
            return Flow::On;
        case StatementKind::If:
            return runIf(statement, scope, out);
        case StatementKind::For:
            return runFor(statement, scope, out);
        case StatementKind::Set:
            assign(statement.target, evaluate(*statement.expression, scope), scope);
            return Flow::On;
        case StatementKind::SetBlock:
            assign(statement.target, filtered(statement, scope, scope), scope);
            return Flow::On;
        case StatementKind::Macro:
            scope->set(statement.text, macro(statement, statement.text, scope));
            return Flow::On;
        case StatementKind::CallBlock:
            runCallBlock(statement, scope, out);
            return Flow::On;
        case StatementKind::FilterBlock:
            print(toText(filtered(statement, scope, std::make_shared<Scope>(scope))), out);
            return Flow::On;
        case StatementKind::With:
            return runWith(statement, scope, out);
        case StatementKind::Body:
            return runAll(statement.body, scope, out);
        case StatementKind::Break:
            return Flow::Break;
        case StatementKind::Continue:
            return Flow::Continue;
        }
        return Flow::On;
    }

    Value evaluate(const Expression& expression, const ScopePtr& scope) {
        return m_evaluator.evaluate(expression, scope);
    }

    template <class Piece> void print(const Piece& piece, Text& out) {
        m_runtime.charge(piece.size());
        out.append(piece);
    }

    Flow runIf(const Statement& statement, const ScopePtr& scope, Text& out) {
        for (const Branch& branch : statement.branches)
            if (!branch.condition || evaluate(*branch.condition, scope).truthy())
                return runAll(branch.body, scope, out);
        return Flow::On;
    }

    /// The items that the loop's own condition lets through, so that loop.length and loop.last count only those.
    std::vector<Value> loopItems(const Statement& statement, const Value& value, const ScopePtr& scope) {
        std::vector<Value> items = iterate(m_runtime, value);
        if (!statement.condition)
            return items;
        std::vector<Value> kept;
        for (Value& item : items) {
            const auto inner = std::make_shared<Scope>(scope);
            assign(statement.target, item, inner);
            if (evaluate(*statement.condition, inner).truthy())
                kept.push_back(std::move(item));
        }
        return kept;
    }

    /// What a loop remembered may be the loop itself, and what it repeats holds its scope: circles, to be broken.
    struct LoopEnd {
        LoopData& loop;
        ~LoopEnd() {
            loop.lastChanged.reset();
            loop.again = nullptr;
        }
    };

    Flow runFor(const Statement& statement, const ScopePtr& scope, Text& out) {
        return runLoop(statement, evaluate(*statement.expression, scope), 1, scope, out);
    }

    /// `depth`: 1, or how often a recursive loop stands inside of itself.
    Flow runLoop(const Statement& statement, const Value& value, std::size_t depth, const ScopePtr& scope, Text& out) {
        std::vector<Value> items = loopItems(statement, value, scope);
        if (items.empty())
            return runAll(statement.orElse, scope, out);
        const auto loop = std::make_shared<LoopData>();
        loop->items = Value::list(std::move(items)).sharedList();
        loop->depth = depth;
        const LoopEnd end{*loop}; // also when the rendering fails
        if (statement.recursive)
            loop->again = [this, &statement, depth, scope](const Value& below) {
                Text text;
                runLoop(statement, below, depth + 1, scope, text);
                return m_runtime.text(std::move(text));
            };
        for (; loop->index0 < loop->items->items.size(); ++loop->index0) {
            m_runtime.step();
            const Value& item = loop->items->items[loop->index0];
            const auto inner = std::make_shared<Scope>(scope);
            inner->set("loop", Value::loop(loop));
            assign(statement.target, item, inner);
            const std::size_t begin = out.size();
            const Flow flow = runAll(statement.body, inner, out);
            if (item.asDict() != nullptr && &out == &m_output->text && out.size() > begin)
                m_output->items.push_back({item.asDict(), begin, out.size()});
            if (flow == Flow::Break)
                break;
        }
        return Flow::On;
    }

    Flow runWith(const Statement& statement, const ScopePtr& scope, Text& out) {
        const auto inner = std::make_shared<Scope>(scope);
        for (const auto& [target, expression] : statement.assignments)
            assign(target, evaluate(*expression, scope), inner);
        return runAll(statement.body, inner, out);
    }

    Value captured(const Statements& body, const ScopePtr& scope) {
        Text text;
        runAll(body, scope, text);
        return m_runtime.text(std::move(text));
    }

    /// What the body prints, through the filters of the statement if it has any.
    Value filtered(const Statement& statement, const ScopePtr& scope, const ScopePtr& bodyScope) {
        Value text = captured(statement.body, bodyScope);
        return statement.expression ? m_evaluator.applyFilters(*statement.expression, std::move(text), scope) : text;
    }

    void runCallBlock(const Statement& statement, const ScopePtr& scope, Text& out) {
        const Value caller = macro(statement, "caller", scope);
        print(toText(m_evaluator.call(*statement.expression, scope, &caller)), out);
    }

    /// A macro sees the scope that it was written in. It holds that scope weakly: the scope holds the macro, and one
    /// that was carried out of its loop must not keep everything alive.
    Value macro(const Statement& statement, const std::string& name, const ScopePtr& scope) {
        return Value::function(
            name, [this, &statement, name, home = std::weak_ptr<Scope>(scope)](Runtime&, Arguments& arguments) {
                const ScopePtr outer = home.lock();
                if (!outer)
                    throw Failure("macro '" + name + "' was called outside of the block that it belongs to");
                const auto inner = std::make_shared<Scope>(outer);
                bindParameters(statement, name, arguments, inner);
                return captured(statement.body, inner);
            });
    }

    void bindParameters(const Statement& statement, const std::string& name, Arguments& arguments,
                        const ScopePtr& inner) {
        if (arguments.positional.size() > statement.parameters.size())
            throw Failure("macro '" + name + "' takes not more than " + std::to_string(statement.parameters.size()) +
                          " argument(s)");
        // Names are looked for one after the other.
        m_runtime.step(static_cast<std::int64_t>((arguments.named.size() + statement.parameters.size()) *
                                                 statement.parameters.size() / kVariablesPerStep));
        std::vector<std::optional<Value>> given(statement.parameters.size());
        std::move(arguments.positional.begin(), arguments.positional.end(), given.begin());
        for (auto& [key, value] : arguments.named) {
            const auto found = std::find_if(statement.parameters.begin(), statement.parameters.end(),
                                            [&key = key](const Parameter& p) { return p.name == key; });
            if (found != statement.parameters.end())
                given[static_cast<std::size_t>(found - statement.parameters.begin())] = std::move(value);
            else if (key == "caller")
                inner->set("caller", std::move(value));
            else
                throw Failure("macro '" + name + "' takes no keyword argument '" + key + "'");
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            const Parameter& parameter = statement.parameters[i];
            if (!given[i] && parameter.defaultValue)
                given[i] = evaluate(*parameter.defaultValue, inner);
            inner->set(parameter.name, given[i]
                                           ? std::move(*given[i])
                                           : Value::undefined("parameter '" + parameter.name + "' was not provided"));
        }
    }

    void assign(const Target& target, const Value& value, const ScopePtr& scope) {
        if (!target.parts.empty()) {
            const std::vector<Value> items = iterate(m_runtime, value);
            if (items.size() != target.parts.size())
                throw Failure("cannot unpack " + std::to_string(items.size()) + " value(s) into " +
                              std::to_string(target.parts.size()));
            for (std::size_t i = 0; i < items.size(); ++i)
                assign(target.parts[i], items[i], scope);
        } else if (target.attribute.empty()) {
            m_runtime.step(static_cast<std::int64_t>(scope->variables.size() / kVariablesPerStep));
            scope->set(target.name, value);
        } else {
            NamespaceData* space = m_evaluator.lookUp(target.name, scope).asNamespace();
            if (space == nullptr)
                throw Failure("cannot assign attribute on non-namespace object '" + target.name + "'");
            m_evaluator.setItem(*space, target.attribute, value);
        }
    }

    Runtime m_runtime;
    Evaluator m_evaluator;
    ScopePtr m_global;
    Output* m_output = nullptr;
};

} // namespace

Output interpret(const Statements& statements, const Variables& variables, const std::tm& now, const Limits& limits) {
    return Interpreter(variables, now, limits).run(statements);
}

} // namespace kvscope::model::jinja
