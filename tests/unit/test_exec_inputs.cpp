// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>

#include "engine/base/check.h"
#include "engine/exec/kv_budget.h"
#include "engine/exec/rope.h"
#include "engine/exec/step_inputs.h"

using namespace kvscope;
using namespace kvscope::exec;

namespace {

KvBudgetInputs inputs() {
    KvBudgetInputs in;
    in.bytesPerBlock = 16'000;
    in.blockSize = 16;
    in.maxModelLen = 100;
    in.availableBytes = 100'000'000;
    return in;
}

template <class T> std::vector<T> list(std::span<const T> span) {
    return {span.begin(), span.end()};
}

std::vector<BlockId> table(std::initializer_list<int> ids) {
    std::vector<BlockId> out;
    for (const int id : ids)
        out.emplace_back(id);
    return out;
}

kernels::Program smallProgram() {
    kernels::Program program;
    program.maxTokens = 8;
    program.maxSequences = 2;
    program.maxLogitRows = 4;
    program.maxTableEntries = 8;
    return program;
}

} // namespace

class TestExecInputs : public QObject {
    Q_OBJECT
private slots:
    void budgetTakesBlocksBeforeBytesBeforeShare() {
        KvBudgetInputs in = inputs();
        in.share = 0.5;
        QCOMPARE(planKvBudget(in)->numBlocks, 3125); // 50 MB / 16,000
        QCOMPARE(planKvBudget(in)->rule, KvBudgetRule::Share);
        in.cacheBytes = 320'000;
        QCOMPARE(planKvBudget(in)->numBlocks, 20);
        in.numBlocks = 7;
        QCOMPARE(planKvBudget(in)->numBlocks, 7);
        QCOMPARE(planKvBudget(in)->bytes, std::uint64_t(112'000));
        QCOMPARE(planKvBudget(in)->tokens, std::int64_t(112));
    }

    void budgetDefaultIsTheSmallerOfAQuarterAndEightContexts() {
        KvBudgetInputs in = inputs();
        QCOMPARE(planKvBudget(in)->numBlocks, 50); // 800 tokens
        QCOMPARE(planKvBudget(in)->rule, KvBudgetRule::EightContexts);
        in.availableBytes = 1'000'000;
        QCOMPARE(planKvBudget(in)->numBlocks, 15); // 250,000 / 16,000
        QCOMPARE(planKvBudget(in)->rule, KvBudgetRule::QuarterShare);
    }

    void budgetCountsTheWindowGroupBesideTheBlocks() {
        KvBudgetInputs in = inputs();
        in.bytesPerWindowBlock = 4'000;
        in.windowBlocks = 10;
        in.cacheBytes = 100'000; // 5 x 20,000
        QCOMPARE(planKvBudget(in)->numBlocks, 5);
        QCOMPARE(planKvBudget(in)->bytes, std::uint64_t(100'000));
        in.cacheBytes = 231'999; // 10 x 20,000 and 1 x 16,000, and nearly another
        QCOMPARE(planKvBudget(in)->numBlocks, 11);
        QCOMPARE(planKvBudget(in)->bytes, std::uint64_t(216'000));
        in.cacheBytes = 232'000;
        QCOMPARE(planKvBudget(in)->numBlocks, 12);
        in.numBlocks = 3;
        QCOMPARE(planKvBudget(in)->bytes, std::uint64_t(60'000));
    }

    void budgetRefusesWhatCannotBe() {
        KvBudgetInputs in = inputs();
        in.cacheBytes = 15'999; // one byte less than a block
        QCOMPARE(planKvBudget(in).error().code, ErrorCode::OutOfMemory);
        in.cacheBytes = 17'000; // a block, but not with what its window layers need
        in.windowBlocks = 4;
        in.bytesPerWindowBlock = 2048;
        QCOMPARE(planKvBudget(in).error().code, ErrorCode::OutOfMemory);
        const std::string sentence = planKvBudget(in).error().message;
        QVERIFY2(sentence.find("in the layers that look back over a window") != std::string::npos, sentence.c_str());
        in.windowBlocks = 0;
        in.bytesPerWindowBlock = 0;
        in.cacheBytes = 0;
        in.numBlocks = 10'000; // 160 MB of 100 MB
        QCOMPARE(planKvBudget(in).error().code, ErrorCode::OutOfMemory);
        in.numBlocks = 200'000'000; // slot numbers would pass 2^31
        QCOMPARE(planKvBudget(in).error().code, ErrorCode::InvalidArgument);
        in.numBlocks = 0;
        in.share = 1.5;
        QCOMPARE(planKvBudget(in).error().code, ErrorCode::InvalidArgument);
    }

    void ropeDividesByFactorsAndScale() {
        const float factors[] = {1, 2, 4, 8};
        const std::vector<float> f = ropeInverseFrequencies(8, 10000, 2, factors);
        QCOMPARE(f.size(), std::size_t(4));
        for (std::size_t i = 0; i < 4; ++i)
            QCOMPARE(f[i], static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / 4) / (2 * factors[i])));
        QCOMPARE(ropeInverseFrequencies(8, 10000, 1, {})[0], 1.0f);
    }

    void stepInputsFlattenSequencesInOrder() {
        StepInputBuffers buffers(smallProgram(), 8);
        const TokenId a[] = {10, 11, 12};
        const TokenId b[] = {20};
        const std::int32_t last[] = {2}, only[] = {0}, all[] = {0, 1, 2};
        QCOMPARE(buffers.addSequence(a, 6, table({5, 2}), last), 0);
        QCOMPARE(buffers.addSequence(b, 16, table({5, 7, 1}), only), 1);
        buffers.addCopy(BlockId(3), BlockId(1), 2);
        const kernels::StepInputs in = buffers.view();
        QCOMPARE(list(in.tokenIds), (std::vector{10, 11, 12, 20}));
        QCOMPARE(list(in.positions), (std::vector{6, 7, 8, 16}));
        QCOMPARE(list(in.slotMapping), (std::vector{46, 47, 16, 8}));
        QCOMPARE(list(in.cuQueryLens), (std::vector{0, 3, 4}));
        QCOMPARE(list(in.sequenceLengths), (std::vector{9, 17}));
        QCOMPARE(list(in.blockTables), (std::vector{5, 2, 5, 7, 1}));
        QCOMPARE(list(in.tableStarts), (std::vector{0, 2, 5}));
        QCOMPARE(list(in.logitRows), (std::vector{2, 3}));
        QCOMPARE(in.copies.size(), std::size_t(1));
        QCOMPARE(in.copies[0].slotCount, 2);

        buffers.clear();
        QCOMPARE(buffers.tokens(), 0);
        QCOMPARE(buffers.addSequence(a, 0, table({0}), all), 0);
        QCOMPARE(list(buffers.view().logitRows), (std::vector{0, 1, 2}));
    }

    void stepInputsCarryTheTablesOfTheWindowGroup() {
        StepInputBuffers buffers(smallProgram(), 8);
        const TokenId a[] = {10, 11, 12};
        const TokenId b[] = {20};
        const std::int32_t last[] = {2}, only[] = {0};
        buffers.addSequence(a, 14, table({5, 2, 9}), last, -1, table({-1, 0, 3}));
        buffers.addSequence(b, 0, table({7, 1}), only, -1, table({2, 4}));
        QCOMPARE(list(buffers.view().blockTables), (std::vector{5, 2, 9, 7}));
        QCOMPARE(list(buffers.view().windowTables), (std::vector{-1, 0, 3, 2})); // entry for entry
        buffers.clear();
        QVERIFY(buffers.view().windowTables.empty());
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, buffers.addSequence(a, 6, table({5, 2}), last, -1, table({3})));
    }

    void stepInputsRefuseBrokenTablesAndOverflow() {
        kernels::Program program;
        program.maxTokens = 4;
        program.maxSequences = 2;
        program.maxLogitRows = 2;
        program.maxTableEntries = 4;
        StepInputBuffers buffers(program, 8);
        const TokenId tokens[] = {1, 2, 3};
        const std::int32_t last[] = {2}, behind[] = {3};
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, buffers.addSequence(tokens, 7, table({0}), last));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, buffers.addSequence(tokens, 0, table({-1}), last));
        buffers.clear();
        buffers.addSequence(tokens, 0, table({0}), last);
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, buffers.addSequence(tokens, 0, table({1}), last));
        buffers.clear();
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, buffers.addSequence(tokens, 0, table({1}), behind));
    }
};

QTEST_APPLESS_MAIN(TestExecInputs)
#include "test_exec_inputs.moc"
