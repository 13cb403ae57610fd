// SPDX-License-Identifier: Apache-2.0
// What versions before 0.1.0 stored for `workspace auto`: rules that begin with --on-change, and a line in
// the user's crontab that started the service after a reboot.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

// The stored words of a service, with `--every 5m` in the place of --on-change and its flags.
std::vector<std::string> ReadOldAutoWords(std::span<const std::string> words);

// The user's crontab; "" when there is none or it cannot be read.
std::string ReadCrontab(const Variables& variables);

// The crontab without the line of the workspace with this id; every other byte stays.
std::string CrontabWithout(std::string_view crontab, std::string_view workspace_id);

// Whether an Overcap line of the crontab runs exactly these words, argv[0] first.
bool IsInCrontab(std::string_view crontab, std::span<const std::string> argv);

// Removes the workspace's line by the program `crontab`. True: there was one. kDenied when it cannot be
// written.
Result<bool> RemoveCrontabLine(const Variables& variables, std::string_view workspace_id);

}  // namespace overcap
