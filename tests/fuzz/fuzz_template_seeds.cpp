// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes the seeds of fuzz_template into a folder: the templates of the reference cases.
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: fuzz_template_seeds FOLDER\n");
        return 2;
    }
    std::set<std::string> templates;
    for (const char* name : {"own", "errors"}) {
        std::ifstream file(std::string(KVSCOPE_TEST_DATA) + "/templates/" + name + ".json");
        const auto cases = nlohmann::json::parse(file, nullptr, false);
        for (const auto& c : cases)
            if (c.contains("template"))
                templates.insert(c.at("template").get<std::string>());
    }
    int number = 0;
    bool ok = !templates.empty();
    for (const std::string& source : templates) {
        std::ofstream seed(std::string(argv[1]) + "/template-" + std::to_string(number++), std::ios::binary);
        seed << source;
        seed.flush();
        ok = ok && seed.good();
    }
    if (!ok)
        std::fprintf(stderr, "cannot write into %s; create the folder first\n", argv[1]);
    return ok ? 0 : 1;
}
