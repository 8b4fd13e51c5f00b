// SPDX-License-Identifier: GPL-3.0-or-later
//
// The GGUF reader against good files, and against every kind of bad file that the format allows to be written.
#include <QTest>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/model/gguf_file.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::model;
using kvscope::test::ByteWriter;
using kvscope::test::GgufWriter;

namespace {

void save(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A small good file: two keys of different kinds, three tensors that need padding between them.
GgufWriter good() {
    GgufWriter out;
    out.text("general.architecture", "llama").u32("llama.block_count", 2);
    out.tensor({"a", {3}, TensorType::F32, {}, {}, {}, {}});
    out.tensor({"b", {32, 2}, TensorType::Q8_0, {}, {}, {}, {}});
    out.tensor({"c", {2, 2, 2, 2}, TensorType::F16, {}, {}, {}, {}});
    return out;
}

GgufWriter changed(const std::function<void(GgufWriter&)>& change) {
    GgufWriter out = good();
    change(out);
    return out;
}

std::string u32Value(ValueType type) {
    return ByteWriter().u32(static_cast<std::uint32_t>(type)).bytes();
}

std::string arrayHead(std::uint32_t element, std::uint64_t count) {
    return ByteWriter().u32(static_cast<std::uint32_t>(ValueType::Array)).u32(element).u64(count).bytes();
}

std::string truncatedBy(std::size_t bytes) {
    std::string file = good().build();
    file.resize(file.size() - bytes);
    return file;
}

struct Hostile {
    const char* name;
    std::string bytes;
    ErrorCode code;
    const char* sentence; ///< must stand in the message
};

std::vector<Hostile> hostileHeaders() {
    const auto lie = changed;
    constexpr auto corrupt = ErrorCode::Corrupt;
    constexpr auto unsupported = ErrorCode::Unsupported;
    return {
        {"empty file", "", corrupt, "is empty"},
        {"one byte", "G", corrupt, "the header needs at least 24 bytes, the file has 1"},
        {"magic only", "GGUF", corrupt, "needs at least 24 bytes, the file has 4"},
        {"wrong magic", lie([](auto& g) { g.magic = "GGML"; }).build(), corrupt, "begins with 'GGML'"},
        {"web page", "  <!DOCTYPE html><html><body>404</body></html>", corrupt, "is a web page"},
        {"json file", "\n{\"model_type\": \"llama\"}", corrupt, "is a JSON file"},
        {"safetensors", ByteWriter().u64(100).raw("{\"a\":{}}").bytes(), corrupt, "safetensors format"},
        {"zip archive", "PK\x03\x04 and so on", corrupt, "is a zip file"},
        {"gzip archive", "\x1F\x8B\x08 and so on", corrupt, "is packed"},
        {"format before GGUF", "tjgg and so on, for a while", corrupt, "old format from before GGUF"},
        {"preallocated download", std::string(600, '\0'), corrupt, "nothing but zeros"},
        {"git-lfs pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", corrupt, "Git LFS"},
        {"version 0", lie([](auto& g) { g.version = 0; }).build(), unsupported, "version 0"},
        {"version 1", lie([](auto& g) { g.version = 1; }).build(), unsupported, "version 1, which is obsolete"},
        {"version 4", lie([](auto& g) { g.version = 4; }).build(), unsupported, "version 4; versions 2 and 3"},
        {"big-endian", lie([](auto& g) { g.version = 0x03000000; }).build(), unsupported, "big-endian"},
        {"tensor count absurd", lie([](auto& g) { g.tensorCount = ~0ull; }).build(), corrupt, "tensors, more than"},
        {"tensor count beyond the file", lie([](auto& g) { g.tensorCount = 100'000; }).build(), corrupt,
         "100000 tensors needs at least"},
        {"key count absurd", lie([](auto& g) { g.keyCount = 1ull << 60; }).build(), corrupt, "metadata keys, more"},
        {"key count beyond the file", lie([](auto& g) { g.keyCount = 60'000; }).build(), corrupt,
         "60000 keys and 3 tensors needs at least"},
        {"key count one too many", lie([](auto& g) { g.keyCount = 3; }).build(), corrupt, "tensor 0 has no name"},
        {"header cut off", good().build().substr(0, 20), corrupt,
         "the header needs at least 24 bytes, the file has 20"},
        {"cut inside a key", good().build().substr(0, 40), corrupt, "the file has 40"},
        {"cut inside a tensor entry", good().build().substr(0, 130), corrupt, "the file has 130"},
        {"cut by one byte", truncatedBy(1), corrupt, "is incomplete: it needs"},
        {"cut at the start of the data", truncatedBy(160), corrupt, "is incomplete: it needs"},
    };
}

std::vector<Hostile> hostileMetadata() {
    const auto lie = changed;
    constexpr auto corrupt = ErrorCode::Corrupt;
    const std::string longText = ByteWriter().u32(8).u64(std::numeric_limits<std::uint64_t>::max()).bytes();
    return {
        {"empty key", lie([](auto& g) { g.u32("", 1); }).build(), corrupt, "has no name"},
        {"duplicate key",
         lie([](auto& g) { g.duplicateEntry("llama.block_count", ByteWriter().u32(4).u32(3).bytes()); }).build(),
         corrupt, "'llama.block_count' stands in it twice"},
        {"key longer than the file",
         ByteWriter().raw("GGUF").u32(3).u64(0).u64(1).u64(1ull << 40).raw("abcdefgh").bytes(), corrupt,
         "the name of metadata key 0 needs at least 1099511627808 bytes"},
        {"key longer than allowed", lie([](auto& g) { g.u32(std::string(70'000, 'k'), 1); }).build(), corrupt,
         "claims to be 70000 bytes long, at most 65535"},
        {"value type unknown", lie([](auto& g) { g.entry("k", ByteWriter().u32(13).u32(0).bytes()); }).build(), corrupt,
         "the value of 'k' has type 13"},
        {"string longer than the file", lie([&](auto& g) { g.entry("k", longText); }).build(), corrupt,
         "the value of 'k' needs at least 18446744073709551615 bytes"},
        {"array of unknown type", lie([](auto& g) { g.entry("k", arrayHead(99, 0)); }).build(), corrupt,
         "elements of type 99"},
        {"nested array", lie([](auto& g) { g.entry("k", arrayHead(9, 1)); }).build(), corrupt, "holds arrays"},
        {"array count absurd", lie([](auto& g) { g.entry("k", arrayHead(0, (1ull << 30) + 1)); }).build(), corrupt,
         "claims 1073741825 elements"},
        {"array longer than the file", lie([](auto& g) { g.entry("k", arrayHead(10, 1ull << 30)); }).build(), corrupt,
         "of 1073741824 elements needs at least"},
        {"array of strings longer than the file", lie([](auto& g) { g.entry("k", arrayHead(8, 1ull << 29)); }).build(),
         corrupt, "elements needs at least"},
        {"array element longer than the file",
         lie([](auto& g) { g.entry("k", arrayHead(8, 1) + ByteWriter().u64(1ull << 50).bytes()); }).build(), corrupt,
         "an element of 'k' needs at least"},
        {"alignment of another type", lie([](auto& g) { g.u64("general.alignment", 32); }).build(), corrupt,
         "'general.alignment' is of type u64 instead of u32"},
        {"alignment no power of two", lie([](auto& g) { g.u32("general.alignment", 48); }).build(), corrupt,
         "'general.alignment' is 48"},
        {"alignment zero", lie([](auto& g) { g.u32("general.alignment", 0); }).build(), corrupt,
         "'general.alignment' is 0"},
        {"alignment absurd", lie([](auto& g) { g.u32("general.alignment", 1u << 31); }).build(), corrupt,
         "'general.alignment' is 2147483648"},
    };
}

std::vector<Hostile> hostileTensors() {
    // Tensor 1 ("b", Q8_0, two rows of 32) is the one that is spoilt.
    const auto spoil = [](const std::function<void(test::TensorSpec&)>& change) {
        return changed([&](GgufWriter& g) { change(g.tensors()[1]); }).build();
    };
    constexpr auto corrupt = ErrorCode::Corrupt;
    constexpr auto unsupported = ErrorCode::Unsupported;
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    return {
        {"tensor without name", spoil([](auto& t) { t.name = ""; }), corrupt, "tensor 1 has no name"},
        {"tensor name too long", spoil([](auto& t) { t.name = std::string(64, 'n'); }), corrupt,
         "claims to be 64 bytes long, at most 63"},
        {"duplicate tensor", spoil([](auto& t) { t.name = "a"; }), corrupt, "the tensor 'a' stands in it twice"},
        {"no dimensions", spoil([](auto& t) { t.dimensions = 0; }), corrupt, "has 0 dimensions"},
        {"five dimensions", spoil([](auto& t) { t.dimensions = 5; }), corrupt, "has 5 dimensions"},
        {"dimension zero", spoil([](auto& t) {
             t.dims = {32, 0};
         }),
         corrupt, "has a dimension of 0"},
        {"dimension negative", spoil([](auto& t) {
             t.dims = {32, -2};
         }),
         corrupt, "has a dimension of -2"},
        {"more values than int64", spoil([](auto& t) {
             t.dims = {1ll << 32, 1ll << 31};
         }),
         corrupt, "more values than can be counted"},
        {"more bytes than int64", spoil([](auto& t) {
             t.dims = {kMost / 2};
             t.type = TensorType::F64;
         }),
         corrupt, "more bytes than can be counted"},
        {"type removed from the format", spoil([](auto& t) { t.typeNumber = 4; }), unsupported, "type number 4"},
        {"type of another program", spoil([](auto& t) { t.typeNumber = 137; }), unsupported, "type number 137"},
        {"row no multiple of the block", spoil([](auto& t) {
             t.dims = {33, 2};
         }),
         corrupt, "rows of 33 values, which Q8_0 cannot hold (blocks of 32)"},
        {"offset overlaps", spoil([](auto& t) { t.offset = 0; }), corrupt, "begins at 0 of the data, expected 32"},
        {"offset leaves a gap", spoil([](auto& t) { t.offset = 64; }), corrupt,
         "begins at 64 of the data, expected 32"},
        {"data longer than the file", spoil([](auto& t) {
             t.dims = {32, 1 << 16};
             t.data = "x";
         }),
         corrupt, "expected"},
    };
}

} // namespace

class TestGgufFile : public QObject {
    Q_OBJECT
private slots:
    void init() { m_path = m_dir.path() + "/model.gguf"; }

    void hostileFileIsRefusedWithItsOwnSentence_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("sentence");
        for (const auto& rows : {hostileHeaders(), hostileMetadata(), hostileTensors()})
            for (const Hostile& row : rows)
                QTest::newRow(row.name) << QByteArray::fromStdString(row.bytes) << static_cast<int>(row.code)
                                        << QString::fromLatin1(row.sentence);
    }

    void hostileFileIsRefusedWithItsOwnSentence() {
        QFETCH(QByteArray, bytes);
        QFETCH(int, code);
        QFETCH(QString, sentence);
        save(m_path, bytes.toStdString());
        const auto file = GgufFile::open(m_path);
        QVERIFY2(!file, "a hostile file was accepted");
        const QString message = QString::fromStdString(file.error().message);
        QVERIFY2(message.contains(sentence), qPrintable(message));
        QVERIFY2(message.startsWith(QString::fromStdString(m_path)), qPrintable(message));
        QVERIFY2(message.endsWith('.'), qPrintable(message));
        QCOMPARE(static_cast<int>(file.error().code), code);
    }

    void everyPrefixOfAGoodFileIsRefused() {
        const std::string whole = good().build();
        for (std::size_t length = 0; length < whole.size(); ++length) {
            save(m_path, whole.substr(0, length));
            const auto file = GgufFile::open(m_path);
            QVERIFY2(!file, qPrintable(QString("accepted with %1 of %2 bytes").arg(length).arg(whole.size())));
            if (length > 0)
                QVERIFY(file.error().message.find("the file has " + std::to_string(length)) != std::string::npos);
        }
    }

    void goodFileIsReadWhole() {
        for (std::uint32_t version : {2u, 3u}) {
            GgufWriter writer = good();
            writer.version = version;
            save(m_path, writer.build());
            const auto file = GgufFile::open(m_path);
            QVERIFY2(file, file ? "" : file.error().message.c_str());
            QCOMPARE(file->version(), version);
            QCOMPARE(file->tensors().size(), std::size_t(3));
            QCOMPARE(file->dataStart() % 32, std::uint64_t(0));
            const TensorInfo* b = file->findTensor("b");
            QVERIFY(b);
            QCOMPARE(b->cols(), std::int64_t(32));
            QCOMPARE(b->rows(), std::int64_t(2));
            QCOMPARE(b->bytes, std::uint64_t(68));
            QCOMPARE(b->rowBytes(), std::uint64_t(34));
            QCOMPARE(b->offset, file->dataStart() + 32);
            QCOMPARE(file->findTensor("c")->offset, file->dataStart() + 32 + 96);
            QCOMPARE(file->dataEnd(), file->identity().bytes);
            QVERIFY(!file->findTensor("d"));
        }
    }

    void anAlignmentOfTheFilesOwnIsKept() {
        GgufWriter writer = good();
        writer.alignment = 256;
        writer.u32("general.alignment", 256);
        save(m_path, writer.build());
        const auto file = GgufFile::open(m_path);
        QVERIFY2(file, file ? "" : file.error().message.c_str());
        QCOMPARE(file->dataStart() % 256, std::uint64_t(0));
        QCOMPARE(file->findTensor("b")->offset, file->dataStart() + 256);
    }

    void integersOfEveryWidthAreAccepted() {
        GgufWriter writer;
        writer.entry("u8", u32Value(ValueType::U8) + '\xC8').entry("i8", u32Value(ValueType::I8) + '\xC8');
        writer.u16("u16", 65000).i32("i32", -7).u32("u32", 4'000'000'000u).u64("u64", 1ull << 40);
        writer.i64("i64", -(1ll << 40)).u64("huge", ~0ull).f32("f32", 0.5f).f64("f64", 0.25).boolean("yes", true);
        writer.i32s("ints", {1, -2, 3}).f32s("floats", {0.5f, 1.5f}).texts("texts", {"", "b", "ccc"}).text("text", "t");
        save(m_path, writer.build());
        const auto file = GgufFile::open(m_path);
        QVERIFY2(file, file ? "" : file.error().message.c_str());
        const GgufMetadata& keys = file->metadata();
        QCOMPARE(keys.integer("u8"), std::optional<std::int64_t>(200));
        QCOMPARE(keys.integer("i8"), std::optional<std::int64_t>(-56));
        QCOMPARE(keys.integer("u16"), std::optional<std::int64_t>(65000));
        QCOMPARE(keys.integer("i32"), std::optional<std::int64_t>(-7));
        QCOMPARE(keys.integer("u32"), std::optional<std::int64_t>(4'000'000'000));
        QCOMPARE(keys.integer("u64"), std::optional<std::int64_t>(1ll << 40));
        QCOMPARE(keys.integer("i64"), std::optional<std::int64_t>(-(1ll << 40)));
        QVERIFY(!keys.integer("huge"));
        QVERIFY(!keys.integer("f32"));
        QVERIFY(!keys.integer("absent"));
        QCOMPARE(keys.real("f32"), std::optional<double>(0.5));
        QCOMPARE(keys.real("f64"), std::optional<double>(0.25));
        QCOMPARE(keys.real("u16"), std::optional<double>(65000));
        QCOMPARE(keys.boolean("yes"), std::optional<bool>(true));
        QVERIFY(!keys.boolean("u8"));
        QVERIFY(keys.string("text") == "t");
        QVERIFY(keys.integers("ints") == std::vector<std::int64_t>({1, -2, 3}));
        QVERIFY(keys.reals("floats") == std::vector<double>({0.5, 1.5}));
        QVERIFY(keys.strings("texts") == std::vector<std::string_view>({"", "b", "ccc"}));
        QVERIFY(!keys.integers("texts"));
        QVERIFY(!keys.strings("ints"));
        QVERIFY(keys.keys().front() == "u8");
    }

    void tensorTypesHaveTheSizesOfTheFormat() {
        const std::pair<TensorType, std::pair<std::uint32_t, std::uint32_t>> expected[] = {
            {TensorType::F32, {1, 4}},      {TensorType::F16, {1, 2}},      {TensorType::BF16, {1, 2}},
            {TensorType::Q4_0, {32, 18}},   {TensorType::Q4_1, {32, 20}},   {TensorType::Q5_0, {32, 22}},
            {TensorType::Q5_1, {32, 24}},   {TensorType::Q8_0, {32, 34}},   {TensorType::IQ4_NL, {32, 18}},
            {TensorType::MXFP4, {32, 17}},  {TensorType::NVFP4, {64, 36}},  {TensorType::Q2_K, {256, 84}},
            {TensorType::Q3_K, {256, 110}}, {TensorType::Q4_K, {256, 144}}, {TensorType::Q5_K, {256, 176}},
            {TensorType::Q6_K, {256, 210}}, {TensorType::Q8_K, {256, 292}}, {TensorType::IQ4_XS, {256, 136}}};
        for (const auto& [type, size] : expected) {
            QCOMPARE(tensorTypeTraits(type).blockValues, size.first);
            QCOMPARE(tensorTypeTraits(type).blockBytes, size.second);
        }
        for (std::uint32_t removed : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 97u, ~0u})
            QVERIFY(!tensorTypeFromFile(removed));
    }

    void whatIsNoFileIsSaidAsWhatItIs() {
        const auto message = [](const std::string& path) {
            const auto file = GgufFile::open(path);
            return file ? QString("opened") : QString::fromStdString(file.error().message);
        };
        QVERIFY(message(m_dir.path()).contains("is a folder"));
        QVERIFY(message(m_dir.path() + "/absent.gguf").contains("does not exist"));
        QVERIFY(message("/dev/null").contains("is not a regular file"));
        const std::string circle = m_dir.path() + "/circle.gguf";
        QCOMPARE(::symlink(circle.c_str(), circle.c_str()), 0);
        QVERIFY(message(circle).endsWith("is a symbolic link that leads in a circle. Choose the file itself, or make "
                                         "the link anew."));
        const std::string socket = m_dir.path() + "/s"; // cannot be opened at all, like a terminal that is not there
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
        const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
        QCOMPARE(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        ::close(descriptor);
        QVERIFY2(message(socket).endsWith("is not a regular file. Choose a .gguf file."), qPrintable(message(socket)));
    }

    void namesFromTheFileCannotBreakASentence() {
        QCOMPARE(forSentence("plain \xC3\xA9"), std::string("plain \xC3\xA9"));
        QCOMPARE(forSentence("a\nb\x1B[31m"), std::string("a\xEF\xBF\xBD"
                                                          "b\xEF\xBF\xBD[31m"));
        QCOMPARE(forSentence("\xFF\xC0\xAF"), std::string("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
        QVERIFY(forSentence(std::string(1000, 'x')).size() < 100);
    }

    void missingPieceBesideIsNamed() {
        const std::string whole = good().build();
        save(m_path, whole.substr(0, whole.size() / 2));
        save(m_dir.path() + "/model.part2", whole.substr(whole.size() / 2));
        const auto file = GgufFile::open(m_path);
        QVERIFY(!file);
        // Half of this small file ends inside its header: nothing is known about the size then.
        QVERIFY(file.error().message.find("Download it again") != std::string::npos);

        save(m_path, whole.substr(0, whole.size() - 40));
        save(m_dir.path() + "/model.part2", whole.substr(whole.size() - 40));
        const auto cut = GgufFile::open(m_path);
        QVERIFY(!cut);
        QVERIFY2(cut.error().message.find("'model.part2' beside it") != std::string::npos, cut.error().message.c_str());
        QVERIFY(cut.error().message.find("cat 'model.gguf' 'model.part2'") != std::string::npos);
        std::filesystem::remove(m_dir.path() + "/model.part2");

        save(m_dir.path() + "/model.part-b", whole.substr(whole.size() - 40, 10));
        save(m_dir.path() + "/model.part-c", whole.substr(whole.size() - 30, 20));
        save(m_dir.path() + "/model.part-d", whole.substr(whole.size() - 10));
        const auto first = GgufFile::open(m_path);
        QVERIFY(!first);
        QVERIFY2(first.error().message.find("cat 'model.gguf' 'model.part-b' 'model.part-c' 'model.part-d'") !=
                     std::string::npos,
                 first.error().message.c_str());
        for (const char* part : {"/model.part-b", "/model.part-c", "/model.part-d"})
            std::filesystem::remove(m_dir.path() + part);

        // A file that begins as a model does is no continuation, whatever its size.
        save(m_dir.path() + "/a-model", whole.substr(0, 40));
        QVERIFY(GgufFile::open(m_path).error().message.find("Download it again") != std::string::npos);
        save(m_dir.path() + "/model.part2", whole.substr(whole.size() - 40));
        QVERIFY(GgufFile::open(m_path).error().message.find("cat 'model.gguf' 'model.part2'") != std::string::npos);
        for (const char* part : {"/a-model", "/model.part2"})
            std::filesystem::remove(m_dir.path() + part);

        // The name of a file is any bytes: neither a terminal nor a command line gets them as they are.
        for (const std::string name : {"p\x1B[31m\n", "it's"}) {
            save(m_dir.path() + "/" + name, whole.substr(whole.size() - 40));
            const std::string sentence = GgufFile::open(m_path).error().message;
            QVERIFY2(sentence.find("'" + forSentence(name) + "' beside it") != std::string::npos, sentence.c_str());
            QVERIFY2(sentence.find("cat ") == std::string::npos, sentence.c_str());
            QVERIFY(sentence.find_first_of("\n\x1B") == std::string::npos);
            std::filesystem::remove(m_dir.path() + "/" + name);
        }
    }

private:
    test::TempDir m_dir;
    std::string m_path;
};

QTEST_APPLESS_MAIN(TestGgufFile)
#include "test_gguf_file.moc"
