// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/runtime.h"

#include <algorithm>

#include "engine/model/jinja/characters.h"
#include "engine/model/jinja/library.h"

namespace kvscope::model::jinja {

namespace {

/// Beside its content, what a value costs: a shared object with its counters.
constexpr std::size_t kValueOverhead = 128;

} // namespace

Runtime::~Runtime() {
    for (const auto& space : m_namespaces)
        space->items.clear();
}

void Runtime::step(std::int64_t count) {
    m_steps += count;
    if (m_steps > m_limits.steps)
        throw Failure("it does not come to an end (stopped after " + std::to_string(m_limits.steps) + " steps)");
}

void Runtime::charge(std::size_t bytes) {
    m_bytes += static_cast<std::int64_t>(bytes);
    if (m_bytes > m_limits.bytes)
        throw Failure("it uses too much memory (stopped after " + std::to_string(m_limits.bytes >> 20) + " MiB)");
}

Value Runtime::text(Text text) {
    if (text.size() > kMaxTextBytes)
        throw Failure("it makes a text of more than " + std::to_string(kMaxTextBytes >> 20) + " MiB");
    charge(kValueOverhead + text.size() + text.marks().size() * sizeof(Mark));
    return Value::string(std::move(text));
}

Value Runtime::list(std::vector<Value> items, bool tuple) {
    charge(kValueOverhead + items.size() * sizeof(Value));
    step(static_cast<std::int64_t>(items.size()));
    return Value::list(std::move(items), tuple);
}

Value Runtime::makeNamespace(std::vector<std::pair<std::string, Value>> items) {
    charge(kValueOverhead + sizeof(NamespaceData));
    m_namespaces.push_back(std::make_shared<NamespaceData>(NamespaceData{std::move(items)}));
    return Value::space(m_namespaces.back());
}

Runtime::Level::Level(Runtime& runtime) : m_runtime(runtime) {
    if (++m_runtime.m_depth > m_runtime.m_limits.depth) {
        --m_runtime.m_depth;
        throw Failure("it calls itself too deeply");
    }
}

std::vector<std::optional<Value>> bind(std::string_view callee, Arguments& arguments,
                                       std::initializer_list<std::string_view> names) {
    std::vector<std::optional<Value>> bound(names.size());
    if (arguments.positional.size() > names.size())
        throw Failure("'" + std::string(callee) + "' takes at most " + std::to_string(names.size()) +
                      " argument(s), not " + std::to_string(arguments.positional.size()));
    for (std::size_t i = 0; i < arguments.positional.size(); ++i)
        bound[i] = std::move(arguments.positional[i]);
    for (auto& [name, value] : arguments.named) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            throw Failure("'" + std::string(callee) + "' has no argument named '" + name + "'");
        bound[static_cast<std::size_t>(found - names.begin())] = std::move(value);
    }
    return bound;
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
    std::vector<Value> items;
    if (const ListData* list = value.asList()) {
        items = list->items;
    } else if (const DictData* dict = value.asDict()) {
        for (const auto& [key, item] : dict->items)
            items.push_back(key);
    } else if (const Text* text = value.asString()) {
        const std::vector<std::size_t> offsets = characterOffsets(text->bytes());
        for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
            items.push_back(runtime.text(text->substr(offsets[i], offsets[i + 1] - offsets[i])));
    } else if (!value.isUndefined()) {
        throw Failure(std::string("'") + value.typeName() + "' object is not iterable");
    }
    runtime.step(static_cast<std::int64_t>(items.size()));
    runtime.charge(items.size() * sizeof(Value));
    return items;
}

std::size_t lengthOf(Runtime& runtime, const Value& value) {
    if (const Text* text = value.asString()) {
        runtime.read(text->size());
        return characterCount(text->bytes());
    }
    if (const ListData* list = value.asList())
        return list->items.size();
    if (const DictData* dict = value.asDict())
        return dict->items.size();
    if (value.isUndefined())
        return 0;
    throw Failure(std::string("object of type '") + value.typeName() + "' has no len()");
}

