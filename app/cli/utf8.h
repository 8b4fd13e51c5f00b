// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace kvscope::cli {

/// `bytes` with every maximal invalid part replaced by U+FFFD, as browsers do (JSON must be valid UTF-8).
std::string replaceInvalidUtf8(std::string_view bytes);

/// Lower-case hexadecimal digits of the bytes.
std::string hex(std::string_view bytes);

} // namespace kvscope::cli
