// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

namespace kvscope::cli {

/// The text of resources/texts: English, Chinese, code. UTF-8.
std::string_view evaluationText();

} // namespace kvscope::cli
