// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include "engine/model/jinja/ast.h"

namespace kvscope::model::jinja {

/// What templates call by name. Growing the language is adding a row to one of these tables.
/// nullptr / undefined where there is no such name.
FilterFunction findFilter(std::string_view name);
TestFunction findTest(std::string_view name);

/// `subject.name` where it is a method of strings, dicts, lists or loops; undefined if it is none. Failure for methods
/// that would change the subject.
Value findMethod(const Value& subject, std::string_view name);

/// range, dict, namespace, cycler, joiner, raise_exception, strftime_now; undefined if it is none of them.
Value findGlobal(std::string_view name);

} // namespace kvscope::model::jinja
