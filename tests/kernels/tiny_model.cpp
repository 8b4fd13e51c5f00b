// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernels/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace kvscope::tests {

using namespace kernels;

float halfToFloat(std::uint16_t half) {
    const int exponent = (half >> 10) & 31, mantissa = half & 1023;
    const float sign = half & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31)
        return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
    return sign * (exponent ? std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25)
                            : std::ldexp(static_cast<float>(mantissa), -24));
}

std::uint16_t floatToHalf(float value) {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(static_cast<double>(value));
    if (std::isnan(value))
        return 0x7e00;
    if (magnitude >= 65520)
        return sign | 0x7c00;
    if (magnitude == 0)
        return sign;
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int scale = std::max(exponent - 11, -24); // the unit of the last place
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -scale)));
    // Units of 2^scale: with the hidden bit at 1024 the exponent field is scale + 25, minus that bit.
    return static_cast<std::uint16_t>(sign | (((scale + 24) << 10) + units));
}

namespace {

template <class T> void put(std::vector<std::byte>& bytes, const T& value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof value);
}

/// A random scale whose quantized values then deviate by about `deviation`.
std::uint16_t randomScale(std::mt19937& random, double deviation, double spread) {
    std::uniform_real_distribution<float> factor(0.5f, 1.5f);
    return floatToHalf(static_cast<float>(deviation / spread) * factor(random));
}

void putQuantizedBlock(std::mt19937& random, FileWeight& out, double deviation) {
    std::uniform_int_distribution<int> byte(0, 255);
    const bool eight = out.type == DType::Q8_0;
    const std::uint16_t d = randomScale(random, deviation, eight ? 74 : 4.6);
    put(out.bytes, d);
    std::uint16_t m = 0;
    if (out.type == DType::Q4_1) {
        m = floatToHalf(-7.5f * halfToFloat(d) * std::uniform_real_distribution<float>(0.8f, 1.2f)(random));
        put(out.bytes, m);
    }
    double values[32];
    for (int i = 0; i < (eight ? 32 : 16); ++i) {
        const auto b = static_cast<std::uint8_t>(byte(random));
        put(out.bytes, b);
        if (eight) {
            values[i] = double(halfToFloat(d)) * static_cast<std::int8_t>(b);
            continue;
        }
        const int offset = out.type == DType::Q4_0 ? 8 : 0;
        values[i] = double(halfToFloat(d)) * ((b & 15) - offset) + double(halfToFloat(m));
        values[i + 16] = double(halfToFloat(d)) * ((b >> 4) - offset) + double(halfToFloat(m));
    }
    out.values.insert(out.values.end(), values, values + 32);
}

double roundToHalf(double value) {
    return halfToFloat(floatToHalf(static_cast<float>(value)));
}

std::vector<double> rms(const double* x, const FileWeight& norm, double eps) {
    const std::size_t n = norm.values.size();
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i)
        sum += x[i] * x[i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + eps);
    std::vector<double> out(n);
    for (std::size_t i = 0; i < n; ++i)
        out[i] = x[i] * scale * norm.values[i];
    return out;
}

std::vector<double> multiply(const FileWeight& w, const std::vector<double>& x, const FileWeight* bias = nullptr) {
    std::vector<double> out(static_cast<std::size_t>(w.rows));
    for (std::size_t r = 0; r < out.size(); ++r) {
        double sum = bias ? bias->values[r] : 0;
        for (std::size_t c = 0; c < x.size(); ++c)
            sum += w.values[r * x.size() + c] * x[c];
        out[r] = sum;
    }
    return out;
}

