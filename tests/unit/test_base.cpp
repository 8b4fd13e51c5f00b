// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <thread>

#include "engine/base/channel.h"
#include "engine/base/check.h"
#include "engine/base/figures.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/split.h"
#include "engine/base/triple_buffer.h"

using namespace kvscope;

class TestBase : public QObject {
    Q_OBJECT
private slots:
    void listsAreSplitAtEverySeparator() {
        using Parts = std::vector<std::string>;
        QCOMPARE(split("a,b", ','), (Parts{"a", "b"}));
        QCOMPARE(split("a,,b,", ','), (Parts{"a", "", "b", ""}));
        QCOMPARE(split("", ','), Parts{""});
        QCOMPARE(split("a,b", '+'), Parts{"a,b"});
    }

    void figuresAreWrittenForPeople() {
        QCOMPARE(countText(0), std::string("0"));
        QCOMPARE(countText(999), std::string("999"));
        QCOMPARE(countText(23040), std::string("23,040"));
        QCOMPARE(countText(-1234567), std::string("-1,234,567"));
        QCOMPARE(formatted("%.2f s", 1.005e1), std::string("10.05 s"));
        QCOMPARE(formatted("%.0f", 1e200).size(), std::size_t(95)); // cut, not written beyond its end
        QCOMPARE(sizeText(512), std::string("512 B"));
        QCOMPARE(sizeText(4300), std::string("4.2 KiB"));
        QCOMPARE(sizeText(std::uint64_t(92) << 20), std::string("92 MiB"));
        QCOMPARE(sizeText(std::uint64_t(23040) << 20), std::string("22.5 GiB"));
        QCOMPARE(sizeText(1'513'975'972), std::string("1.41 GiB"));
    }

    void eventChannelKeepsEveryEventInOrderWhenTheRingOverflows() {
        EventChannel<int> channel(8);
        constexpr int kCount = 5000;
        for (int i = 0; i < kCount; ++i)
            channel.push(i);
        int next = 0;
        while (next < kCount) {
            while (auto value = channel.pop())
                QCOMPARE(*value, next++);
            channel.flush();
        }
        QVERIFY(!channel.pop());
    }

    void eventChannelBetweenThreads() {
        EventChannel<int> channel(8);
        constexpr int kCount = 100000;
        std::thread producer([&] {
            for (int i = 0; i < kCount; ++i)
                channel.push(i);
            while (!channel.flush())
                std::this_thread::yield();
        });
        int next = 0;
        while (next < kCount)
            if (auto value = channel.pop())
                QCOMPARE(*value, next++);
        producer.join();
    }

    void sampleRingCountsDropsInsteadOfWaiting() {
        SampleRing<int> ring(4);
        int accepted = 0;
        while (ring.push(accepted))
            ++accepted;
        QVERIFY(accepted >= 4);
        int value = -1;
        for (int i = 0; i < accepted; ++i) {
            QVERIFY(ring.pop(value));
            QCOMPARE(value, i);
        }
        QVERIFY(!ring.pop(value));
    }

    void tripleBufferShowsOnlyWholeAndNewestValues() {
        struct Pair {
            std::uint64_t a = 0, b = 0;
        };
        TripleBuffer<Pair> buffer;
        std::atomic<bool> stop{false};
        std::thread writer([&] {
            for (std::uint64_t i = 1; i <= 200000; ++i) {
                buffer.writeSlot() = {i, ~i};
                buffer.publish();
            }
            stop = true;
        });
        std::uint64_t last = 0;
        bool torn = false, backwards = false;
        for (;;) {
            const bool ended = stop; // read before taking, so that the final value cannot be missed
            if (buffer.take()) {
                const Pair& p = buffer.readSlot();
                torn |= p.b != ~p.a;
                backwards |= p.a <= last;
                last = p.a;
            } else if (ended) {
                break;
            }
        }
        writer.join();
        QVERIFY(!torn);
        QVERIFY(!backwards);
        QCOMPARE(last, std::uint64_t(200000));
    }

    void brokenInvariantNamesConditionAndSentence() {
        try {
            KV_CHECK(1 + 1 == 3, "a block was counted twice");
            QFAIL("KV_CHECK let a broken invariant pass");
        } catch (const BrokenInvariant& e) {
            const std::string what = e.what();
            QVERIFY(what.find("a block was counted twice") != std::string::npos);
            QVERIFY(what.find("1 + 1 == 3") != std::string::npos);
        }
    }

    void idsAreInvalidUntilGivenAndDoNotMix() {
        static_assert(!std::is_convertible_v<BlockId, SequenceId>);
        QVERIFY(!BlockId().valid());
        QVERIFY(BlockId(0).valid());
        QVERIFY(BlockId(1) < BlockId(2));
    }
};

QTEST_APPLESS_MAIN(TestBase)
#include "test_base.moc"
