// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/format.h"

#include <QCoreApplication>
#include <cmath>

namespace kvscope::ui {
namespace {

struct Words {
    Q_DECLARE_TR_FUNCTIONS(kvscope::ui::Format)
};

QString withUnit(const QString& figure, const QString& unit) {
    return figure + kNarrowSpace + unit;
}

/// Three significant digits, never fewer than the whole part has.
int decimalsFor(double value) {
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

} // namespace

QString formatNumber(std::int64_t value) {
    const bool negative = value < 0;
    // Negating the smallest number would overflow; as unsigned it is exact.
    QString digits = QString::number(negative ? 0 - std::uint64_t(value) : std::uint64_t(value));
    for (qsizetype i = digits.size() - 3; i > 0; i -= 3)
        digits.insert(i, u',');
    return negative ? kMinus + digits : digits;
}

QString formatDecimal(double value, int decimals) {
    const QString plain = QString::number(std::abs(value), 'f', decimals);
    const qsizetype point = decimals > 0 ? plain.indexOf(u'.') : plain.size();
    QString out = formatNumber(plain.left(point).toLongLong()) + plain.mid(point);
    const bool isZero = out.count(u'0') + out.count(u'.') == out.size();
    return value < 0 && !isZero ? kMinus + out : out;
}

QString formatBytes(std::uint64_t bytes) {
    if (bytes < 1000)
        return withUnit(formatNumber(std::int64_t(bytes)), Words::tr("B"));
    double value = double(bytes) / 1024;
    const char* const units[] = {
        QT_TRANSLATE_NOOP("kvscope::ui::Format", "KiB"), QT_TRANSLATE_NOOP("kvscope::ui::Format", "MiB"),
        QT_TRANSLATE_NOOP("kvscope::ui::Format", "GiB"), QT_TRANSLATE_NOOP("kvscope::ui::Format", "TiB")};
    std::size_t unit = 0;
    // 1,000 and not 1,024: four digits are more than a label has room for.
    while (value >= 999.5 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    const int decimals = unit < 2 ? (value < 9.95 ? 1 : 0) : decimalsFor(value);
    return withUnit(formatDecimal(value, decimals), Words::tr(units[unit]));
}

QString formatGib(std::uint64_t bytes) {
    const double gib = double(bytes) / (1024.0 * 1024 * 1024);
    return formatDecimal(gib, gib < 99.995 ? 2 : 1);
}

QString formatPercent(double fraction, int decimals) {
    return withUnit(formatDecimal(fraction * 100, decimals), Words::tr("%"));
}

QString formatSeconds(double seconds) {
    if (seconds < 59.5)
        return withUnit(formatDecimal(seconds, seconds < 0.995 ? 2 : seconds < 9.95 ? 1 : 0), Words::tr("s"));
    const auto whole = std::int64_t(std::llround(seconds));
    if (whole < 3600)
        return Words::tr("%1 min %2 s", "minutes and seconds")
            .arg(formatNumber(whole / 60), QStringLiteral("%1").arg(whole % 60, 2, 10, QLatin1Char('0')))
            .replace(u' ', kNarrowSpace);
    return Words::tr("%1 h %2 min", "hours and minutes")
        .arg(formatNumber(whole / 3600), QStringLiteral("%1").arg(whole / 60 % 60, 2, 10, QLatin1Char('0')))
        .replace(u' ', kNarrowSpace);
}

QString formatMilliseconds(double milliseconds) {
    if (milliseconds >= 999.5)
        return formatSeconds(milliseconds / 1000);
    return withUnit(formatDecimal(milliseconds, milliseconds < 9.95 ? 1 : 0), Words::tr("ms"));
}

QString formatRate(double tokensPerSecond) {
    return withUnit(formatDecimal(tokensPerSecond, tokensPerSecond < 99.95 ? 1 : 0), Words::tr("tok/s"));
}

QString formatAgo(Nanos elapsed) {
    const double seconds = double(elapsed < 0 ? 0 : elapsed) * 1e-9;
    if (seconds < 59.5)
        return Words::tr("%1 ago").arg(formatSeconds(seconds));
    if (seconds < 3570)
        return Words::tr("%1 ago").arg(withUnit(formatNumber(std::llround(seconds / 60)), Words::tr("min")));
    return Words::tr("%1 ago").arg(withUnit(formatNumber(std::llround(seconds / 3600)), Words::tr("h")));
}

QString formatClock(double seconds) {
    const auto whole = std::int64_t(std::floor(seconds < 0 ? 0 : seconds));
    const QString minutesAndSeconds =
        QStringLiteral("%1:%2").arg(whole / 60 % 60, 2, 10, QLatin1Char('0')).arg(whole % 60, 2, 10, QLatin1Char('0'));
    return whole < 3600 ? minutesAndSeconds : QStringLiteral("%1:%2").arg(whole / 3600).arg(minutesAndSeconds);
}

QString formatTick(double value) {
    const auto scaled = [](double v, const char* suffix) {
        const bool whole = std::abs(v - std::round(v)) < 0.05;
        return formatDecimal(v, whole || v >= 100 ? 0 : 1) + QLatin1StringView(suffix);
    };
    if (value >= 1e6)
        return scaled(value / 1e6, "M");
    if (value >= 1000)
        return scaled(value / 1000, "K");
    return scaled(value, "");
}

QString stateWord(kv::BlockState state) {
    switch (state) {
    case kv::BlockState::Empty:
        return Words::tr("empty");
    case kv::BlockState::Filling:
        return Words::tr("filling");
    case kv::BlockState::Active:
        return Words::tr("active");
    case kv::BlockState::Shared:
        return Words::tr("shared");
    case kv::BlockState::Cached:
        return Words::tr("cached");
    case kv::BlockState::Pinned:
        return Words::tr("pinned");
    case kv::BlockState::InTransfer:
        return Words::tr("moving");
    case kv::BlockState::Reserved:
        return Words::tr("reserved");
    }
    return {};
}

} // namespace kvscope::ui
