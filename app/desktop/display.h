// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

namespace kvscope::desktop {

/// Why no window can be shown, as a sentence that says what to do; none = try. Qt ends the program when its display
/// does not answer, so this looks first. A platform chosen by QT_QPA_PLATFORM is the user's business.
std::optional<std::string> displayProblem();

} // namespace kvscope::desktop
