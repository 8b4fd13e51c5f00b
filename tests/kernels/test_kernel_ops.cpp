// SPDX-License-Identifier: GPL-3.0-or-later
// Each kernel of each instruction set against float64, over odd shapes and extreme values, and the promises that make
// results exact: one row equals many rows bit for bit, and AVX2, AVX-512 and VNNI agree with each other bit for bit.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/step_buffers.h"
#include "kernels/cpu/weight_packing.h"
#include "tests/kernels/kernel_tables.h"
#include "tests/kernels/tiny_model.h"

using namespace kvscope::kernels;
using namespace kvscope::tests;

namespace {

const DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1};

/// A panel with room for `rows`, both forms.
struct TestPanel {
    TestPanel(std::int64_t rows, std::int64_t cols, bool quants) {
        const std::int64_t padded = (rows + kTileRows - 1) / kTileRows * kTileRows;
        panel.cols = cols;
        if (quants) {
            panel.quants = arena.allocateArray<std::int8_t>(static_cast<std::size_t>(padded * cols));
            panel.scales = arena.allocateArray<float>(static_cast<std::size_t>(padded * cols / 32));
            panel.minusSums = arena.allocateArray<std::int32_t>(static_cast<std::size_t>(padded * cols / 32));
            panel.scaledSums = arena.allocateArray<float>(static_cast<std::size_t>(padded * cols / 32));
        } else {
            panel.floats = arena.allocateArray<float>(static_cast<std::size_t>(padded * cols));
        }
    }
    Arena arena;
    Panel panel;
};

std::vector<float> runMatmul(const KernelTable& k, const PackedWeight& w, const std::vector<float>& x,
                             std::int64_t rows, const float* bias = nullptr, bool add = false, float before = 0) {
    TestPanel p(rows, w.cols, isQuantized(w.type));
    for (std::int64_t r = 0; r < rows; ++r)
        k.packRow(x.data() + r * w.cols, p.panel, r);
    std::vector<float> out(static_cast<std::size_t>(rows * w.rows), before);
    MatmulArgs args;
    args.weight = &w;
    args.panel = &p.panel;
    args.lastGroup = w.groups;
    args.lastRow = rows;
    args.out = out.data();
    args.stride = w.rows;
    args.bias = bias;
    args.add = add;
    k.matmul(args);
    return out;
}

/// The int8 rounding of activations that quantized weights see, in exact arithmetic: what is left is float rounding.
std::vector<double> roundedActivations(const std::vector<float>& x) {
    std::vector<double> out(x.size());
    for (std::size_t b = 0; b < x.size(); b += 32) {
        float largest = 0;
        for (std::size_t i = b; i < b + 32; ++i)
            largest = std::max(largest, std::fabs(x[i]));
        const float inverse = largest > 0 ? 127.0f / largest : 0.0f;
        for (std::size_t i = b; i < b + 32; ++i)
            out[i] = std::nearbyint(x[i] * inverse) * static_cast<double>(largest / 127.0f);
    }
    return out;
}

} // namespace

