// SPDX-License-Identifier: Apache-2.0
#include "control/reboot_line.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/capture_output.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr size_t kMost = 1 << 20;

Result<Captured> RunCrontab(const Variables& variables, const char* word, const std::string& input) {
  const Fd text(memfd_create("overcap-crontab", MFD_CLOEXEC));
  if (!text || WriteAll(text.Get(), input) != 0 || lseek(text.Get(), 0, SEEK_SET) != 0)
    return Fail(ErrnoError(errno, "cannot hand the crontab on"));
  SpawnRequest request;
  request.argv = {"crontab", word};
  request.env = variables.entries();
  request.stdin_fd = text.Get();
  return CaptureOutput(std::move(request), kPatience, kMost);
}

std::string_view FirstLine(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

// What there is now; "" when there is none yet, which the program says by failing.
Result<std::string> ReadCrontab(const Variables& variables) {
  OC_TRY(told, RunCrontab(variables, "-l", ""));
  if (told.end.exit_status == 0 && told.output.size() < kMost) return std::move(told.output);
  if (told.output.find("no crontab for") != std::string::npos) return std::string();
  return Fail(ErrorCode::kDenied,
              StrCat("cannot read your crontab: ",
                     told.end.exit_status == 0 ? "it is too large" : Quoted(FirstLine(told.output), 300)),
              "'crontab -l' tells more; without --reboot it runs until the machine stops");
}

}  // namespace

Result<std::string> RebootLine(const std::vector<std::string>& words, std::string_view mark) {
  std::string line = "@reboot";
  for (const std::string& word : words) {
    if (std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
      return Fail(ErrorCode::kUsage, StrCat("a crontab cannot hold ", Quoted(word)));
    line += ' ';
    for (const char c : ShellQuote(word)) line += c == '%' ? std::string("\\%") : std::string(1, c);
  }
  return StrCat(line, " # ", mark);
}

std::string CrontabWith(std::string_view crontab, std::string_view line, std::string_view mark) {
  const std::string end = StrCat(" # ", mark);
  std::string text;
  while (!crontab.empty()) {
    const std::string_view one = FirstLine(crontab);
    crontab.remove_prefix(std::min(one.size() + 1, crontab.size()));
    if (!one.starts_with("@reboot ") || !one.ends_with(end)) text += StrCat(one, "\n");
  }
  if (!line.empty()) text += StrCat(line, "\n");
  return text;
}

Result<bool> SetRebootLine(const Variables& variables, std::string_view line, std::string_view mark) {
  OC_TRY(before, ReadCrontab(variables));
  const std::string after = CrontabWith(before, line, mark);
  const bool has = !line.empty() && before.find(StrCat(line, "\n")) != std::string::npos;
  if (has || after == before) return false;
  OC_TRY(told, RunCrontab(variables, "-", after));
  if (told.end.exit_status == 0) return true;
  return Fail(ErrorCode::kDenied, StrCat("cannot change your crontab: ", Quoted(FirstLine(told.output), 300)),
              "'crontab -l' shows that it is as it was");
}

}  // namespace overcap