namespace {

[[noreturn]] void usedUndefined(const Value& value) {
    throw Failure(value.asUndefined()->what());
}

Value missing(const Value& subject, std::string_view name) {
    const char* type = subject.typeName();
    constexpr std::size_t kShown = 100; // a key may be megabytes
    name = name.substr(0, kShown);
    return Value::undefined("'" + std::string(type) + " object' has no attribute '" + std::string(name) + "'");
}

/// What is neither a method nor a key: the data of loops and namespaces, the items of dicts.
Value dataOf(Runtime& runtime, const Value& subject, std::string_view name) {
    if (const DictData* dict = subject.asDict()) {
        runtime.step(static_cast<std::int64_t>(dict->items.size() / 16));
        if (const Value* found = find(*dict, name))
            return *found;
    } else if (const NamespaceData* space = subject.asNamespace()) {
        for (const auto& [key, value] : space->items)
            if (key == name)
                return value;
    } else if (const LoopData* loop = subject.asLoop()) {
        const std::vector<Value>& items = loop->items->items;
        const auto count = static_cast<std::int64_t>(items.size());
        const auto index = static_cast<std::int64_t>(loop->index0);
        if (name == "index")
            return Value::integer(index + 1);
        if (name == "index0")
            return Value::integer(index);
        if (name == "revindex")
            return Value::integer(count - index);
        if (name == "revindex0")
            return Value::integer(count - index - 1);
        if (name == "first")
            return Value::boolean(index == 0);
        if (name == "last")
            return Value::boolean(index + 1 == count);
        if (name == "length")
            return Value::integer(count);
        if (name == "depth" || name == "depth0")
            return Value::integer(static_cast<std::int64_t>(loop->depth) - (name == "depth0" ? 1 : 0));
        if (name == "previtem")
            return index > 0 ? items[loop->index0 - 1] : Value::undefined("there is no previous item");
        if (name == "nextitem")
            return index + 1 < count ? items[loop->index0 + 1] : Value::undefined("there is no next item");
    }
    return missing(subject, name);
}

/// Index of a sequence counted from either end; nothing if it lies outside.
std::optional<std::size_t> position(std::int64_t index, std::size_t size) {
    const auto count = static_cast<std::int64_t>(size);
    if (index < 0)
        index += count;
    if (index < 0 || index >= count)
        return std::nullopt;
    return static_cast<std::size_t>(index);
}

/// Positions that from:to:step names, as Python computes them.
std::vector<std::size_t> slicePositions(std::size_t size, const Value& from, const Value& to, const Value& stepValue) {
    const auto bound = [](const Value& value) -> std::optional<std::int64_t> {
        if (value.isUndefined() || value.isNone())
            return std::nullopt;
        return needInteger(value, "a slice");
    };
    const auto count = static_cast<std::int64_t>(size);
    const std::int64_t step = bound(stepValue).value_or(1);
    if (step == 0)
        throw Failure("slice step cannot be zero");
    const std::int64_t lowest = step > 0 ? 0 : -1;
    const std::int64_t highest = step > 0 ? count : count - 1;
    const auto place = [&](const Value& value, std::int64_t open) {
        std::optional<std::int64_t> index = bound(value);
        if (!index)
            return open;
        if (*index < 0)
            *index = *index < -count ? lowest : *index + count;
        return std::clamp(*index, lowest, highest);
    };
    const std::int64_t begin = place(from, step > 0 ? lowest : highest);
    const std::int64_t end = place(to, step > 0 ? highest : lowest);
    std::vector<std::size_t> positions;
    // Counted down instead of up to `end`: a huge step must not overflow.
    for (std::int64_t at = begin; step > 0 ? at < end : at > end;) {
        positions.push_back(static_cast<std::size_t>(at));
        if (step > 0 ? step >= end - at : step <= end - at)
            break;
        at += step;
    }
    return positions;
}

} // namespace

