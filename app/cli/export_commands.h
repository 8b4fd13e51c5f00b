// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/command.h"

namespace kvscope::cli {

/// `export log`: a recorded session as JSON lines, CSV or `.kvscope`.
Verb addExport(CLI::App& app);

} // namespace kvscope::cli
