// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include "engine/model/jinja/ast.h"
#include "engine/model/jinja/lexer.h"

namespace kvscope::model::jinja {

/// Template to statements. Throws SyntaxFailure for anything that is wrong or not supported (statements, filters and
/// tests of unknown name included), so that a template that loads fails later only for what it is given.
Statements parseTemplate(std::string_view source);

} // namespace kvscope::model::jinja
