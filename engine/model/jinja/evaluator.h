// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/jinja/ast.h"
#include "engine/model/jinja/runtime.h"

namespace kvscope::model::jinja {

/// Variables that are looked at in about the time of one step.
inline constexpr std::size_t kVariablesPerStep = 16;

/// Variables of one block. Names not found here are looked up in the blocks around.
struct Scope {
    std::vector<std::pair<std::string, Value>> variables;
    std::shared_ptr<Scope> parent;

    Scope() = default;
    explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {}
    void set(std::string_view name, Value value);
    const Value* find(std::string_view name) const; ///< here and around; nullptr if nowhere
};
using ScopePtr = std::shared_ptr<Scope>;

/// Walks expressions.
class Evaluator {
public:
    explicit Evaluator(Runtime& runtime) : m_runtime(runtime) {}

    Value evaluate(const Expression& expression, const ScopePtr& scope);
    /// A variable, a global function, or undefined.
    Value lookUp(const std::string& name, const ScopePtr& scope);
    /// A call expression, with a `caller` besides its own arguments if there is one.
    Value call(const Expression& expression, const ScopePtr& scope, const Value* caller);
    /// A chain of filters whose innermost has no subject, over `subject`.
    Value applyFilters(const Expression& chain, Value subject, const ScopePtr& scope);
    void setItem(NamespaceData& space, const std::string& name, const Value& value);

private:
    Value evaluateNode(const Expression& e, const ScopePtr& scope);
    Value literalCollection(const Expression& e, const ScopePtr& scope);
    Value logical(const Expression& e, const ScopePtr& scope);
    Value sign(const Expression& e, const ScopePtr& scope);
    Value concat(const Expression& e, const ScopePtr& scope);
    Value comparison(const Expression& e, const ScopePtr& scope);
    bool compareOnce(const std::string& op, const Value& left, const Value& right);
    Value conditional(const Expression& e, const ScopePtr& scope);
    Value slice(const Expression& e, const ScopePtr& scope);
    Value test(const Expression& e, const ScopePtr& scope);
    Arguments arguments(const Expression& e, const ScopePtr& scope);

    Runtime& m_runtime;
};

} // namespace kvscope::model::jinja