/// Causal attention of the token at position t to positions from `first` on, all heads.
std::vector<double> attend(const TinyShape& s, const std::vector<double>& q, const std::vector<std::vector<double>>& k,
                           const std::vector<std::vector<double>>& v, const std::vector<std::size_t>& seen) {
    const auto dk = static_cast<std::size_t>(s.headDimK), dv = static_cast<std::size_t>(s.headDimV);
    std::vector<double> o(static_cast<std::size_t>(s.heads) * dv);
    for (int head = 0; head < s.heads; ++head) {
        const auto kvHead = static_cast<std::size_t>(head / (s.heads / s.kvHeads));
        std::vector<double> score(seen.size());
        for (std::size_t j = 0; j < seen.size(); ++j)
            for (std::size_t d = 0; d < dk; ++d)
                score[j] += q[static_cast<std::size_t>(head) * dk + d] * k[seen[j]][kvHead * dk + d] /
                            std::sqrt(static_cast<double>(dk));
        const double largest = *std::max_element(score.begin(), score.end());
        double sum = 0;
        for (double& value : score)
            sum += value = std::exp(value - largest);
        for (std::size_t j = 0; j < seen.size(); ++j)
            for (std::size_t d = 0; d < dv; ++d)
                o[static_cast<std::size_t>(head) * dv + d] += score[j] / sum * v[seen[j]][kvHead * dv + d];
    }
    return o;
}

constexpr float kEps = 1e-3f;
constexpr float kEmbeddingScale = 1.7f; // with norms

} // namespace

FileWeight randomWeight(std::mt19937& random, std::string name, DType type, std::int64_t rows, std::int64_t cols,
                        double deviation) {
    FileWeight out{std::move(name), type, rows, cols, {}, {}};
    if (type == DType::Q8_0 || type == DType::Q4_0 || type == DType::Q4_1) {
        for (std::int64_t b = 0; b < rows * cols / 32; ++b)
            putQuantizedBlock(random, out, deviation);
        return out;
    }
    std::normal_distribution<float> normal(0, static_cast<float>(deviation));
    for (std::int64_t i = 0; i < rows * cols; ++i) {
        const float value = normal(random);
        if (type == DType::F32) {
            put(out.bytes, value);
            out.values.push_back(value);
        } else if (type == DType::F16) {
            const std::uint16_t half = floatToHalf(value);
            put(out.bytes, half);
            out.values.push_back(halfToFloat(half));
        } else {
            std::uint32_t bits;
            std::memcpy(&bits, &value, 4);
            bits &= 0xffff0000u;
            put(out.bytes, static_cast<std::uint16_t>(bits >> 16));
            float cut;
            std::memcpy(&cut, &bits, 4);
            out.values.push_back(cut);
        }
    }
    return out;
}

TinyModel::TinyModel(const TinyShape& s, unsigned seed) : shape(s) {
    std::mt19937 random(seed);
    const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t cols) {
        return add(randomWeight(random, name, s.type, rows, cols, 1.2 / std::sqrt(double(cols))));
    };
    const auto vector = [&](const char* name, std::int64_t count, double mean) {
        FileWeight w = randomWeight(random, name, DType::F32, 1, count, 0.2);
        for (std::size_t i = 0; i < w.values.size(); ++i) {
            const auto value = static_cast<float>(w.values[i] + mean);
            w.values[i] = value;
            std::memcpy(w.bytes.data() + 4 * i, &value, 4);
        }
        return add(std::move(w));
    };
    m_embedding = add(randomWeight(random, "embedding", s.embeddingType, s.vocab, s.hidden, 1.0));
    for (int i = 0; i < s.layers; ++i) {
        Layer l{};
        l.norm = vector("norm", s.hidden, 1);
        l.q = matrix("q", s.heads * s.headDimK, s.hidden);
        l.k = matrix("k", s.kvHeads * s.headDimK, s.hidden);
        l.v = matrix("v", s.kvHeads * s.headDimV, s.hidden);
        l.qBias = vector("qBias", s.heads * s.headDimK, 0);
        l.kBias = vector("kBias", s.kvHeads * s.headDimK, 0);
        l.vBias = vector("vBias", s.kvHeads * s.headDimV, 0);
        l.o = matrix("o", s.hidden, s.heads * s.headDimV);
        l.mlpNorm = vector("mlpNorm", s.hidden, 1);
        l.gate = matrix("gate", s.ff, s.hidden);
        l.up = matrix("up", s.ff, s.hidden);
        l.down = matrix("down", s.hidden, s.ff);
        m_layers.push_back(l);
    }
    m_outputNorm = vector("outputNorm", s.hidden, 1);
    m_output = m_embedding; // tied
    for (Layer& l : m_layers) {
        l.qNorm = vector("qNorm", s.headDimK, 1);
        l.kNorm = vector("kNorm", s.headDimK, 1);
        l.postAttention = vector("postAttention", s.hidden, 1);
        l.postMlp = vector("postMlp", s.hidden, 1);
    }
    const int rotated = s.headDimK / 4 * 4 >= 4 ? s.headDimK / 4 * 2 : s.headDimK / 2 * 2;
    for (int i = 0; i < rotated / 2; ++i)
        for (auto& [base, frequencies] : {std::pair<double, std::vector<float>&>{10000.0, m_inverseFreq},
                                          std::pair<double, std::vector<float>&>{300.0, m_localFreq}})
            frequencies.push_back(static_cast<float>(std::pow(base, -2.0 * i / rotated)));
}

