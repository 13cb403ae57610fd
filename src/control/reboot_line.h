// SPDX-License-Identifier: Apache-2.0
// The line in the user's crontab that starts a service again after a reboot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

// "@reboot WORDS # MARK". cron hands it to a shell, after it has taken every '%' for the end of a line: words
// come through both as they are. kUsage for words with line ends and the like, which no crontab can hold.
// `mark` is of letters, digits and blanks.
Result<std::string> RebootLine(const std::vector<std::string>& words, std::string_view mark);

// A crontab with `line` in the place of what has that mark; with "" as line: without it. All else stays.
std::string CrontabWith(std::string_view crontab, std::string_view line, std::string_view mark);

// Makes the user's crontab so, with the program `crontab`. True: it was changed. kNotFound without that
// program; kDenied in its own words, where users may have none.
Result<bool> SetRebootLine(const Variables& variables, std::string_view line, std::string_view mark);

}  // namespace overcap
