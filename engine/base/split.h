// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// The parts between separators: "a,,b" has three, "" has one, which is empty.
std::vector<std::string> split(std::string_view text, char separator);

} // namespace kvscope
