// SPDX-License-Identifier: GPL-3.0-or-later
//
// Numerical audit: each kernel of each instruction set against float64, on random shapes (odd sizes, strides, extremes,
// NaN in everything that must not be read). Prints one row per kernel and instruction set: the largest error met, in
// which unit, and the limit.
//
// Units: "ulp" = last places of the exact result as float32; "u*sum" = 2^-24 x the sum of the magnitudes that were
// added (what one rounding of the largest possible partial sum costs); "step" = steps of a quantization.
#include <QTest>
#include <cstdio>

#include "tests/kernels/kernel_audit.h"

using namespace kvscope::kernels;
using namespace kvscope::tests;
using namespace kvscope::tests::audit;

class TestKernelAudit : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        std::printf("%-34s %-16s %9s %12s %9s  %s\n", "kernel", "set", "values", "largest", "limit", "unit");
    }

    void matrices() {
        for (const DType type : kTypes)
            for (const bool floats : {false, true}) {
                if (floats && !isQuantized(type))
                    continue;
                const std::string name =
                    std::string("matmul ") + typeName(type) + (floats ? ", float activations" : "");
                for (const KernelTable* k : tablesHere()) {
                    Errors errors;
                    Shapes shapes(11);
                    for (int i = 0; i < 12; ++i)
                        auditMatrix(*k, type, floats, shapes, errors);
                    judge(name, *k, errors, 6, "u*sum");
                }
            }
    }

    void dequantization() {
        for (const DType type : kTypes)
            for (const KernelTable* k : tablesHere()) {
                Errors errors;
                Shapes shapes(12);
                for (int i = 0; i < 8; ++i) {
                    const std::int64_t rows = shapes.between(2, 40), cols = 32 * shapes.between(1, 9);
                    const FileWeight file = randomWeight(shapes.random(), "w", type, rows, cols, 0.7);
                    Arena arena;
                    const PackedWeight w = *packWeight(file.desc(), arena).value;
                    std::vector<float> out(static_cast<std::size_t>(cols));
                    for (std::int64_t row = 0; row < rows; ++row) {
                        k->unpackRow(w, row, 1.0f, out.data());
                        for (std::int64_t c = 0; c < cols; ++c) {
                            const double exact = file.values[static_cast<std::size_t>(row * cols + c)];
                            errors.add(out[static_cast<std::size_t>(c)], exact, ulpOf(exact));
                        }
                    }
                }
                judge(std::string("unpackRow ") + typeName(type), *k, errors, 0.5, "ulp");
            }
    }

    void quantizedActivations() {
        for (const KernelTable* k : tablesHere()) {
            Errors errors;
            Shapes shapes(13);
            for (int i = 0; i < 60; ++i) {
                const std::int64_t cols = 32 * shapes.between(1, 12), rows = shapes.between(1, 9);
                std::vector<float> x = shapes.values(rows * cols, 40);
                if (i % 6 == 0) // nothing but subnormal numbers: zero, and no infinite inverse
                    std::fill(x.begin(), x.end(), 1e-40f);
                const AuditPanel panel(*k, x, rows, cols, true);
                for (std::int64_t row = 0; row < rows; ++row)
                    for (std::int64_t c = 0; c < cols; ++c) {
                        const std::int64_t first = row * cols + c / 32 * 32;
                        float largest = 1e-36f;
                        for (std::int64_t n = first; n < first + 32; ++n)
                            largest = std::max(largest, std::fabs(x[static_cast<std::size_t>(n)]));
                        errors.add(panel.at(row, c), x[static_cast<std::size_t>(row * cols + c)],
                                   static_cast<double>(largest) / 127);
                    }
            }
            judge("packRow, 8-bit activations", *k, errors, 0.5001, "step");
        }
    }

    void norms() {
        for (const KernelTable* k : tablesHere()) {
            Errors errors;
            Shapes shapes(14);
            for (int i = 0; i < 40; ++i) {
                const std::int64_t n = i < 20 ? shapes.between(1, 50) : shapes.between(50, 5000);
                const std::vector<float> x = shapes.values(n, 20), weight = shapes.values(n, 2);
                const float eps = i % 2 == 0 ? 1e-5f : 1e-3f;
                std::vector<float> out(static_cast<std::size_t>(n) + 1, kNan), sum = shapes.values(n, 3);
                k->rmsNorm(x.data(), weight.data(), eps, n, out.data());
                QVERIFY(std::isnan(out.back()));
                std::vector<float> added = sum;
                added.push_back(kNan);
                k->addRmsNorm(x.data(), weight.data(), eps, n, added.data());
                QVERIFY(std::isnan(added.back()));
                for (std::size_t c = 0; c < x.size(); ++c)
                    QCOMPARE(added[c], sum[c] + out[c]);
                double squares = 0;
                for (const float v : x)
                    squares += static_cast<double>(v) * static_cast<double>(v);
                const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(eps));
                for (std::size_t c = 0; c < x.size(); ++c) {
                    const double exact = static_cast<double>(x[c]) * scale * static_cast<double>(weight[c]);
                    errors.add(out[c], exact, ulpOf(exact));
                }
            }
            judge("rmsNorm", *k, errors, 6, "ulp");
        }
    }

    void activations() {
        for (const Activation activation : {Activation::Silu, Activation::GeluTanh})
            for (const KernelTable* k : tablesHere()) {
                Errors errors;
                Shapes shapes(15);
                for (int i = 0; i < 60; ++i) {
                    const std::int64_t n = shapes.between(1, 700);
                    std::vector<float> gate = shapes.values(n, 5), up = shapes.values(n, 3);
                    gate.front() = i % 2 == 0 ? -300.0f : 300.0f;
                    std::vector<float> out(gate.size() + 1, kNan);
                    k->activate(activation, gate.data(), up.data(), n, out.data());
                    QVERIFY(std::isnan(out.back()));
                    for (std::size_t c = 0; c < gate.size(); ++c) {
                        const double factor = static_cast<double>(up[c]);
                        const double exact = act(activation, static_cast<double>(gate[c])) * factor;
                        // e^-x stops at e^88: what is smaller than 1e-35 of the gate may be off by all of itself.
                        const double floor = 1e-36 * std::fabs(static_cast<double>(gate[c]) * factor);
                        errors.add(out[c], exact, std::max(ulpOf(exact), floor));
                    }
                }
                // GELU: far left of 0 it is e^z of a z up to -87 that was rounded three times.
                judge(activation == Activation::Silu ? "activate, SiLU" : "activate, GELU", *k, errors,
                      activation == Activation::Silu ? 5 : 200, "ulp");
            }
    }

    void exponentials() {
        for (const KernelTable* k : tablesHere()) {
            Errors errors, sums;
            Shapes shapes(16);
            for (int i = 0; i < 60; ++i) {
                const std::int64_t n = shapes.between(1, 3000);
                std::vector<float> x = shapes.values(n, 4);
                const float largest = *std::max_element(x.begin(), x.end());
                if (i % 3 == 0 && n > 2)
                    x[static_cast<std::size_t>(n / 2)] = kNan; // impossible, not contagious
                const SoftmaxStats stats = k->softmaxStats(x.data(), n);
                double sum = 0, biggest = -1e300;
                for (const float v : x)
                    if (!std::isnan(v))
                        biggest = std::max(biggest, static_cast<double>(v));
                for (const float v : x)
                    if (!std::isnan(v))
                        sum += std::exp(static_cast<double>(v) - biggest);
                QCOMPARE(static_cast<double>(stats.maximum), biggest);
                sums.add(stats.sum, sum, ulpOf(sum));
                std::vector<float> out(x.size() + 1, kNan);
                k->expScaled(x.data(), largest, 1, n, out.data());
                QVERIFY(std::isnan(out.back()));
                for (std::size_t c = 0; c < x.size(); ++c) {
                    const double argument = static_cast<double>(x[c] - largest); // the subtraction is the caller's
                    const double exact = std::isnan(x[c]) ? 0 : std::exp(argument);
                    errors.add(out[c], exact, std::max(ulpOf(exact), 1.2e-38)); // below the normal range: zero
                }
            }
            judge("expScaled", *k, errors, 2, "ulp");
            judge("softmaxStats, sum", *k, sums, 2, "ulp");
        }
    }

    void rotation() {
        for (const RopeStyle style : {RopeStyle::Interleaved, RopeStyle::Halves})
            for (const KernelTable* k : tablesHere()) {
                Errors errors;
                Shapes shapes(17);
                for (int i = 0; i < 60; ++i) {
                    const std::int64_t pairs = shapes.between(1, 70);
                    std::vector<float> head = shapes.values(2 * pairs + 3), cosine, sine;
                    for (std::int64_t p = 0; p < pairs; ++p) {
                        const double angle = static_cast<double>(shapes.between(0, 100000)) / 7;
                        cosine.push_back(static_cast<float>(std::cos(angle)));
                        sine.push_back(static_cast<float>(std::sin(angle)));
                    }
                    const std::vector<float> before = head;
                    k->rope(style, head.data(), cosine.data(), sine.data(), pairs);
                    for (std::int64_t p = 0; p < pairs; ++p) {
                        const auto a = static_cast<std::size_t>(style == RopeStyle::Interleaved ? 2 * p : p);
                        const auto b =
                            static_cast<std::size_t>(style == RopeStyle::Interleaved ? 2 * p + 1 : p + pairs);
                        const double x = before[a], y = before[b];
                        const double c = cosine[static_cast<std::size_t>(p)], s = sine[static_cast<std::size_t>(p)];
                        const double floor = std::numeric_limits<float>::denorm_min();
                        errors.add(head[a], x * c - y * s, floor + kUnit * (std::fabs(x * c) + std::fabs(y * s)));
                        errors.add(head[b], x * s + y * c, floor + kUnit * (std::fabs(x * s) + std::fabs(y * c)));
                    }
                    QVERIFY(std::equal(head.end() - 3, head.end(), before.end() - 3)); // behind the rotated part
                }
                judge(style == RopeStyle::Interleaved ? "rope, interleaved" : "rope, halves", *k, errors, 2, "u*sum");
            }
    }

    void cachedHalves() {
        for (const KernelTable* k : tablesHere()) {
            Errors errors;
            Shapes shapes(18);
            for (int i = 0; i < 30; ++i) {
                const int length = static_cast<int>(shapes.between(1, 90));
                AuditCache cache(shapes, length);
                if (i % 3 == 0)
                    cache.keys.front() = cache.values.back() = 1e30f;
                cache.fill(*k, length);
                const KvAccess& kv = cache.kv;
                for (int p = 0; p < length; ++p) {
                    const std::byte* block =
                        kv.pool + kv.headOffset +
                        static_cast<std::size_t>(cache.table[static_cast<std::size_t>(p / kv.blockSize)]) *
                            kv.blockBytes;
                    const auto compare = [&](const std::byte* place, float value) {
                        std::uint16_t got;
                        std::memcpy(&got, place, 2);
                        const float clamped = std::clamp(value, -65504.0f, 65504.0f);
                        errors.add(halfToFloat(got), halfToFloat(floatToHalf(clamped)), 1e-8);
                    };
                    for (int d = 0; d < kv.headDimK; ++d)
                        compare(block + (d * kv.blockSize + p % kv.blockSize) * 2,
                                cache.keys[static_cast<std::size_t>(p * kv.headDimK + d)]);
                    for (int d = 0; d < kv.headDimV; ++d)
                        compare(block + kv.valueOffset + (p % kv.blockSize * kv.headDimV + d) * 2,
                                cache.values[static_cast<std::size_t>(p * kv.headDimV + d)]);
                }
            }
            judge("storeKey, storeValue", *k, errors, 0, "difference to the nearest half");
        }
    }

    void sealedBlocks() {
        for (const AuditForm& form : kForms) {
            if (form.rotated || form.keys == KvDType::BF16)
                continue;
            for (const KernelTable* k : tablesHere()) {
                Errors errors;
                Shapes shapes(20);
                for (int i = 0; i < 30; ++i) {
                    const int length = static_cast<int>(shapes.between(64, 150));
                    AuditCache cache(shapes, length, form);
                    cache.fill(*k, length);
                    addSealErrors(cache, length, errors);
                }
                judge("sealKeys, sealValues" + formName(form), *k, errors, 0.51, "step");
            }
        }
    }

    /// The codebook against its own promise: each key has the norm it had, and points about where it did.
    void codebookKeys() {
        for (const KernelTable* k : tablesHere()) {
            Errors norms, directions;
            Shapes shapes(21);
            for (int i = 0; i < 20; ++i) {
                AuditCache cache(shapes, 64, {KvDType::Int4, KvDType::F16, true});
                for (float& v : cache.keys) // what a rotation makes of keys
                    v = std::normal_distribution<float>(0, 1)(shapes.random());
                cache.fill(*k, 64);
                for (int p = 0; p < 64; ++p) {
                    double was = 0, is = 0, dot = 0;
                    for (int d = 0; d < cache.kv.headDimK; ++d) {
                        const double x = cache.keys[static_cast<std::size_t>(p * cache.kv.headDimK + d)];
                        const double y = cache.keyAt(p, d, 1000);
                        was += x * x;
                        is += y * y;
                        dot += x * y;
                    }
                    norms.add(std::sqrt(is), std::sqrt(was), std::sqrt(was) * 0x1p-11); // its factor is a half
                    if (cache.kv.headDimK >= 32)
                        directions.add(1 - dot / std::sqrt(is * was), 0, 0.0095); // distortion of 16 Lloyd-Max levels
                }
            }
            judge("codebook, norm of a key", *k, norms, 2, "2^-11");
            judge("codebook, direction of a key", *k, directions, 2.5, "its variance");
        }
    }

    void quantizedAttention() {
        for (const AuditForm& form : kForms)
            for (const KernelTable* k : tablesHere()) {
                Errors decode, prefill;
                Shapes shapes(22);
                for (int i = 0; i < 8; ++i) {
                    const bool several = i >= 6;
                    const int length = static_cast<int>(several ? shapes.between(257, 600) : shapes.between(1, 150));
                    auditAttention(*k, shapes, length, several ? 3 : kAttentionTokens, decode, prefill, form);
                }
                judge("attendPartition" + formName(form), *k, decode, 24, "u*sum");
                judge("attendTokens" + formName(form), *k, prefill, 24, "u*sum");
            }
    }

    void attention() {
        for (const KernelTable* k : tablesHere()) {
            Errors decode, prefill;
            Shapes shapes(19);
            for (int i = 0; i < 14; ++i) {
                const bool several = i >= 10; // partitions
                const int length = static_cast<int>(several ? shapes.between(257, 600) : shapes.between(1, 90));
                auditAttention(*k, shapes, length, several ? 3 : kAttentionTokens, decode, prefill);
            }
            judge("attendPartition, combinePartials", *k, decode, 16, "u*sum");
            judge("attendTokens", *k, prefill, 16, "u*sum");
        }
    }

