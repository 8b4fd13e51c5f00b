// SPDX-License-Identifier: GPL-3.0-or-later
//
// Damaged model files against the whole program: cuts, flipped bits, replaced words and zeroed stretches, each mutant
// through `kvscope-cli inspect` and a three-token `generate`. Each ends with one sentence or an answer: no signal,
// less than two seconds, no more memory than the undamaged file takes + 4 times the file + 16 MiB.
// Runs in forked children (a start of the program costs more than most mutants), every hundredth mutant also in the
// program itself. 300 mutants; with KVSCOPE_LONG=1 10,000.
#include <QTest>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>

#include <csignal>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/cli/command_line.h"
#include "engine/model/gguf_file.h"
#include "tests/support/run_cli.h"
#include "tests/support/sanitized.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using nlohmann::json;

namespace {

constexpr double kMostSeconds = 2;

struct Run {
    int signal = 0, status = -1;
    double seconds = 0; ///< of processor time: a busy machine must not fail the test
    long peakKilobytes = 0;
    std::string out, err;
};

std::string contentOf(int file) {
    std::string text(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(file, 0, SEEK_END))), '\0');
    if (::pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        text = "(its output could not be read)";
    ::close(file);
    return text;
}

/// kvscope-cli in a child of this process.
Run runForked(const std::vector<std::string>& arguments) {
    const int out = ::memfd_create("out", 0), err = ::memfd_create("err", 0);
    std::fflush(nullptr); // or the child would write what is buffered once more
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        ::dup2(out, STDOUT_FILENO);
        ::dup2(err, STDERR_FILENO);
        std::vector<const char*> argv{"kvscope-cli"};
        for (const std::string& argument : arguments)
            argv.push_back(argument.c_str());
        ::_exit(cli::runCommandLine(static_cast<int>(argv.size()), argv.data()));
    }
    Run run;
    int status = 0;
    struct rusage usage {};
    if (child < 0 || ::wait4(child, &status, 0, &usage) != child)
        throw std::runtime_error("no child");
    run.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    run.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    run.peakKilobytes = usage.ru_maxrss;
    run.out = contentOf(out);
    run.err = contentOf(err);
    return run;
}

/// One act of damage. `header`: bytes before the weights, where most of what can be wrong stands.
void damage(std::string& bytes, std::size_t header, std::mt19937& random) {
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    if (bytes.empty())
        return;
    const std::size_t at = below(below(4) > 0 ? std::min(header, bytes.size()) : bytes.size());
    const auto word = [&](auto value) {
        std::memcpy(bytes.data() + at, &value, std::min(sizeof value, bytes.size() - at));
    };
    switch (below(6)) {
    case 0:
        bytes.resize(at); // cut
        return;
    case 1:
        bytes.erase(at, 1 + below(64));
        return;
    case 2:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        return;
    case 3: {
        const std::uint32_t words[] = {0, 1, 2, 7, 255, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FC00000};
        word(words[below(std::size(words))]);
        return;
    }
    case 4: {
        const std::uint64_t words[] = {0, 1, 1ull << 30, 1ull << 32, 1ull << 61, ~0ull, ~0ull >> 1};
        word(words[below(std::size(words))]);
        return;
    }
    default:
        const std::size_t length = std::min(bytes.size() - at, 1 + below(256));
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
        return;
    }
}

/// Empty, or what is wrong with the way it ended.
std::string complaint(const Run& run, bool answers, long mostKilobytes) {
    if (run.signal != 0)
        return "signal " + std::to_string(run.signal);
    if (!test::kSanitized && run.seconds > kMostSeconds)
        return std::to_string(run.seconds) + " s";
    if (!test::kSanitized && run.peakKilobytes > mostKilobytes)
        return std::to_string(run.peakKilobytes) + " KiB, at most " + std::to_string(mostKilobytes);
    const json value = run.out.empty() ? json() : json::parse(run.out, nullptr, false);
    if (value.is_discarded())
        return "output that is not JSON: " + run.out;
    if (run.status == 1) {
        if (run.err.size() < 20 || std::count(run.err.begin(), run.err.end(), '\n') != 1)
            return "not one sentence: " + run.err;
        return {};
    }
    if (run.status != 0 || !run.err.empty())
        return "status " + std::to_string(run.status) + ": " + run.err;
    if (answers && (!value.contains("token_ids") || value["token_ids"].size() > 3 || value.contains("error")))
        return "no answer: " + run.out;
    return {};
}

struct Base {
    std::string bytes;
    std::size_t header = 0;
    long inspectPeak = 0, generatePeak = 0;
};

} // namespace

