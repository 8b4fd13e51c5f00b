// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/model/jinja/text.h"

namespace kvscope::model::jinja {

class Runtime;
class Value;
struct Arguments;

/// Ends a rendering. Thrown inside the interpreter only; `ChatTemplate` turns it into an Error.
class Failure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;

    /// Line of the template at which it failed; 0 = not known yet.
    int line() const { return m_line; }
    /// The innermost place that can name a line is the one that counts.
    void locate(int line) { m_line = m_line == 0 ? line : m_line; }

private:
    int m_line = 0;
};

/// `work()`, which is what stands in this line of the template: its failures get the line.
template <class Work> auto inLine(int line, Work&& work) {
    try {
        return work();
    } catch (Failure& failure) {
        failure.locate(line);
        throw;
    } catch (const std::length_error&) {
        Failure failure("it makes a text of impossible length");
        failure.locate(line);
        throw failure;
    }
}

/// The template itself called raise_exception: the message is for the caller, word for word.
class Raised : public Failure {
public:
    using Failure::Failure;
};

/// Values inside values, at most. Everything that walks or destroys a value recurses, so this bounds the stack.
inline constexpr std::size_t kMaxNesting = 200;
/// Bytes of a text that a template makes at once, at most.
inline constexpr std::size_t kMaxTextBytes = std::size_t{8} << 20;

struct Undefined {
    std::shared_ptr<const std::string> words; ///< shared by all copies; null = none
    /// "'name' is undefined": the message if it is used after all.
    std::string what() const { return words ? *words : std::string("a value is undefined"); }
};
struct None {};

struct ListData {
    std::vector<Value> items;
    bool tuple = false;    ///< prints with round brackets
    std::size_t depth = 1; ///< levels of values inside values, see kMaxNesting
};

/// In order of insertion, as templates see the objects of JSON. Small: looked up one after the other.
struct DictData {
    std::vector<std::pair<Value, Value>> items;
    std::size_t depth = 1;
};

/// The one value that a template can change: `namespace()`.
struct NamespaceData {
    std::vector<std::pair<std::string, Value>> items;
};

struct Function {
    std::string name;
    std::function<Value(Runtime&, Arguments&)> call;
    std::size_t depth = 1; ///< of a method: one more than the value that it belongs to
};

/// The `loop` variable of one for-loop.
struct LoopData {
    std::shared_ptr<const ListData> items;
    std::size_t index0 = 0;
    std::size_t depth = 1;
    std::optional<std::vector<Value>> lastChanged; ///< argument values of the previous loop.changed()
    /// Of a recursive loop: what its body prints for these items, one level further down.
    std::function<Value(const Value& items)> again{};
};

/// A value of the template language, with the semantics of Python. Copies share what is large; strings, lists and dicts
/// never change.
class Value {
public:
    Value() : m_data(Undefined{}) {}
    static Value undefined(std::string what) {
        return Value(Data(Undefined{std::make_shared<const std::string>(std::move(what))}));
    }
    static Value none() { return Value(Data(None{})); }
    static Value boolean(bool value) { return Value(Data(value)); }
    static Value integer(std::int64_t value) { return Value(Data(value)); }
    static Value real(double value) { return Value(Data(value)); }
    static Value string(Text text) { return Value(Data(std::make_shared<const Text>(std::move(text)))); }
    // Failure where the nesting would be too deep.
    static Value list(std::vector<Value> items, bool tuple = false);
    static Value dict(std::vector<std::pair<Value, Value>> items);
    static Value space(std::shared_ptr<NamespaceData> data) { return Value(Data(std::move(data))); }
    /// `depth`: of the values that `call` holds.
    static Value function(std::string name, std::function<Value(Runtime&, Arguments&)> call, std::size_t depth = 0);
    static Value loop(std::shared_ptr<LoopData> data) { return Value(Data(std::move(data))); }

    bool isUndefined() const { return std::holds_alternative<Undefined>(m_data); }
    bool isNone() const { return std::holds_alternative<None>(m_data); }
    bool isBoolean() const { return std::holds_alternative<bool>(m_data); }
    bool isInteger() const { return std::holds_alternative<std::int64_t>(m_data); }
    bool isReal() const { return std::holds_alternative<double>(m_data); }
    bool isNumber() const { return isInteger() || isReal() || isBoolean(); }

    // Null where the value is of another kind.
    const bool* asBoolean() const { return std::get_if<bool>(&m_data); }
    const std::int64_t* asInteger() const { return std::get_if<std::int64_t>(&m_data); }
    const double* asReal() const { return std::get_if<double>(&m_data); }
    const Undefined* asUndefined() const { return std::get_if<Undefined>(&m_data); }
    const Text* asString() const { return pointer<const Text>(); }
    const ListData* asList() const { return pointer<const ListData>(); }
    const DictData* asDict() const { return pointer<const DictData>(); }
    NamespaceData* asNamespace() const { return pointer<NamespaceData>(); }
    const Function* asFunction() const { return pointer<const Function>(); }
    LoopData* asLoop() const { return pointer<LoopData>(); }
    std::shared_ptr<const ListData> sharedList() const;
    /// Levels of values inside values; 0 for what holds none. A namespace counts as one that holds none: the runtime
    /// owns all of them and takes them apart one by one.
    std::size_t depth() const;

    /// Integers and booleans as a number of the language; nothing for other kinds.
    std::optional<std::int64_t> wholeNumber() const;
    /// Any number.
    std::optional<double> number() const;
    bool truthy() const;
    /// As Python names it in its errors: 'str', 'NoneType', ...
    const char* typeName() const;

private:
    using Data =
        std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>,
                     std::shared_ptr<const ListData>, std::shared_ptr<const DictData>, std::shared_ptr<NamespaceData>,
                     std::shared_ptr<const Function>, std::shared_ptr<LoopData>>;
    explicit Value(Data data) : m_data(std::move(data)) {}
    template <class T> T* pointer() const {
        const auto* shared = std::get_if<std::shared_ptr<T>>(&m_data);
        return shared == nullptr ? nullptr : shared->get();
    }

    Data m_data;
};

struct Arguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
};

/// Equality of the language: numbers by value across kinds, strings by bytes, lists and dicts by content. The work
/// counts as steps: values may share parts, so a small template can build one that is exponentially large when walked.
bool equal(Runtime& runtime, const Value& a, const Value& b);
/// -1, 0, 1; Failure where the two cannot be ordered.
int compare(Runtime& runtime, const Value& a, const Value& b);
/// Value of a key; nullptr if there is none.
const Value* find(Runtime& runtime, const DictData& dict, const Value& key);
const Value* find(const DictData& dict, std::string_view key);

/// As `{{ value }}` prints it: str() of Python.
Text toText(const Value& value);
/// As it stands inside a printed list: repr() of Python.
Text toRepr(const Value& value);
/// A floating-point number as Python prints it: shortest form that reads back the same.
std::string realToString(double value);

struct JsonStyle {
    bool ensureAscii = false;
    std::optional<std::int64_t> indent; ///< none = one line
    std::string itemSeparator = ", ";   ///< "," where there is an indent and nothing else is said
    std::string keySeparator = ": ";
    bool sortKeys = false;
};
/// json.dumps of Python; Failure for values that JSON does not have.
Text toJson(const Value& value, const JsonStyle& style);

} // namespace kvscope::model::jinja
