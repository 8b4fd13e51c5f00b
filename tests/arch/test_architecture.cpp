// SPDX-License-Identifier: GPL-3.0-or-later
//
// The rules of ARCHITECTURE.md that a machine can check: who may include whom, no Qt in the engine, sizes, words.
#include <QProcess>
#include <QTest>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

namespace fs = std::filesystem;

namespace {

const fs::path kSource = KVSCOPE_SOURCE_DIR;
const fs::path kBuild = KVSCOPE_BUILD_DIR;

struct Room {
    std::string path;
    /// Prefixes of what its files may include from this project, beside themselves. A header's full path allows that
    /// one.
    std::vector<std::string> mayInclude;
};

/// The longest matching path counts. A folder that no row covers fails the test: new rooms get their row here.
const std::vector<Room>& rooms() {
    static const std::vector<Room> kRooms{
        {"kernels", {}},
        {"engine/base", {}},
        {"engine/kv", {"engine/base"}},
        {"engine/sched", {"engine/base", "engine/kv"}},
        {"engine/model", {"engine/base"}},
        {"engine/exec", {"engine/base", "engine/model", "kernels/backend.h"}},
        {"engine/metrics", {"engine/base", "engine/kv"}},
        {"engine/store", {"engine/base"}},
        // The one place that chooses a backend.
        {"engine/api", {"engine", "kernels/backend.h", "kernels/cpu/cpu_backend.h"}},
        // Facts and questions of the engine, never the engine itself.
        {"ui/models",
         {"engine/api", "engine/base", "engine/kv/block_state.h", "engine/metrics/block_map_snapshot.h",
          "engine/metrics/step_sample.h"}},
        {"ui/theme", {}},
        // Widgets see the engine through its two interfaces, and pass ids and times on.
        {"ui", {"ui", "engine/api/sources.h", "engine/base/clock.h", "engine/base/ids.h"}},
        {"resources", {}},
        // Measures the engine; the verb of the command line asks it, never the other way round.
        {"app/bench", {"engine", "kernels/kv_layout.h"}},
        {"app", {"app", "ui", "engine", "kernels"}},
    };
    return kRooms;
}

/// Is `path` the folder or file `prefix`, or below it?
bool within(const std::string& path, const std::string& prefix) {
    return path == prefix || (path.starts_with(prefix) && path[prefix.size()] == '/');
}

const Room* roomOf(const std::string& path) {
    const Room* best = nullptr;
    for (const Room& room : rooms())
        if (within(path, room.path) && (!best || room.path.size() > best->path.size()))
            best = &room;
    return best;
}

bool mayInclude(const Room& room, const std::string& header) {
    return within(header, room.path) ||
           std::any_of(room.mayInclude.begin(), room.mayInclude.end(),
                       [&](const std::string& allowed) { return within(header, allowed); });
}

std::vector<std::string> linesOf(const fs::path& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

bool isCpp(const fs::path& path) {
    return path.extension() == ".h" || path.extension() == ".cpp" || path.extension() == ".inc";
}

bool isSource(const fs::path& path) {
    return isCpp(path) || path.extension() == ".sh" || path.extension() == ".cmake" ||
           path.filename() == "CMakeLists.txt";
}

/// Files below the project's folders, as paths from its root. Build folders lie outside of these.
std::vector<std::string> filesOfProject() {
    std::vector<std::string> files;
    for (const char* top : {"app", "ui", "engine", "kernels", "resources", "tests", "packaging", ".ci"})
        for (const auto& entry : fs::recursive_directory_iterator(kSource / top))
            if (entry.is_regular_file())
                files.push_back(fs::relative(entry.path(), kSource).string());
    for (const auto& entry : fs::directory_iterator(kSource))
        if (entry.is_regular_file() && (entry.path().extension() == ".md" || isSource(entry.path()) ||
                                        entry.path().filename() == "CMakePresets.json"))
            files.push_back(entry.path().filename().string());
    std::sort(files.begin(), files.end());
    return files;
}

/// What stands between quotes or brackets in an #include line, else "".
std::string included(const std::string& line) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#')
        return {};
    const std::size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0)
        return {};
    const std::size_t open = line.find_first_of("<\"", word);
    const std::size_t close = open == std::string::npos ? open : line.find_first_of(">\"", open + 1);
    return close == std::string::npos ? std::string() : line.substr(open + 1, close - open - 1);
}

bool isQtHeader(const std::string& header) {
    static const std::regex kQt(R"(^(Q[A-Z]|Qt|qt|q[a-z]+\.h$|qcustomplot))");
    return std::regex_search(header, kQt);
}

/// Empty when all is well; else one line per breach, for the failure message.
class Breaches {
public:
    void add(const std::string& where, const std::string& what) { m_text += "\n  " + where + ": " + what; }
    bool none() const { return m_text.empty(); }
    const char* text() const { return m_text.c_str(); }

private:
    std::string m_text;
};

std::string at(const std::string& file, std::size_t line) {
    return file + ":" + std::to_string(line + 1);
}

} // namespace