std::size_t TinyModel::add(FileWeight weight) {
    m_weights.push_back(std::move(weight));
    return m_weights.size() - 1;
}

std::string TinyModel::load(Backend& backend, std::int32_t maxTokens, std::int32_t maxSequences,
                            std::int32_t maxLogitRows, std::int32_t maxTableEntries) {
    std::vector<WeightId> ids;
    for (const FileWeight& weight : m_weights) {
        const auto id = backend.addWeight(weight.desc());
        if (!id)
            return id.error.message;
        ids.push_back(*id.value);
    }
    const TinyShape& s = shape;
    Program p;
    p.hidden = s.hidden;
    p.vocab = s.vocab;
    for (const std::vector<float>& frequencies : {m_inverseFreq, m_localFreq})
        p.ropes.push_back({s.rope, static_cast<std::int32_t>(frequencies.size() * 2), frequencies, 1.0f});
    p.maxTokens = maxTokens;
    p.maxSequences = maxSequences;
    p.maxLogitRows = maxLogitRows;
    p.maxTableEntries = maxTableEntries;
    p.ops.emplace_back(EmbedOp{ids[m_embedding], s.norms ? kEmbeddingScale : 1.0f});
    const auto optional = [&](std::size_t i) { return s.bias ? ids[i] : WeightId{}; };
    const auto norm = [&](std::size_t i) { return s.norms ? ids[i] : WeightId{}; };
    for (std::int32_t i = 0; i < s.layers; ++i) {
        const Layer& l = m_layers[static_cast<std::size_t>(i)];
        p.ops.emplace_back(QkvOp{i, ids[l.norm], kEps, ids[l.q], ids[l.k], ids[l.v], optional(l.qBias),
                                 optional(l.kBias), optional(l.vBias), s.heads, s.kvHeads, s.headDimK, s.headDimV,
                                 s.windowOf(i) > 0 ? 1 : 0, norm(l.qNorm), norm(l.kNorm)});
        p.ops.emplace_back(AttentionOp{i, 1.0f / std::sqrt(static_cast<float>(s.headDimK)), ids[l.o], s.heads,
                                       s.kvHeads, s.headDimK, s.headDimV, s.windowOf(i), s.sinks, norm(l.postAttention),
                                       kEps});
        p.ops.emplace_back(
            MlpOp{ids[l.mlpNorm], kEps, ids[l.gate], ids[l.up], ids[l.down], s.activation, norm(l.postMlp)});
    }
    p.ops.emplace_back(LogitsOp{ids[m_outputNorm], kEps, ids[m_output]});
    const auto set = backend.setProgram(p);
    return set ? std::string() : set.error.message;
}

KvLayout TinyModel::kvLayout(std::int32_t blockSize, std::int32_t numBlocks, const KvFormat& format,
                             std::int32_t sequences) const {
    KvLayout kv;
    kv.layers = shape.layers;
    kv.kvHeads = shape.kvHeads;
    kv.headDimK = shape.headDimK;
    kv.headDimV = shape.headDimV;
    kv.blockSize = blockSize;
    kv.numBlocks = numBlocks;
    kv.format = format;
    kv.tailSlots = format.quantized() ? sequences : 0;
    return kv;
}

