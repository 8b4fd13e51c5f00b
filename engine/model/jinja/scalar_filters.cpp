// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/model/jinja/characters.h"
#include "engine/model/jinja/filters.h"
#include "engine/model/jinja/runtime.h"
#include "engine/model/jinja/string_methods.h"

namespace kvscope::model::jinja {

namespace {

Value absolute(Runtime&, const Value& value, Arguments&) {
    if (const auto whole = value.wholeNumber()) {
        if (*whole == std::numeric_limits<std::int64_t>::min())
            throw Failure("a number is too large");
        return Value::integer(std::abs(*whole));
    }
    if (const double* real = value.asReal())
        return Value::real(std::fabs(*real));
    throw Failure(std::string("bad operand type for abs(): '") + value.typeName() + "'");
}

Value defaulted(Runtime&, const Value& value, Arguments& arguments) {
    const auto bound = bind("default", arguments, {"default_value", "boolean"});
    const bool alsoFalse = bound[1] && bound[1]->truthy();
    if (value.isUndefined() || (alsoFalse && !value.truthy()))
        return bound[0].value_or(Value::string(""));
    return value;
}

std::string_view trimmedNumber(const Value& value) {
    std::string_view text = value.asString()->bytes();
    while (!text.empty() && isWhitespace(static_cast<unsigned char>(text.front())))
        text.remove_prefix(1);
    while (!text.empty() && isWhitespace(static_cast<unsigned char>(text.back())))
        text.remove_suffix(1);
    if (text.size() > 1 && text.front() == '+')
        text.remove_prefix(1);
    return text;
}

std::optional<double> parsedReal(const Value& value) {
    if (value.asString() == nullptr)
        return value.number();
    const std::string_view text = trimmedNumber(value);
    double real = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return real;
}

Value toInteger(Runtime&, const Value& value, Arguments& arguments) {
    const auto bound = bind("int", arguments, {"default", "base"});
    if (value.asString() != nullptr) {
        const std::string_view text = trimmedNumber(value);
        const int base =
            bound[1] ? static_cast<int>(std::clamp<std::int64_t>(needInteger(*bound[1], "int"), 2, 36)) : 10;
        std::int64_t whole = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole, base);
        if (error == std::errc() && end == text.data() + text.size())
            return Value::integer(whole);
    }
    const auto real = parsedReal(value);
    if (!real || !(std::fabs(*real) < 9.2e18))
        return bound[0].value_or(Value::integer(0));
    return value.wholeNumber() ? Value::integer(*value.wholeNumber())
                               : Value::integer(static_cast<std::int64_t>(*real));
}

Value toReal(Runtime&, const Value& value, Arguments& arguments) {
    const auto bound = bind("float", arguments, {"default"});
    const auto real = parsedReal(value);
    return real ? Value::real(*real) : bound[0].value_or(Value::real(0));
}

Value rounded(Runtime&, const Value& value, Arguments& arguments) {
    const auto bound = bind("round", arguments, {"precision", "method"});
    if (!value.isNumber())
        throw Failure(std::string("round needs a number, not '") + value.typeName() + "'");
    const std::int64_t digits = bound[0] ? std::clamp<std::int64_t>(needInteger(*bound[0], "round"), -300, 300) : 0;
    const std::string method = bound[1] ? needString(*bound[1], "round").bytes() : "common";
    const double scale = std::pow(10.0, static_cast<double>(digits));
    const double scaled = *value.number() * scale;
    if (method == "ceil")
        return Value::real(std::ceil(scaled) / scale);
    if (method == "floor")
        return Value::real(std::floor(scaled) / scale);
    if (method != "common")
        throw Failure("round knows the methods common, ceil and floor");
    return Value::real(std::nearbyint(scaled) / scale); // halves to even, as Python rounds
}

Value toString(Runtime& runtime, const Value& value, Arguments&) {
    return runtime.text(toText(value));
}

/// json.dumps as chat programs offer it: nothing is escaped for HTML.
Value json(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
    JsonStyle style;
    style.ensureAscii = bound[0] && bound[0]->truthy();
    if (bound[1] && !bound[1]->isNone()) {
        constexpr std::int64_t kMostIndent = 1000; // blanks per level
        style.indent = needInteger(*bound[1], "indent");
        if (*style.indent > kMostIndent)
            throw Failure("the indent of tojson is more than " + std::to_string(kMostIndent));
        style.itemSeparator.assign(1, ',');
    }
    if (bound[2] && !bound[2]->isNone()) {
        const ListData* pair = bound[2]->asList();
        if (pair == nullptr || pair->items.size() != 2)
            throw Failure("separators of tojson are two strings");
        style.itemSeparator = needString(pair->items[0], "separators").bytes();
        style.keySeparator = needString(pair->items[1], "separators").bytes();
    }
    style.sortKeys = bound[3] && bound[3]->truthy();
    if (value.isUndefined())
        throw Failure(value.asUndefined()->what());
    return runtime.text(toJson(value, style));
}

Value indented(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("indent", arguments, {"width", "first", "blank"});
    std::string prefix(4, ' ');
    if (bound[0] && bound[0]->asString() != nullptr)
        prefix = bound[0]->asString()->bytes();
    else if (bound[0])
        prefix.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(needInteger(*bound[0], "indent"), 0, 1000)),
                      ' ');
    const bool first = bound[1] && bound[1]->truthy();
    const bool blank = bound[2] && bound[2]->truthy();
    const Text text = toText(value);
    const std::string& bytes = text.bytes();
    Text out;
    for (std::size_t begin = 0; begin <= bytes.size();) {
        const std::size_t newline = bytes.find('\n', begin);
        const std::size_t end = newline == std::string::npos ? bytes.size() : newline;
        const bool wanted = begin == 0 ? first : (blank || end > begin);
        if (wanted)
            out.append(prefix);
        out.append(text.substr(begin, end + 1 - begin));
        runtime.charge(prefix.size());
        begin = end + 1;
    }
    return runtime.text(std::move(out));
}

