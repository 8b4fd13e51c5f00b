// SPDX-License-Identifier: GPL-3.0-or-later
//
// Runs kvscope-cli as a program, as a user's script would.
#pragma once

#include <QProcess>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kvscope::test {

using nlohmann::json;

struct Outcome {
    int status = -1;
    std::string out, err;
    /// One JSON value a line.
    std::vector<json> lines() const {
        std::vector<json> values;
        std::size_t at = 0;
        while (at < out.size()) {
            const std::size_t end = out.find('\n', at);
            values.push_back(json::parse(out.substr(at, end - at)));
            at = end + 1;
        }
        return values;
    }
};

inline Outcome run(const QStringList& arguments) {
    QProcess process;
    process.start(QStringLiteral(KVSCOPE_BIN_DIR "/kvscope-cli"), arguments);
    Outcome outcome;
    if (!process.waitForFinished(60000))
        return outcome;
    outcome.status = process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -2;
    outcome.out = process.readAllStandardOutput().toStdString();
    outcome.err = process.readAllStandardError().toStdString();
    return outcome;
}

} // namespace kvscope::test
