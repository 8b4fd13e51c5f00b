// SPDX-License-Identifier: GPL-3.0-or-later
//
// fuzz_session_log_seeds FOLDER: one short session in each format.
#include <string>

#include "tests/support/trace.h"

using namespace kvscope;
using namespace kvscope::metrics;

int main(int argc, char** argv) {
    if (argc != 2)
        return 2;
    const SessionLog log = test::makeTrace({32, 16, 40, 1});
    for (const char* name : {"/a.jsonl", "/a.csv", "/a.kvscope"}) {
        const std::string path = std::string(argv[1]) + name;
        auto writer = LogWriter::create(path, logFormatOf(path), log.header);
        if (!writer)
            return 1;
        for (const LogRecord& record : log.records)
            if (!(*writer)->write(record))
                return 1;
        if (!(*writer)->finish())
            return 1;
    }
    return 0;
}
