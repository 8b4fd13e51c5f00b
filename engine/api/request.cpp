// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/request.h"

namespace kvscope::api {

const char* finishReasonName(FinishReason reason) {
    switch (reason) {
    case FinishReason::Stop:
        return "stop";
    case FinishReason::Length:
        return "length";
    case FinishReason::Cancelled:
        return "cancelled";
    case FinishReason::Error:
        return "error";
    }
    return "error";
}

const char* missReasonName(MissReason reason) {
    switch (reason) {
    case MissReason::None:
        return "none";
    case MissReason::Disabled:
        return "disabled";
    case MissReason::ColdStart:
        return "cold_start";
    case MissReason::ShorterThanBlock:
        return "shorter_than_block";
    case MissReason::Diverged:
        return "diverged";
    case MissReason::Evicted:
        return "evicted";
    case MissReason::WindowCut:
        return "window_cut";
    case MissReason::PastWindow:
        return "past_window";
    case MissReason::CheaperToCompute:
        return "cheaper_to_compute";
    }
    return "none";
}

} // namespace kvscope::api
