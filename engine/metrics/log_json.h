// SPDX-License-Identifier: GPL-3.0-or-later
//
// One record as one line of JSON, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

/// Appends `{"format":"kvscope-log","version":"1.0",...}` and a line end.
void appendJsonHeader(std::string& out, const LogHeader& header);
/// Appends `{"type":"step",...}` and a line end. Events leave out fields at their default.
void appendJsonRecord(std::string& out, const LogRecord& record);

/// Errors: Corrupt (not a header, or not JSON), Unsupported (a newer major version, named).
Result<LogHeader> parseJsonHeader(std::string_view line);
/// None: a record type of a newer minor version, to be passed over. Error Corrupt: what is wrong with the line.
Result<std::optional<LogRecord>> parseJsonRecord(std::string_view line);

/// "1.0" into the header; Corrupt where it is not a version, Unsupported where its major is newer.
Result<void> readVersion(std::string_view version, LogHeader& header);

} // namespace kvscope::metrics
