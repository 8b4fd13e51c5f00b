// SPDX-License-Identifier: GPL-3.0-or-later
// `value is name(arguments)`
#include <algorithm>
#include <array>

#include "engine/model/jinja/characters.h"
#include "engine/model/jinja/library.h"
#include "engine/model/jinja/runtime.h"
#include "engine/model/unicode.h"

namespace kvscope::model::jinja {

namespace {

struct Entry {
    std::string_view name;
    TestFunction test;
};

const Value& theArgument(std::string_view name, const Arguments& arguments) {
    if (arguments.positional.size() != 1 || !arguments.named.empty())
        throw Failure("the test '" + std::string(name) + "' takes one argument");
    return arguments.positional.front();
}

template <class Check>
bool ordered(Runtime& runtime, const Value& value, const Arguments& arguments, std::string_view name, Check check) {
    return check(compare(runtime, value, theArgument(name, arguments)));
}

bool isEqual(Runtime& runtime, const Value& value, Arguments& arguments) {
    return equal(runtime, value, theArgument("eq", arguments));
}
bool isNotEqual(Runtime& runtime, const Value& value, Arguments& arguments) {
    return !equal(runtime, value, theArgument("ne", arguments));
}
bool isLess(Runtime& runtime, const Value& value, Arguments& arguments) {
    return ordered(runtime, value, arguments, "lt", [](int order) { return order < 0; });
}
bool isAtMost(Runtime& runtime, const Value& value, Arguments& arguments) {
    return ordered(runtime, value, arguments, "le", [](int order) { return order <= 0; });
}
bool isGreater(Runtime& runtime, const Value& value, Arguments& arguments) {
    return ordered(runtime, value, arguments, "gt", [](int order) { return order > 0; });
}
bool isAtLeast(Runtime& runtime, const Value& value, Arguments& arguments) {
    return ordered(runtime, value, arguments, "ge", [](int order) { return order >= 0; });
}

bool isIterable(const Value& value) {
    return value.asString() != nullptr || value.asList() != nullptr || value.asDict() != nullptr || value.isUndefined();
}

std::int64_t remainder(const Value& value, std::int64_t divisor) {
    if (divisor == 0)
        throw Failure("integer modulo by zero");
    return divisor == -1 ? 0 : needInteger(value, "a test of divisibility") % divisor;
}

/// Is the text changed by neither capital nor small letters of the other kind, and has it letters at all?
bool allCased(Runtime& runtime, const Value& value, std::string (*change)(std::string_view)) {
    const std::string text = toText(value).bytes();
    runtime.read(text.size());
    bool cased = false;
    for (std::size_t at = 0; at < text.size();) {
        const DecodedChar c = decodeUtf8(text, at);
        cased = cased || isCased(c.codePoint);
        at += c.length;
    }
    return cased && change(text) == text;
}

constexpr std::array kTests = {
    Entry{"boolean", [](Runtime&, const Value& v, Arguments&) { return v.isBoolean(); }},
    Entry{"callable", [](Runtime&, const Value& v, Arguments&) { return v.asFunction() != nullptr; }},
    Entry{"defined", [](Runtime&, const Value& v, Arguments&) { return !v.isUndefined(); }},
    Entry{"divisibleby",
          [](Runtime&, const Value& v, Arguments& a) {
              return remainder(v, needInteger(theArgument("divisibleby", a), "divisibleby")) == 0;
          }},
    Entry{"eq", isEqual},
    Entry{"equalto", isEqual},
    Entry{"==", isEqual},
    Entry{"even", [](Runtime&, const Value& v, Arguments&) { return remainder(v, 2) == 0; }},
    Entry{"false", [](Runtime&, const Value& v, Arguments&) { return v.isBoolean() && !v.truthy(); }},
    Entry{"float", [](Runtime&, const Value& v, Arguments&) { return v.isReal(); }},
    Entry{"ge", isAtLeast},
    Entry{">=", isAtLeast},
    Entry{"greaterthan", isGreater},
    Entry{"gt", isGreater},
    Entry{">", isGreater},
    Entry{"in", [](Runtime& r, const Value& v, Arguments& a) { return contains(r, theArgument("in", a), v); }},
    Entry{"integer", [](Runtime&, const Value& v, Arguments&) { return v.isInteger(); }},
    Entry{"iterable", [](Runtime&, const Value& v, Arguments&) { return isIterable(v); }},
    Entry{"le", isAtMost},
    Entry{"<=", isAtMost},
    Entry{"lessthan", isLess},
    Entry{"lt", isLess},
    Entry{"<", isLess},
    Entry{"lower", [](Runtime& runtime, const Value& v, Arguments&) { return allCased(runtime, v, lowerCase); }},
    Entry{"mapping", [](Runtime&, const Value& v, Arguments&) { return v.asDict() != nullptr; }},
    Entry{"ne", isNotEqual},
    Entry{"!=", isNotEqual},
    Entry{"none", [](Runtime&, const Value& v, Arguments&) { return v.isNone(); }},
    Entry{"number", [](Runtime&, const Value& v, Arguments&) { return v.isNumber(); }},
    Entry{"odd", [](Runtime&, const Value& v, Arguments&) { return remainder(v, 2) != 0; }},
    Entry{"sameas",
          [](Runtime& runtime, const Value& v, Arguments& a) {
              const Value& other = theArgument("sameas", a);
              return std::string_view(v.typeName()) == other.typeName() && equal(runtime, v, other);
          }},
    Entry{"sequence", [](Runtime&, const Value& v, Arguments&) { return isIterable(v); }},
    Entry{"string", [](Runtime&, const Value& v, Arguments&) { return v.asString() != nullptr; }},
    Entry{"true", [](Runtime&, const Value& v, Arguments&) { return v.isBoolean() && v.truthy(); }},
    Entry{"undefined", [](Runtime&, const Value& v, Arguments&) { return v.isUndefined(); }},
    Entry{"upper", [](Runtime& runtime, const Value& v, Arguments&) { return allCased(runtime, v, upperCase); }},
};

} // namespace

TestFunction findTest(std::string_view name) {
    const auto found = std::find_if(kTests.begin(), kTests.end(), [&](const Entry& e) { return e.name == name; });
    return found == kTests.end() ? nullptr : found->test;
}

} // namespace kvscope::model::jinja
