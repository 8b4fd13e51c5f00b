// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include "engine/model/jinja/runtime.h"

namespace kvscope::model::jinja {

bool isStringMethod(std::string_view name);
/// `subject.name(arguments)` of Python's str. Failure for wrong arguments or an unknown name.
Value callStringMethod(Runtime& runtime, std::string_view name, const Text& subject, Arguments& arguments);

} // namespace kvscope::model::jinja
