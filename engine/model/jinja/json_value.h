// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "engine/model/jinja/value.h"

namespace kvscope::model::jinja {

/// JSON as a value of the language, order of keys kept. With `marked`, all strings are marked as coming from outside
/// (source -1). Throws Failure where it is nested too deeply.
Value valueFromJson(const nlohmann::ordered_json& json, bool marked);
/// The same, all strings marked with `source`.
Value markedFromJson(const nlohmann::ordered_json& json, std::int32_t source);

} // namespace kvscope::model::jinja
