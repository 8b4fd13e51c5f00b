// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace kvscope::model {

/// What to do about a file that ends `missingBytes` early. Large models are published as raw pieces (`split`) whose
/// first piece looks like a whole file: when files beside it have just the missing size (up to `slack` bytes of padding
/// more), they are named.
std::string missingPieceAdvice(const std::string& path, std::uint64_t missingBytes, std::uint64_t slack);

} // namespace kvscope::model
