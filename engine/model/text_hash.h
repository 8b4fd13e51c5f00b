// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string_view>

namespace kvscope::model {

/// Hash of texts that come from files: salted by a number of this process, so that nobody can write a file whose texts
/// all fall together. Says nothing that may be kept.
struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const;
};

} // namespace kvscope::model
