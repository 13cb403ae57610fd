// SPDX-License-Identifier: Apache-2.0
#include "sys/proc_table.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr int kLooksAtStartingPrograms = 500;  // a millisecond each, for all of a search

// The whole file, or nullopt when the process has vanished or is not ours.
std::optional<std::string> ReadProc(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string out(1024, '\0');
  for (size_t filled = 0;;) {
    const ssize_t n = read(fd.Get(), out.data() + filled, out.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    filled += static_cast<size_t>(n);
    if (n == 0) {
      out.resize(filled);
      return out;
    }
    if (filled == out.size()) out.resize(out.size() * 4);
  }
}

std::string ProcPath(pid_t pid, std::string_view file) {
  return StrCat("/proc/", pid, "/", file);
}

// The names in a folder that are numbers: of processes, threads, descriptors.
std::vector<pid_t> PidsIn(const std::string& path) {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return pids;
  while (const dirent* entry = readdir(folder.get())) {
    if (const auto pid = ParseInt(entry->d_name)) pids.push_back(static_cast<pid_t>(*pid));
  }
  return pids;
}

std::vector<pid_t> AllPids() {
  return PidsIn("/proc");
}

// Each thread has those that it started.
std::vector<pid_t> DirectChildren(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t thread : PidsIn(ProcPath(pid, "task"))) {
    const auto list = ReadProc(StrCat("/proc/", pid, "/task/", thread, "/children"));
    for (const std::string& word : Split(list.value_or(""), ' ')) {
      if (const auto child = ParseInt(word)) children.push_back(static_cast<pid_t>(*child));
    }
  }
  return children;
}

bool HasEnded(const ProcessRow& row) {
  return row.state == 'Z' || row.state == 'X' || row.state == 'x';
}

std::optional<ProcessRow> RowOf(pid_t pid) {
  const auto stat = ReadProc(ProcPath(pid, "stat"));
  const auto row = stat ? ParseProcessRow(*stat) : std::nullopt;
  return row && !HasEnded(*row) ? row : std::nullopt;
}

// Whether the NUL-separated list holds exactly this entry.
bool HasEntry(std::string_view list, std::string_view entry) {
  for (size_t at = list.find(entry); at != std::string_view::npos; at = list.find(entry, at + 1)) {
    const size_t end = at + entry.size();
    if ((at == 0 || list[at - 1] == '\0') && (end == list.size() || list[end] == '\0')) return true;
  }
  return false;
}

// Whether a process that seemed to have no environment has none: it also reads as nothing in the middle of an
// exec, until the kernel has said where it is (only after that it says where the program's code is), and
// right after one, when what was opened was that of the old program.
bool HasNoEnvironment(pid_t pid) {
  char program[1];
  if (readlink(ProcPath(pid, "exe").c_str(), program, sizeof program) < 0)
    return true;  // the kernel's, or ending
  const std::string stat = ReadProc(ProcPath(pid, "stat")).value_or("");
  const std::vector<std::string> fields = Split(Trim(stat.substr(stat.rfind(')') + 1)), ' ');
  constexpr size_t kCode = 23, kBegin = 47, kEnd = 48;  // fields 26, 50 and 51
  return fields.size() <= kEnd || (fields[kBegin] == fields[kEnd] && fields[kCode] != "0");
}

// Nothing for one that cannot be looked into. `looks` is how often to look again.
std::string EnvironmentOf(pid_t pid, int& looks) {
  for (;; usleep(1000)) {
    std::string environment = ReadProc(ProcPath(pid, "environ")).value_or("");
    if (!environment.empty() || looks == 0 || HasNoEnvironment(pid)) return environment;
    --looks;
  }
}

int64_t ResidentBytesOf(pid_t pid) {
  static const int64_t page = sysconf(_SC_PAGESIZE);
  const auto statm = ReadProc(ProcPath(pid, "statm"));
  const std::vector<std::string> fields = Split(statm.value_or(""), ' ');
  return fields.size() < 2 ? 0 : ParseInt(fields[1]).value_or(0) * page;
}

int64_t ProportionalBytesOf(pid_t pid) {
  const auto rollup = ReadProc(ProcPath(pid, "smaps_rollup"));
  const size_t at = rollup ? rollup->find("\nPss:") : std::string::npos;
  if (at == std::string::npos) return ResidentBytesOf(pid);
  std::string_view value = std::string_view(*rollup).substr(at + 5);
  value = Trim(value.substr(0, value.find("kB")));
  return ParseInt(value).value_or(0) * 1024;
}

}  // namespace

