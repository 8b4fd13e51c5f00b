// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/text.h"

#include <algorithm>

namespace kvscope::model::jinja {

Text Text::fromOutside(std::string bytes, std::int32_t source) {
    Text text(std::move(bytes));
    text.addMark(0, text.size(), source);
    return text;
}

void Text::addMark(std::size_t begin, std::size_t end, std::int32_t source) {
    if (begin == end)
        return;
    if (!m_marks.empty() && m_marks.back().end == begin && m_marks.back().source == source)
        m_marks.back().end = end;
    else
        m_marks.push_back({begin, end, source});
}

void Text::append(const Text& other) {
    const std::size_t base = m_bytes.size();
    // By index and with the count taken first: `other` may be this text.
    const std::size_t count = other.m_marks.size();
    for (std::size_t i = 0; i < count; ++i) {
        const Mark mark = other.m_marks[i];
        addMark(base + mark.begin, base + mark.end, mark.source);
    }
    m_bytes.append(other.m_bytes);
}

void Text::appendMarked(std::string_view bytes, std::int32_t source) {
    addMark(m_bytes.size(), m_bytes.size() + bytes.size(), source);
    m_bytes.append(bytes);
}

Text Text::substr(std::size_t begin, std::size_t count) const {
    begin = std::min(begin, m_bytes.size());
    const std::size_t end = begin + std::min(count, m_bytes.size() - begin);
    Text out(m_bytes.substr(begin, end - begin));
    auto mark = std::partition_point(m_marks.begin(), m_marks.end(), [&](const Mark& m) { return m.end <= begin; });
    for (; mark != m_marks.end() && mark->begin < end; ++mark)
        out.addMark(std::max(mark->begin, begin) - begin, std::min(mark->end, end) - begin, mark->source);
    return out;
}

} // namespace kvscope::model::jinja