class TestKernelOps : public QObject {
    Q_OBJECT
private slots:
    void matmulIsExactUpToFloatRounding() {
        std::mt19937 random(1);
        for (const KernelTable* k : tablesHere())
            for (DType type : kTypes)
                for (const auto& [outputs, cols] : {std::pair{2, 32}, {16, 64}, {33, 96}, {75, 544}}) {
                    const std::int64_t width = isQuantized(type) ? cols : cols - 5;
                    const FileWeight file = randomWeight(random, "w", type, outputs, width, 0.5);
                    Arena arena;
                    const auto packed = packWeight(file.desc(), arena);
                    QVERIFY2(bool(packed), packed.error.message.c_str());
                    const std::int64_t rows = 11;
                    std::vector<float> x = normals(random, static_cast<std::size_t>(rows * width));
                    for (std::int64_t i = 0; i < width; ++i) // an all-zero row, and one with a huge value
                        x[static_cast<std::size_t>(2 * width + i)] = 0;
                    x[static_cast<std::size_t>(3 * width)] = 3e4f;
                    const std::vector<float> bias = normals(random, static_cast<std::size_t>(outputs));
                    const auto got = runMatmul(*k, *packed.value, x, rows, bias.data(), true, 0.25f);
                    std::vector<double> exactX(x.begin(), x.end());
                    if (isQuantized(type))
                        exactX = roundedActivations(x);
                    for (std::int64_t r = 0; r < rows; ++r)
                        for (std::int64_t o = 0; o < outputs; ++o) {
                            double sum = 0.25 + static_cast<double>(bias[static_cast<std::size_t>(o)]), size = 1;
                            for (std::int64_t c = 0; c < width; ++c) {
                                const double product = file.values[static_cast<std::size_t>(o * width + c)] *
                                                       exactX[static_cast<std::size_t>(r * width + c)];
                                sum += product;
                                size += std::fabs(product);
                                if (type == DType::Q4_1) // its two terms, scale and minimum, may cancel
                                    size += 1.5 * std::fabs(exactX[static_cast<std::size_t>(r * width + c)]);
                            }
                            const double error =
                                std::fabs(static_cast<double>(got[static_cast<std::size_t>(r * outputs + o)]) - sum);
                            QVERIFY2(error < 4e-6 * size, qPrintable(QStringLiteral("%1 type %2, %3 x %4, output %5: "
                                                                                    "error %6 of %7")
                                                                         .arg(k->name)
                                                                         .arg(int(type))
                                                                         .arg(outputs)
                                                                         .arg(width)
                                                                         .arg(o)
                                                                         .arg(error)
                                                                         .arg(size)));
                        }
                }
    }

    void oneRowEqualsManyRowsBitForBit() {
        std::mt19937 random(2);
        for (const KernelTable* k : tablesHere())
            for (DType type : kTypes) {
                Arena arena;
                const FileWeight file = randomWeight(random, "w", type, 40, 160, 0.3);
                const PackedWeight w = *packWeight(file.desc(), arena).value;
                const std::vector<float> x = normals(random, 19 * 160);
                const auto together = runMatmul(*k, w, x, 19);
                for (std::int64_t rows : {1, 2, 3, 5, 8, 13})
                    for (std::int64_t first = 0; first + rows <= 19; first += rows) {
                        const std::vector<float> part(x.begin() + first * 160, x.begin() + (first + rows) * 160);
                        const auto alone = runMatmul(*k, w, part, rows);
                        QVERIFY2(std::memcmp(alone.data(), together.data() + first * 40, alone.size() * 4) == 0,
                                 qPrintable(QStringLiteral("%1 type %2: %3 rows from %4")
                                                .arg(k->name)
                                                .arg(int(type))
                                                .arg(rows)
                                                .arg(first)));
                    }
            }
    }

    void vectorInstructionSetsAgreeBitForBit() {
        const auto tables = tablesHere();
        if (tables.size() < 3)
            QSKIP("This processor has fewer than two vector instruction sets.");
        std::mt19937 random(3);
        for (DType type : kTypes) {
            Arena arena;
            const FileWeight file = randomWeight(random, "w", type, 50, 128, 0.3);
            const PackedWeight w = *packWeight(file.desc(), arena).value;
            const std::vector<float> x = normals(random, 9 * 128);
            const auto first = runMatmul(*tables[1], w, x, 9);
            for (std::size_t i = 2; i < tables.size(); ++i)
                QVERIFY2(sameBits(first, runMatmul(*tables[i], w, x, 9)), tables[i]->name);
        }
    }

