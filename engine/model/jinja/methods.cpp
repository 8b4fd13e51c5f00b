// SPDX-License-Identifier: GPL-3.0-or-later
// Methods of dicts, lists and loops, and the functions that every template may call.
#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <utility>

#include "engine/model/jinja/library.h"
#include "engine/model/jinja/runtime.h"
#include "engine/model/jinja/string_methods.h"

namespace kvscope::model::jinja {

namespace {

constexpr std::int64_t kMaxRange = 100'000; ///< as the sandbox of the original allows

[[noreturn]] void refuseChange(std::string_view name, const Value& subject) {
    throw Failure("access to attribute '" + std::string(name) + "' of '" + subject.typeName() +
                  "' object is unsafe: templates cannot change values");
}

Value pairs(Runtime& runtime, const DictData& dict) {
    std::vector<Value> items;
    for (const auto& [key, value] : dict.items)
        items.push_back(runtime.list({key, value}, true));
    return runtime.list(std::move(items));
}

Value column(Runtime& runtime, const DictData& dict, bool keys) {
    std::vector<Value> items;
    for (const auto& [key, value] : dict.items)
        items.push_back(keys ? key : value);
    return runtime.list(std::move(items));
}

/// Values never change, so that a copy is the value itself.
Value copyMethod(const Value& subject) {
    return Value::function(
        "copy", [subject](Runtime&, Arguments&) { return subject; }, subject.depth());
}

Value dictMethod(const Value& subject, std::string_view name) {
    using Call = Value (*)(Runtime&, const DictData&, Arguments&);
    if (name == "copy")
        return copyMethod(subject);
    Call call = nullptr;
    if (name == "items")
        call = [](Runtime& runtime, const DictData& dict, Arguments&) { return pairs(runtime, dict); };
    else if (name == "keys")
        call = [](Runtime& runtime, const DictData& dict, Arguments&) { return column(runtime, dict, true); };
    else if (name == "values")
        call = [](Runtime& runtime, const DictData& dict, Arguments&) { return column(runtime, dict, false); };
    else if (name == "get")
        call = [](Runtime& runtime, const DictData& dict, Arguments& arguments) {
            const auto bound = bind("get", arguments, {"key", "default"});
            const Value* found = bound[0] ? find(runtime, dict, *bound[0]) : nullptr;
            return found != nullptr ? *found : bound[1].value_or(Value::none());
        };
    if (call == nullptr)
        return {};
    return Value::function(
        std::string(name),
        [subject, call](Runtime& runtime, Arguments& arguments) { return call(runtime, *subject.asDict(), arguments); },
        subject.depth());
}

Value listMethod(const Value& subject, std::string_view name) {
    if (name == "copy" && !subject.asList()->tuple)
        return copyMethod(subject);
    if (name != "index" && name != "count")
        return {};
    const bool index = name == "index";
    return Value::function(
        std::string(name),
        [subject, index](Runtime& runtime, Arguments& arguments) {
            const auto bound = bind(index ? "index" : "count", arguments, {"value"});
            if (!bound[0])
                throw Failure("index and count need an argument");
            const std::vector<Value>& items = subject.asList()->items;
            runtime.step(static_cast<std::int64_t>(items.size()));
            const auto same = [&](const Value& item) { return equal(runtime, item, *bound[0]); };
            if (!index)
                return Value::integer(std::count_if(items.begin(), items.end(), same));
            const auto found = std::find_if(items.begin(), items.end(), same);
            if (found == items.end())
                throw Failure("the value is not in the list");
            return Value::integer(found - items.begin());
        },
        subject.depth());
}

Value loopMethod(const Value& subject, std::string_view name) {
    if (name == "cycle")
        return Value::function(
            "cycle",
            [subject](Runtime&, Arguments& arguments) {
                if (arguments.positional.empty())
                    throw Failure("no items for cycling given");
                return arguments.positional[subject.asLoop()->index0 % arguments.positional.size()];
            },
            subject.depth());
    if (name == "changed")
        return Value::function(
            "changed",
            [subject](Runtime& runtime, Arguments& arguments) {
                auto& last = subject.asLoop()->lastChanged;
                const std::vector<Value>& now = arguments.positional;
                const bool same = last && last->size() == now.size() &&
                                  std::equal(last->begin(), last->end(), now.begin(),
                                             [&](const Value& a, const Value& b) { return equal(runtime, a, b); });
                if (!same)
                    last = now;
                return Value::boolean(!same);
            },
            subject.depth());
    return {};
}

// ---- global functions ----

Value range(Runtime& runtime, Arguments& arguments) {
    const auto bound = bind("range", arguments, {"start", "stop", "step"});
    if (!bound[0])
        throw Failure("range needs an argument");
    std::int64_t begin = needInteger(*bound[0], "range");
    std::int64_t end = begin;
    if (bound[1])
        end = needInteger(*bound[1], "range");
    else
        begin = 0;
    const std::int64_t step = bound[2] ? needInteger(*bound[2], "range") : 1;
    if (step == 0)
        throw Failure("range() arg 3 must not be zero");
    std::vector<Value> items;
    for (std::int64_t at = begin; step > 0 ? at < end : at > end;) {
        if (static_cast<std::int64_t>(items.size()) == kMaxRange)
            throw Failure("Range too big: more than " + std::to_string(kMaxRange) + " numbers");
        items.push_back(Value::integer(at));
        if (__builtin_add_overflow(at, step, &at))
            break;
    }
    return runtime.list(std::move(items));
}

/// `dict(a=1)` and `namespace(a=1)`, both also over an existing dict.
std::vector<std::pair<Value, Value>> namedItems(Runtime& runtime, std::string_view callee, Arguments& arguments) {
    std::vector<std::pair<Value, Value>> items;
    if (arguments.positional.size() > 1 ||
        (arguments.positional.size() == 1 && arguments.positional[0].asDict() == nullptr))
        throw Failure(std::string(callee) + " takes names and at most one dict");
    if (!arguments.positional.empty())
        items = arguments.positional[0].asDict()->items;
    runtime.step(static_cast<std::int64_t>((items.size() + arguments.named.size()) * arguments.named.size() / 16));
    for (auto& [name, value] : arguments.named) {
        const auto same = std::find_if(items.begin(), items.end(), [&name = name](const auto& item) {
            return item.first.asString() != nullptr && item.first.asString()->bytes() == name;
        });
        if (same != items.end())
            same->second = std::move(value);
        else
            items.emplace_back(Value::string(name), std::move(value));
    }
    return items;
}

Value makeDict(Runtime& runtime, Arguments& arguments) {
    auto items = namedItems(runtime, "dict", arguments);
    runtime.charge(items.size() * sizeof(Value) * 2);
    return Value::dict(std::move(items));
}

Value makeNamespace(Runtime& runtime, Arguments& arguments) {
    std::vector<std::pair<std::string, Value>> items;
    for (auto& [key, value] : namedItems(runtime, "namespace", arguments))
        items.emplace_back(needString(key, "namespace").bytes(), std::move(value));
    runtime.charge(items.size() * sizeof(Value) * 2);
    return runtime.makeNamespace(std::move(items));
}

/// `cycler('a', 'b')`: an object whose next() goes round. `current` and the two methods are its fields.
Value makeCycler(Runtime& runtime, Arguments& arguments) {
    if (arguments.positional.empty() || !arguments.named.empty())
        throw Failure("at least one item has to be provided to cycler");
    const Value items = runtime.list(std::move(arguments.positional));
    const Value cycler = runtime.makeNamespace({});
    // The runtime owns all namespaces to the end of the rendering.
    NamespaceData* data = cycler.asNamespace();
    const auto at = std::make_shared<std::size_t>(0);
    const auto goTo = [data, at, items](std::size_t index) {
        *at = index % items.asList()->items.size();
        data->items[2].second = items.asList()->items[*at];
    };
    data->items = {{"next", Value::function(
                                "next",
                                [at, items, goTo](Runtime&, Arguments&) {
                                    const Value now = items.asList()->items[*at];
                                    goTo(*at + 1);
                                    return now;
                                },
                                items.depth())},
                   {"reset", Value::function(
                                 "reset",
                                 [goTo](Runtime&, Arguments&) {
                                     goTo(0);
                                     return Value::none();
                                 },
                                 items.depth())},
                   {"current", items.asList()->items.front()}};
    return cycler;
}

/// `joiner(', ')`: nothing at the first call, the separator at every other.
Value makeJoiner(Runtime& runtime, Arguments& arguments) {
    const auto bound = bind("joiner", arguments, {"sep"});
    const Value separator = runtime.text(bound[0] ? toText(*bound[0]) : Text(", "));
    const auto used = std::make_shared<bool>(false);
    return Value::function("joiner", [separator, used](Runtime&, Arguments&) {
        return std::exchange(*used, true) ? separator : Value::string("");
    });
}

Value raise(Runtime&, Arguments& arguments) {
    const auto bound = bind("raise_exception", arguments, {"message"});
    throw Raised(bound[0] ? toText(*bound[0]).bytes() : std::string());
}

Value formatTime(Runtime& runtime, Arguments& arguments) {
    const auto bound = bind("strftime_now", arguments, {"format"});
    if (!bound[0])
        throw Failure("strftime_now needs a format");
    const std::string& format = needString(*bound[0], "strftime_now").bytes();
    if (format.size() > 1000)
        throw Failure("the format of strftime_now is too long");
    std::string out(format.size() * 64 + 64, '\0');
    // The C locale, which nobody here changes: names of days and months are English.
    out.resize(format.empty() ? 0 : std::strftime(out.data(), out.size(), format.c_str(), &runtime.now()));
    return runtime.text(std::move(out));
}

} // namespace

Value findMethod(const Value& subject, std::string_view name) {
    constexpr std::array<std::string_view, 11> kChanging = {
        "append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "sort", "setdefault", "update"};
    const bool container = subject.asList() != nullptr || subject.asDict() != nullptr;
    const bool changing = std::find(kChanging.begin(), kChanging.end(), name) != kChanging.end();
    if (container && changing && !(subject.asDict() != nullptr && find(*subject.asDict(), name) != nullptr))
        refuseChange(name, subject);
    if (const Text* text = subject.asString()) {
        if (!isStringMethod(name))
            return {};
        return Value::function(std::string(name),
                               [subject, text, name = std::string(name)](Runtime& runtime, Arguments& arguments) {
                                   return callStringMethod(runtime, name, *text, arguments);
                               });
    }
    if (subject.asDict() != nullptr)
        return dictMethod(subject, name);
    if (subject.asList() != nullptr)
        return listMethod(subject, name);
    return subject.asLoop() != nullptr ? loopMethod(subject, name) : Value();
}

Value findGlobal(std::string_view name) {
    using Call = Value (*)(Runtime&, Arguments&);
    constexpr std::array<std::pair<std::string_view, Call>, 7> kGlobals = {{
        {"range", range},
        {"dict", makeDict},
        {"namespace", makeNamespace},
        {"cycler", makeCycler},
        {"joiner", makeJoiner},
        {"raise_exception", raise},
        {"strftime_now", formatTime},
    }};
    const auto found = std::find_if(kGlobals.begin(), kGlobals.end(), [&](const auto& e) { return e.first == name; });
    return found == kGlobals.end() ? Value() : Value::function(std::string(name), found->second);
}

} // namespace kvscope::model::jinja
