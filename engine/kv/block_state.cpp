// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/block_state.h"

namespace kvscope::kv {

const char* blockStateName(BlockState state) {
    static constexpr const char* kNames[kBlockStateCount] = {"empty",  "filling", "active",      "shared",
                                                             "cached", "pinned",  "in_transfer", "reserved"};
    return kNames[static_cast<std::size_t>(state)];
}

} // namespace kvscope::kv
