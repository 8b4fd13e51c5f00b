// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <charconv>

#include "engine/model/jinja/characters.h"
#include "engine/model/jinja/filters.h"
#include "engine/model/jinja/runtime.h"

namespace kvscope::model::jinja {

namespace {

/// The value at "a.b.0" below an item: what `map(attribute=...)` and its kin look up.
Value atPath(Runtime& runtime, Value value, const Value& path) {
    if (path.wholeNumber())
        return itemOf(runtime, value, path);
    const std::string& names = needString(path, "an attribute").bytes();
    for (std::size_t begin = 0; begin <= names.size();) {
        const std::size_t end = std::min(names.find('.', begin), names.size());
        const std::string name = names.substr(begin, end - begin);
        std::int64_t index = 0;
        const bool number =
            std::from_chars(name.data(), name.data() + name.size(), index).ptr == name.data() + name.size();
        if (value.isUndefined())
            return value;
        value = itemOf(runtime, value, number && !name.empty() ? Value::integer(index) : Value::string(name));
        begin = end + 1;
    }
    return value;
}

Value length(Runtime& runtime, const Value& value, Arguments&) {
    return Value::integer(static_cast<std::int64_t>(lengthOf(runtime, value)));
}

Value first(Runtime& runtime, const Value& value, Arguments&) {
    const std::vector<Value> items = iterate(runtime, value);
    return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(Runtime& runtime, const Value& value, Arguments&) {
    const std::vector<Value> items = iterate(runtime, value);
    return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value join(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("join", arguments, {"d", "attribute"});
    const Text separator = bound[0] ? toText(*bound[0]) : Text();
    Text out;
    bool isFirst = true;
    for (const Value& item : iterate(runtime, value)) {
        if (!isFirst)
            out.append(separator);
        isFirst = false;
        const Text piece = toText(bound[1] ? atPath(runtime, item, *bound[1]) : item);
        runtime.charge(separator.size() + piece.size());
        out.append(piece);
    }
    return runtime.text(std::move(out));
}

Value toList(Runtime& runtime, const Value& value, Arguments&) {
    return runtime.list(iterate(runtime, value));
}

Value items(Runtime& runtime, const Value& value, Arguments&) {
    if (value.isUndefined())
        return runtime.list({});
    const DictData* dict = value.asDict();
    if (dict == nullptr)
        throw Failure("Can only get item pairs from a mapping.");
    std::vector<Value> out;
    for (const auto& [key, item] : dict->items)
        out.push_back(runtime.list({key, item}, true));
    return runtime.list(std::move(out));
}

Value reversed(Runtime& runtime, const Value& value, Arguments&) {
    std::vector<Value> out = iterate(runtime, value);
    std::reverse(out.begin(), out.end());
    if (value.asString() == nullptr)
        return runtime.list(std::move(out));
    Text text;
    for (const Value& character : out)
        text.append(*character.asString());
    return runtime.text(std::move(text));
}

/// Takes the first positional argument out.
Value takeFirst(Arguments& arguments, std::string_view who) {
    if (arguments.positional.empty())
        throw Failure(std::string(who) + " lacks an argument");
    Value value = std::move(arguments.positional.front());
    arguments.positional.erase(arguments.positional.begin());
    return value;
}

/// map('filter', arguments...) or map(attribute='a.b', default=x)
Value map(Runtime& runtime, const Value& value, Arguments& arguments) {
    std::vector<Value> out;
    if (arguments.positional.empty()) {
        const auto bound = bind("map", arguments, {"attribute", "default"});
        if (!bound[0])
            throw Failure("map requires a filter argument");
        for (const Value& item : iterate(runtime, value)) {
            Value found = atPath(runtime, item, *bound[0]);
            out.push_back(found.isUndefined() && bound[1] ? *bound[1] : std::move(found));
        }
        return runtime.list(std::move(out));
    }
    const std::string name = needString(takeFirst(arguments, "map"), "map").bytes();
    const FilterFunction filter = findFilter(name);
    if (filter == nullptr)
        throw Failure("the filter '" + name + "' is not supported");
    const Runtime::Level level(runtime); // map may map again
    for (const Value& item : iterate(runtime, value)) {
        Arguments copy = arguments;
        out.push_back(filter(runtime, item, copy));
    }
    return runtime.list(std::move(out));
}

/// select, reject and their kin with an attribute: keeps items whose test comes out as wanted.
template <bool kByAttribute, bool kWanted> Value chosen(Runtime& runtime, const Value& value, Arguments& arguments) {
    Value path;
    if (kByAttribute)
        path = takeFirst(arguments, "selectattr");
    TestFunction test = nullptr;
    if (!arguments.positional.empty()) {
        const std::string name = needString(takeFirst(arguments, "select"), "select").bytes();
        test = findTest(name);
        if (test == nullptr)
            throw Failure("the test '" + name + "' is not supported");
    }
    std::vector<Value> out;
    for (const Value& item : iterate(runtime, value)) {
        const Value subject = kByAttribute ? atPath(runtime, item, path) : item;
        Arguments copy = arguments;
        if ((test == nullptr ? subject.truthy() : test(runtime, subject, copy)) == kWanted)
            out.push_back(item);
    }
    return runtime.list(std::move(out));
}

/// What values are ordered by: their text without regard to case, unless it matters.
Value sortKey(Runtime& runtime, const Value& item, const std::optional<Value>& path, bool caseSensitive) {
    Value key = path && !path->isNone() ? atPath(runtime, item, *path) : item;
    const Text* text = key.asString();
    return text != nullptr && !caseSensitive ? runtime.text(text->mapPieces(lowerCase)) : key;
}

std::vector<std::pair<Value, Value>> keyed(Runtime& runtime, std::vector<Value> values,
                                           const std::optional<Value>& path, bool caseSensitive) {
    std::vector<std::pair<Value, Value>> out;
    for (Value& value : values) {
        Value key = sortKey(runtime, value, path, caseSensitive);
        out.emplace_back(std::move(key), std::move(value));
    }
    return out;
}

void sortByKey(Runtime& runtime, std::vector<std::pair<Value, Value>>& values, bool descending) {
    const auto count = static_cast<std::int64_t>(values.size());
    for (std::int64_t rounds = count; rounds > 0; rounds /= 2)
        runtime.step(count);
    std::stable_sort(values.begin(), values.end(), [&](const auto& a, const auto& b) {
        return descending ? compare(runtime, b.first, a.first) < 0 : compare(runtime, a.first, b.first) < 0;
    });
}

Value sorted(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("sort", arguments, {"reverse", "case_sensitive", "attribute"});
    auto values = keyed(runtime, iterate(runtime, value), bound[2], bound[1] && bound[1]->truthy());
    sortByKey(runtime, values, bound[0] && bound[0]->truthy());
    std::vector<Value> out;
    for (auto& [key, item] : values)
        out.push_back(std::move(item));
    return runtime.list(std::move(out));
}

Value sortedDict(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("dictsort", arguments, {"case_sensitive", "by", "reverse"});
    const bool byValue = bound[1] && needString(*bound[1], "dictsort").bytes() == "value";
    Arguments none;
    auto values = keyed(runtime, iterate(runtime, items(runtime, value, none)), Value::integer(byValue ? 1 : 0),
                        bound[0] && bound[0]->truthy());
    sortByKey(runtime, values, bound[2] && bound[2]->truthy());
    std::vector<Value> out;
    for (auto& [key, item] : values)
        out.push_back(std::move(item));
    return runtime.list(std::move(out));
}

Value unique(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("unique", arguments, {"case_sensitive", "attribute"});
    std::vector<Value> seen;
    std::vector<Value> out;
    for (auto& [key, item] : keyed(runtime, iterate(runtime, value), bound[1], bound[0] && bound[0]->truthy())) {
        runtime.step(static_cast<std::int64_t>(seen.size()));
        if (std::any_of(seen.begin(), seen.end(),
                        [&, &key = key](const Value& other) { return equal(runtime, other, key); }))
            continue;
        seen.push_back(std::move(key));
        out.push_back(std::move(item));
    }
    return runtime.list(std::move(out));
}

template <bool kLargest> Value extreme(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind(kLargest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
    const auto values = keyed(runtime, iterate(runtime, value), bound[1], bound[0] && bound[0]->truthy());
    if (values.empty())
        return Value::undefined("No aggregated item, sequence was empty.");
    const auto less = [&](const auto& a, const auto& b) { return compare(runtime, a.first, b.first) < 0; };
    return (kLargest ? std::max_element(values.begin(), values.end(), less)
                     : std::min_element(values.begin(), values.end(), less))
        ->second;
}

Value sum(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("sum", arguments, {"attribute", "start"});
    Value total = bound[1].value_or(Value::integer(0));
    for (const Value& item : iterate(runtime, value))
        total =
            arithmetic(runtime, "+", total, bound[0] && !bound[0]->isNone() ? atPath(runtime, item, *bound[0]) : item);
    return total;
}

Value groupBy(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("groupby", arguments, {"attribute", "default", "case_sensitive"});
    if (!bound[0])
        throw Failure("groupby lacks an attribute");
    auto values = keyed(runtime, iterate(runtime, value), bound[0], bound[2] && bound[2]->truthy());
    for (auto& [key, item] : values)
        if (key.isUndefined() && bound[1])
            key = *bound[1];
    sortByKey(runtime, values, false);
    std::vector<Value> groups;
    for (std::size_t i = 0; i < values.size();) {
        // The group is named as its first member spells it.
        const Value named = atPath(runtime, values[i].second, *bound[0]);
        std::vector<Value> members;
        const Value key = values[i].first;
        for (; i < values.size() && equal(runtime, values[i].first, key); ++i)
            members.push_back(values[i].second);
        groups.push_back(Value::dict({{Value::string("grouper"), named.isUndefined() ? key : named},
                                      {Value::string("list"), runtime.list(std::move(members))}}));
    }
    return runtime.list(std::move(groups));
}

/// Rows of `linecount` items, the last one filled up.
Value batch(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("batch", arguments, {"linecount", "fill_with"});
    const std::int64_t count = bound[0] ? needInteger(*bound[0], "batch") : 0;
    if (count < 1)
        throw Failure("batch needs a number of items of at least 1");
    const std::vector<Value> items = iterate(runtime, value);
    const auto length = static_cast<std::size_t>(count);
    std::vector<Value> rows;
    for (std::size_t begin = 0; begin < items.size(); begin += std::min(length, items.size() - begin)) {
        std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(begin),
                               items.begin() +
                                   static_cast<std::ptrdiff_t>(begin + std::min(length, items.size() - begin)));
        if (bound[1] && !bound[1]->isNone()) {
            runtime.step(count - static_cast<std::int64_t>(row.size())); // before it is made: the row may be huge
            runtime.charge((length - row.size()) * sizeof(Value));
            row.resize(length, *bound[1]);
        }
        rows.push_back(runtime.list(std::move(row)));
    }
    return runtime.list(std::move(rows));
}

/// So many columns, the first ones one item longer where it does not come out even, the others filled up.
Value sliced(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("slice", arguments, {"slices", "fill_with"});
    const std::int64_t count = bound[0] ? needInteger(*bound[0], "slice") : 0;
    if (count < 1)
        throw Failure("slice needs a number of parts of at least 1");
    runtime.step(count);
    const std::vector<Value> items = iterate(runtime, value);
    const std::size_t least = items.size() / static_cast<std::size_t>(count);
    const std::size_t longer = items.size() % static_cast<std::size_t>(count);
    std::vector<Value> columns;
    auto at = items.begin();
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        const auto end = at + static_cast<std::ptrdiff_t>(least + (i < longer ? 1 : 0));
        std::vector<Value> column(at, end);
        at = end;
        if (i >= longer && bound[1] && !bound[1]->isNone())
            column.push_back(*bound[1]);
        columns.push_back(runtime.list(std::move(column)));
    }
    return runtime.list(std::move(columns));
}

constexpr std::array kFilters = {
    FilterEntry{"batch", batch},
    FilterEntry{"count", length},
    FilterEntry{"dictsort", sortedDict},
    FilterEntry{"first", first},
    FilterEntry{"groupby", groupBy},
    FilterEntry{"items", items},
    FilterEntry{"join", join},
    FilterEntry{"last", last},
    FilterEntry{"length", length},
    FilterEntry{"list", toList},
    FilterEntry{"map", map},
    FilterEntry{"max", extreme<true>},
    FilterEntry{"min", extreme<false>},
    FilterEntry{"reject", chosen<false, false>},
    FilterEntry{"rejectattr", chosen<true, false>},
    FilterEntry{"reverse", reversed},
    FilterEntry{"select", chosen<false, true>},
    FilterEntry{"selectattr", chosen<true, true>},
    FilterEntry{"slice", sliced},
    FilterEntry{"sort", sorted},
    FilterEntry{"sum", sum},
    FilterEntry{"unique", unique},
};

} // namespace

std::span<const FilterEntry> sequenceFilters() {
    return kFilters;
}

} // namespace kvscope::model::jinja