class TestModelMutation : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        using test::TensorType;
        m_path = m_dir.file("mutant.gguf");
        std::ofstream(m_dir.file("chat.json")) << R"([{"role": "user", "content": "Hi there"}])";
        addBase(test::tinyLlama({1, 32, 2, 1, 32, 512, true, TensorType::F32, 1}).build());
        addBase(test::tinyLlama({2, 64, 4, 2, 96, 512, false, TensorType::Q4_1, 2}).build());
        addBase(test::tinyLlama({1, 64, 2, 2, 64, 512, true, TensorType::Q8_0, 3}).build());
        std::ifstream spm(KVSCOPE_TEST_DATA "/models/llama-spm.gguf", std::ios::binary);
        addBase({std::istreambuf_iterator<char>(spm), {}});
    }

    void everyMutantEndsInASentenceOrAnAnswer() {
        const unsigned mutants = qEnvironmentVariableIntValue("KVSCOPE_LONG") != 0 ? 10000
                                 : test::kSanitized                                ? 80
                                                                                   : 300;
        unsigned inspected = 0, answered = 0;
        double slowest = 0;
        long most = 0;
        for (unsigned seed = 0; seed < mutants; ++seed) {
            std::mt19937 random(seed);
            const Base& base = m_bases[seed % m_bases.size()];
            std::string bytes = base.bytes;
            for (unsigned act = 0; act <= seed / 4 % 3; ++act)
                damage(bytes, base.header, random);
            write(bytes);
            const auto slack = static_cast<long>(4 * base.bytes.size() / 1024 + 16 * 1024);
            const auto check = [&](const std::vector<std::string>& arguments, bool answers, long peak) {
                const Run run = runForked(arguments);
                slowest = std::max(slowest, run.seconds);
                most = std::max(most, run.peakKilobytes - peak);
                std::string wrong = complaint(run, answers, peak + slack);
                if (wrong.empty() && seed % 100 == 0)
                    wrong = differsInTheProgram(arguments, run);
                if (wrong.empty())
                    return run.status == 0;
                QTest::qFail(("mutant " + std::to_string(seed) + ", " + arguments[0] + ": " + wrong).c_str(), __FILE__,
                             __LINE__);
                return false;
            };
            inspected += check({"inspect", m_path, "--json"}, false, base.inspectPeak);
            answered += check(generateArguments(seed), true, base.generatePeak);
            if (QTest::currentTestFailed())
                return;
        }
        std::printf("%u mutants: %u inspected, %u answered; slowest %.2f s, at most %ld KiB above the undamaged file\n",
                    mutants, inspected, answered, slowest, most);
        // All of them refused, or none, would mean that the damage tests nothing.
        QVERIFY(inspected > mutants / 10 && answered > mutants / 20 && answered < mutants / 2);
    }

private:
    void write(const std::string& bytes) {
        std::ofstream(m_path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    std::vector<std::string> generateArguments(unsigned seed) const {
        std::vector<std::string> arguments{"generate", "--model",      m_path, "--json",       "--threads",
                                           "1",        "--num-blocks", "16",   "--max-tokens", "3"};
        if (seed % 3 == 0)
            arguments.insert(arguments.end(), {"--prompt-ids", "5,6,7"});
        else if (seed % 3 == 1)
            arguments.insert(arguments.end(), {"--prompt", "the tin"});
        else
            arguments.insert(arguments.end(), {"--chat", m_dir.file("chat.json")});
        return arguments;
    }
    void addBase(std::string bytes) {
        Base base;
        base.bytes = std::move(bytes);
        write(base.bytes);
        const auto file = model::GgufFile::open(m_path);
        QVERIFY(file);
        base.header = file->dataStart();
        const Run inspect = runForked({"inspect", m_path, "--json"});
        QVERIFY2(inspect.status == 0, inspect.err.c_str());
        base.inspectPeak = inspect.peakKilobytes;
        for (unsigned way = 0; way < 3; ++way) { // not every file has a chat template
            const Run generate = runForked(generateArguments(way));
            QVERIFY2(complaint(generate, true, 1 << 30).empty(), generate.err.c_str());
            QVERIFY2(generate.status == 0 || way > 0, generate.err.c_str());
            base.generatePeak = std::max(base.generatePeak, generate.peakKilobytes);
        }
        m_bases.push_back(std::move(base));
    }
    /// Empty, or how the program itself ended otherwise than the child did.
    static std::string differsInTheProgram(const std::vector<std::string>& arguments, const Run& child) {
        QStringList list;
        for (const std::string& argument : arguments)
            list << QString::fromStdString(argument);
        const test::Outcome program = test::run(list);
        if (program.status == child.status && program.err == child.err)
            return {};
        return "the program itself: status " + std::to_string(program.status) + ", " + program.err;
    }

    test::TempDir m_dir;
    std::string m_path;
    std::vector<Base> m_bases;
};

QTEST_GUILESS_MAIN(TestModelMutation)
#include "test_model_mutation.moc"
