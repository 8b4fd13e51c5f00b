// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli as a program: exit status, what goes to which stream, batches.
#include <QElapsedTimer>
#include <QFile>
#include <QProcess>
#include <QTest>
#include <csignal>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/run_cli.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"

using namespace kvscope::test;
using nlohmann::json;

class TestCli : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        QVERIFY(
            scriptedLlama({"Hel", "lo, ", "wor", "ld! ", "\xF0\x9F", "\x99\x82", " bye"}).write(m_dir.file("m.gguf")));
        m_model = QString::fromStdString(m_dir.file("m.gguf"));
    }

    void generatePrintsOneJsonObjectAndNothingElse() {
        const Outcome o = generate({"--prompt", "Say:", "--json"});
        QCOMPARE(o.status, 0);
        QVERIFY2(o.err.empty(), o.err.c_str());
        QCOMPARE(o.lines().size(), std::size_t(1));
        const json answer = o.lines()[0];
        QCOMPARE(answer["text"].get<std::string>(), std::string("Hello, world! \xF0\x9F\x99\x82 bye"));
        QVERIFY(!answer.contains("text_hex"));
        QCOMPARE(answer["finish_reason"].get<std::string>(), std::string("stop"));
        QCOMPARE(answer["stop_reason"].get<int>(), 257);
        QCOMPARE(answer["token_ids"].size(), std::size_t(7)); // without the end token
        const json& cache = answer["cache"];
        QCOMPARE(cache["reused_tokens"].get<std::size_t>() + cache["computed_tokens"].get<std::size_t>(),
                 answer["prompt_token_ids"].size());
        for (const char* field : {"load_ms", "queue_ms", "prefill_ms", "decode_ms", "ttft_ms", "e2e_ms"})
            QVERIFY(answer["timings"][field].get<double>() >= 0);
    }

    void cutsAreValidJsonAtEveryLength() {
        for (int length = 1; length <= 7; ++length) {
            const Outcome o = generate({"--prompt", "Say:", "--max-tokens", QString::number(length), "--json"});
            QCOMPARE(o.status, 0);
            const std::string text = o.lines()[0]["text"].get<std::string>();
            QVERIFY(text.find("\xEF\xBF\xBD") == std::string::npos);
            QVERIFY(std::string("Hello, world! \xF0\x9F\x99\x82 bye").rfind(text, 0) == 0);
        }
    }

    void readableOutputIsTheText() {
        const Outcome o = generate({"--prompt", "Say:", "--stop", "wor"});
        QCOMPARE(o.status, 0);
        QCOMPARE(o.out, std::string("Hello, \n"));
    }

    void whatIsWrongIsOneSentenceAndAStatus_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("named");
        const auto refused = [](const char* option, const char* value) {
            QTest::addRow("%s %s", option, value) << QStringList{"--prompt", "x", option, value} << 2 << option;
        };
        refused("--window-policy", "slide");
        refused("--window-policy", "sinks"); // it needs --window
        QTest::newRow("sinks over a host tier") << QStringList{"--prompt", "x",  "--window-policy",    "sinks",
                                                               "--window", "64", "--host-cache-bytes", "1000000"}
                                                << 2 << "--host-cache-bytes";
        refused("--contiguous-reserve", "model");
        refused("--sinks", "4");
        refused("--window", "-1");
        QTest::newRow("sinks in an extent")
            << QStringList{"--prompt", "x", "--window-policy", "sinks", "--window", "64", "--allocator", "contiguous"}
            << 2 << "--window-policy";
        QTest::newRow("window beyond") << QStringList{"--prompt", "x", "--window", "65", "--max-model-len", "64"} << 2
                                       << "--window";
        QTest::newRow("window too long") << QStringList{"--prompt", "x", "--window", "100000"} << 1 << "--window";
        refused("--load-snapshot", "s");
        refused("--db", "x.db");
        refused("--backend", "cuda");
        refused("--save-snapshot", "s");
        // Forms of keys and values that do not exist, or ask for what would have no effect.
        refused("--kv-cache-dtype", "q8_0");
        refused("--k-dtype", "k8v4");
        refused("--v-dtype", "int3");
        refused("--kv-rotation", "on");
        refused("--kv-rotation", "maybe");
        refused("--kv-skip-layers", "2");
        refused("--kv-skip-layers", "-1");
        QTest::newRow("rotated fp8") << QStringList{"--prompt", "x", "--kv-cache-dtype", "fp8", "--kv-rotation", "on"}
                                     << 2 << "--kv-rotation";
        QTest::newRow("no layer left") << QStringList{"--prompt",         "x", "--kv-cache-dtype", "int8",
                                                      "--kv-skip-layers", "1"}
                                       << 1 << "--kv-skip-layers";
        refused("--eviction", "fifo"); // wrong values of options that are built are told in the same way
        refused("--allocator", "buddy");
        QTest::newRow("reserve") << QStringList{"--prompt", "x", "--allocator", "contiguous", "--contiguous-reserve",
                                                "half"}
                                 << 2 << "--contiguous-reserve";
        QTest::newRow("no log") << QStringList{"--prompt", "x", "--log-blocks", "/nonexistent/x.jsonl"} << 1
                                << "/nonexistent/x.jsonl";
        QTest::newRow("eager") << QStringList{"--prompt", "x", "--enforce-eager"} << 2 << "--enforce-eager";
        QTest::newRow("unknown") << QStringList{"--prompt", "x", "--bogus"} << 2 << "--bogus";
        QTest::newRow("no value") << QStringList{"--prompt", "x", "--sinks"} << 2 << "--sinks";
        QTest::newRow("minus") << QStringList{"--prompt", "x", "--seed", "-1"} << 2 << "--seed";
        QTest::newRow("folder") << QStringList{"--prompt-file", "/"} << 1 << "'/'";
        QTest::newRow("bias form") << QStringList{"--prompt", "x", "--logit-bias", "99999999999:3"} << 2
                                   << "--logit-bias";
        QTest::newRow("bias id") << QStringList{"--prompt", "x", "--logit-bias", "99999:3"} << 1 << "99999";
        QTest::newRow("activations") << QStringList{"--prompt", "x", "--activations", "f16"} << 2 << "--activations";
        QTest::newRow("policy") << QStringList{"--prompt", "x", "--scheduling-policy", "fastest"} << 2
                                << "--scheduling-policy";
        QTest::newRow("no long prompts") << QStringList{"--prompt", "x", "--max-long-partial-prefills", "0"} << 2
                                         << "--max-long-partial-prefills";
        QTest::newRow("value") << QStringList{"--prompt", "x", "--block-size", "24"} << 2 << "--block-size";
        QTest::newRow("no prompt") << QStringList{} << 2 << "--prompt";
        QTest::newRow("two prompts") << QStringList{"--prompt", "x", "--prompt-ids", "1"} << 2 << "--prompt-ids";
        QTest::newRow("temperature") << QStringList{"--prompt", "x", "--temperature", "-1"} << 2 << "temperature";
        QTest::newRow("no file") << QStringList{"--chat", "/nonexistent.json"} << 1 << "/nonexistent.json";
        QTest::newRow("too long") << QStringList{"--prompt-ids", "1,2,3", "--max-model-len", "3"} << 1 << "4 tokens";
    }
    void whatIsWrongIsOneSentenceAndAStatus() {
        QFETCH(QStringList, arguments);
        QFETCH(int, status);
        QFETCH(QString, named);
        const Outcome o = generate(arguments + QStringList{"--json"});
        QCOMPARE(o.status, status);
        QVERIFY2(o.err.find(named.toStdString()) != std::string::npos, o.err.c_str());
        QCOMPARE(std::count(o.err.begin(), o.err.end(), '\n'), 1);
        if (status == 2)
            QVERIFY(o.out.empty());
        if (QString(QTest::currentDataTag()).startsWith("--")) { // an option of the engine: logits has it too
            const QStringList engine = arguments.mid(2);
            const Outcome logits = run(QStringList{"logits", "--model", m_model, "--prompt-ids", "1"} + engine);
            QCOMPARE(logits.status, 2);
            QCOMPARE(logits.err, o.err);
        }
    }

    void optionsThatNameWhatIsDoneAnywayAreAccepted() {
        QCOMPARE(generate({"--prompt", "x", "--allocator", "paged", "--kv-cache-dtype", "auto", "--k-dtype", "f16",
                           "--eviction", "lru", "--window-policy", "stop", "--scheduling-policy", "fcfs", "--json"})
                     .status,
                 0);
    }

    void batchesAnswerInInputOrderWhateverEndsFirst() {
        const auto answers = batch(R"({"id": "long", "prompt": "Say:"}
{"id": "short", "prompt": "Say:", "max_tokens": 1}
{"id": 3, "prompt": "Say:", "cancel_after": 2}
{"id": "twice", "prompt": "Say:", "repeat": 2, "pin": true}
{"id": "later", "prompt": "Say:", "after": "twice"}
{"id": "fork", "fork_of": "long", "fork_at": 6, "max_tokens": 2}
{"id": "samples", "prompt": "Say:", "n": 3, "max_tokens": 2}
)");
        QCOMPARE(answers.size(), std::size_t(8));
        const char* ids[] = {"\"long\"",    "\"short\"", "3",        "\"twice#1\"",
                             "\"twice#2\"", "\"later\"", "\"fork\"", "\"samples\""};
        for (std::size_t i = 0; i < 8; ++i)
            QCOMPARE(answers[i]["id"].dump(), std::string(ids[i]));
        QCOMPARE(answers[1]["token_ids"].size(), std::size_t(1));
        QCOMPARE(answers[2]["finish_reason"].get<std::string>(), std::string("cancelled"));
        QCOMPARE(answers[2]["token_ids"].size(), std::size_t(2));
        std::vector<int> forked = answers[0]["prompt_token_ids"].get<std::vector<int>>();
        const auto first = answers[0]["token_ids"].get<std::vector<int>>();
        forked.insert(forked.end(), first.begin(), first.begin() + 2);
        QCOMPARE(answers[6]["prompt_token_ids"].get<std::vector<int>>(), forked);
        QCOMPARE(answers[6]["token_ids"].get<std::vector<int>>(), (std::vector<int>{first[2], first[3]}));
        QCOMPARE(answers[7]["samples"].size(), std::size_t(3));
    }

    void linesThatFailAnswerAnErrorAndTheRestGoesOn() {
        const auto answers = batch(R"({"id": 1, "prompt": "Say:", "temprature": 1}
nonsense
{"id": 2, "prompt_ids": [99999]}
{"id": 3, "prompt": "x", "after": 4}
{"id": 4, "prompt": "x", "after": 3}
{"id": 5, "prompt": "x", "after": "nobody"}
{"id": 6, "prompt": "x", "messages": []}
{"id": 7, "prompt": "Say:", "max_tokens": 1}
)");
        QCOMPARE(answers.size(), std::size_t(8));
        for (std::size_t i = 0; i < 7; ++i)
            QVERIFY2(answers[i].contains("error"), answers[i].dump().c_str());
        QVERIFY(answers[0]["error"]["message"].get<std::string>().find("temprature") != std::string::npos);
        QVERIFY(!answers[7].contains("error"));
    }

    void whatWaitsForARefusedLineSaysSo() {
        const auto answers = batch(R"({"id": "next", "prompt": "x", "after": "ab"}
{"id": "bad", "prompt": "x", "foo": 1}
{"id": "ab", "prompt": "x", "after": "bad"}
{"id": "value", "prompt": "x", "temperature": -1}
{"id": "fork", "fork_of": "value", "prompt": "y"}
{"id": "fork of bad", "fork_of": "bad", "prompt": "y", "repeat": 2}
{"id": "twice", "prompt": "x", "foo": 1}
{"id": "twice", "prompt": "Say:", "max_tokens": 1}
{"id": "good", "prompt": "Say:", "max_tokens": 1, "after": "twice"}
)");
        QCOMPARE(answers.size(), std::size_t(9));
        const auto message = [&](std::size_t line) { return answers[line]["error"]["message"].get<std::string>(); };
        const std::string end = ", which could not start; see its own error.";
        QCOMPARE(message(0), "'after' names line \"ab\"" + end);
        QCOMPARE(message(2), "'after' names line \"bad\"" + end);
        QCOMPARE(message(4), "'fork_of' names line \"value\"" + end);
        QCOMPARE(message(5), "'fork_of' names line \"bad\"" + end);
        QVERIFY(!answers[7].contains("error") && !answers[8].contains("error"));
    }

    void circlesAnswerWhateverTheirLinesAskFor() {
        const auto answers = batch(R"({"id": 1, "prompt": "x", "after": 1, "n": 3}
{"id": 2, "prompt": "x", "fork_of": 1, "repeat": 4}
{"id": 3, "fork_of": 4}
{"id": 4, "prompt_ids": [99999]}
{"id": 5, "prompt": "Say:", "repeat": 1, "max_tokens": 1}
)");
        QCOMPARE(answers.size(), std::size_t(5));
        for (std::size_t i = 0; i < 4; ++i)
            QVERIFY2(answers[i].contains("error"), answers[i].dump().c_str());
        QCOMPARE(answers[4]["id"].get<std::string>(), std::string("5#1"));
        QVERIFY(!answers[4].contains("error"));
    }

    void manyRepetitionsCostNoMoreThanTheirSteps() {
        QElapsedTimer timer;
        timer.start();
        const auto answers = batch(R"({"id": "r", "prompt": "Say:", "max_tokens": 1, "repeat": 8000})");
        QCOMPARE(answers.size(), std::size_t(8000));
        QCOMPARE(answers.back()["id"].get<std::string>(), std::string("r#8000"));
        QVERIFY2(timer.elapsed() < 20000, qPrintable(QString::number(timer.elapsed()))); // quadratic: minutes
        QVERIFY(batch(R"({"id": "n", "prompt": "Say:", "n": 2000000000})")[0].contains("error"));
    }

    void jsonNestedWithoutEndIsRefused() {
        const std::string deep = std::string(200000, '[') + std::string(200000, ']');
        const auto answers =
            batch("{\"id\": " + deep + ", \"prompt\": \"x\"}\n{\"prompt\": \"x\", \"max_tokens\": 1}\n");
        QCOMPARE(answers.size(), std::size_t(2));
        QVERIFY(answers[0].contains("error"));
        QVERIFY(!answers[1].contains("error"));
        const QString path = QString::fromStdString(m_dir.file("deep.jsonl"));
        for (const char* field : {"messages", "extra", "text", "ids"}) {
            std::ofstream(path.toStdString()) << "{\"" << field << "\": " << deep << "}\n";
            for (const char* verb : {"render", "tokenize", "detokenize", "logits"}) {
                const Outcome o = run({verb, "--model", m_model, "--jsonl", path});
                QCOMPARE(o.status, 0);
                QVERIFY(o.lines().at(0).contains("error"));
            }
        }
    }

    void idsAreWholeNumbersThatFit() {
        const QString path = QString::fromStdString(m_dir.file("numbers.jsonl"));
        std::ofstream(path.toStdString()) << "{\"ids\": [4294967297]}\n{\"ids\": [1.5]}\n{\"ids\": [true]}\n"
                                             "{\"ids\": [1], \"top\": 1.5}\n{\"ids\": [1], \"positions\": [-1]}\n";
        const auto answers = run({"logits", "--model", m_model, "--jsonl", path}).lines();
        QCOMPARE(answers.size(), std::size_t(5));
        for (const json& answer : answers)
            QVERIFY2(answer.contains("error"), answer.dump().c_str());
    }

    void anOutputThatCannotBeWrittenIsAFailure_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::newRow("json") << QStringList{"generate", "--model", m_model, "--prompt", "Say:", "--json"};
        QTest::newRow("text") << QStringList{"generate", "--model", m_model, "--prompt", "Say:"};
        QTest::newRow("inspect") << QStringList{"inspect", m_model};
        QTest::newRow("help") << QStringList{"--help"};
    }
    void anOutputThatCannotBeWrittenIsAFailure() {
        QFETCH(QStringList, arguments);
        QProcess process;
        process.setStandardOutputFile("/dev/full");
        process.start(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope-cli"), arguments);
        QVERIFY(process.waitForFinished(60000));
        QCOMPARE(process.exitCode(), 1);
        QVERIFY(process.readAllStandardError().contains("standard output"));
    }

    void linesEndNowhereElse() {
        // U+0085, U+2028 and U+2029 end a line for many programs that read JSON lines.
        const std::string text = "a\xC2\x85"
                                 "b\xE2\x80\xA8"
                                 "c\xE2\x80\xA9"
                                 "d";
        std::ofstream(m_dir.file("separators.jinja")) << text;
        std::ofstream(m_dir.file("empty.json")) << "[]";
        const Outcome o = run({"render", "--template", QString::fromStdString(m_dir.file("separators.jinja")), "--chat",
                               QString::fromStdString(m_dir.file("empty.json")), "--json"});
        QCOMPARE(o.lines()[0]["text"].get<std::string>(), text);
        for (const char* separator : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"})
            QVERIFY(o.out.find(separator) == std::string::npos);
    }

    void verbsThatAreNotBuiltAreNamed() {
        for (const char* verb : {"plan", "snapshots", "serve"}) {
            const Outcome o = run({verb, "--whatever"});
            QCOMPARE(o.status, 2);
            QCOMPARE(o.err, std::string(verb) + " is not supported yet.\n");
        }
    }

    void logitsOfTheWholeContextWithStats() {
        const QString path = QString::fromStdString(m_dir.file("logits-stats.json"));
        const Outcome o = run(
            {"logits", "--model", m_model, "--max-model-len", "3", "--prompt-ids", "1,2,3", "--json", "--stats", path});
        QVERIFY2(o.status == 0, o.err.c_str());
        QCOMPARE(o.lines()[0]["positions"][0]["pos"].get<int>(), 2);
        std::ifstream in(path.toStdString());
        QCOMPARE(json::parse(in)["tokens"]["prefill"].get<int>(), 3);
    }

    void damagedWeightsEndTheRequestAndNotTheEngine() {
        std::ifstream whole(m_model.toStdString(), std::ios::binary);
        std::string bytes((std::istreambuf_iterator<char>(whole)), {});
        // The last third of the file, all of it weights, becomes NaN.
        std::fill(bytes.end() - static_cast<std::ptrdiff_t>(bytes.size() / 3), bytes.end(), '\xFF');
        const QString path = QString::fromStdString(m_dir.file("nan.gguf"));
        std::ofstream(path.toStdString(), std::ios::binary) << bytes;
        const Outcome o = run({"generate", "--model", path, "--prompt", "Say:", "--json"});
        QCOMPARE(o.status, 1);
        QCOMPARE(o.lines()[0]["error"]["code"].get<std::string>(), std::string("corrupt"));
        const Outcome logits = run({"logits", "--model", path, "--prompt-ids", "1,2"});
        QCOMPARE(logits.status, 1);
        QVERIFY(logits.err.find("damaged") != std::string::npos);
    }

    void statsAddUp() {
        const QString path = QString::fromStdString(m_dir.file("stats.json"));
        QCOMPARE(generate({"--prompt", "Say:", "--json", "--stats", path}).status, 0);
        std::ifstream in(path.toStdString());
        const json stats = json::parse(in);
        int sum = 0;
        for (const auto& [state, count] : stats["blocks"]["at_end"].items())
            sum += count.get<int>();
        QCOMPARE(sum, stats["blocks"]["total"].get<int>());
        QCOMPARE(stats["tokens"]["prefill"].get<int>(), 4);
        QCOMPARE(stats["requests"]["finished"].get<int>(), 1);
        QVERIFY(stats["phases_ms"]["step"].get<double>() > 0);
    }

    void formsOfKeysAndValues() {
        const json inspected = run({"inspect", m_model, "--json"}).lines()[0]["kv_bytes_per_token"];
        QCOMPARE(inspected["bf16"].get<int>(), inspected["f16"].get<int>());
        QCOMPARE(inspected["fp8"].get<int>() * 2, inspected["f16"].get<int>());
        const QString path = QString::fromStdString(m_dir.file("forms.json"));
        for (const char* form : {"bf16", "fp8", "int8", "k8v4", "int4"}) {
            const Outcome o = generate(
                {"--prompt", "Say:", "--json", "--stats", path, "--kv-cache-dtype", form, "--block-size", "32"});
            QCOMPARE(o.status, 0);
            QCOMPARE(o.err.empty(), std::string(form) != "int4"); // a small model is warned
            QCOMPARE(o.lines()[0]["text"].get<std::string>(), std::string("Hello, world! \xF0\x9F\x99\x82 bye"));
            std::ifstream in(path.toStdString());
            const json stats = json::parse(in);
            const bool tails = std::string(form) != "bf16";
            QCOMPARE(stats["blocks"]["tail_bytes"].get<int>() > 0, tails);
            QCOMPARE(stats["memory"]["pool_bytes"].get<int>(),
                     stats["blocks"]["bytes_per_block"].get<int>() * stats["blocks"]["total"].get<int>() +
                         stats["blocks"]["tail_bytes"].get<int>());
        }
        // One half apart, over the preset.
        QCOMPARE(
            generate({"--prompt", "Say:", "--json", "--stats", path, "--kv-cache-dtype", "k8v4", "--v-dtype", "int8"})
                .status,
            0);
        std::ifstream in(path.toStdString());
        const json blocks = json::parse(in)["blocks"];
        QCOMPARE(blocks["k_dtype"].get<std::string>(), std::string("fp8_e4m3"));
        QCOMPARE(blocks["v_dtype"].get<std::string>(), std::string("int8"));
    }

    void nullIsAsIfItWereNotThere() {
        const auto answers = batch(R"({"id": null, "prompt": "Say:", "stop": null, "max_tokens": 1, "after": null}
{"id": 1, "prompt": null, "prompt_ids": [1], "messages": null, "fork_of": null, "max_tokens": 1}
{"id": 2, "messages": [{"role": "user", "content": "Say:"}, {"role": "assistant", "content": null}], "max_tokens": 1}
{"id": 3, "prompt": null}
{"id": 4, "messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "x"}]}]}
)");
        QCOMPARE(answers.size(), std::size_t(5));
        QVERIFY(!answers[0].contains("id"));
        for (std::size_t i = 0; i < 3; ++i)
            QVERIFY2(answers[i]["token_ids"].size() == 1, answers[i].dump().c_str());
        QVERIFY(answers[3]["error"]["message"].get<std::string>().find("'prompt'") != std::string::npos);
        // This template adds the content to its marks: it cannot take a message without one, and says so.
        QVERIFY(answers[4]["error"]["message"].get<std::string>().find("NoneType") != std::string::npos);
    }

    void aStatsFileThatCannotBeWrittenIsSaidBeforeTheRun() {
        for (const char* path : {"/nonexistent/stats.json", "/proc/stats.json", "/"})
            for (const QStringList& verb :
                 {QStringList{"generate", "--prompt", "x"}, {"logits", "--prompt-ids", "1"}}) {
                const Outcome o = run(verb + QStringList{"--model", m_model, "--json", "--stats", path});
                QCOMPARE(o.status, 1);
                QVERIFY2(o.out.empty() && o.err.find(path) != std::string::npos, o.err.c_str());
            }
        const QString unused = QString::fromStdString(m_dir.file("unused.json"));
        QCOMPARE(run({"generate", "--prompt", "x", "--model", "/nonexistent.gguf", "--stats", unused}).status, 1);
        QVERIFY(!QFile::exists(unused)); // looking did not leave a file behind
        const QString link = QString::fromStdString(m_dir.file("link.json"));
        QVERIFY(QFile::link(unused, link)); // to a file that is to be made
        QCOMPARE(run({"generate", "--prompt", "x", "--model", "/nonexistent.gguf", "--stats", link}).status, 1);
        QVERIFY(!QFile::exists(unused) && QFile::symLinkTarget(link) == unused);
        QCOMPARE(generate({"--prompt", "Say:", "--max-tokens", "1", "--json", "--stats", link}).status, 0);
        QVERIFY(QFile::exists(unused));
    }

    void anInterruptedRunGivesOutWhatItHasWithItsCounters_data() {
        QTest::addColumn<int>("signal");
        QTest::newRow("SIGINT") << SIGINT;
        QTest::newRow("SIGTERM") << SIGTERM;
    }
    void anInterruptedRunGivesOutWhatItHasWithItsCounters() {
        QFETCH(int, signal);
        const QString stats = QString::fromStdString(m_dir.file("interrupted.json"));
        const QString path = QString::fromStdString(m_dir.file("endless.jsonl"));
        std::ofstream(path.toStdString()) << R"({"id": "quick", "prompt": "Say:", "max_tokens": 1}
{"id": "long", "prompt": "Say:", "repeat": 2000000}
{"id": "never", "prompt": "Say:", "after": "long"}
)";
        QProcess process;
        process.start(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope-cli"),
                      {"generate", "--model", m_model, "--threads", "1", "--batch", path, "--json", "--stats", stats});
        QVERIFY(process.waitForReadyRead(60000)); // it answers
        ::kill(static_cast<pid_t>(process.processId()), signal);
        QVERIFY(process.waitForFinished(60000));
        QCOMPARE(process.exitStatus(), QProcess::CrashExit); // shells and scripts see the signal
        QCOMPARE(process.exitCode(), signal);
        Outcome o;
        o.out = process.readAllStandardOutput().toStdString();
        const auto answers = o.lines(); // every line is whole
        QCOMPARE(answers.front()["id"].get<std::string>(), std::string("quick"));
        QCOMPARE(answers.back()["id"].get<std::string>(), std::string("never"));
        QCOMPARE(answers.back()["error"]["code"].get<std::string>(), std::string("cancelled"));
        std::ifstream in(stats.toStdString());
        const json counters = json::parse(in);
        QVERIFY(counters["requests"]["finished"].get<std::size_t>() >= answers.size() - 2);
        QVERIFY(process.readAllStandardError().startsWith("Interrupted"));
    }

    void logitsOfPositionsAndLines() {
        const Outcome o =
            run({"logits", "--model", m_model, "--prompt-ids", "1,2,3", "--positions", "2,0", "--top", "2", "--json"});
        QCOMPARE(o.status, 0);
        const json positions = o.lines()[0]["positions"];
        QCOMPARE(positions.size(), std::size_t(2));
        QCOMPARE(positions[0]["pos"].get<int>(), 2);
        QCOMPARE(positions[0]["top"].size(), std::size_t(2));
        QCOMPARE(positions[0]["top"][0][0].get<int>(), 258); // "Hel"
        std::ofstream(m_dir.file("l.jsonl"))
            << "{\"ids\": [1], \"top\": 0}\n{\"ids\": []}\n{\"ids\": [258], \"top\": 1}\n";
        const auto lines =
            run({"logits", "--model", m_model, "--jsonl", QString::fromStdString(m_dir.file("l.jsonl"))}).lines();
        QCOMPARE(lines.size(), std::size_t(3));
        double sum = 0;
        for (const json& entry : lines[0]["positions"][0]["top"])
            sum += std::exp(entry[1].get<double>());
        QVERIFY(std::fabs(sum - 1.0) < 1e-6); // all tokens: the probabilities of a distribution
        QVERIFY(lines[1].contains("error"));
        QCOMPARE(lines[2]["positions"][0]["top"][0][0].get<int>(), 259); // "lo, "
    }

    void inspectShowsTheFile() {
        const Outcome o = run({"inspect", m_model, "--json"});
        QCOMPARE(o.status, 0);
        const json info = o.lines()[0];
        QCOMPARE(info["architecture"].get<std::string>(), std::string("llama"));
        QCOMPARE(info["layers"].get<int>(), 1);
        QVERIFY(info["problems"].empty());
        QCOMPARE(run({"inspect", "/nonexistent.gguf"}).status, 1);
    }

private:
    Outcome generate(const QStringList& arguments) const {
        return run(QStringList{"generate", "--model", m_model, "--threads", "1", "--num-blocks", "64"} + arguments);
    }
    std::vector<json> batch(const std::string& lines) const {
        std::ofstream(m_dir.file("batch.jsonl")) << lines;
        const Outcome o = generate({"--batch", QString::fromStdString(m_dir.file("batch.jsonl")), "--json"});
        if (o.status != 0)
            return {};
        return o.lines();
    }

    TempDir m_dir;
    QString m_model;
};

QTEST_GUILESS_MAIN(TestCli)
#include "test_cli.moc"
