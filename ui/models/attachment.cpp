// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/attachment.h"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>
#include <QStringDecoder>
#include <algorithm>

#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("attachments", text);
}

tl::unexpected<Error> refused(ErrorCode code, const QString& sentence) {
    return fail(code, sentence.toStdString());
}

/// Bytes that no text has, or too many that hardly one has.
bool looksBinary(const QByteArray& bytes) {
    qsizetype odd = 0;
    for (const char c : bytes) {
        if (c == '\0')
            return true;
        const auto u = static_cast<unsigned char>(c);
        odd += (u < 0x20 && (u < 0x08 || u > 0x0D) && u != 0x1B) || u == 0x7F;
    }
    return odd * 50 > bytes.size();
}

bool hasUtf16Mark(const QByteArray& bytes) {
    return bytes.startsWith("\xFF\xFE") || bytes.startsWith("\xFE\xFF");
}

/// The text of these bytes, or a null string where they are not text in that encoding.
QString decoded(const QByteArray& bytes) {
    QStringDecoder decode(hasUtf16Mark(bytes) ? QStringDecoder::Utf16 : QStringDecoder::Utf8,
                          QStringDecoder::Flag::Stateless); // half a character at the end is an error too
    QString text = decode(bytes);
    if (decode.hasError())
        return {};
    if (text.startsWith(QChar(QChar::ByteOrderMark)))
        text.remove(0, 1);
    return text;
}

/// A name fits on one line and cannot be taken for a fence.
QString cleanName(const QString& name) {
    QString out;
    for (const QChar c : name)
        out += c.category() == QChar::Other_Control || c == QLatin1Char('`') || c == QChar::LineSeparator ||
                       c == QChar::ParagraphSeparator
                   ? QLatin1Char(' ')
                   : c;
    return out.simplified();
}

/// Suffix as the language of a fence, where it could be one: "py", "cpp", "log".
QString fenceLanguage(const QString& name) {
    const QString suffix = QFileInfo(name).suffix().toLower();
    const bool plain = std::all_of(suffix.begin(), suffix.end(), [](QChar c) {
        return c.unicode() < 0x80 && (c.isLetterOrNumber() || c == QLatin1Char('+') || c == QLatin1Char('-'));
    });
    return plain && suffix.size() <= 12 ? suffix : QString();
}

qsizetype longestRun(QStringView text, QChar of) {
    qsizetype longest = 0, run = 0;
    for (const QChar c : text) {
        run = c == of ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    return longest;
}

} // namespace

Result<Attachment> readAttachment(const QString& path) {
    const QFileInfo info(path);
    const QString name = info.fileName();
    if (info.isDir())
        return refused(ErrorCode::InvalidArgument, tr("%1 is a folder; attach its files one by one.").arg(name));
    if (!info.exists())
        return refused(ErrorCode::NotFound, tr("%1 is not there any more.").arg(name));
    if (!info.isFile())
        return refused(ErrorCode::InvalidArgument, tr("%1 is not a file; only text files can be attached.").arg(name));
    const auto tooLarge = [&](std::int64_t bytes) {
        return refused(ErrorCode::InvalidArgument,
                       tr("%1 has %2, an attachment at most %3; attach the part that matters.")
                           .arg(name, formatBytes(std::uint64_t(bytes)), formatBytes(std::uint64_t(kAttachmentLimit))));
    };
    if (info.size() > kAttachmentLimit)
        return tooLarge(info.size());
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return refused(ErrorCode::Io, tr("%1 cannot be read: %2.").arg(name, file.errorString()));
    const QByteArray bytes = file.read(kAttachmentLimit + 1);
    if (file.error() != QFileDevice::NoError)
        return refused(ErrorCode::Io, tr("%1 cannot be read: %2.").arg(name, file.errorString()));
    if (bytes.size() > kAttachmentLimit) // it grew, or its size is not known beforehand
        return tooLarge(bytes.size());
    if (bytes.isEmpty())
        return refused(ErrorCode::InvalidArgument, tr("%1 is empty; there is nothing to send.").arg(name));
    if (!hasUtf16Mark(bytes) && looksBinary(bytes))
        return refused(ErrorCode::InvalidArgument, tr("%1 is not text; only text files can be attached.").arg(name));
    Attachment out;
    out.text = decoded(bytes);
    if (out.text.isNull())
        return refused(ErrorCode::InvalidArgument,
                       tr("%1 is not UTF-8 text; save it as UTF-8 and attach it again.").arg(name));
    if (out.text.contains(QChar(0)))
        return refused(ErrorCode::InvalidArgument, tr("%1 is not text; only text files can be attached.").arg(name));
    out.name = cleanName(name);
    return out;
}

Attachment pastedAttachment(const QString& text) {
    Attachment out;
    out.text = text;
    return out;
}

QString attachmentTitle(const Attachment& attachment) {
    return isPaste(attachment) ? tr("Pasted text") : attachment.name;
}

std::int64_t attachmentBytes(const Attachment& attachment) {
    std::int64_t bytes = 0;
    for (const QChar c : attachment.text)
        bytes += c.unicode() < 0x80 ? 1 : c.unicode() < 0x800 || c.isSurrogate() ? 2 : 3;
    return bytes;
}

bool isLargePaste(QStringView text) {
    if (text.size() > kLongestTyped)
        return true;
    qsizetype line = 0;
    for (const QChar c : text) {
        line = c == QLatin1Char('\n') || c == QChar::ParagraphSeparator ? 0 : line + 1;
        if (line > kLongestTypedLine)
            return true;
    }
    return false;
}

QString attachmentAsText(const Attachment& attachment) {
    if (isPaste(attachment))
        return attachment.text;
    const QString fence(std::max<qsizetype>(3, longestRun(attachment.text, QLatin1Char('`')) + 1), QLatin1Char('`'));
    QString out;
    out.reserve(attachment.text.size() + 2 * fence.size() + attachment.name.size() + 32);
    out += attachment.name + QStringLiteral(":\n") + fence + fenceLanguage(attachment.name) + QLatin1Char('\n');
    out += attachment.text;
    if (!attachment.text.endsWith(QLatin1Char('\n')))
        out += QLatin1Char('\n');
    return out + fence;
}

QString messageWith(const QString& typed, const std::vector<Attachment>& attachments) {
    QString out = typed;
    for (const Attachment& attachment : attachments) {
        if (!out.isEmpty())
            out += QStringLiteral("\n\n");
        out += attachmentAsText(attachment);
    }
    return out;
}

QString wholeText(const ChatMessage& message) {
    return message.attachments.empty() ? message.text : messageWith(message.text, message.attachments);
}

QString firstWords(const Draft& message) {
    return message.text.trimmed().isEmpty() && !message.attachments.empty()
               ? attachmentTitle(message.attachments.front())
               : message.text;
}

bool sameMessage(const Draft& a, const Draft& b) {
    return a.text == b.text &&
           std::equal(a.attachments.begin(), a.attachments.end(), b.attachments.begin(), b.attachments.end(),
                      [](const Attachment& x, const Attachment& y) { return x.name == y.name && x.text == y.text; });
}

} // namespace kvscope::ui