const std::string& BootId() {
  static const std::string id(Trim(ReadProc("/proc/sys/kernel/random/boot_id").value_or("")));
  return id;
}

std::optional<ProcessRow> ParseProcessRow(std::string_view stat) {
  const size_t open = stat.find('(');
  const size_t close = stat.rfind(')');  // the fields behind it are numbers
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const auto pid = ParseInt(Trim(stat.substr(0, open)));
  const std::vector<std::string> fields = Split(Trim(stat.substr(close + 1)), ' ');
  constexpr size_t kState = 0, kParent = 1, kStart = 19;  // fields 3, 4 and 22
  if (!pid || fields.size() <= kStart || fields[kState].size() != 1) return std::nullopt;
  const auto parent = ParseInt(fields[kParent]);
  const auto start = ParseInt(fields[kStart]);
  if (!parent || !start) return std::nullopt;
  return ProcessRow{static_cast<pid_t>(*pid), static_cast<pid_t>(*parent), fields[kState][0],
                    static_cast<uint64_t>(*start)};
}

std::optional<ProcessIdentity> Identify(pid_t pid) {
  const auto row = RowOf(pid);
  if (!row) return std::nullopt;
  return ProcessIdentity{pid, row->start_ticks, BootId()};
}

bool IsAlive(const ProcessIdentity& identity) {
  if (identity.boot_id != BootId() || identity.pid <= 0) return false;
  const auto row = RowOf(identity.pid);
  return row && row->start_ticks == identity.start_ticks;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::unordered_map<pid_t, std::vector<pid_t>> children;  // of each parent
  for (const pid_t each : AllPids()) {
    if (const auto row = RowOf(each)) children[row->parent].push_back(each);
  }
  std::vector<pid_t> found = {pid};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto row = children.find(found[i]);
    if (row == children.end()) continue;
    found.insert(found.end(), row->second.begin(), row->second.end());
    children.erase(row);  // a pid reused while we read cannot make a circle
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> LikelyChildrenOf(pid_t pid) {
  static const bool kernel_tells = access("/proc/thread-self/children", R_OK) == 0;
  if (!kernel_tells) return ChildrenOf(pid);
  std::vector<pid_t> found = {pid};
  std::unordered_set<pid_t> seen = {pid};  // a pid reused while we read cannot make a circle
  for (size_t i = 0; i < found.size(); ++i) {
    for (const pid_t child : DirectChildren(found[i])) {
      if (seen.insert(child).second) found.push_back(child);
    }
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> ProcessesWithEnvironment(std::string_view entry) {
  std::vector<pid_t> found;
  const uid_t self = geteuid();
  int looks = kLooksAtStartingPrograms;
  for (const pid_t pid : AllPids()) {
    struct stat info {};
    if (stat(StrCat("/proc/", pid).c_str(), &info) != 0 || info.st_uid != self) continue;
    if (HasEntry(EnvironmentOf(pid, looks), entry) && RowOf(pid)) found.push_back(pid);
  }
  return found;
}

bool HaveOpen(const std::vector<pid_t>& pids, const std::vector<int>& files) {
  std::set<std::pair<dev_t, ino_t>> wanted;
  struct stat info {};
  for (const int file : files) {
    if (fstat(file, &info) == 0) wanted.emplace(info.st_dev, info.st_ino);
  }
  for (const pid_t pid : pids) {
    for (const int number : PidsIn(ProcPath(pid, "fd"))) {
      const std::string path = StrCat("/proc/", pid, "/fd/", number);
      if (stat(path.c_str(), &info) == 0 && wanted.contains({info.st_dev, info.st_ino})) return true;
    }
  }
  return false;
}

int64_t ResidentBytes(const std::vector<pid_t>& pids) {
  int64_t sum = 0;
  for (const pid_t pid : pids) sum += ResidentBytesOf(pid);
  return sum;
}

int64_t ProportionalBytes(const std::vector<pid_t>& pids) {
  int64_t sum = 0;
  for (const pid_t pid : pids) sum += ProportionalBytesOf(pid);
  return sum;
}

}  // namespace overcap
