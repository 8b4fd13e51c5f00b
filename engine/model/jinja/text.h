// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::model::jinja {

/// Half-open byte range of a text that came out of a string from outside (what a user or a model wrote, as opposed to
/// what the template says).
struct Mark {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int32_t source = -1; ///< which string, a number of the caller's; -1 = some string from outside
    bool operator==(const Mark&) const = default;
};

/// A string that remembers which of its bytes came from outside, through everything that templates do with strings.
/// Marks are ordered, disjoint and not empty; neighbours of one source are one mark.
class Text {
public:
    Text() = default;
    Text(std::string bytes) : m_bytes(std::move(bytes)) {}
    Text(std::string_view bytes) : m_bytes(bytes) {}
    Text(const char* bytes) : m_bytes(bytes) {}
    /// A string from outside.
    static Text fromOutside(std::string bytes, std::int32_t source);

    const std::string& bytes() const { return m_bytes; }
    const std::vector<Mark>& marks() const { return m_marks; }
    std::size_t size() const { return m_bytes.size(); }
    bool empty() const { return m_bytes.empty(); }

    void append(std::string_view bytes) { m_bytes.append(bytes); }
    void append(const std::string& bytes) { m_bytes.append(bytes); }
    void append(const char* bytes) { m_bytes.append(bytes); }
    void append(const Text& other);
    /// Bytes with the mark of `source`.
    void appendMarked(std::string_view bytes, std::int32_t source);
    Text substr(std::size_t begin, std::size_t count = std::string::npos) const;

    /// Piece by piece of equal origin: `change(std::string_view) -> std::string` replaces each piece, which keeps its
    /// mark.
    template <class Change> Text mapPieces(Change change) const {
        Text out;
        std::size_t done = 0;
        const std::string_view all = m_bytes;
        for (const Mark& mark : m_marks) {
            out.append(change(all.substr(done, mark.begin - done)));
            out.appendMarked(change(all.substr(mark.begin, mark.end - mark.begin)), mark.source);
            done = mark.end;
        }
        out.append(change(all.substr(done)));
        return out;
    }

private:
    void addMark(std::size_t begin, std::size_t end, std::int32_t source);

    std::string m_bytes;
    std::vector<Mark> m_marks;
};

} // namespace kvscope::model::jinja
