// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace kvscope {

/// What kind of failure it was. The code is stable (it stands in JSON output and in the database); the sentence is for
/// people.
enum class ErrorCode {
    InvalidArgument, ///< the caller asked for something that cannot be
    NotFound,        ///< no such file, model, conversation, block
    Io,              ///< reading or writing failed
    Corrupt,         ///< the bytes do not follow their format
    Unsupported,     ///< well-formed, but this program cannot do it (yet)
    Changed,         ///< a file changed under us
    OutOfMemory,     ///< the machine refused memory
    TooLong,         ///< more tokens than can ever fit
    Template,        ///< the chat template failed or raised
    Busy,            ///< somebody else holds it; trying again may work
    Full,            ///< disk or quota full
    ReadOnly,        ///< the file or its folder takes no writes
    Newer,           ///< written by a newer version of this program
    Cancelled,       ///< the user stopped it
    Internal,        ///< a broken invariant, see KV_CHECK
};

/// Stable lower_snake name of a code, as written to JSON ("too_long").
const char* errorCodeName(ErrorCode code);

/// A failure: a code and one sentence that says what to do. Backpressure is never an Error (it is a return value).
struct Error {
    ErrorCode code = ErrorCode::Internal;
    std::string message;
};

template <class T> using Result = tl::expected<T, Error>;

/// `return fail(ErrorCode::Io, "...")` in any function that returns a Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
    return tl::unexpected<Error>(Error{code, std::move(message)});
}

} // namespace kvscope