class TestArchitecture : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        m_files = filesOfProject();
        QVERIFY2(m_files.size() > 100, "the project's files were not found");
    }

    void includesPointOneWay() {
        Breaches breaches;
        int checked = 0;
        for (const std::string& file : m_files) {
            if (!isCpp(file) || within(file, "tests"))
                continue;
            const Room* room = roomOf(file);
            if (!room) {
                breaches.add(file, "belongs to no room; add its room to the table in tests/arch");
                continue;
            }
            const auto lines = linesOf(kSource / file);
            for (std::size_t i = 0; i < lines.size(); ++i) {
                const std::string header = included(lines[i]);
                if (!fs::exists(kSource / header) || header.find('/') == std::string::npos)
                    continue; // not of this project
                ++checked;
                if (!mayInclude(*room, header))
                    breaches.add(at(file, i), room->path + " may not include " + header);
            }
        }
        QVERIFY2(breaches.none(), breaches.text());
        QVERIFY(checked > 100);
    }

    void theTableItselfPointsOneWay() {
        // Spot checks that the test above can fail.
        const auto allowed = [](const char* file, const char* header) { return mayInclude(*roomOf(file), header); };
        QVERIFY(allowed("engine/exec/a.cpp", "kernels/backend.h"));
        QVERIFY(!allowed("engine/exec/a.cpp", "kernels/cpu/cpu_backend.h"));
        QVERIFY(!allowed("kernels/cpu/a.cpp", "engine/base/result.h"));
        QVERIFY(!allowed("engine/kv/a.cpp", "engine/sched/scheduler.h"));
        QVERIFY(!allowed("engine/base/a.cpp", "engine/kv/block_state.h"));
        QVERIFY(!allowed("ui/models/a.cpp", "engine/kv/kv_cache.h"));
        QVERIFY(!allowed("ui/chat/a.cpp", "engine/api/engine.h"));
        QVERIFY(!allowed("ui/models/a.cpp", "ui/chat/a.h"));
        QVERIFY(!allowed("app/bench/a.cpp", "app/cli/a.h") && allowed("app/cli/a.cpp", "app/bench/a.h"));
        QVERIFY(allowed("ui/chat/a.cpp", "ui/models/a.h"));
        QVERIFY(!roomOf("somewhere/a.cpp"));
        QVERIFY(isQtHeader("QString") && isQtHeader("QtCore/QString") && isQtHeader("qglobal.h"));
        QVERIFY(!isQtHeader("engine/kv/block_state.h") && !isQtHeader("queue"));
    }

    void noQtHeaderInEngineKernelsAndCli() {
        Breaches breaches;
        for (const std::string& file : m_files) {
            const bool engine = within(file, "engine") || within(file, "kernels");
            if (!isCpp(file) || !(engine || within(file, "app/cli") || within(file, "app/bench")))
                continue;
            const auto lines = linesOf(kSource / file);
            for (std::size_t i = 0; i < lines.size(); ++i)
                if (isQtHeader(included(lines[i])))
                    breaches.add(at(file, i), "includes " + included(lines[i]));
        }
        QVERIFY2(breaches.none(), breaches.text());
    }

    void noWidgetInUiModels() {
        static const std::regex kWidgets(
            R"(^(Qt(Widgets|Svg)/|Q[A-Za-z]*(Widget|Window|Button|Layout|Label)$|Q(Gui)?Application$))");
        Breaches breaches;
        for (const std::string& file : m_files)
            if (isCpp(file) && within(file, "ui/models"))
                for (const std::string& line : linesOf(kSource / file))
                    if (std::regex_search(included(line), kWidgets))
                        breaches.add(file, "includes " + included(line));
        QVERIFY2(breaches.none(), breaches.text());
    }

    void noQtSymbolInEngineAndKernels() {
        // A name whose outermost scope is a Qt class, or a C symbol of Qt.
        static const std::regex kQtSymbol(
            R"(\b(_ZT[VISN]\d+Q[A-Z]|_ZN?K?\d+Q[A-Z]|qt_[a-z]|qRegister|qVersion|qInfo))");
        int libraries = 0;
        Breaches breaches;
        for (const char* top : {"engine", "kernels"}) {
            for (const auto& entry : fs::recursive_directory_iterator(kBuild / top)) {
                if (entry.path().extension() != ".a")
                    continue;
                ++libraries;
                QProcess nm;
                nm.start("nm", {QString::fromStdString(entry.path().string())});
                QVERIFY2(nm.waitForFinished(60000) && nm.exitCode() == 0, "nm failed");
                std::istringstream symbols(nm.readAllStandardOutput().toStdString());
                int seen = 0;
                for (std::string line; std::getline(symbols, line); ++seen)
                    if (std::regex_search(line, kQtSymbol))
                        breaches.add(entry.path().filename().string(), line);
                QVERIFY(seen > 0);
            }
        }
        QVERIFY2(breaches.none(), breaches.text());
        QVERIFY2(libraries >= 8, "the libraries of the engine were not found");
    }

    void everySourceFileNamesItsLicence() {
        Breaches breaches;
        for (const std::string& file : m_files) {
            if (!isSource(file))
                continue;
            const auto lines = linesOf(kSource / file);
            const bool named =
                std::any_of(lines.begin(), lines.begin() + std::min<std::ptrdiff_t>(2, std::ssize(lines)),
                            [](const std::string& line) {
                                return line.find("SPDX-License-Identifier: GPL-3.0-or-later") != std::string::npos;
                            });
            if (!named)
                breaches.add(file, "has no SPDX line at its top");
        }
        QVERIFY2(breaches.none(), breaches.text());
    }

    void filesAndFunctionsStaySmall() {
        constexpr std::size_t kLongestFile = 500;
        Breaches breaches;
        for (const std::string& file : m_files) {
            if (!isCpp(file))
                continue;
            const auto lines = linesOf(kSource / file);
            if (lines.size() > kLongestFile)
                breaches.add(file, "has " + std::to_string(lines.size()) + " lines; split it by responsibility");
            if (!within(file, "tests"))
                checkFunctions(file, lines, breaches);
        }
        QVERIFY2(breaches.none(), breaches.text());
    }

    void wordsAreThoseOfTheProject() {
        // Written in pieces, so that this file passes its own test.
        const std::vector<std::pair<std::string, std::string>> kForbidden{
            {"/wo"
             "rk/",
             "a path of one machine"},
            {"/ro"
             "ot/",
             "a path of one machine"},
            {"Blocking"
             "QueuedConnection",
             "the window never waits for a thread"},
            {"page "
             "table",
             "say block table"},
            {"page"
             "Table",
             "say blockTable"},
            {"Co-Autho"
             "red-By",
             "commits and files carry their author once"},
        };
        Breaches breaches;
        for (const std::string& file : m_files) {
            if (within(file, "tests/data") || !(isSource(file) || fs::path(file).extension() == ".md" ||
                                                fs::path(file).extension() == ".json" || within(file, ".ci")))
                continue;
            const auto lines = linesOf(kSource / file);
            for (std::size_t i = 0; i < lines.size(); ++i)
                for (const auto& [word, reason] : kForbidden)
                    if (lines[i].find(word) != std::string::npos)
                        breaches.add(at(file, i), "'" + word + "': " + reason);
        }
        QVERIFY2(breaches.none(), breaches.text());
    }

    void namesFollowTheHouse() {
        static const std::regex kSnake(R"(^[a-z0-9_]+(\.inc)?\.(h|cpp)$)");
        Breaches breaches;
        for (const std::string& file : m_files) {
            if (isCpp(file) && !within(file, "tests") && !std::regex_match(fs::path(file).filename().string(), kSnake))
                breaches.add(file, "is not snake_case");
            if (file.find("util") != std::string::npos && !within(file, "tests/data"))
                breaches.add(file, "an attic; name it after what it does");
        }
        QVERIFY2(breaches.none(), breaches.text());
    }

    void topLevelIsWhatArchitectureSays() {
        QProcess git;
        git.setWorkingDirectory(QString::fromStdString(kSource.string()));
        git.start("git", {"ls-files"});
        if (!git.waitForFinished(20000) || git.exitCode() != 0)
            QSKIP("not a git checkout: what belongs to the project is not known");
        const std::vector<std::string> kTop{".ci",       ".clang-format",   ".clang-tidy",    ".gitignore",
                                            "app",       "ARCHITECTURE.md", "CMakeLists.txt", "CMakePresets.json",
                                            "engine",    "CONTRIBUTING.md", "kernels",        "LICENSE",
                                            "packaging", "README.md",       "resources",      "tests",
                                            "ui"};
        Breaches breaches;
        for (const QByteArray& file : git.readAllStandardOutput().split('\n')) {
            const std::string top = file.split('/').first().toStdString();
            if (!top.empty() && std::find(kTop.begin(), kTop.end(), top) == kTop.end())
                breaches.add(file.toStdString(), "stands outside the rooms");
        }
        QVERIFY2(breaches.none(), breaches.text());
    }

private:
    /// Functions of this code style begin at column 0 (namespaces are not indented) and end with a brace there.
    static void checkFunctions(const std::string& file, const std::vector<std::string>& lines, Breaches& breaches) {
        static const std::regex kBegins(
            R"(^(?!namespace|struct|class|enum|union|extern|template|constexpr|const )[A-Za-z_~].*\{$)");
        const std::size_t limit = within(file, "kernels") ? 100 : 60;
        constexpr std::size_t kNone = ~std::size_t(0);
        std::size_t start = kNone;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (start == kNone) {
                if (std::regex_search(lines[i], kBegins))
                    start = i;
            } else if (lines[i].starts_with("}")) {
                if (i - start + 1 > limit)
                    breaches.add(at(file, start), "a function of " + std::to_string(i - start + 1) +
                                                      " lines; at most " + std::to_string(limit));
                start = kNone;
            }
        }
    }

    std::vector<std::string> m_files;
};

QTEST_APPLESS_MAIN(TestArchitecture)
#include "test_architecture.moc"
