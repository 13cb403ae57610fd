// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/launcher_words.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr size_t kKeptLines = 40;

// What stands between `before` and `after` ("" : to the end of the line); nullopt when they are not there.
std::optional<std::string_view> Between(std::string_view line, std::string_view before,
                                        std::string_view after) {
  const size_t at = line.find(before);
  if (at == line.npos) return std::nullopt;
  const size_t begin = at + before.size();
  const size_t end = after.empty() ? line.size() : line.find(after, begin);
  if (end == line.npos) return std::nullopt;
  return line.substr(begin, end - begin);
}

// The number that begins `text`.
std::optional<int> Number(std::string_view text) {
  text = Trim(text);
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = ParseInt(text.substr(0, end));
  return value && *value <= 1 << 30 ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::optional<int> NumberBetween(std::string_view line, std::string_view before, std::string_view after) {
  const auto text = Between(line, before, after);
  return text ? Number(*text) : std::nullopt;
}

ProcessEnd Exited(int status) {
  return {status & 255, 0};
}

ProcessEnd Killed(int sig) {
  return {128 + sig, sig};
}

// "Segmentation fault (core dumped)" -> 11.
std::optional<int> SignalOf(std::string_view name) {
  for (int sig = 1; sig < 32; ++sig) {
    if (name.starts_with(strsignal(sig))) return sig;
  }
  return std::nullopt;
}

// "3", "0-1", "0,2-3" -> each number.
std::vector<int> NumbersOf(std::string_view list) {
  std::vector<int> numbers;
  for (const std::string& part : Split(list, ',')) {
    const auto first = Number(part);
    const size_t dash = part.find('-');
    const auto last = dash == part.npos ? first : Number(std::string_view(part).substr(dash + 1));
    if (!first || !last || *last - *first > 1 << 20) continue;
    for (int n = *first; n <= *last; ++n) numbers.push_back(n);
  }
  return numbers;
}

std::string_view LastWord(std::string_view text) {
  text = Trim(text);
  const size_t blank = text.rfind(' ');
  return blank == text.npos ? text : text.substr(blank + 1);
}

// Without what surrounds a name in a sentence.
std::string_view BareName(std::string_view name) {
  while (!name.empty() && std::strchr(".,:;'\"()[]", name.back()) != nullptr) name.remove_suffix(1);
  while (!name.empty() && std::strchr("'\"([", name.front()) != nullptr) name.remove_prefix(1);
  return name;
}

bool IsRule(std::string_view line) {
  return line.find_first_not_of("-=* ") == line.npos;
}

}  // namespace

void LauncherWords::Feed(std::string_view bytes) {
  rest_.append(bytes);
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Line(std::string_view(rest_).substr(begin, end - begin));
  }
  rest_.erase(0, begin);
  if (rest_.size() > kLongestLine) rest_.erase(0, rest_.size() - kLongestLine);
}

void LauncherWords::End() {
  if (!rest_.empty()) Line(rest_);
  rest_.clear();
}

void LauncherWords::Line(std::string_view line) {
  line = Trim(line);
  if (IsRule(line)) return;
  last_.emplace_back(line.substr(0, 500));
  if (last_.size() > kKeptLines) last_.erase(last_.begin());
  (void)(SrunLine(line) || OpenMpiLine(line) || HydraLine(line) || PalsLine(line) || SshLine(line));
}

std::vector<std::string> LauncherWords::LastLines(size_t count) const {
  return {last_.end() - static_cast<ptrdiff_t>(std::min(count, last_.size())), last_.end()};
}

void LauncherWords::HostFailed(std::string_view host, std::string_view line) {
  host = BareName(host);
  if (host.empty()) return;
  LauncherFinding finding;
  finding.host = host;
  finding.host_failed = true;
  finding.text = line;
  findings_.push_back(finding);
}

// "srun: error: n2: task 3: Exited with exit code 7", "srun: error: n1: tasks 0-1: Killed"
bool LauncherWords::SrunLine(std::string_view line) {
  if (const auto host = Between(line, "error: Node failure on ", "")) return HostFailed(*host, line), true;
  if (const auto host = Between(line, "failed on node ", ":")) return HostFailed(*host, line), true;
  constexpr std::string_view kPrefix = "srun: error: ";
  if (!line.starts_with(kPrefix)) return false;
  const std::vector<std::string> parts = Split(line.substr(kPrefix.size()), ':');
  if (parts.size() < 3) return false;
  const std::string_view tasks = Trim(parts[1]);
  if (!tasks.starts_with("task")) return false;
  const std::string_view how = Trim(parts[2]);
  LauncherFinding finding;
  finding.host = parts[0];
  finding.text = line;
  if (const auto status = NumberBetween(how, "exit code ", "")) finding.end = Exited(*status);
  if (const auto sig = SignalOf(how)) finding.end = Killed(*sig);
  if (how.starts_with("Out Of Memory")) {
    finding.out_of_memory = true;
    finding.end = Killed(SIGKILL);
  }
  if (!finding.end) return false;
  for (const int rank : NumbersOf(LastWord(tasks))) {
    finding.rank = rank;
    findings_.push_back(finding);
  }
  return true;
}

