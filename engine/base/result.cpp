// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/base/result.h"

namespace kvscope {

const char* errorCodeName(ErrorCode code) {
    switch (code) {
    case ErrorCode::InvalidArgument:
        return "invalid_argument";
    case ErrorCode::NotFound:
        return "not_found";
    case ErrorCode::Io:
        return "io";
    case ErrorCode::Corrupt:
        return "corrupt";
    case ErrorCode::Unsupported:
        return "unsupported";
    case ErrorCode::Changed:
        return "changed";
    case ErrorCode::OutOfMemory:
        return "out_of_memory";
    case ErrorCode::TooLong:
        return "too_long";
    case ErrorCode::Template:
        return "template";
    case ErrorCode::Busy:
        return "busy";
    case ErrorCode::Full:
        return "full";
    case ErrorCode::ReadOnly:
        return "read_only";
    case ErrorCode::Newer:
        return "newer";
    case ErrorCode::Cancelled:
        return "cancelled";
    case ErrorCode::Internal:
        return "internal";
    }
    return "internal";
}

} // namespace kvscope