std::vector<double> TinyModel::reference(const std::vector<std::int32_t>& tokens) const {
    const TinyShape& s = shape;
    const std::size_t n = tokens.size(), hidden = static_cast<std::size_t>(s.hidden);
    const auto dk = static_cast<std::size_t>(s.headDimK);
    std::vector<std::vector<double>> x(n);
    for (std::size_t t = 0; t < n; ++t) {
        const double* row = w(m_embedding).values.data() + static_cast<std::size_t>(tokens[t]) * hidden;
        x[t].assign(row, row + hidden);
        for (double& value : x[t])
            value *= s.norms ? static_cast<double>(kEmbeddingScale) : 1.0;
    }
    const auto rotate = [&](double* head, std::size_t position, const std::vector<float>& frequencies) {
        const std::size_t pairs = frequencies.size();
        const bool interleaved = s.rope == RopeStyle::Interleaved;
        for (std::size_t i = 0; i < pairs; ++i) {
            double& a = head[interleaved ? 2 * i : i];
            double& b = head[interleaved ? 2 * i + 1 : i + pairs];
            const double angle = static_cast<double>(position) * static_cast<double>(frequencies[i]);
            const double u = a, v = b;
            a = u * std::cos(angle) - v * std::sin(angle);
            b = u * std::sin(angle) + v * std::cos(angle);
        }
    };
    // x += y, or its norm
    const auto addTo = [&](std::vector<double>& to, std::vector<double> y, std::size_t postNorm) {
        if (s.norms)
            y = rms(y.data(), w(postNorm), kEps);
        for (std::size_t i = 0; i < hidden; ++i)
            to[i] += y[i];
    };
    for (std::size_t index = 0; index < m_layers.size(); ++index) {
        const Layer& l = m_layers[index];
        const auto window = static_cast<std::size_t>(s.windowOf(static_cast<std::int32_t>(index)));
        const auto turn = [&](std::vector<double>& heads, std::int32_t count, std::size_t headNorm, std::size_t t) {
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
                double* head = heads.data() + i * dk;
                if (s.norms) {
                    const std::vector<double> normed = rms(head, w(headNorm), kEps);
                    std::copy(normed.begin(), normed.end(), head);
                }
                rotate(head, t, window > 0 ? m_localFreq : m_inverseFreq);
            }
        };
        std::vector<std::vector<double>> q(n), k(n), v(n);
        for (std::size_t t = 0; t < n; ++t) {
            const std::vector<double> h = rms(x[t].data(), w(l.norm), kEps);
            q[t] = multiply(w(l.q), h, s.bias ? &w(l.qBias) : nullptr);
            k[t] = multiply(w(l.k), h, s.bias ? &w(l.kBias) : nullptr);
            v[t] = multiply(w(l.v), h, s.bias ? &w(l.vBias) : nullptr);
            turn(q[t], s.heads, l.qNorm, t);
            turn(k[t], s.kvHeads, l.kNorm, t);
            for (auto* values : {&k[t], &v[t]})
                for (double& value : *values)
                    value = roundToHalf(value);
        }
        for (std::size_t t = 0; t < n; ++t) {
            std::vector<std::size_t> seen;
            for (std::size_t j = 0; j <= t; ++j)
                if (window == 0 || j + window > t || j < static_cast<std::size_t>(s.sinks))
                    seen.push_back(j);
            addTo(x[t], multiply(w(l.o), attend(shape, q[t], k, v, seen)), l.postAttention);
            const std::vector<double> h = rms(x[t].data(), w(l.mlpNorm), kEps);
            std::vector<double> gate = multiply(w(l.gate), h);
            const std::vector<double> up = multiply(w(l.up), h);
            for (std::size_t i = 0; i < gate.size(); ++i) {
                const double g = gate[i];
                const double a = s.activation == Activation::Silu
                                     ? g / (1 + std::exp(-g))
                                     : 0.5 * g * (1 + std::tanh(0.7978845608028654 * (g + 0.044715 * g * g * g)));
                gate[i] = a * up[i];
            }
            addTo(x[t], multiply(w(l.down), gate), l.postMlp);
        }
    }
    std::vector<double> logits;
    for (std::size_t t = 0; t < n; ++t) {
        const std::vector<double> y = multiply(w(m_output), rms(x[t].data(), w(m_outputNorm), kEps));
        logits.insert(logits.end(), y.begin(), y.end());
    }
    return logits;
}

