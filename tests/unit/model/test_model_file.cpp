// SPDX-License-Identifier: GPL-3.0-or-later
//
// Models in one file and in shards: streaming, fingerprint, and files that change while they are read.
#include <QTest>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <unistd.h>

#include <xxhash.h>

#include "engine/model/model_file.h"
#include "tests/support/default_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

const std::string kModels = std::string(KVSCOPE_TEST_DATA) + "/models/";

std::string bytesOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void save(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Result<void> ignore(const TensorInfo&, std::span<const std::byte>) {
    return {};
}

const char* messageOf(const Result<Fingerprint>& result) {
    return result ? "loaded" : result.error().message.c_str();
}

/// A model of a few MiB, so that a change in the middle of loading has a middle to happen in.
test::GgufWriter mediumModel() {
    return test::tinyLlama({.layers = 4, .hidden = 256, .heads = 4, .kvHeads = 2, .feedForward = 512});
}

} // namespace

class TestModelFile : public QObject {
    Q_OBJECT
private slots:
    void init() { m_path = m_dir.file("model.gguf"); }

    void streamHandsOverEveryByteOnceInOrder() {
        const test::GgufWriter writer = mediumModel();
        const std::string whole = writer.build();
        save(m_path, whole);
        const auto model = ModelFile::open(m_path);
        QVERIFY2(model, model ? "" : model.error().message.c_str());
        std::size_t next = 0;
        bool same = true;
        std::uint64_t done = 0, total = 0;
        LoadOptions options;
        options.progress = [&](std::uint64_t d, std::uint64_t t) {
            QVERIFY(d > done || d == 0);
            done = d;
            total = t;
        };
        const auto fingerprint = model->stream(
            [&](const TensorInfo& tensor, std::span<const std::byte> bytes) -> Result<void> {
                same &= tensor.name == model->tensors()[next++].name && bytes.size() == tensor.bytes;
                same &= std::memcmp(bytes.data(), whole.data() + tensor.offset, bytes.size()) == 0;
                same &= reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0;
                return {};
            },
            options);
        QVERIFY2(fingerprint, messageOf(fingerprint));
        QVERIFY(same);
        QCOMPARE(next, model->tensors().size());
        QCOMPARE(total, std::uint64_t(whole.size()));
        QCOMPARE(done, total);
        const XXH128_hash_t hash = XXH3_128bits(whole.data(), whole.size());
        QCOMPARE(fingerprint->high, std::uint64_t(hash.high64));
        QCOMPARE(fingerprint->low, std::uint64_t(hash.low64));
        QCOMPARE(fingerprint->text().size(), std::size_t(32));
    }

    void fingerprintNoticesOneBitInHeaderAndInWeights() {
        const std::string whole = test::tinyLlama().build();
        std::vector<Fingerprint> seen;
        const auto dataStart = [&] {
            save(m_path, whole);
            return GgufFile::open(m_path)->dataStart();
        }();
        for (std::size_t at :
             {std::size_t(0), whole.find("Tiny random llama"), std::size_t(dataStart) + 5, whole.size() - 1}) {
            std::string spoilt = whole;
            if (at != 0)
                spoilt[at] ^= 1;
            save(m_path, spoilt);
            const auto fingerprint = ModelFile::open(m_path)->stream(ignore);
            QVERIFY2(fingerprint, messageOf(fingerprint));
            for (const Fingerprint& other : seen)
                QVERIFY(!(*fingerprint == other));
            seen.push_back(*fingerprint);
        }
        QCOMPARE(seen.size(), std::size_t(4));
    }

    void truncationWhileLoadingIsASentenceAndNoSignal() {
        const std::string whole = mediumModel().build();
        save(m_path, whole);
        const auto model = ModelFile::open(m_path);
        QVERIFY(model);
        std::size_t tensors = 0;
        const auto result = model->stream([&](const TensorInfo&, std::span<const std::byte>) -> Result<void> {
            if (++tensors == 5 && ::truncate(m_path.c_str(), static_cast<off_t>(whole.size() / 2)) != 0)
                return fail(ErrorCode::Internal, "truncate failed");
            return {};
        });
        QVERIFY2(!result, "a half file was loaded");
        QCOMPARE(static_cast<int>(result.error().code), static_cast<int>(ErrorCode::Changed));
        QVERIFY2(result.error().message.find("became shorter while it was being read") != std::string::npos,
                 messageOf(result));
        QVERIFY(tensors >= 5);
        // And what was opened stays usable: the header lives in memory, not in the file.
        QVERIFY(model->metadata().string("general.architecture") == "llama");
        ::truncate(m_path.c_str(), 0);
        QCOMPARE(model->metadata().strings("tokenizer.ggml.tokens")->size(), std::size_t(288));
        QVERIFY(!model->readTensor(model->tensors().front()));
    }

