// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace kvscope::model {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
    for (std::string& stop : stops) {
        if (stop.empty())
            continue;
        Pattern pattern;
        pattern.fallback.assign(stop.size(), 0);
        for (std::size_t i = 1, border = 0; i < stop.size(); ++i) {
            while (border > 0 && stop[i] != stop[border])
                border = pattern.fallback[border - 1];
            if (stop[i] == stop[border])
                ++border;
            pattern.fallback[i] = border;
        }
        pattern.text = std::move(stop);
        m_patterns.push_back(std::move(pattern));
    }
}

void StopMatcher::advance(Pattern& pattern, char byte) {
    while (pattern.matched > 0 && pattern.text[pattern.matched] != byte)
        pattern.matched = pattern.fallback[pattern.matched - 1];
    if (pattern.text[pattern.matched] == byte)
        ++pattern.matched;
}

std::string StopMatcher::push(std::string_view text) {
    if (m_matched)
        return {};
    for (const char byte : text) {
        m_held.push_back(byte);
        const Pattern* complete = nullptr;
        for (Pattern& pattern : m_patterns) {
            advance(pattern, byte);
            if (pattern.matched == pattern.text.size() &&
                (complete == nullptr || pattern.text.size() > complete->text.size()))
                complete = &pattern;
        }
        if (complete != nullptr) {
            m_matched = complete->text;
            m_held.resize(m_held.size() - complete->text.size());
            return std::exchange(m_held, {});
        }
    }
    std::size_t keep = 0;
    for (const Pattern& pattern : m_patterns)
        keep = std::max(keep, pattern.matched);
    std::string out = m_held.substr(0, m_held.size() - keep);
    m_held.erase(0, out.size());
    return out;
}

std::string StopMatcher::finish() {
    return std::exchange(m_held, {});
}

} // namespace kvscope::model