// Open MPI 4 and 5: ORTE and PRRTE have the same words.
bool LauncherWords::OpenMpiLine(std::string_view line) {
  if (const auto rank = NumberBetween(line, "noticed that process rank ", " with")) {
    LauncherFinding finding;
    finding.rank = *rank;
    if (const auto host = Between(line, " on node ", " exited")) finding.host = *host;
    if (const auto sig = NumberBetween(line, "exited on signal ", "")) finding.end = Killed(*sig);
    finding.text = line;
    findings_.push_back(finding);
    return true;
  }
  if (line.starts_with("Process name: [")) {  // "[[7491,1],3]" or "[prterun-n1-77@1,3]"
    block_ = {};
    const size_t comma = line.rfind(',');
    if (const auto rank = comma == line.npos ? std::nullopt : Number(line.substr(comma + 1)))
      block_.rank = *rank;
    return true;
  }
  if (const auto status = NumberBetween(line, "Exit code: ", ""); status && block_.rank >= 0) {
    block_.end = Exited(*status);
    block_.text = StrCat("rank ", block_.rank, ": exit code ", *status);
    findings_.push_back(std::exchange(block_, {}));
    return true;
  }
  if (const auto rank = NumberBetween(line, "MPI_ABORT was invoked on rank ", "")) {
    block_ = {};
    block_.rank = *rank;
    block_.aborted = true;
    block_.text = line;
    return true;
  }
  if (const auto status = NumberBetween(line, "with errorcode ", ""); status && block_.aborted) {
    block_.end = Exited(*status);
    findings_.push_back(std::exchange(block_, {}));
    return true;
  }
  if (line.find("has lost communication with a remote daemon") != line.npos) return lost_daemon_ = true;
  if (lost_daemon_ && line.starts_with("Remote daemon:")) {
    lost_daemon_ = false;
    if (const auto host = Between(line, " on node ", "")) HostFailed(*host, line);
    return true;
  }
  return false;
}

// A block of "=   PID 29170 RUNNING AT vm", "=   EXIT CODE: 9", and behind it "... EXIT STRING: Killed
// (signal 9)".
bool LauncherWords::HydraLine(std::string_view line) {
  if (const auto rank = NumberBetween(line, "(rank ", " in comm"); rank && line.starts_with("Abort(")) {
    LauncherFinding finding;
    finding.rank = *rank;
    finding.aborted = true;
    if (const auto status = NumberBetween(line, "Abort(", ")")) finding.end = Exited(*status);
    finding.text = line;
    findings_.push_back(finding);
    return true;
  }
  if (const auto pid = NumberBetween(line, "=   PID ", " RUNNING AT ")) {
    block_ = {};
    block_.pid = *pid;
    block_.host = Trim(line.substr(line.find(" RUNNING AT ") + 12));
    block_.text = Trim(line.substr(1));
    return true;
  }
  if (const auto status = NumberBetween(line, "=   EXIT CODE: ", ""); status && block_.pid > 0) {
    block_.end = Exited(*status);
    findings_.push_back(std::exchange(block_, {}));
    return true;
  }
  if (line.find("EXIT STRING: ") != line.npos && !findings_.empty() && findings_.back().pid > 0) {
    if (const auto sig = NumberBetween(line, "(signal ", ")")) findings_.back().end = Killed(*sig);
    return true;
  }
  return false;
}

// "nid001: rank 3 exited with code 7", "nid001: rank 3 died from signal 9"
bool LauncherWords::PalsLine(std::string_view line) {
  const size_t colon = line.find(": rank ");
  if (colon == line.npos || line.substr(0, colon).find(' ') != line.npos) return false;
  const auto rank = Number(line.substr(colon + 7));
  LauncherFinding finding;
  if (const auto status = NumberBetween(line, " exited with code ", "")) finding.end = Exited(*status);
  if (const auto sig = NumberBetween(line, " died from signal ", "")) finding.end = Killed(*sig);
  if (!rank || !finding.end) return false;
  finding.rank = *rank;
  finding.host = line.substr(0, colon);
  finding.text = line;
  findings_.push_back(finding);
  return true;
}

// Both MPIs start their own processes with it.
bool LauncherWords::SshLine(std::string_view line) {
  if (const auto host = Between(line, "ssh: connect to host ", " port")) return HostFailed(*host, line), true;
  if (const auto host = Between(line, "ssh: Could not resolve hostname ", ":"))
    return HostFailed(*host, line), true;
  return false;
}

}  // namespace overcap
