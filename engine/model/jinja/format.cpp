// SPDX-License-Identifier: GPL-3.0-or-later
// How values are written out: str(), repr() and json.dumps() of Python.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>

#include "engine/model/jinja/value.h"
#include "engine/model/unicode.h"

namespace kvscope::model::jinja {

namespace {

void checkSize(const Text& text) {
    if (text.size() > kMaxTextBytes)
        throw Failure("a value is too large to be written out");
}

std::string hexEscape(const char* format, unsigned value) {
    std::array<char, 16> buffer{};
    const int length = std::snprintf(buffer.data(), buffer.size(), format, value);
    return {buffer.data(), static_cast<std::size_t>(length)};
}

std::string unicodeEscape(char32_t c) {
    if (c < 0x10000)
        return hexEscape("\\u%04x", c);
    const char32_t offset = c - 0x10000;
    return hexEscape("\\u%04x", 0xD800 + (offset >> 10)) + hexEscape("\\u%04x", 0xDC00 + (offset & 0x3FF));
}

/// One string between quotes; marks stay on what came from outside.
Text quoted(const Text& text, char quote, const std::function<std::string(char32_t, std::string_view)>& escape) {
    Text out(std::string(1, quote));
    out.append(text.mapPieces([&](std::string_view piece) {
        std::string escaped;
        for (std::size_t at = 0; at < piece.size();) {
            const DecodedChar c = decodeUtf8(piece, at);
            escaped += escape(c.codePoint, piece.substr(at, c.length));
            at += c.length;
        }
        return escaped;
    }));
    out.append(std::string_view(&quote, 1));
    return out;
}

Text jsonString(const Text& text, bool ensureAscii) {
    return quoted(text, '"', [&](char32_t c, std::string_view bytes) -> std::string {
        switch (c) {
        case U'"':
            return "\\\"";
        case U'\\':
            return "\\\\";
        case U'\n':
            return "\\n";
        case U'\r':
            return "\\r";
        case U'\t':
            return "\\t";
        case U'\b':
            return "\\b";
        case U'\f':
            return "\\f";
        default:
            return c < 0x20 || (ensureAscii && c > 0x7E) ? unicodeEscape(c) : std::string(bytes);
        }
    });
}

Text reprString(const Text& text) {
    const std::string& bytes = text.bytes();
    const bool doubleQuotes = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
    const char quote = doubleQuotes ? '"' : '\'';
    return quoted(text, quote, [&](char32_t c, std::string_view raw) -> std::string {
        if (c == U'\n')
            return "\\n";
        if (c == U'\r')
            return "\\r";
        if (c == U'\t')
            return "\\t";
        if (c == U'\\' || c == static_cast<char32_t>(quote))
            return "\\" + std::string(raw);
        const CharClass kind = charClass(c);
        const bool printable = c == U' ' || (kind != CharClass::Other && kind != CharClass::Space);
        if (printable)
            return std::string(raw);
        if (c < 0x100)
            return hexEscape("\\x%02x", c);
        return c < 0x10000 ? hexEscape("\\u%04x", c) : hexEscape("\\U%08x", c);
    });
}

Text reprAt(const Value& value, std::size_t depth);

void appendItems(Text& out, const std::vector<Value>& items, std::size_t depth) {
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0)
            out.append(", ");
        out.append(reprAt(items[i], depth));
        checkSize(out);
    }
}

Text reprAt(const Value& value, std::size_t depth) {
    if (depth > kMaxNesting)
        throw Failure("a value is nested too deeply to be printed");
    if (const Text* text = value.asString())
        return reprString(*text);
    if (const ListData* list = value.asList()) {
        Text out(list->tuple ? "(" : "[");
        appendItems(out, list->items, depth + 1);
        if (list->tuple && list->items.size() == 1)
            out.append(",");
        out.append(list->tuple ? ")" : "]");
        return out;
    }
    Text out;
    if (const DictData* dict = value.asDict()) {
        out.append("{");
        for (const auto& [key, item] : dict->items) {
            if (out.size() > 1)
                out.append(", ");
            out.append(reprAt(key, depth + 1));
            out.append(": ");
            out.append(reprAt(item, depth + 1));
            checkSize(out);
        }
        out.append("}");
        return out;
    }
    if (const NamespaceData* space = value.asNamespace()) {
        out.append("<Namespace {");
        for (std::size_t i = 0; i < space->items.size(); ++i) {
            out.append(i > 0 ? ", " : "");
            out.append(reprString(space->items[i].first));
            out.append(": ");
            out.append(reprAt(space->items[i].second, depth + 1));
        }
        out.append("}>");
        return out;
    }
    return toText(value);
}

