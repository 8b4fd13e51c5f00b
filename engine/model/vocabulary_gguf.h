// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/base/result.h"
#include "engine/model/gguf_metadata.h"
#include "engine/model/vocabulary.h"

namespace kvscope::model {

/// The `tokenizer.*` keys of a model file, with the defaults of its kind where a key is absent. A copy: independent of
/// the file afterwards. Fails (Corrupt) where a required key is missing or has the wrong type, naming it; the result
/// passed `validate`.
///
/// Where a byte-level file names no BOS or EOS, there is none here: the reference falls back to id 11, which is an
/// ordinary word in most vocabularies and would end answers at random.
Result<Vocabulary> vocabularyFromGguf(const GgufMetadata& metadata);

} // namespace kvscope::model
