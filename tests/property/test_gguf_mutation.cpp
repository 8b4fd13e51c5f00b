// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random damage to good files: thousands of mutants, each opened and used as far as it goes.
#include <QElapsedTimer>
#include <QTest>
#include <fstream>
#include <random>

#include "tests/support/gguf_exercise.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;

namespace {

/// One act of damage. Numbers are aimed at the header, where they mean something.
void mutate(std::string& bytes, std::size_t headerBytes, std::mt19937& random) {
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    if (bytes.empty())
        return;
    const std::size_t at = below(std::min(headerBytes, bytes.size()));
    switch (below(6)) {
    case 0: // one bit
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        return;
    case 1: { // a 32-bit number that counts or types love
        const std::uint32_t values[] = {0, 1, 8, 9, 13, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
        const std::uint32_t value = values[below(std::size(values))];
        if (at + sizeof value <= bytes.size())
            std::memcpy(bytes.data() + at, &value, sizeof value);
        return;
    }
    case 2: { // a 64-bit number that lengths and dims love
        const std::uint64_t values[] = {0, 1, 1ull << 30, (1ull << 30) + 1, 1ull << 32, 1ull << 61, ~0ull, ~0ull >> 1};
        const std::uint64_t value = values[below(std::size(values))];
        if (at + sizeof value <= bytes.size())
            std::memcpy(bytes.data() + at, &value, sizeof value);
        return;
    }
    case 3:
        bytes.resize(below(bytes.size() + 1));
        return;
    case 4:
        bytes.erase(at, 1 + below(16));
        return;
    default:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
        return;
    }
}

} // namespace

class TestGgufMutation : public QObject {
    Q_OBJECT
private slots:
    void everyMutantEndsInASentenceOrAModel() {
        constexpr unsigned kMutants = 4000;
        // One with a vocabulary, which fills most of its header, and one without: keys and tensor table only.
        test::GgufWriter small =
            test::tinyLlama({.layers = 1, .hidden = 32, .heads = 2, .kvHeads = 1, .feedForward = 32});
        const std::string withVocabulary = small.build();
        for (const char* part : {"tokens", "token_type", "merges"})
            small.without(std::string("tokenizer.ggml.") + part);
        const std::string bases[] = {withVocabulary, small.u32("llama.vocab_size", 288).build()};
        const std::string path = m_dir.file("mutant.gguf");
        const auto write = [&](const std::string& bytes) {
            std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        };
        std::size_t headerBytes[std::size(bases)] = {};
        for (std::size_t i = 0; i < std::size(bases); ++i) {
            write(bases[i]);
            QCOMPARE(static_cast<int>(test::exerciseModelFile(path)), static_cast<int>(test::Reached::Configured));
            headerBytes[i] = model::GgufFile::open(path)->dataStart();
        }

        unsigned reached[3] = {0, 0, 0};
        qint64 slowest = 0;
        for (unsigned seed = 0; seed < kMutants; ++seed) {
            std::mt19937 random(seed);
            const std::size_t base = seed % std::size(bases);
            std::string mutant = bases[base];
            for (unsigned act = 0; act <= seed % 3; ++act)
                mutate(mutant, headerBytes[base], random);
            write(mutant);
            QElapsedTimer timer;
            timer.start();
            ++reached[static_cast<int>(test::exerciseModelFile(path))];
            slowest = std::max(slowest, timer.elapsed());
        }
        qInfo("%u refused, %u opened but no model, %u still a model; slowest %lld ms", reached[0], reached[1],
              reached[2], static_cast<long long>(slowest));
        // Damage that is never noticed, or always at the first byte, would mean that the mutants test nothing.
        QVERIFY(reached[0] > kMutants / 4);
        QVERIFY(reached[1] > kMutants / 100);
        QVERIFY(reached[2] > kMutants / 100);
        QVERIFY2(slowest < 2000, "a small file kept the reader busy for seconds");
    }

private:
    test::TempDir m_dir;
};

QTEST_APPLESS_MAIN(TestGgufMutation)
#include "test_gguf_mutation.moc"