Value formatted(Runtime& runtime, const Value& value, Arguments& arguments) {
    if (!arguments.named.empty())
        throw Failure("format with names is not supported");
    return formatPercent(runtime, needString(value, "format"), arguments.positional);
}

/// A filter that is a string method of the same name, on what the value prints as.
template <const char* kName> Value viaMethod(Runtime& runtime, const Value& value, Arguments& arguments) {
    return callStringMethod(runtime, kName, toText(value), arguments);
}
constexpr char kUpper[] = "upper";
constexpr char kLower[] = "lower";
constexpr char kTitle[] = "title";
constexpr char kCapitalize[] = "capitalize";
constexpr char kStrip[] = "strip";
constexpr char kReplace[] = "replace";

Value unchanged(Runtime& runtime, const Value& value, Arguments&) {
    return runtime.text(toText(value));
}

constexpr std::array kFilters = {
    FilterEntry{"abs", absolute},
    FilterEntry{"capitalize", viaMethod<kCapitalize>},
    FilterEntry{"d", defaulted},
    FilterEntry{"default", defaulted},
    FilterEntry{"float", toReal},
    FilterEntry{"format", formatted},
    FilterEntry{"indent", indented},
    FilterEntry{"int", toInteger},
    FilterEntry{"lower", viaMethod<kLower>},
    FilterEntry{"replace", viaMethod<kReplace>},
    FilterEntry{"round", rounded},
    FilterEntry{"safe", unchanged},
    FilterEntry{"string", toString},
    FilterEntry{"title", viaMethod<kTitle>},
    FilterEntry{"tojson", json},
    FilterEntry{"trim", viaMethod<kStrip>},
    FilterEntry{"upper", viaMethod<kUpper>},
};

} // namespace

std::span<const FilterEntry> scalarFilters() {
    return kFilters;
}

FilterFunction findFilter(std::string_view name) {
    for (const auto filters : {scalarFilters(), textFilters(), sequenceFilters()}) {
        const auto found =
            std::find_if(filters.begin(), filters.end(), [&](const FilterEntry& e) { return e.name == name; });
        if (found != filters.end())
            return found->filter;
    }
    return nullptr;
}

} // namespace kvscope::model::jinja
