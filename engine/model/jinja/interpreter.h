// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/jinja/ast.h"
#include "engine/model/jinja/runtime.h"

namespace kvscope::model::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

/// What one round of a loop over dicts printed: which dict, and where. Tells which part of a rendering belongs to which
/// message. (Only of what went straight to the output.)
struct ItemSpan {
    const DictData* item = nullptr; ///< alive as long as the values given to the rendering
    std::size_t begin = 0;
    std::size_t end = 0;
};

struct Output {
    Text text;
    std::vector<ItemSpan> items; ///< in order of `begin`; rounds that printed nothing are left out
};

/// Runs a template once. Has no effect outside: no files, no environment, no clock but the given one. Throws Failure.
Output interpret(const Statements& statements, const Variables& variables, const std::tm& now, const Limits& limits);

} // namespace kvscope::model::jinja
