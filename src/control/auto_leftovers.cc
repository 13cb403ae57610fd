// SPDX-License-Identifier: Apache-2.0
#include "control/auto_leftovers.h"

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
constexpr std::string_view kBegin = "@reboot env ", kCommand = " workspace auto ",
                           kMark = " # overcap workspace auto ";

Result<Captured> RunCrontab(const Variables& variables, const char* word, const std::string& input) {
  const Fd text(memfd_create("overcap-crontab", MFD_CLOEXEC));
  if (!text || WriteAll(text.Get(), input) != 0 || lseek(text.Get(), 0, SEEK_SET) != 0)
    return Fail(ErrnoError(errno, "cannot pass the crontab on"));
  SpawnRequest request;
  request.argv = {"crontab", word};
  request.env = variables.entries();
  request.stdin_fd = text.Get();
  return CaptureOutput(std::move(request), kPatience, kMost);
}

std::string_view FirstLine(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

// "@reboot env NAME=VALUE... overcap ... workspace auto NAME ... # overcap workspace auto ID": the part
// between
// "@reboot env" and the mark, "" for any other line.
std::string_view CommandOfOurLine(std::string_view line) {
  const size_t mark = line.rfind(kMark);
  if (!line.starts_with(kBegin) || mark == std::string_view::npos) return {};
  const std::string_view command = line.substr(kBegin.size() - 1, mark - (kBegin.size() - 1));
  return command.find(kCommand) != std::string_view::npos ? command : std::string_view();
}

}  // namespace

std::vector<std::string> ReadOldAutoWords(std::span<const std::string> words) {
  std::vector<std::string> read;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--on-change") {
      read.insert(read.end(), {"--every", "5m"});
    } else if (word == "--settle" || word == "--max-delay" || word == "--check") {
      ++i;
    } else {
      read.push_back(word);
    }
  }
  return read;
}

std::string ReadCrontab(const Variables& variables) {
  auto shown = RunCrontab(variables, "-l", "");
  const bool whole = shown && shown->end.exit_status == 0 && shown->output.size() < kMost;
  return whole ? std::move(shown->output) : std::string();
}

std::string CrontabWithout(std::string_view crontab, std::string_view workspace_id) {
  const std::string end = StrCat(kMark, workspace_id);
  std::string text;
  while (!crontab.empty()) {
    const std::string_view line = FirstLine(crontab);
    const std::string_view with_end = crontab.substr(0, line.size() + 1);
    if (CommandOfOurLine(line).empty() || !line.ends_with(end)) text += with_end;
    crontab.remove_prefix(with_end.size());
  }
  return text;
}

bool IsInCrontab(std::string_view crontab, std::span<const std::string> argv) {
  std::string command;
  for (const std::string& word : argv) command += StrCat(" ", ShellQuote(word));
  // cron ends a command at a '%' that has no backslash before it.
  for (size_t at = 0; (at = command.find('%', at)) != std::string::npos; at += 2) command.insert(at, "\\");
  for (; !crontab.empty(); crontab.remove_prefix(std::min(FirstLine(crontab).size() + 1, crontab.size()))) {
    if (CommandOfOurLine(FirstLine(crontab)).ends_with(command)) return true;
  }
  return false;
}

Result<bool> RemoveCrontabLine(const Variables& variables, std::string_view workspace_id) {
  const std::string before = ReadCrontab(variables);
  const std::string after = CrontabWithout(before, workspace_id);
  if (after == before) return false;
  OC_TRY(shown, RunCrontab(variables, "-", after));
  if (shown.end.exit_status == 0) return true;
  return Fail(ErrorCode::kDenied,
              StrCat("cannot remove the line of 'overcap workspace auto' from your crontab: ",
                     Quoted(FirstLine(shown.output), 300)),
              "'crontab -e' removes it");
}

}  // namespace overcap
