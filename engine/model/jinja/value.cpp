// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/value.h"

#include <algorithm>

#include "engine/model/jinja/runtime.h"

namespace kvscope::model::jinja {

namespace {

template <class T> int order(const T& a, const T& b) {
    return a < b ? -1 : (b < a ? 1 : 0);
}

class Comparer {
public:
    explicit Comparer(Runtime& runtime) : m_runtime(runtime) {}

    bool equal(const Value& a, const Value& b) {
        m_runtime.step();
        if (a.isNumber() && b.isNumber()) {
            const auto x = a.wholeNumber();
            const auto y = b.wholeNumber();
            return x && y ? *x == *y : *a.number() == *b.number();
        }
        if (a.asString() != nullptr && b.asString() != nullptr) {
            chargeStrings(*a.asString(), *b.asString());
            return a.asString()->bytes() == b.asString()->bytes();
        }
        if (a.asList() != nullptr && b.asList() != nullptr)
            return a.asList()->tuple == b.asList()->tuple && equal(a.asList()->items, b.asList()->items);
        if (a.asDict() != nullptr && b.asDict() != nullptr)
            return equal(*a.asDict(), *b.asDict());
        if ((a.isNone() && b.isNone()) || (a.isUndefined() && b.isUndefined()))
            return true;
        if (a.asNamespace() != nullptr)
            return a.asNamespace() == b.asNamespace();
        return a.asFunction() != nullptr && a.asFunction() == b.asFunction();
    }

    int compare(const Value& a, const Value& b) {
        if (a.isNumber() && b.isNumber()) {
            const auto x = a.wholeNumber();
            const auto y = b.wholeNumber();
            return x && y ? order(*x, *y) : order(*a.number(), *b.number());
        }
        // Order of UTF-8 bytes is the order of code points.
        if (a.asString() != nullptr && b.asString() != nullptr) {
            chargeStrings(*a.asString(), *b.asString());
            return order(a.asString()->bytes().compare(b.asString()->bytes()), 0);
        }
        if (a.asList() != nullptr && b.asList() != nullptr && a.asList()->tuple == b.asList()->tuple) {
            const auto& x = a.asList()->items;
            const auto& y = b.asList()->items;
            for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
                if (!equal(x[i], y[i]))
                    return compare(x[i], y[i]);
            return order(x.size(), y.size());
        }
        if (const Undefined* undefined = a.isUndefined() ? a.asUndefined() : b.asUndefined())
            throw Failure(undefined->what());
        throw Failure(std::string("'") + a.typeName() + "' and '" + b.typeName() + "' cannot be ordered");
    }

private:
    void chargeStrings(const Text& a, const Text& b) {
        m_runtime.step(static_cast<std::int64_t>(std::min(a.size(), b.size()) / kBytesPerStep));
    }
    bool equal(const std::vector<Value>& a, const std::vector<Value>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [&](const Value& x, const Value& y) { return equal(x, y); });
    }
    bool equal(const DictData& a, const DictData& b) {
        return a.items.size() == b.items.size() && std::all_of(a.items.begin(), a.items.end(), [&](const auto& item) {
                   const auto other = std::find_if(b.items.begin(), b.items.end(),
                                                   [&](const auto& entry) { return equal(entry.first, item.first); });
                   return other != b.items.end() && equal(item.second, other->second);
               });
    }

    Runtime& m_runtime;
};

std::size_t checkedDepth(std::size_t inside) {
    if (inside >= kMaxNesting)
        throw Failure("values are nested too deeply (more than " + std::to_string(kMaxNesting) + " levels)");
    return inside + 1;
}

} // namespace

Value Value::list(std::vector<Value> items, bool tuple) {
    std::size_t inside = 0;
    for (const Value& item : items)
        inside = std::max(inside, item.depth());
    return Value(Data(std::make_shared<const ListData>(ListData{std::move(items), tuple, checkedDepth(inside)})));
}

Value Value::dict(std::vector<std::pair<Value, Value>> items) {
    std::size_t inside = 0;
    for (const auto& [key, value] : items)
        inside = std::max({inside, key.depth(), value.depth()});
    return Value(Data(std::make_shared<const DictData>(DictData{std::move(items), checkedDepth(inside)})));
}

Value Value::function(std::string name, std::function<Value(Runtime&, Arguments&)> call, std::size_t depth) {
    return Value(
        Data(std::make_shared<const Function>(Function{std::move(name), std::move(call), checkedDepth(depth)})));
}

std::size_t Value::depth() const {
    if (const ListData* list = asList())
        return list->depth;
    if (const DictData* dict = asDict())
        return dict->depth;
    if (const Function* function = asFunction())
        return function->depth;
    const LoopData* loop = asLoop();
    return loop != nullptr ? loop->items->depth + 1 : 0;
}

std::shared_ptr<const ListData> Value::sharedList() const {
    const auto* shared = std::get_if<std::shared_ptr<const ListData>>(&m_data);
    return shared == nullptr ? nullptr : *shared;
}

std::optional<std::int64_t> Value::wholeNumber() const {
    if (const bool* value = asBoolean())
        return *value ? 1 : 0;
    if (const std::int64_t* value = asInteger())
        return *value;
    return std::nullopt;
}

std::optional<double> Value::number() const {
    if (const double* value = asReal())
        return *value;
    if (const auto whole = wholeNumber())
        return static_cast<double>(*whole);
    return std::nullopt;
}

bool Value::truthy() const {
    if (isUndefined() || isNone())
        return false;
    if (const auto value = number())
        return *value != 0;
    if (const Text* text = asString())
        return !text->empty();
    if (const ListData* list = asList())
        return !list->items.empty();
    if (const DictData* dict = asDict())
        return !dict->items.empty();
    return true;
}

const char* Value::typeName() const {
    struct Namer {
        const char* operator()(const Undefined&) const { return "Undefined"; }
        const char* operator()(const None&) const { return "NoneType"; }
        const char* operator()(bool) const { return "bool"; }
        const char* operator()(std::int64_t) const { return "int"; }
        const char* operator()(double) const { return "float"; }
        const char* operator()(const std::shared_ptr<const Text>&) const { return "str"; }
        const char* operator()(const std::shared_ptr<const ListData>& list) const {
            return list->tuple ? "tuple" : "list";
        }
        const char* operator()(const std::shared_ptr<const DictData>&) const { return "dict"; }
        const char* operator()(const std::shared_ptr<NamespaceData>&) const { return "Namespace"; }
        const char* operator()(const std::shared_ptr<const Function>&) const { return "function"; }
        const char* operator()(const std::shared_ptr<LoopData>&) const { return "LoopContext"; }
    };
    return std::visit(Namer{}, m_data);
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
    return Comparer(runtime).equal(a, b);
}

int compare(Runtime& runtime, const Value& a, const Value& b) {
    return Comparer(runtime).compare(a, b);
}

const Value* find(Runtime& runtime, const DictData& dict, const Value& key) {
    for (const auto& [name, value] : dict.items)
        if (equal(runtime, name, key))
            return &value;
    return nullptr;
}

const Value* find(const DictData& dict, std::string_view key) {
    for (const auto& [name, value] : dict.items)
        if (const Text* text = name.asString(); text != nullptr && text->bytes() == key)
            return &value;
    return nullptr;
}

} // namespace kvscope::model::jinja
