// SPDX-License-Identifier: GPL-3.0-or-later
// + - * / // % ** with the semantics of Python, and its "%s" formatting.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/model/jinja/runtime.h"

namespace kvscope::model::jinja {

namespace {

[[noreturn]] void unsupported(std::string_view op, const Value& left, const Value& right) {
    for (const Value* value : {&left, &right})
        if (const Undefined* undefined = value->asUndefined())
            throw Failure(undefined->what());
    throw Failure("unsupported operand type(s) for " + std::string(op) + ": '" + left.typeName() + "' and '" +
                  right.typeName() + "'");
}

[[noreturn]] void tooLarge() {
    throw Failure("a number is too large");
}

std::int64_t checkedProduct(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result))
        tooLarge();
    return result;
}

Value integerPower(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) {
        if (base == 0)
            throw Failure("0 cannot be raised to a negative power");
        return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
    std::int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) != 0)
            result = checkedProduct(result, base);
        exponent >>= 1;
        if (exponent > 0)
            base = checkedProduct(base, base);
    }
    return Value::integer(result);
}

/// Quotient rounded down, as // does.
std::int64_t floorQuotient(std::int64_t a, std::int64_t b) {
    if (a == std::numeric_limits<std::int64_t>::min() && b == -1)
        tooLarge();
    const std::int64_t quotient = a / b;
    return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

Value integerArithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (op == "+" ? __builtin_add_overflow(a, b, &result)
                  : (op == "-" ? __builtin_sub_overflow(a, b, &result)
                               : (op == "*" && __builtin_mul_overflow(a, b, &result))))
        tooLarge();
    if (op == "+" || op == "-" || op == "*")
        return Value::integer(result);
    if (op == "**")
        return integerPower(a, b);
    if (b == 0)
        throw Failure("division by zero");
    if (op == "/")
        return Value::real(static_cast<double>(a) / static_cast<double>(b));
    const std::int64_t quotient = floorQuotient(a, b);
    return Value::integer(op == "//" ? quotient : a - quotient * b);
}

Value realArithmetic(std::string_view op, double a, double b) {
    if (op == "+")
        return Value::real(a + b);
    if (op == "-")
        return Value::real(a - b);
    if (op == "*")
        return Value::real(a * b);
    if (op == "**")
        return Value::real(std::pow(a, b));
    if (b == 0)
        throw Failure("float division by zero");
    if (op == "/")
        return Value::real(a / b);
    if (op == "//")
        return Value::real(std::floor(a / b));
    const double rest = std::fmod(a, b);
    return Value::real(rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest);
}

Value repeated(Runtime& runtime, const Value& what, std::int64_t times) {
    times = std::max<std::int64_t>(times, 0);
    if (const Text* text = what.asString()) {
        // Charged before it is made: the result may be huge.
        const auto bytes = static_cast<std::size_t>(checkedProduct(static_cast<std::int64_t>(text->size()), times));
        if (bytes > kMaxTextBytes)
            throw Failure("it makes a text of more than " + std::to_string(kMaxTextBytes >> 20) + " MiB");
        runtime.charge(bytes);
        Text out;
        for (std::int64_t i = 0; i < times && !text->empty(); ++i)
            out.append(*text);
        return Value::string(std::move(out));
    }
    const ListData& list = *what.asList();
    const auto size = static_cast<std::int64_t>(list.items.size());
    runtime.charge(static_cast<std::size_t>(
        checkedProduct(checkedProduct(size, times), static_cast<std::int64_t>(sizeof(Value)))));
    std::vector<Value> items;
    for (std::int64_t i = 0; i < times && size > 0; ++i)
        items.insert(items.end(), list.items.begin(), list.items.end());
    return runtime.list(std::move(items), list.tuple);
}

bool isSequence(const Value& value) {
    return value.asString() != nullptr || value.asList() != nullptr;
}

Value joined(Runtime& runtime, const Value& left, const Value& right) {
    if (left.asString() != nullptr && right.asString() != nullptr) {
        Text out = *left.asString();
        out.append(*right.asString());
        return runtime.text(std::move(out));
    }
    const ListData* a = left.asList();
    const ListData* b = right.asList();
    if (a == nullptr || b == nullptr || a->tuple != b->tuple)
        unsupported("+", left, right);
    std::vector<Value> items = a->items;
    items.insert(items.end(), b->items.begin(), b->items.end());
    return runtime.list(std::move(items), a->tuple);
}

} // namespace

std::int64_t truncated(const Value& number) {
    if (const auto whole = number.wholeNumber())
        return *whole;
    const double real = number.number().value_or(0);
    if (!(std::fabs(real) < 9.2e18)) // NaN too
        throw Failure("a number is too large to be an integer");
    return static_cast<std::int64_t>(real);
}

Value arithmetic(Runtime& runtime, std::string_view op, const Value& left, const Value& right) {
    if (left.isNumber() && right.isNumber()) {
        const auto a = left.wholeNumber();
        const auto b = right.wholeNumber();
        return a && b ? integerArithmetic(op, *a, *b) : realArithmetic(op, *left.number(), *right.number());
    }
    if (op == "+" && isSequence(left))
        return joined(runtime, left, right);
    if (op == "*" && isSequence(left) && right.wholeNumber())
        return repeated(runtime, left, *right.wholeNumber());
    if (op == "*" && isSequence(right) && left.wholeNumber())
        return repeated(runtime, right, *left.wholeNumber());
    if (op == "%" && left.asString() != nullptr) {
        const ListData* tuple = right.asList();
        return formatPercent(runtime, *left.asString(),
                             tuple != nullptr && tuple->tuple ? tuple->items : std::vector<Value>{right});
    }
    unsupported(op, left, right);
}

Value formatPercent(Runtime& runtime, const Text& format, const std::vector<Value>& values) {
    const std::string& bytes = format.bytes();
    Text out;
    std::size_t used = 0;
    std::size_t done = 0;
    for (std::size_t at = 0; (at = bytes.find('%', at)) != std::string::npos; at += 2, done = at) {
        out.append(format.substr(done, at - done));
        const char kind = at + 1 < bytes.size() ? bytes[at + 1] : '\0';
        if (kind == '%') {
            out.append("%");
            continue;
        }
        if (kind != 's' && kind != 'd' && kind != 'r' && kind != 'f')
            throw Failure("only %s, %d, %r, %f and %% are supported in formats");
        if (used == values.size())
            throw Failure("not enough arguments for format string");
        const Value& value = values[used++];
        if (kind == 's')
            out.append(toText(value));
        else if (kind == 'r')
            out.append(toRepr(value));
        else if (!value.isNumber())
            throw Failure(std::string("%") + kind + " needs a number, not '" + value.typeName() + "'");
        else if (kind == 'f')
            out.append(std::to_string(*value.number()));
        else
            out.append(std::to_string(truncated(value)));
        runtime.charge(out.size() / 16);
    }
    if (used < values.size())
        throw Failure("not all arguments converted during string formatting");
    out.append(format.substr(done));
    return runtime.text(std::move(out));
}

} // namespace kvscope::model::jinja
