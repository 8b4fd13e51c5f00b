// SPDX-License-Identifier: GPL-3.0-or-later
//
// A property on random cases. The default suite draws the same cases every time, so that it judges a change and not the
// day; the long suite (KVSCOPE_LONG=1) draws new ones each time. RC_PARAMS, where it is set, says which.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>

#include <rapidcheck.h>

namespace kvscope::test {

constexpr int kHoldsRuns = 100;
constexpr std::uint64_t kHoldsSeed = 20'261'201;

/// Checks a property on `runs` random cases; a failure is shrunk and printed with its seed.
template <class Property> bool holds(const char* sentence, int runs, Property&& property) {
    rc::detail::TestMetadata metadata;
    metadata.id = sentence;
    metadata.description = sentence;
    rc::detail::TestParams params = rc::detail::configuration().testParams;
    params.maxSuccess = runs;
    const char* const longSuite = std::getenv("KVSCOPE_LONG");
    if (std::getenv("RC_PARAMS") == nullptr && (longSuite == nullptr || std::atoi(longSuite) == 0))
        params.seed = kHoldsSeed;
    const auto result = rc::detail::checkTestable(property, metadata, params);
    rc::detail::printResultMessage(result, std::cerr);
    std::cerr << '\n';
    return result.template is<rc::detail::SuccessResult>();
}

} // namespace kvscope::test