    void extremeBytesDoNotOverflow() {
        // All weights at the end of their range against activations at theirs: what a 16-bit intermediate would break.
        for (const KernelTable* k : tablesHere())
            for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_1})
                for (int byte : {0x00, 0x7f, 0x80, 0xff})
                    for (float value : {-1.0f, 1.0f}) {
                        FileWeight file{"w", type, 16, 64, {}, {}};
                        const std::size_t size = type == DType::Q8_0 ? 34 : type == DType::Q4_1 ? 20 : 18;
                        file.bytes.assign(16 * 2 * size, static_cast<std::byte>(byte));
                        for (std::size_t b = 0; b < 32; ++b) {
                            const std::uint16_t one = 0x3c00, half = 0x3800;
                            std::memcpy(file.bytes.data() + b * size, &one, 2);
                            if (type == DType::Q4_1)
                                std::memcpy(file.bytes.data() + b * size + 2, &half, 2);
                        }
                        Arena arena;
                        const PackedWeight w = *packWeight(file.desc(), arena).value;
                        const auto got = runMatmul(*k, w, std::vector<float>(64, value), 1);
                        double per = 0;
                        if (type == DType::Q8_0)
                            per = static_cast<std::int8_t>(byte);
                        else
                            per = ((byte & 15) + (byte >> 4)) / 2.0 + (type == DType::Q4_0 ? -8.0 : 0.5);
                        for (float y : got)
                            QVERIFY2(std::fabs(static_cast<double>(y) - per * 64 * static_cast<double>(value)) < 1e-3,
                                     qPrintable(QStringLiteral("%1 %2: %3").arg(k->name).arg(byte).arg(y)));
                    }
    }

    void unpackedRowsEqualTheReferenceDequantizers() {
        QFile file(QStringLiteral(KVSCOPE_TEST_DATA "/kernels/dequant.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonObject types = QJsonDocument::fromJson(file.readAll()).object()["types"].toObject();
        QCOMPARE(types.size(), 6);
        for (const QString& name : types.keys()) {
            const QJsonObject entry = types[name].toObject();
            const QByteArray raw = QByteArray::fromHex(entry["raw"].toString().toLatin1());
            const QJsonArray values = entry["values"].toArray();
            const auto type = static_cast<DType>(entry["ggml_type"].toInt());
            const std::int64_t count = values.size();
            QByteArray twice = raw + raw; // a matrix of two equal rows
            Arena arena;
            const auto packed =
                packWeight({name.toStdString(), type, 2, count, reinterpret_cast<const std::byte*>(twice.constData()),
                            static_cast<std::size_t>(twice.size())},
                           arena);
            QVERIFY2(bool(packed), packed.error.message.c_str());
            for (const KernelTable* k : tablesHere())
                for (std::int64_t row : {0, 1}) {
                    std::vector<float> out(static_cast<std::size_t>(count));
                    k->unpackRow(*packed.value, row, 1.0f, out.data());
                    for (std::int64_t i = 0; i < count; ++i)
                        QCOMPARE(out[static_cast<std::size_t>(i)], static_cast<float>(values[i].toDouble()));
                }
        }
    }

    void goldenBlocks() {
        // Byte i = (37 i + 11) & 255, d := 0.5, m := 0.25; sums from the reference implementation.
        struct Golden {
            DType type;
            int bytes;
            double sum, weighted;
            std::vector<std::pair<int, float>> values;
        };
        const Golden cases[] = {
            {DType::Q4_0, 18, -10.5, -259, {{0, -1.5f}, {1, 1}, {15, -4}, {16, -1.5f}, {17, -0.5f}, {31, 0}}},
            {DType::Q4_1, 20, 130.5, 2123.5, {{0, 7.75f}, {1, 2.25f}, {15, 5.25f}, {16, 4.75f}, {17, 6.25f}}},
            {DType::Q8_0, 34, -88, -4040, {{0, 42.5f}, {1, 61}, {15, -64}, {16, -45.5f}, {17, -27}, {31, -24}}}};
        for (const Golden& g : cases) {
            std::vector<std::byte> block;
            for (int i = 0; i < g.bytes; ++i)
                block.push_back(static_cast<std::byte>((37 * i + 11) & 255));
            const std::uint16_t d = 0x3800, m = 0x3400;
            std::memcpy(block.data(), &d, 2);
            if (g.type == DType::Q4_1)
                std::memcpy(block.data() + 2, &m, 2);
            std::vector<std::byte> rows = block;
            rows.insert(rows.end(), block.begin(), block.end());
            Arena arena;
            const PackedWeight w = *packWeight({"golden", g.type, 2, 32, rows.data(), rows.size()}, arena).value;
            for (const KernelTable* k : tablesHere()) {
                float y[32];
                k->unpackRow(w, 1, 1.0f, y);
                double sum = 0, weighted = 0;
                for (int i = 0; i < 32; ++i) {
                    sum += static_cast<double>(y[i]);
                    weighted += (i + 1) * static_cast<double>(y[i]);
                }
                QCOMPARE(sum, g.sum);
                QCOMPARE(weighted, g.weighted);
                for (const auto& [i, value] : g.values)
                    QCOMPARE(y[i], value);
            }
        }
    }

    void impossibleWeightsAreRefusedByName() {
        std::mt19937 random(4);
        Arena arena;
        FileWeight w = randomWeight(random, "blk.0.attn_q.weight", DType::Q8_0, 4, 64, 1);
        WeightDesc desc = w.desc();
        desc.cols = 48;
        auto packed = packWeight(desc, arena);
        QVERIFY(!packed);
        QVERIFY(packed.error.message.find("blk.0.attn_q.weight") != std::string::npos);
        QVERIFY(packed.error.message.find("multiple of 32") != std::string::npos);
        desc = w.desc();
        desc.bytes -= 1;
        QVERIFY(!packWeight(desc, arena));
        desc = w.desc();
        desc.type = static_cast<DType>(14);
        packed = packWeight(desc, arena);
        QVERIFY(!packed);
        QVERIFY(packed.error.message.find("14") != std::string::npos);
        FileWeight vector = randomWeight(random, "norm", DType::Q8_0, 1, 64, 1);
        QVERIFY(!packWeight(vector.desc(), arena));
    }

    void normAndActivations() {
        std::mt19937 random(5);
        for (const KernelTable* k : tablesHere())
            for (std::int64_t n : {1, 15, 16, 17, 576, 1000}) {
                const auto count = static_cast<std::size_t>(n);
                const std::vector<float> x = normals(random, count, 3), w = normals(random, count);
                std::vector<float> y(count);
                k->rmsNorm(x.data(), w.data(), 1e-3f, n, y.data());
                double squares = 0;
                for (float v : x)
                    squares += static_cast<double>(v) * static_cast<double>(v);
                const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-3);
                for (std::size_t i = 0; i < count; ++i) {
                    const double exact = static_cast<double>(x[i]) * scale * static_cast<double>(w[i]);
                    QVERIFY(std::fabs(static_cast<double>(y[i]) - exact) < 1e-6 * (1e-3 + std::fabs(exact)));
                }
                std::vector<float> gate = normals(random, count, 4);
                gate[0] = -200; // silu and gelu vanish without a NaN
                if (n > 2) {
                    gate[1] = 200;
                    gate[2] = 0;
                }
                for (Activation a : {Activation::Silu, Activation::GeluTanh}) {
                    k->activate(a, gate.data(), w.data(), n, y.data());
                    for (std::size_t i = 0; i < count; ++i) {
                        const double g = static_cast<double>(gate[i]);
                        const double act =
                            a == Activation::Silu
                                ? g / (1 + std::exp(-g))
                                : 0.5 * g * (1 + std::tanh(0.7978845608028654 * (g + 0.044715 * g * g * g)));
                        const double exact = act * static_cast<double>(w[i]);
                        // 1 + tanh loses digits in the reference itself where it is nearly 0.
                        QVERIFY2(std::fabs(static_cast<double>(y[i]) - exact) < 2e-6 * std::fabs(exact) + 1e-9,
                                 qPrintable(QStringLiteral("%1: %2 for %3").arg(k->name).arg(y[i]).arg(g)));
                    }
                }
            }
    }

    void exponentials() {
        for (const KernelTable* k : tablesHere()) {
            std::vector<float> x;
            for (float v = -87.3f; v <= 0.0f; v += 0.0137f)
                x.push_back(v);
            x.insert(x.end(),
                     {-1000, -88, -std::numeric_limits<float>::infinity(), 0, std::numeric_limits<float>::quiet_NaN()});
            std::vector<float> y(x.size());
            k->expScaled(x.data(), 0, 1, static_cast<std::int64_t>(x.size()), y.data());
            for (std::size_t i = 0; i + 5 < x.size(); ++i) {
                const double exact = std::exp(static_cast<double>(x[i]));
                QVERIFY(std::fabs(static_cast<double>(y[i]) - exact) < 2e-7 * exact);
            }
            const std::vector<float> ends(y.end() - 5, y.end());
            QCOMPARE(ends, (std::vector<float>{0, 0, 0, 1, 0}));
        }
    }

    void softmaxStatsOfLogits() {
        std::mt19937 random(6);
        const float inf = std::numeric_limits<float>::infinity();
        for (const KernelTable* k : tablesHere()) {
            for (std::size_t n : {1, 7, 16, 33, 5000}) {
                std::vector<float> x = normals(random, n, 5);
                if (n > 16) {
                    x[3] = x[20] = 25; // a tie: the lower index counts
                    x[5] = -inf;
                    x[6] = std::numeric_limits<float>::quiet_NaN();
                }
                const SoftmaxStats stats = k->softmaxStats(x.data(), static_cast<std::int64_t>(n));
                double largest = -1e30, sum = 0;
                std::int32_t index = -1;
                for (std::size_t i = 0; i < n; ++i)
                    if (static_cast<double>(x[i]) > largest) {
                        largest = static_cast<double>(x[i]);
                        index = static_cast<std::int32_t>(i);
                    }
                for (float v : x)
                    if (!std::isnan(v))
                        sum += std::exp(static_cast<double>(v) - largest);
                QCOMPARE(static_cast<double>(stats.maximum), largest);
                QCOMPARE(stats.index, index);
                QVERIFY(std::fabs(stats.sum - sum) < 1e-6 * sum);
            }
            const std::vector<float> nothing(20, -inf);
            QCOMPARE(k->softmaxStats(nothing.data(), 20).index, -1);
        }
    }

    void ropeRotatesPairsAndLeavesTheRest() {
        for (const KernelTable* k : tablesHere())
            for (RopeStyle style : {RopeStyle::Interleaved, RopeStyle::Halves}) {
                const float cosine[] = {0.6f, 0.8f, 1}, sine[] = {0.8f, -0.6f, 0};
                float head[] = {1, 2, 3, 4, 5, 6, 7, 8};
                k->rope(style, head, cosine, sine, 3);
                const int partner = style == RopeStyle::Interleaved ? 1 : 3,
                          step = style == RopeStyle::Interleaved ? 2 : 1;
                for (int i = 0; i < 3; ++i) {
                    const float a = static_cast<float>(i * step + 1), b = a + static_cast<float>(partner);
                    QVERIFY(std::fabs(head[i * step] - (a * cosine[i] - b * sine[i])) < 1e-6f);
                    QVERIFY(std::fabs(head[i * step + partner] - (a * sine[i] + b * cosine[i])) < 1e-6f);
                }
                QCOMPARE(head[6], 7.0f);
                QCOMPARE(head[7], 8.0f);
            }
    }
};

QTEST_APPLESS_MAIN(TestKernelOps)
#include "test_kernel_ops.moc"
