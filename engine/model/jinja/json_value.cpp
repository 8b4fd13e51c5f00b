// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/json_value.h"

#include <optional>

namespace kvscope::model::jinja {

namespace {

using Json = nlohmann::ordered_json;

Value convert(const Json& json, std::optional<std::int32_t> source, std::size_t depth) {
    if (depth > kMaxNesting)
        throw Failure("the JSON is nested too deeply (more than " + std::to_string(kMaxNesting) + " levels)");
    const auto string = [&](const std::string& bytes) {
        return Value::string(source ? Text::fromOutside(bytes, *source) : Text(bytes));
    };
    switch (json.type()) {
    case Json::value_t::boolean:
        return Value::boolean(json.get<bool>());
    case Json::value_t::number_unsigned:
        if (json.get<std::uint64_t>() > INT64_MAX)
            return Value::real(json.get<double>());
        [[fallthrough]];
    case Json::value_t::number_integer:
        return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_float:
        return Value::real(json.get<double>());
    case Json::value_t::string:
        return string(json.get_ref<const std::string&>());
    case Json::value_t::array: {
        std::vector<Value> items;
        for (const Json& item : json)
            items.push_back(convert(item, source, depth + 1));
        return Value::list(std::move(items));
    }
    case Json::value_t::object: {
        std::vector<std::pair<Value, Value>> items;
        for (const auto& [key, value] : json.items())
            items.emplace_back(string(key), convert(value, source, depth + 1));
        return Value::dict(std::move(items));
    }
    default:
        return Value::none();
    }
}

} // namespace

Value valueFromJson(const nlohmann::ordered_json& json, bool marked) {
    return convert(json, marked ? std::optional<std::int32_t>(-1) : std::nullopt, 0);
}

Value markedFromJson(const nlohmann::ordered_json& json, std::int32_t source) {
    return convert(json, source, 0);
}

} // namespace kvscope::model::jinja
