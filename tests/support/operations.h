// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lists of random operations for property tests: four bytes each, which the test interprets, so that every list is
// valid and a failing one can be shrunk by leaving operations out.
#pragma once

#include <cstdint>
#include <ostream>
#include <tuple>
#include <vector>

#include <rapidcheck.h>

#include "tests/support/holds.h"

namespace kvscope::test {

struct Operation {
    std::uint8_t kind = 0;
    std::uint8_t a = 0, b = 0, c = 0;
};

inline std::ostream& operator<<(std::ostream& out, const Operation& o) {
    return out << '{' << int(o.kind) << ',' << int(o.a) << ',' << int(o.b) << ',' << int(o.c) << '}';
}

inline rc::Gen<std::vector<Operation>> operations(std::size_t count) {
    const auto one = rc::gen::map(rc::gen::inRange<std::int64_t>(0, std::int64_t(1) << 32), [](std::int64_t bits) {
        return Operation{static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8),
                         static_cast<std::uint8_t>(bits >> 16), static_cast<std::uint8_t>(bits >> 24)};
    });
    return rc::gen::container<std::vector<Operation>>(count, one);
}

} // namespace kvscope::test