Value attributeOf(Runtime& runtime, const Value& subject, std::string_view name) {
    if (subject.isUndefined())
        usedUndefined(subject);
    Value method = findMethod(subject, name);
    return method.isUndefined() ? dataOf(runtime, subject, name) : method;
}

Value itemOf(Runtime& runtime, const Value& subject, const Value& key) {
    if (subject.isUndefined())
        usedUndefined(subject);
    if (const DictData* dict = subject.asDict()) {
        runtime.step(static_cast<std::int64_t>(dict->items.size() / 16));
        if (const Value* found = find(runtime, *dict, key))
            return *found;
    } else if (const auto index = key.wholeNumber()) {
        if (const ListData* list = subject.asList()) {
            if (const auto at = position(*index, list->items.size()))
                return list->items[*at];
        } else if (const Text* text = subject.asString()) {
            runtime.read(text->size());
            const std::vector<std::size_t> offsets = characterOffsets(text->bytes());
            if (const auto at = position(*index, offsets.size() - 1))
                return runtime.text(text->substr(offsets[*at], offsets[*at + 1] - offsets[*at]));
        }
    }
    if (const Text* name = key.asString())
        return attributeOf(runtime, subject, name->bytes());
    return missing(subject, toText(key).bytes());
}

Value sliceOf(Runtime& runtime, const Value& subject, const Value& from, const Value& to, const Value& step) {
    if (subject.isUndefined())
        usedUndefined(subject);
    if (const ListData* list = subject.asList()) {
        std::vector<Value> items;
        for (const std::size_t at : slicePositions(list->items.size(), from, to, step))
            items.push_back(list->items[at]);
        return runtime.list(std::move(items), list->tuple);
    }
    if (const Text* text = subject.asString()) {
        runtime.read(text->size());
        const std::vector<std::size_t> offsets = characterOffsets(text->bytes());
        const std::vector<std::size_t> positions = slicePositions(offsets.size() - 1, from, to, step);
        runtime.step(static_cast<std::int64_t>(positions.size() / 16));
        const bool contiguous = step.isUndefined() || step.isNone() || needInteger(step, "a slice") == 1;
        if (contiguous && !positions.empty())
            return runtime.text(
                text->substr(offsets[positions.front()], offsets[positions.back() + 1] - offsets[positions.front()]));
        Text out;
        for (const std::size_t at : positions)
            out.append(text->substr(offsets[at], offsets[at + 1] - offsets[at]));
        return runtime.text(std::move(out));
    }
    throw Failure(std::string("'") + subject.typeName() + "' object cannot be sliced");
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
    if (const Text* text = container.asString()) {
        runtime.read(text->size());
        return findBytes(text->bytes(), needString(item, "'in <string>'").bytes()) != std::string::npos;
    }
    if (const ListData* list = container.asList()) {
        runtime.step(static_cast<std::int64_t>(list->items.size()));
        return std::any_of(list->items.begin(), list->items.end(),
                           [&](const Value& v) { return equal(runtime, v, item); });
    }
    if (const DictData* dict = container.asDict()) {
        runtime.step(static_cast<std::int64_t>(dict->items.size()));
        return find(runtime, *dict, item) != nullptr;
    }
    if (container.isUndefined())
        return false;
    throw Failure(std::string("argument of type '") + container.typeName() + "' is not iterable");
}

const Text& needString(const Value& value, std::string_view who) {
    if (const Text* text = value.asString())
        return *text;
    if (value.isUndefined())
        usedUndefined(value);
    throw Failure(std::string(who) + " needs a string, not '" + value.typeName() + "'");
}

std::int64_t needInteger(const Value& value, std::string_view who) {
    if (const auto number = value.wholeNumber())
        return *number;
    if (value.isUndefined())
        usedUndefined(value);
    throw Failure(std::string(who) + " needs an integer, not '" + value.typeName() + "'");
}

} // namespace kvscope::model::jinja
