// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string_view>

#include "engine/model/jinja/library.h"

namespace kvscope::model::jinja {

struct FilterEntry {
    std::string_view name;
    FilterFunction filter;
};

/// Filters that make a string or a number of one value.
std::span<const FilterEntry> scalarFilters();
/// Filters that lay text out or escape it.
std::span<const FilterEntry> textFilters();
/// Filters over sequences and dicts.
std::span<const FilterEntry> sequenceFilters();

} // namespace kvscope::model::jinja