private:
    static constexpr AuditForm kForms[] = {
        {KvDType::BF16, KvDType::BF16, false}, {KvDType::Fp8E4M3, KvDType::Fp8E4M3, false},
        {KvDType::Int8, KvDType::Int8, false}, {KvDType::Int4, KvDType::Int4, false},
        {KvDType::Int4, KvDType::Int4, true},  {KvDType::F16, KvDType::Int4, false},
        {KvDType::Int8, KvDType::F16, false},
    };
    static std::string formName(const AuditForm& form) {
        return std::string(", ") + kvDTypeName(form.keys) + (form.rotated ? " (codebook) " : " ") +
               kvDTypeName(form.values);
    }

    /// Every code against the half it stands for, in steps of its scale.
    static void addSealErrors(const AuditCache& cache, int length, Errors& errors) {
        const KvAccess& kv = cache.kv;
        const int size = kv.blockSize;
        const auto unit = [](KvCode code, double largest, double range, double value) {
            if (code == KvCode::Fp8)
                return std::max(0x1p-9, std::ldexp(1.0, std::ilogb(std::max(std::fabs(value), 0x1p-6)) - 3));
            return (code == KvCode::Int8 ? largest / 127 : range / 15) + 0x1p-24; // a scale is a half
        };
        for (int first = 0; first + size <= length; first += size)
            for (int d = 0; d < kv.headDimK && cache.keysSealed(); ++d) {
                double low = 1e30, high = -1e30;
                for (int i = first; i < first + size; ++i) {
                    low = std::min(low, static_cast<double>(cache.keys[static_cast<std::size_t>(i * kv.headDimK + d)]));
                    high =
                        std::max(high, static_cast<double>(cache.keys[static_cast<std::size_t>(i * kv.headDimK + d)]));
                }
                for (int i = first; i < first + size; ++i) {
                    const double exact =
                        halfToFloat(floatToHalf(cache.keys[static_cast<std::size_t>(i * kv.headDimK + d)]));
                    errors.add(cache.keyAt(i, d, length + size), exact,
                               unit(kv.keyCode, std::max(-low, high), high - low, exact));
                }
            }
        for (int i = 0; i < length / size * size && cache.valuesSealed(); ++i)
            for (int g = 0; g < kv.headDimV; g += kKvGroup) {
                const int end = std::min(kv.headDimV, g + kKvGroup);
                double low = 1e30, high = -1e30;
                for (int d = g; d < end; ++d) {
                    const double value = cache.values[static_cast<std::size_t>(i * kv.headDimV + d)];
                    low = std::min(low, value);
                    high = std::max(high, value);
                }
                for (int d = g; d < end; ++d) {
                    const double exact =
                        halfToFloat(floatToHalf(cache.values[static_cast<std::size_t>(i * kv.headDimV + d)]));
                    errors.add(cache.valueAt(i, d, length + size), exact,
                               unit(kv.valueCode, std::max(-low, high), high - low, exact));
                }
            }
    }

    static void judge(const std::string& kernel, const KernelTable& k, const Errors& errors, double limit,
                      const char* unit) {
        std::printf("%-34s %-16s %9zu %12.3g %9.3g  %s\n", kernel.c_str(), k.name, errors.values(), errors.largest(),
                    limit, unit);
        QVERIFY(errors.values() >= 60);
        QVERIFY2(errors.largest() <= limit, (kernel + ", " + k.name).c_str());
    }

    static void auditMatrix(const KernelTable& k, DType type, bool floats, Shapes& shapes, Errors& errors) {
        const bool quantized = isQuantized(type);
        const std::int64_t outputs = shapes.between(2, 70), rows = shapes.between(1, 20);
        const std::int64_t cols = quantized ? 32 * shapes.between(1, 20) : shapes.between(1, 640);
        const FileWeight file = randomWeight(shapes.random(), "w", type, outputs, cols, 0.5);
        Arena arena;
        const PackedWeight w = *packWeight(file.desc(), arena, floats).value;
        const std::vector<float> x = shapes.values(rows * cols, 20), bias = shapes.values(outputs + 16, 0);
        const AuditPanel panel(k, x, rows, cols, quantized && !floats);
        const std::int64_t stride = outputs + shapes.between(0, 9); // what lies between the rows stays as it is
        std::vector<float> out(static_cast<std::size_t>(rows * stride), kNan);
        MatmulArgs args;
        args.weight = &w;
        args.panel = &panel.panel;
        args.lastGroup = w.groups;
        args.lastRow = rows;
        args.out = out.data();
        args.stride = stride;
        args.bias = bias.data();
        k.matmul(args);
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t o = 0; o < stride; ++o) {
                const float got = out[static_cast<std::size_t>(row * stride + o)];
                if (o >= outputs) {
                    QVERIFY(std::isnan(got));
                    continue;
                }
                double sum = bias[static_cast<std::size_t>(o)], size = std::fabs(sum) + 1e-37;
                for (std::int64_t c = 0; c < cols; ++c) {
                    const double product = file.values[static_cast<std::size_t>(o * cols + c)] * panel.at(row, c);
                    sum += product;
                    size += std::fabs(product);
                }
                errors.add(got, sum, kUnit * size);
            }
    }

    static void auditAttention(const KernelTable& k, Shapes& shapes, int length, std::int64_t mostTokens,
                               Errors& decode, Errors& prefill, const AuditForm& form = {}) {
        AuditCache cache(shapes, length, form);
        cache.fill(k, length);
        AttentionArgs args;
        args.kv = cache.kv;
        args.open = cache.openBlocks();
        args.table = cache.table.data();
        args.group = static_cast<std::int32_t>(shapes.between(1, 20));
        args.scale = 1.0f / std::sqrt(static_cast<float>(cache.kv.headDimK));
        args.tokens = std::min<std::int64_t>(length, shapes.between(1, mostTokens));
        args.firstPosition = length - args.tokens;
        const std::int64_t dimK = cache.kv.headDimK, dimV = cache.kv.headDimV;
        args.qStride = args.group * dimK + shapes.between(0, 5);
        const std::vector<float> q = shapes.values(args.tokens * args.qStride, 1);
        args.q = q.data();
        const std::int64_t outStride = args.group * dimV + shapes.between(0, 5);
        std::vector<float> out(static_cast<std::size_t>(args.tokens * outStride), kNan);
        std::vector<float> scratch(static_cast<std::size_t>(attentionScratchFloats(args.group, dimK, dimV)), kNan);
        k.attendTokens(args, out.data(), outStride, scratch.data());

        for (std::int64_t t = 0; t < args.tokens; ++t) {
            const int seen = static_cast<int>(args.firstPosition + t + 1);
            const std::vector<float> alone = decodeToken(k, args, t, seen);
            for (std::int32_t h = 0; h < args.group; ++h) {
                double size = 0;
                const std::vector<double> exact =
                    cache.exact(q.data() + t * args.qStride + h * dimK, args.scale, seen, size);
                for (std::int64_t d = 0; d < dimV; ++d) {
                    const double wanted = exact[static_cast<std::size_t>(d)];
                    decode.add(alone[static_cast<std::size_t>(h * dimV + d)], wanted, kUnit * size);
                    prefill.add(out[static_cast<std::size_t>(t * outStride + h * dimV + d)], wanted, kUnit * size);
                }
            }
        }
    }

    /// One token by partitions, as decode does it.
    static std::vector<float> decodeToken(const KernelTable& k, AttentionArgs args, std::int64_t token, int seen) {
        const std::int64_t dimV = args.kv.headDimV, record = args.group * (2 + dimV);
        args.q += token * args.qStride;
        args.firstPosition = seen - 1;
        args.tokens = 1;
        const std::int64_t parts = (seen + kPartition - 1) / kPartition;
        std::vector<float> partials(static_cast<std::size_t>(record * parts), kNan);
        std::vector<float> scratch(static_cast<std::size_t>(attentionScratchFloats(args.group, args.kv.headDimK, dimV)),
                                   kNan);
        for (std::int64_t p = 0; p < parts; ++p)
            k.attendPartition(args, p * kPartition, std::min<std::int64_t>(seen, (p + 1) * kPartition),
                              partials.data() + p * record, scratch.data());
        std::vector<float> out(static_cast<std::size_t>(args.group * dimV), kNan);
        k.combinePartials(partials.data(), 0, 0, parts, args.group, args.kv.headDimV, out.data());
        return out;
    }
};

QTEST_APPLESS_MAIN(TestKernelAudit)
#include "test_kernel_audit.moc"
