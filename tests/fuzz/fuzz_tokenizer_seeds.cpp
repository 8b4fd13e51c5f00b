// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes the seeds of fuzz_tokenizer into a folder: each text of a reference vocabulary, in one of the ways to encode
// it, by one of the kinds of tokenizer.
#include <cstdio>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: fuzz_tokenizer_seeds FOLDER\n");
        return 2;
    }
    std::ifstream file(std::string(KVSCOPE_TEST_DATA) + "/pretokenizer/smollm.json");
    const auto cases = nlohmann::json::parse(file, nullptr, false);
    int number = 0;
    bool ok = cases.is_array();
    for (const auto& c : cases) {
        if (!c.contains("text"))
            continue;
        std::ofstream seed(std::string(argv[1]) + "/text-" + std::to_string(number), std::ios::binary);
        seed << static_cast<char>(number * 7) << static_cast<char>(number) << c.at("text").get<std::string>();
        seed.flush();
        ok = ok && seed.good();
        ++number;
    }
    if (!ok)
        std::fprintf(stderr, "cannot write into %s; create the folder first\n", argv[1]);
    return ok ? 0 : 1;
}
