// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which of a chat's oldest turns are left out when it has outgrown the window (kv::WindowPolicy::Trim).
//
// The cut is a pure function of the dialog: it is what cutting at each earlier request of the same dialog would have
// led to. So nothing is kept between requests, a chat that was closed is cut as before, and a cut stays where it is
// until the window is full again: meanwhile every turn finds the blocks of the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvscope::api {

/// Tokens that a chat may have.
struct WindowRoom {
    std::int64_t limit = 0;  ///< of a sequence, the answer included
    std::int64_t answer = 0; ///< of these, kept free for the answer
    /// A cut leaves a quarter of the window free beside the answer's room, so that it does not happen again every turn.
    std::int64_t afterCut() const { return limit - limit / 4 - answer; }
};
/// The answer's room is what it may come to, at most a quarter of the window: a longer one ends with `length`.
WindowRoom windowRoom(std::int64_t limit, std::int64_t maxTokens);

/// A message as far as a cut depends on it.
struct CutMessage {
    enum class Side { System, User, Answer, Tool };
    Side side = Side::User;
    std::int64_t tokens = 0; ///< in the prompt, its frame included
};

struct DialogCut {
    std::size_t turns = 0; ///< oldest turns that are left out
    bool moved = false;    ///< they were fewer in the request before this one
};

/// Turn of each message: one begins with each message of the user and lasts to the next; what stands before the first
/// belongs to it. System messages belong to none, they are never left out: -1.
std::vector<std::int32_t> dialogTurns(std::span<const CutMessage> messages);

/// `frame`: tokens of the prompt that belong to no message. The newest turn always stays, whether it fits or not.
DialogCut chooseCut(std::span<const CutMessage> messages, std::int64_t frame, const WindowRoom& room);

} // namespace kvscope::api
