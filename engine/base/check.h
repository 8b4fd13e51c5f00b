// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stdexcept>
#include <string>

namespace kvscope {

/// Thrown by KV_CHECK. The engine thread catches it at the step boundary and becomes Faulted; nothing else catches it.
class BrokenInvariant : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

[[noreturn]] inline void brokenInvariant(const char* condition, const char* file, int line,
                                         const std::string& sentence) {
    throw BrokenInvariant(sentence + " [" + condition + ", " + file + ":" + std::to_string(line) + "]");
}

} // namespace kvscope

/// Always on, in release too: a broken invariant of the cache must never become a wrong answer.
#define KV_CHECK(condition, sentence)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) [[unlikely]]                                                                                 \
            ::kvscope::brokenInvariant(#condition, __FILE__, __LINE__, (sentence));                                    \
    } while (false)
