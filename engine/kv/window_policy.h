// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvscope::kv {

/// What happens when a sequence outgrows its window.
enum class WindowPolicy : std::uint8_t {
    Stop,  ///< the answer ends there; a prompt that does not fit is refused
    Trim,  ///< before a chat is sent, its oldest turns are left out; everything else as Stop
    Sinks, ///< first and last tokens stay, the blocks between them are given back; runs to the model's context
};
inline constexpr std::array<const char*, 3> kWindowPolicyNames{"stop", "trim", "sinks"};
inline const char* windowPolicyName(WindowPolicy policy) {
    return kWindowPolicyNames[static_cast<std::size_t>(policy)];
}
std::optional<WindowPolicy> windowPolicyOf(std::string_view name);

} // namespace kvscope::kv
