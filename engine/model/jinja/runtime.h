// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/model/jinja/value.h"

namespace kvscope::model::jinja {

/// Bytes that are looked at in about the time of one step.
inline constexpr std::size_t kBytesPerStep = 64;

/// What one rendering may use at most. A template that goes beyond ends with an error, whatever it contains.
struct Limits {
    std::int64_t steps = 2'000'000; ///< evaluated nodes, loop rounds and items looked at
    std::int64_t bytes = 256 << 20; ///< text and list items made, all together (not only what is alive)
    int depth = 300;                ///< expressions and statements inside one another, macros included
};

/// What filters, tests, methods and functions need of the rendering that calls them.
class Runtime {
public:
    Runtime(const Limits& limits, const std::tm& now) : m_limits(limits), m_now(now) {}
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;
    ~Runtime();

    /// Account for work done; Failure at the limit.
    void step(std::int64_t count = 1);
    /// Account for reading so many bytes.
    void read(std::size_t bytes) { step(static_cast<std::int64_t>(bytes / kBytesPerStep)); }
    /// Account for memory that a new value takes.
    void charge(std::size_t bytes);
    /// A string value, accounted for.
    Value text(Text text);
    Value list(std::vector<Value> items, bool tuple = false);
    Value makeNamespace(std::vector<std::pair<std::string, Value>> items);

    const std::tm& now() const { return m_now; }

    /// Levels of recursion; one object per level.
    class Level {
    public:
        explicit Level(Runtime& runtime);
        ~Level() { --m_runtime.m_depth; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

    private:
        Runtime& m_runtime;
    };

private:
    Limits m_limits;
    std::tm m_now;
    std::int64_t m_steps = 0;
    std::int64_t m_bytes = 0;
    int m_depth = 0;
    /// All of them, taken apart at the end: namespaces can hold each other in circles and long chains.
    std::vector<std::shared_ptr<NamespaceData>> m_namespaces;
};

/// Arguments by position or name into the order of `names`; Failure naming `callee` for one too many or of another
/// name.
std::vector<std::optional<Value>> bind(std::string_view callee, Arguments& arguments,
                                       std::initializer_list<std::string_view> names);

/// Items that a loop over the value sees; Failure if it cannot be looped over. Undefined has none.
std::vector<Value> iterate(Runtime& runtime, const Value& value);
/// Characters, items or keys; Failure for kinds without a length.
std::size_t lengthOf(Runtime& runtime, const Value& value);
/// `subject.name`: methods first, then keys of dicts, as Jinja looks attributes up.
Value attributeOf(Runtime& runtime, const Value& subject, std::string_view name);
/// `subject[key]`.
Value itemOf(Runtime& runtime, const Value& subject, const Value& key);
/// `subject[from:to:step]`; undefined bounds are open.
Value sliceOf(Runtime& runtime, const Value& subject, const Value& from, const Value& to, const Value& step);
/// Is `item` in `container`?
bool contains(Runtime& runtime, const Value& container, const Value& item);
/// + - * / // % **
Value arithmetic(Runtime& runtime, std::string_view op, const Value& left, const Value& right);
/// int() of a number; Failure where it does not fit.
std::int64_t truncated(const Value& number);
/// "%s"-formatting of `left % right` and of the filter `format`.
Value formatPercent(Runtime& runtime, const Text& format, const std::vector<Value>& values);

/// The value as a string; Failure naming `who` if it is none.
const Text& needString(const Value& value, std::string_view who);
std::int64_t needInteger(const Value& value, std::string_view who);

} // namespace kvscope::model::jinja