/// json.dumps: the writer carries the style and the output.
class JsonWriter {
public:
    explicit JsonWriter(const JsonStyle& style) : m_style(style) {}

    void write(const Value& value, int depth) {
        checkSize(m_out);
        if (const Text* text = value.asString())
            m_out.append(jsonString(*text, m_style.ensureAscii));
        else if (const ListData* list = value.asList())
            writeList(*list, depth);
        else if (const DictData* dict = value.asDict())
            writeDict(*dict, depth);
        else if (value.isNone())
            m_out.append("null");
        else if (const bool* boolean = value.asBoolean())
            m_out.append(*boolean ? "true" : "false");
        else if (value.isNumber())
            writeNumber(value);
        else
            throw Failure(std::string("Object of type ") + value.typeName() + " is not JSON serializable");
    }
    Text take() { return std::move(m_out); }

private:
    void writeNumber(const Value& value) {
        const double* real = value.asReal();
        if (real != nullptr && std::isnan(*real))
            m_out.append("NaN");
        else if (real != nullptr && std::isinf(*real))
            m_out.append(*real > 0 ? "Infinity" : "-Infinity");
        else
            m_out.append(toText(value));
    }
    void newLine(int depth) {
        if (!m_style.indent)
            return;
        m_out.append("\n");
        m_out.append(std::string(static_cast<std::size_t>(std::max<std::int64_t>(*m_style.indent, 0) * depth), ' '));
    }
    void writeList(const ListData& list, int depth) {
        m_out.append("[");
        for (std::size_t i = 0; i < list.items.size(); ++i) {
            if (i > 0)
                m_out.append(m_style.itemSeparator);
            newLine(depth + 1);
            write(list.items[i], depth + 1);
        }
        if (!list.items.empty())
            newLine(depth);
        m_out.append("]");
    }
    /// Keys of JSON are strings; Python writes numbers, booleans and None as their JSON text.
    Text keyText(const Value& key) const {
        if (const Text* text = key.asString())
            return *text;
        if (!key.isNumber() && !key.isNone())
            throw Failure("keys must be str, int, float, bool or None for tojson");
        return toJson(key, m_style);
    }
    void writeDict(const DictData& dict, int depth) {
        std::vector<std::pair<Text, const Value*>> items;
        for (const auto& [key, value] : dict.items)
            items.emplace_back(keyText(key), &value);
        if (m_style.sortKeys)
            std::stable_sort(items.begin(), items.end(),
                             [](const auto& a, const auto& b) { return a.first.bytes() < b.first.bytes(); });
        m_out.append("{");
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0)
                m_out.append(m_style.itemSeparator);
            newLine(depth + 1);
            m_out.append(jsonString(items[i].first, m_style.ensureAscii));
            m_out.append(m_style.keySeparator);
            write(*items[i].second, depth + 1);
        }
        if (!items.empty())
            newLine(depth);
        m_out.append("}");
    }

    const JsonStyle& m_style;
    Text m_out;
};

} // namespace

std::string realToString(double value) {
    if (std::isnan(value))
        return "nan";
    if (std::isinf(value))
        return value > 0 ? "inf" : "-inf";
    std::array<char, 64> buffer{};
    const double size = std::fabs(value);
    // Python switches to an exponent outside of 1e-4 <= size < 1e16.
    const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                      exponent ? std::chars_format::scientific : std::chars_format::fixed);
    std::string text(buffer.data(), result.ptr);
    if (!exponent && text.find('.') == std::string::npos)
        text += ".0";
    return text;
}

Text toText(const Value& value) {
    if (const Text* text = value.asString())
        return *text;
    if (value.isUndefined())
        return {};
    if (value.isNone())
        return "None";
    if (const bool* boolean = value.asBoolean())
        return *boolean ? "True" : "False";
    if (const std::int64_t* integer = value.asInteger())
        return std::to_string(*integer);
    if (const double* real = value.asReal())
        return realToString(*real);
    if (const Function* function = value.asFunction())
        return "<function " + function->name + ">";
    if (const LoopData* loop = value.asLoop())
        return "<LoopContext " + std::to_string(loop->index0 + 1) + "/" + std::to_string(loop->items->items.size()) +
               ">";
    return toRepr(value);
}

Text toRepr(const Value& value) {
    return reprAt(value, 0);
}

Text toJson(const Value& value, const JsonStyle& style) {
    JsonWriter writer(style);
    writer.write(value, 0);
    return writer.take();
}

} // namespace kvscope::model::jinja
