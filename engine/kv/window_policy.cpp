// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/window_policy.h"

#include <algorithm>

namespace kvscope::kv {

std::optional<WindowPolicy> windowPolicyOf(std::string_view name) {
    const auto found = std::find(kWindowPolicyNames.begin(), kWindowPolicyNames.end(), name);
    if (found == kWindowPolicyNames.end())
        return std::nullopt;
    return static_cast<WindowPolicy>(found - kWindowPolicyNames.begin());
}

} // namespace kvscope::kv