    void truncationAtRandomMomentsFromAnotherThread() {
        const std::string whole = mediumModel().build();
        for (int round = 0; round < 30; ++round) {
            save(m_path, whole);
            const auto model = ModelFile::open(m_path);
            QVERIFY(model);
            std::thread vandal([&] {
                std::this_thread::sleep_for(std::chrono::microseconds(round * 40));
                ::truncate(m_path.c_str(), static_cast<off_t>(whole.size() * static_cast<std::size_t>(round) / 30));
            });
            const auto result = model->stream(ignore);
            vandal.join();
            if (!result)
                QCOMPARE(static_cast<int>(result.error().code), static_cast<int>(ErrorCode::Changed));
        }
    }

    void writingIntoTheFileWhileLoadingIsNoticed() {
        save(m_path, mediumModel().build());
        const auto model = ModelFile::open(m_path);
        std::size_t tensors = 0;
        const auto result = model->stream([&](const TensorInfo&, std::span<const std::byte>) -> Result<void> {
            if (++tensors == 5) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20)); // past the clock tick of file times
                std::fstream(m_path, std::ios::in | std::ios::out | std::ios::binary).seekp(-10, std::ios::end) << "x";
            }
            return {};
        });
        QVERIFY2(!result, "a mixture of two files was loaded");
        QVERIFY2(result.error().message.find("was written to") != std::string::npos, messageOf(result));
    }

    void changesAreNamed() {
        const std::string whole = test::tinyLlama().build();
        save(m_path, whole);
        const FileIdentity opened = ModelFile::open(m_path)->identities().front();
        QVERIFY(!fileChanged(opened));
        const auto sentence = [&] { return QString::fromStdString(fileChanged(opened).value_or("unchanged")); };
        std::filesystem::resize_file(m_path, whole.size() - 7);
        QVERIFY2(sentence().contains("became 7 bytes shorter"), qPrintable(sentence()));
        std::filesystem::resize_file(m_path, whole.size() + 9);
        QVERIFY2(sentence().contains("became 9 bytes longer"), qPrintable(sentence()));
        save(m_dir.file("other"), whole);
        std::filesystem::rename(m_dir.file("other"), m_path);
        QVERIFY2(sentence().contains("was replaced by another file"), qPrintable(sentence()));
        std::filesystem::remove(m_path);
        QVERIFY2(sentence().contains("is gone"), qPrintable(sentence()));
    }

    void cancelStopsBetweenReads() {
        save(m_path, mediumModel().build());
        const auto model = ModelFile::open(m_path);
        std::atomic<bool> cancel{false};
        std::size_t tensors = 0;
        LoadOptions options;
        options.cancel = &cancel;
        const auto result = model->stream(
            [&](const TensorInfo&, std::span<const std::byte>) -> Result<void> {
                cancel = ++tensors == 3;
                return {};
            },
            options);
        QVERIFY(!result);
        QCOMPARE(static_cast<int>(result.error().code), static_cast<int>(ErrorCode::Cancelled));
        QCOMPARE(tensors, std::size_t(3));
    }

    void theSinksErrorEndsTheLoad() {
        save(m_path, test::tinyLlama().build());
        const auto result =
            ModelFile::open(m_path)->stream([](const TensorInfo&, std::span<const std::byte>) -> Result<void> {
                return fail(ErrorCode::OutOfMemory, "no memory for weights");
            });
        QVERIFY(!result);
        QCOMPARE(result.error().message, std::string("no memory for weights"));
    }

    void shardsOpenFromAnyOfThem() {
        const auto first = ModelFile::open(kModels + "llama-split-00001-of-00002.gguf");
        const auto second = ModelFile::open(kModels + "llama-split-00002-of-00002.gguf");
        QVERIFY2(first, first ? "" : first.error().message.c_str());
        QVERIFY2(second, second ? "" : second.error().message.c_str());
        QCOMPARE(first->tensors().size(), std::size_t(21));
        QCOMPARE(second->tensors().size(), first->tensors().size());
        QVERIFY(second->metadata().string("general.architecture") == "llama");
        QCOMPARE(*first->stream(ignore), *second->stream(ignore));
        // The fingerprint is that of the bytes of both files, one after the other.
        const std::string both = bytesOf(first->shards()[0].path()) + bytesOf(first->shards()[1].path());
        QCOMPARE(first->stream(ignore)->low, std::uint64_t(XXH3_128bits(both.data(), both.size()).low64));
    }

    void missingShardIsNamed() {
        std::filesystem::copy(kModels + "llama-split-00001-of-00002.gguf", m_dir.file("s-00001-of-00002.gguf"));
        const auto model = ModelFile::open(m_dir.file("s-00001-of-00002.gguf"));
        QVERIFY(!model);
        QCOMPARE(static_cast<int>(model.error().code), static_cast<int>(ErrorCode::NotFound));
        QVERIFY2(model.error().message.find("missing beside it: s-00002-of-00002.gguf") != std::string::npos,
                 model.error().message.c_str());
    }

    void mixedUpShardsAreRefused() {
        namespace fs = std::filesystem;
        const std::string one = m_dir.file("m-00001-of-00002.gguf");
        const std::string two = m_dir.file("m-00002-of-00002.gguf");
        fs::copy(kModels + "llama-split-00001-of-00002.gguf", two);
        fs::copy(kModels + "llama-split-00002-of-00002.gguf", one);
        auto model = ModelFile::open(one);
        QVERIFY(!model);
        QVERIFY2(model.error().message.find("mixed up") != std::string::npos, model.error().message.c_str());

        // The second part of another model: numbers fit, tensors do not.
        fs::copy(kModels + "llama-split-00001-of-00002.gguf", one, fs::copy_options::overwrite_existing);
        test::GgufWriter stranger;
        stranger.u16("split.no", 1).u16("split.count", 2);
        stranger.tensor({"stranger", {4}, TensorType::F32, {}, {}, {}, {}});
        QVERIFY(stranger.write(two));
        model = ModelFile::open(one);
        QVERIFY(!model);
        QVERIFY2(model.error().message.find("tensors together, the model has 21") != std::string::npos,
                 model.error().message.c_str());

        stranger.tensor({"token_embd.weight", {4}, TensorType::F32, {}, {}, {}, {}});
        QVERIFY(stranger.write(two));
        model = ModelFile::open(one);
        QVERIFY(!model);
        QVERIFY2(model.error().message.find("also stands in another part") != std::string::npos,
                 model.error().message.c_str());
    }

    void renamedShardIsExplained() {
        std::filesystem::copy(kModels + "llama-split-00002-of-00002.gguf", m_dir.file("best-model.gguf"));
        const auto model = ModelFile::open(m_dir.file("best-model.gguf"));
        QVERIFY(!model);
        QVERIFY2(model.error().message.find("one of 2 parts of a model, but its name") != std::string::npos,
                 model.error().message.c_str());
        QVERIFY(model.error().message.find("MODEL-00001-of-00002.gguf") != std::string::npos);
    }

    void defaultModelOpensFastAndStreamsWhole() {
        const auto path = test::defaultModel();
        if (!path)
            QSKIP(test::kNoDefaultModel);
        const auto start = std::chrono::steady_clock::now();
        const auto model = ModelFile::open(*path);
        const auto elapsed = std::chrono::steady_clock::now() - start;
        QVERIFY2(model, model ? "" : model.error().message.c_str());
        QVERIFY2(elapsed < std::chrono::milliseconds(1000), "reading a header took more than a second");
        QCOMPARE(model->tensors().size(), std::size_t(272));
        QCOMPARE(model->tensorBytes(), std::uint64_t(96'576'768));
        const auto fingerprint = model->stream(ignore);
        QVERIFY2(fingerprint, messageOf(fingerprint));
        const std::string whole = bytesOf(*path);
        QCOMPARE(fingerprint->low, std::uint64_t(XXH3_128bits(whole.data(), whole.size()).low64));
    }

private:
    test::TempDir m_dir;
    std::string m_path;
};

QTEST_APPLESS_MAIN(TestModelFile)
#include "test_model_file.moc"
