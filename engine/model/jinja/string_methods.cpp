// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/string_methods.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "engine/model/jinja/characters.h"
#include "engine/model/unicode.h"

namespace kvscope::model::jinja {

namespace {

using Method = Value (*)(Runtime&, const Text&, Arguments&);
struct Entry {
    std::string_view name;
    Method method;
};

std::string_view view(const Text& text) {
    return text.bytes();
}

/// Argument `i` as a string, or nothing where it is absent or none.
const Text* optionalString(const std::vector<std::optional<Value>>& bound, std::size_t i, std::string_view who) {
    return bound[i] && !bound[i]->isNone() ? &needString(*bound[i], who) : nullptr;
}
const Text& requiredString(const std::vector<std::optional<Value>>& bound, std::size_t i, std::string_view who) {
    if (!bound[i])
        throw Failure(std::string(who) + " lacks an argument");
    return needString(*bound[i], who);
}

// ---- case ----

/// Character by character with what stands before it: `capital(previousIsCased)` says which form a character takes.
template <class WantsCapital> Text recased(const Text& text, WantsCapital wantsCapital) {
    bool first = true;
    bool previousCased = false;
    return text.mapPieces([&](std::string_view piece) {
        std::string out;
        for (std::size_t at = 0; at < piece.size();) {
            const DecodedChar c = decodeUtf8(piece, at);
            const std::string_view character = piece.substr(at, c.length);
            out += wantsCapital(first, previousCased) ? upperCase(character) : lowerCase(character);
            first = false;
            previousCased = isCased(c.codePoint);
            at += c.length;
        }
        return out;
    });
}

Value upper(Runtime& runtime, const Text& s, Arguments& a) {
    bind("upper", a, {});
    return runtime.text(s.mapPieces(upperCase));
}
Value lower(Runtime& runtime, const Text& s, Arguments& a) {
    bind("lower", a, {});
    return runtime.text(s.mapPieces(lowerCase));
}
Value title(Runtime& runtime, const Text& s, Arguments& a) {
    bind("title", a, {});
    return runtime.text(recased(s, [](bool, bool previousCased) { return !previousCased; }));
}
Value capitalize(Runtime& runtime, const Text& s, Arguments& a) {
    bind("capitalize", a, {});
    return runtime.text(recased(s, [](bool first, bool) { return first; }));
}

Value swapCase(Runtime& runtime, const Text& s, Arguments& a) {
    bind("swapcase", a, {});
    return runtime.text(s.mapPieces([](std::string_view piece) {
        std::string out;
        for (std::size_t at = 0; at < piece.size();) {
            const std::string_view character = piece.substr(at, decodeUtf8(piece, at).length);
            const std::string lower = lowerCase(character);
            out += lower == character ? upperCase(character) : lower;
            at += character.size();
        }
        return out;
    }));
}

/// Is there a cased character, and is every one of them as `change` makes it?
template <std::string (*kChange)(std::string_view)> Value isCasedAs(Runtime&, const Text& s, Arguments& a) {
    bind("islower and isupper", a, {});
    const CodePoints points(view(s));
    return Value::boolean(std::any_of(points.values.begin(), points.values.end(), isCased) &&
                          kChange(view(s)) == view(s));
}

// ---- filling up ----

/// To `width` characters with one character on the sides; `left` of what lacks goes to the left one.
template <class Left> Value padded(Runtime& runtime, const Text& s, Arguments& a, std::string_view who, Left left) {
    const auto bound = bind(who, a, {"width", "fillchar"});
    const std::int64_t width = bound[0] ? needInteger(*bound[0], who) : 0;
    const Text fill = bound[1] ? needString(*bound[1], who) : Text(" ");
    if (characterCount(view(fill)) != 1)
        throw Failure("the fill character must be exactly one character long");
    if (width > static_cast<std::int64_t>(kMaxTextBytes))
        throw Failure("it makes a text of more than " + std::to_string(kMaxTextBytes >> 20) + " MiB");
    const std::int64_t lacks = std::max<std::int64_t>(width - static_cast<std::int64_t>(characterCount(view(s))), 0);
    runtime.charge(static_cast<std::size_t>(lacks) * fill.size());
    const std::int64_t before = left(lacks, width);
    Text out;
    for (std::int64_t i = 0; i < lacks; ++i) {
        if (i == before)
            out.append(s);
        out.append(fill);
    }
    if (before >= lacks)
        out.append(s);
    return runtime.text(std::move(out));
}
Value center(Runtime& runtime, const Text& s, Arguments& a) {
    // As Python: what does not come out even goes to the left in an odd width.
    return padded(runtime, s, a, "center", [](std::int64_t n, std::int64_t width) { return n / 2 + (n & width & 1); });
}
Value leftJustified(Runtime& runtime, const Text& s, Arguments& a) {
    return padded(runtime, s, a, "ljust", [](std::int64_t, std::int64_t) { return std::int64_t(0); });
}
Value rightJustified(Runtime& runtime, const Text& s, Arguments& a) {
    return padded(runtime, s, a, "rjust", [](std::int64_t n, std::int64_t) { return n; });
}
Value zeroFilled(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("zfill", a, {"width"});
    if (!bound[0])
        throw Failure("zfill lacks an argument");
    const bool sign = !s.empty() && (view(s).front() == '-' || view(s).front() == '+');
    Arguments inner;
    inner.positional = {Value::integer(std::max<std::int64_t>(needInteger(*bound[0], "zfill"), 0) - (sign ? 1 : 0)),
                        Value::string("0")};
    const Value digits = rightJustified(runtime, s.substr(sign ? 1 : 0), inner);
    Text out = s.substr(0, sign ? 1 : 0);
    out.append(*digits.asString());
    return runtime.text(std::move(out));
}

// ---- cutting ----

template <Side kSide> Value strip(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("strip", a, {"chars"});
    const Text* characters = optionalString(bound, 0, "strip");
    if (characters != nullptr && characters->empty())
        return runtime.text(s);
    return runtime.text(stripped(s, kSide, characters == nullptr ? std::string_view() : view(*characters)));
}

Value removePrefix(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("removeprefix", a, {"prefix"});
    const Text& prefix = requiredString(bound, 0, "removeprefix");
    return runtime.text(view(s).substr(0, prefix.size()) == view(prefix) ? s.substr(prefix.size()) : s);
}
bool endsWith(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}
Value removeSuffix(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("removesuffix", a, {"suffix"});
    const Text& suffix = requiredString(bound, 0, "removesuffix");
    return runtime.text(endsWith(view(s), view(suffix)) ? s.substr(0, s.size() - suffix.size()) : s);
}

// ---- splitting and joining ----

Value pieces(Runtime& runtime, const Text& s, const std::vector<std::pair<std::size_t, std::size_t>>& ranges) {
    std::vector<Value> out;
    for (const auto& [begin, end] : ranges)
        out.push_back(runtime.text(s.substr(begin, end - begin)));
    return runtime.list(std::move(out));
}

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

/// Words between white space: at most `most` cuts, counted from the left or the right.
Ranges words(const Text& s, std::int64_t most, bool fromRight) {
    const std::string_view bytes = view(s);
    const std::vector<std::size_t> offsets = characterOffsets(bytes);
    const auto blank = [&](std::size_t i) { return isWhitespace(decodeUtf8(bytes, offsets[i]).codePoint); };
    Ranges all;
    for (std::size_t i = 0; i + 1 < offsets.size();) {
        while (i + 1 < offsets.size() && blank(i))
            ++i;
        const std::size_t begin = i;
        while (i + 1 < offsets.size() && !blank(i))
            ++i;
        if (i > begin)
            all.emplace_back(offsets[begin], offsets[i]);
    }
    const auto count = static_cast<std::int64_t>(all.size());
    if (most < 0 || count <= most + 1)
        return all;
    // The rest stays in one piece, without the white space at its outer end.
    if (fromRight) {
        all[count - most - 1].first = all.front().first;
        all.erase(all.begin(), all.begin() + (count - most - 1));
        if (!all.empty())
            all.front().first = std::min(all.front().first, offsets.front());
        return all;
    }
    all[most].second = bytes.size();
    all.resize(static_cast<std::size_t>(most) + 1);
    return all;
}

Ranges between(const Text& s, const Text& separator, std::int64_t most) {
    const std::string_view bytes = view(s);
    Ranges out;
    std::size_t begin = 0;
    for (std::size_t at = 0; most < 0 || static_cast<std::int64_t>(out.size()) < most;) {
        at = findBytes(bytes, view(separator), begin);
        if (at == std::string_view::npos)
            break;
        out.emplace_back(begin, at);
        begin = at + separator.size();
    }
    out.emplace_back(begin, bytes.size());
    return out;
}

Ranges betweenFromRight(const Text& s, const Text& separator, std::int64_t most) {
    // In the mirror the right end is the left one.
    const auto mirrored = [](const Text& text) { return Text(std::string(view(text).rbegin(), view(text).rend())); };
    Ranges out = between(mirrored(s), mirrored(separator), most);
    for (auto& [begin, end] : out)
        std::tie(begin, end) = std::pair(s.size() - end, s.size() - begin);
    std::reverse(out.begin(), out.end());
    return out;
}

template <bool kFromRight> Value split(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("split", a, {"sep", "maxsplit"});
    const std::int64_t most = bound[1] ? needInteger(*bound[1], "split") : -1;
    const Text* separator = optionalString(bound, 0, "split");
    if (separator == nullptr)
        return pieces(runtime, s, words(s, most, kFromRight));
    if (separator->empty())
        throw Failure("empty separator");
    return pieces(runtime, s, kFromRight ? betweenFromRight(s, *separator, most) : between(s, *separator, most));
}

Value splitLines(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("splitlines", a, {"keepends"});
    const bool keep = bound[0] && bound[0]->truthy();
    const std::string_view bytes = view(s);
    Ranges out;
    for (std::size_t begin = 0; begin < bytes.size();) {
        const std::size_t end = std::min(bytes.find_first_of("\n\r\v\f", begin), bytes.size());
        std::size_t next = std::min(end + 1, bytes.size());
        if (end + 1 < bytes.size() && bytes[end] == '\r' && bytes[end + 1] == '\n')
            ++next;
        out.emplace_back(begin, keep ? next : end);
        begin = next;
    }
    return pieces(runtime, s, out);
}

template <bool kFromRight> Value partition(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("partition", a, {"sep"});
    const Text& separator = requiredString(bound, 0, "partition");
    if (separator.empty())
        throw Failure("empty separator");
    const std::size_t at = kFromRight ? findLastBytes(view(s), view(separator)) : findBytes(view(s), view(separator));
    std::vector<Value> parts(3, Value::string(""));
    if (at == std::string_view::npos) {
        parts[kFromRight ? 2 : 0] = runtime.text(s);
    } else {
        parts[0] = runtime.text(s.substr(0, at));
        parts[1] = runtime.text(s.substr(at, separator.size()));
        parts[2] = runtime.text(s.substr(at + separator.size()));
    }
    return runtime.list(std::move(parts), true);
}

Value join(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("join", a, {"iterable"});
    if (!bound[0])
        throw Failure("join lacks an argument");
    Text out;
    bool first = true;
    for (const Value& item : iterate(runtime, *bound[0])) {
        if (!first)
            out.append(s);
        first = false;
        const Text& piece = needString(item, "join");
        runtime.charge(s.size() + piece.size()); // before it is made: one long text may be in the list many times
        out.append(piece);
    }
    return runtime.text(std::move(out));
}

// ---- searching ----

template <bool kAtStart> Value affix(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind(kAtStart ? "startswith" : "endswith", a, {"affix"});
    if (!bound[0])
        throw Failure("startswith and endswith need an argument");
    const auto fits = [&](const Value& value) {
        const std::string_view affix = view(needString(value, "startswith and endswith"));
        return kAtStart ? view(s).substr(0, affix.size()) == affix : endsWith(view(s), affix);
    };
    if (const ListData* several = bound[0]->asList()) {
        runtime.step(static_cast<std::int64_t>(several->items.size()));
        return Value::boolean(std::any_of(several->items.begin(), several->items.end(), fits));
    }
    return Value::boolean(fits(*bound[0]));
}

template <bool kFromRight, bool kMustExist> Value find(Runtime&, const Text& s, Arguments& a) {
    const auto bound = bind("find", a, {"sub"});
    const std::string_view wanted = view(requiredString(bound, 0, "find"));
    const std::size_t at = kFromRight ? findLastBytes(view(s), wanted) : findBytes(view(s), wanted);
    if (at != std::string_view::npos)
        return Value::integer(static_cast<std::int64_t>(characterCount(view(s).substr(0, at))));
    if (kMustExist)
        throw Failure("substring not found");
    return Value::integer(-1);
}

Value count(Runtime&, const Text& s, Arguments& a) {
    const auto bound = bind("count", a, {"sub"});
    const std::string_view wanted = view(requiredString(bound, 0, "count"));
    if (wanted.empty())
        return Value::integer(static_cast<std::int64_t>(characterCount(view(s))) + 1);
    std::int64_t found = 0;
    for (std::size_t at = 0; (at = findBytes(view(s), wanted, at)) != std::string_view::npos; at += wanted.size())
        ++found;
    return Value::integer(found);
}

Value replace(Runtime& runtime, const Text& s, Arguments& a) {
    const auto bound = bind("replace", a, {"old", "new", "count"});
    const std::int64_t most = bound[2] && !bound[2]->isNone() ? needInteger(*bound[2], "replace") : -1;
    runtime.step(static_cast<std::int64_t>(s.size() / 16)); // each place is a piece of its own
    return runtime.text(replaced(s, requiredString(bound, 0, "replace"), requiredString(bound, 1, "replace"), most));
}

Value isAlphanumeric(Runtime&, const Text& s, Arguments&) {
    const CodePoints points(view(s));
    return Value::boolean(points.size() > 0 && std::all_of(points.values.begin(), points.values.end(), [](char32_t c) {
                              return charClass(c) == CharClass::Letter || charClass(c) == CharClass::Number;
                          }));
}

template <CharClass kWanted> Value allOf(Runtime&, const Text& s, Arguments&) {
    const CodePoints points(view(s));
    const bool all = std::all_of(points.values.begin(), points.values.end(), [](char32_t c) {
        return kWanted == CharClass::Space ? isWhitespace(c) : charClass(c) == kWanted;
    });
    return Value::boolean(all && points.size() > 0);
}

/// `'{} {1} {name}'.format(...)`: plain fields only.
Value format(Runtime& runtime, const Text& s, Arguments& a) {
    const std::string& bytes = s.bytes();
    Text out;
    std::size_t next = 0;
    std::size_t done = 0;
    for (std::size_t at = 0; (at = bytes.find_first_of("{}", at)) != std::string::npos; done = at) {
        out.append(s.substr(done, at - done));
        if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
            out.append(s.substr(at, 1));
            at += 2;
            continue;
        }
        const std::size_t end = bytes.find('}', at);
        if (bytes[at] == '}' || end == std::string::npos)
            throw Failure("single '{' or '}' in format string");
        const std::string field = bytes.substr(at + 1, end - at - 1);
        const bool numbered =
            !field.empty() && field.size() < 6 && field.find_first_not_of("0123456789") == std::string::npos;
        const std::size_t index = numbered ? std::stoul(field) : next;
        if (field.empty() || numbered) {
            next += field.empty() ? 1 : 0;
            if (index >= a.positional.size())
                throw Failure("not enough arguments for format string");
            out.append(toText(a.positional[index]));
        } else {
            const auto named =
                std::find_if(a.named.begin(), a.named.end(), [&](const auto& n) { return n.first == field; });
            if (named == a.named.end())
                throw Failure("the format field '" + field + "' is not supported or has no argument");
            out.append(toText(named->second));
        }
        runtime.charge(out.size() / 16);
        at = end + 1;
    }
    out.append(s.substr(done));
    return runtime.text(std::move(out));
}

constexpr std::array kMethods = {
    Entry{"capitalize", capitalize},
    Entry{"center", center},
    Entry{"count", count},
    Entry{"endswith", affix<false>},
    Entry{"find", find<false, false>},
    Entry{"format", format},
    Entry{"index", find<false, true>},
    Entry{"isalnum", isAlphanumeric},
    Entry{"isalpha", allOf<CharClass::Letter>},
    Entry{"isdigit", allOf<CharClass::Number>},
    Entry{"islower", isCasedAs<lowerCase>},
    Entry{"isspace", allOf<CharClass::Space>},
    Entry{"isupper", isCasedAs<upperCase>},
    Entry{"join", join},
    Entry{"ljust", leftJustified},
    Entry{"lower", lower},
    Entry{"lstrip", strip<Side::Left>},
    Entry{"partition", partition<false>},
    Entry{"removeprefix", removePrefix},
    Entry{"removesuffix", removeSuffix},
    Entry{"replace", replace},
    Entry{"rfind", find<true, false>},
    Entry{"rindex", find<true, true>},
    Entry{"rjust", rightJustified},
    Entry{"rpartition", partition<true>},
    Entry{"rsplit", split<true>},
    Entry{"rstrip", strip<Side::Right>},
    Entry{"split", split<false>},
    Entry{"splitlines", splitLines},
    Entry{"startswith", affix<true>},
    Entry{"strip", strip<Side::Both>},
    Entry{"swapcase", swapCase},
    Entry{"title", title},
    Entry{"upper", upper},
    Entry{"zfill", zeroFilled},
};

const Entry* findEntry(std::string_view name) {
    const auto found = std::find_if(kMethods.begin(), kMethods.end(), [&](const Entry& e) { return e.name == name; });
    return found == kMethods.end() ? nullptr : &*found;
}

} // namespace

bool isStringMethod(std::string_view name) {
    return findEntry(name) != nullptr;
}

Value callStringMethod(Runtime& runtime, std::string_view name, const Text& subject, Arguments& arguments) {
    const Entry* entry = findEntry(name);
    if (entry == nullptr)
        throw Failure("'str object' has no attribute '" + std::string(name) + "'");
    runtime.read(subject.size());
    return entry->method(runtime, subject, arguments);
}

} // namespace kvscope::model::jinja
