// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <limits>

#include "ui/models/format.h"

using namespace kvscope;
using namespace kvscope::ui;

class TestFormat : public QObject {
    Q_OBJECT
private slots:
    void numbers() {
        QCOMPARE(formatNumber(0), QStringLiteral("0"));
        QCOMPARE(formatNumber(999), QStringLiteral("999"));
        QCOMPARE(formatNumber(1000), QStringLiteral("1,000"));
        QCOMPARE(formatNumber(65536), QStringLiteral("65,536"));
        QCOMPARE(formatNumber(1234567), QStringLiteral("1,234,567"));
        QCOMPARE(formatNumber(-4096), QStringLiteral("\u22124,096"));
        QCOMPARE(formatNumber(std::numeric_limits<std::int64_t>::min()),
                 QStringLiteral("\u22129,223,372,036,854,775,808"));
        QCOMPARE(formatDecimal(1234.56, 1), QStringLiteral("1,234.6"));
        QCOMPARE(formatDecimal(-0.04, 1), QStringLiteral("0.0")); // no minus before nothing
        QCOMPARE(formatDecimal(-2.5, 1), QStringLiteral("\u22122.5"));
    }
    void bytes_data() {
        QTest::addColumn<quint64>("bytes");
        QTest::addColumn<QString>("expected");
        const quint64 kib = 1024, mib = kib * 1024, gib = mib * 1024;
        QTest::newRow("nothing") << quint64(0) << "0\u202fB";
        QTest::newRow("small") << quint64(999) << "999\u202fB";
        QTest::newRow("four digits go up") << quint64(1000) << "1.0\u202fKiB";
        QTest::newRow("kib") << 192 * kib << "192\u202fKiB";
        QTest::newRow("mib") << 92 * mib << "92\u202fMiB";
        QTest::newRow("little mib") << 4 * mib + mib / 5 << "4.2\u202fMiB";
        QTest::newRow("gib") << 1440 * mib << "1.41\u202fGiB";
        QTest::newRow("just below") << 1000 * mib << "0.98\u202fGiB";
        QTest::newRow("big") << 62 * gib + 4 * gib / 5 << "62.8\u202fGiB";
        QTest::newRow("bigger") << 480 * gib << "480\u202fGiB";
    }
    void bytes() {
        QFETCH(quint64, bytes);
        QTEST(formatBytes(bytes), "expected");
    }
    void times() {
        QCOMPARE(formatSeconds(0.05), QStringLiteral("0.05\u202fs"));
        QCOMPARE(formatSeconds(2.31), QStringLiteral("2.3\u202fs"));
        QCOMPARE(formatSeconds(41.2), QStringLiteral("41\u202fs"));
        QCOMPARE(formatSeconds(59.6), QStringLiteral("1\u202fmin\u202f00\u202fs"));
        QCOMPARE(formatSeconds(185), QStringLiteral("3\u202fmin\u202f05\u202fs"));
        QCOMPARE(formatSeconds(3720), QStringLiteral("1\u202fh\u202f02\u202fmin"));
        QCOMPARE(formatMilliseconds(21.2), QStringLiteral("21\u202fms"));
        QCOMPARE(formatMilliseconds(8.44), QStringLiteral("8.4\u202fms"));
        QCOMPARE(formatMilliseconds(1500), QStringLiteral("1.5\u202fs"));
        QCOMPARE(formatAgo(20'000'000), QStringLiteral("0.02\u202fs ago"));
        QCOMPARE(formatAgo(240'000'000'000), QStringLiteral("4\u202fmin ago"));
        QCOMPARE(formatAgo(-5), QStringLiteral("0.00\u202fs ago"));
        QCOMPARE(formatClock(592), QStringLiteral("09:52"));
        QCOMPARE(formatClock(3730), QStringLiteral("1:02:10"));
    }
    void sharesAndRates() {
        QCOMPARE(formatPercent(0.364), QStringLiteral("36\u202f%"));
        QCOMPARE(formatPercent(0.002, 1), QStringLiteral("0.2\u202f%"));
        QCOMPARE(formatRate(48.72), QStringLiteral("48.7\u202ftok/s"));
        QCOMPARE(formatRate(655.3), QStringLiteral("655\u202ftok/s"));
        QCOMPARE(formatTick(0), QStringLiteral("0"));
        QCOMPARE(formatTick(1000), QStringLiteral("1K"));
        QCOMPARE(formatTick(2048), QStringLiteral("2K"));
        QCOMPARE(formatTick(2400), QStringLiteral("2.4K"));
        QCOMPARE(formatTick(131072), QStringLiteral("131K"));
    }
    void everyStateHasItsWord() {
        QStringList seen;
        for (std::size_t s = 0; s < kv::kBlockStateCount; ++s) {
            const QString word = stateWord(kv::BlockState(s));
            QVERIFY(!word.isEmpty() && !seen.contains(word));
            seen << word;
        }
        QCOMPARE(stateWord(kv::BlockState::InTransfer), QStringLiteral("moving"));
    }
};

QTEST_APPLESS_MAIN(TestFormat)
#include "test_ui-models_format.moc"
