// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/base/json_nesting.h"

namespace kvscope::cli {

/// The value of the text; discarded (`is_discarded`) when it is not valid JSON or nested too deep.
template <class Json> Json parseJson(const std::string& text) {
    return jsonNestsTooDeep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

/// Why a text is not the JSON object that is wanted: the end of a sentence that begins with what holds it.
inline std::string jsonFault(const std::string& text) {
    if (jsonNestsTooDeep(text))
        return "is nested too deep.";
    try {
        const auto other = nlohmann::json::parse(text);
        return std::string("is not a JSON object (its type is ") + other.type_name() + ").";
    } catch (const nlohmann::json::out_of_range&) {
        return "holds a number that is too large; give one that a computer's numbers can hold (up to about 1.8e308).";
    } catch (const nlohmann::json::exception&) {
        return "is not valid JSON.";
    }
}

/// A whole number as it stands in the text: no fraction, no boolean, nothing cut to fit. None: it is something else.
template <class Json> std::optional<std::int64_t> wholeNumber(const Json& value) {
    if (!value.is_number_integer())
        return std::nullopt;
    if (value.is_number_unsigned() && value.template get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
        return std::nullopt;
    return value.template get<std::int64_t>();
}

/// The same, from `low` to the largest 32-bit number.
template <class Json> std::optional<std::int32_t> smallNumber(const Json& value, std::int32_t low) {
    const auto number = wholeNumber(value);
    if (!number || *number < low || *number > std::numeric_limits<std::int32_t>::max())
        return std::nullopt;
    return static_cast<std::int32_t>(*number);
}

} // namespace kvscope::cli
