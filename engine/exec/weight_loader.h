// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/exec/program_builder.h"
#include "engine/model/model_file.h"
#include "kernels/backend.h"

namespace kvscope::exec {

struct LoadedWeights {
    WeightTable table;
    model::Fingerprint fingerprint;
};

/// Streams every tensor of the file into the backend, which repacks it into its own memory. Afterwards the file is not
/// needed any more. Errors: those of ModelFile::stream, OutOfMemory, Cancelled.
Result<LoadedWeights> loadWeights(const model::ModelFile& file, kernels::Backend& backend,
                                  const model::LoadOptions& options);

} // namespace kvscope::exec