Driver::Driver(Backend& backend, const TinyModel& model, std::int32_t blockSize, std::int32_t numBlocks,
               std::int32_t tailSlots)
    : m_backend(backend)
    , m_vocab(model.shape.vocab)
    , m_blockSize(blockSize)
    , m_window(model.shape.window)
    , m_sinks(model.shape.sinks) {
    for (std::int32_t i = 0; i < numBlocks; ++i)
        freeBlocks.push_back(i);
    for (std::int32_t i = 0; i < tailSlots; ++i)
        freeTails.push_back(i);
}

std::vector<float> Driver::run(Sequence& sequence, const std::vector<std::int32_t>& tokens, std::size_t chunk) {
    std::vector<float> logits;
    for (std::size_t i = 0; i < tokens.size();) {
        const std::int32_t from = sequence.length;
        std::int32_t to = from + static_cast<std::int32_t>(std::min(chunk, tokens.size() - i));
        if (sequence.tailSlot >= 0 && from % m_blockSize != 0 && from / m_blockSize != to / m_blockSize)
            to = to / m_blockSize * m_blockSize;
        const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(i);
        const std::vector<float> part = step({{&sequence, {at, at + (to - from)}}});
        if (status != StepStatus::Done)
            return {};
        logits.insert(logits.end(), part.begin(), part.end());
        i += static_cast<std::size_t>(to - from);
    }
    return logits;
}

void Driver::giveBackPassed(Sequence& s) {
    if (m_sinks == 0)
        return;
    for (std::int32_t i = (m_sinks + m_blockSize - 1) / m_blockSize; (i + 1) * m_blockSize <= s.length - m_window + 1;
         ++i) {
        std::int32_t& block = s.table[static_cast<std::size_t>(i)];
        if (block >= 0)
            freeBlocks.push_back(std::exchange(block, -1)); // the next one to be written
    }
}

std::vector<float> Driver::step(const std::vector<Part>& parts, std::vector<BlockCopy> copies) {
    std::vector<std::int32_t> ids, positions, slots, cu{0}, lengths, tables, starts{0}, rows, tails;
    for (const Part& part : parts) {
        Sequence& s = *part.sequence;
        if (s.tailSlot < 0 && !freeTails.empty()) {
            s.tailSlot = freeTails.back();
            freeTails.pop_back();
        }
        if (s.tailSlot >= 0)
            tails.push_back(s.tailSlot);
        for (std::int32_t token : part.tokens) {
            if (s.length % m_blockSize == 0 && s.length / m_blockSize == static_cast<std::int32_t>(s.table.size())) {
                s.table.push_back(freeBlocks.back());
                freeBlocks.pop_back();
            }
            const std::int32_t block = s.table[static_cast<std::size_t>(s.length / m_blockSize)];
            rows.push_back(static_cast<std::int32_t>(ids.size()));
            ids.push_back(token);
            positions.push_back(s.length);
            slots.push_back(block * m_blockSize + s.length % m_blockSize);
            ++s.length;
        }
        cu.push_back(static_cast<std::int32_t>(ids.size()));
        lengths.push_back(s.length);
        tables.insert(tables.end(), s.table.begin(), s.table.end());
        starts.push_back(static_cast<std::int32_t>(tables.size()));
    }
    StepInputs in;
    in.tokenIds = ids;
    in.positions = positions;
    in.slotMapping = slots;
    in.cuQueryLens = cu;
    in.sequenceLengths = lengths;
    in.blockTables = tables;
    in.tableStarts = starts;
    in.logitRows = rows;
    in.copies = copies;
    in.tailSlots = tails;
    const Ticket ticket = m_backend.submit(in);
    status = m_backend.await(ticket);
    for (const Part& part : parts)
        giveBackPassed(*part.sequence);
    std::vector<float> logits(rows.size() * static_cast<std::size_t>(m_vocab));
    if (status == StepStatus::Done)
        for (std::size_t i = 0; i < rows.size(); ++i)
            m_backend.readLogits(
                ticket, static_cast<std::int32_t>(i),
                std::span(logits).subspan(i * static_cast<std::size_t>(m_vocab), static_cast<std::size_t>(m_vocab)));
    return logits;
}

} // namespace kvscope::tests
