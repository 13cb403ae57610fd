// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_index.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>

#include "base/text.h"
#include "model/job_id.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kTail = 256 << 10;  // of `ended`: some thousand jobs

constexpr int64_t kOldSeconds = 3600;

struct EndedJob {
  int64_t ended_us = 0;
  std::string_view id;
};

std::vector<EndedJob> ParseEnded(std::string_view text) {
  std::vector<EndedJob> jobs;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || end == std::string_view::npos) continue;
    const auto ended_us = ParseInt(line.substr(0, blank));
    const std::string_view id = line.substr(blank + 1);
    if (ended_us && IsJobId(id)) jobs.push_back({*ended_us, id});
  }
  return jobs;
}

}  // namespace

void JobIndex::Open(const std::string& id) const {
  const std::string path = StrCat(folder_, "/open/", id);
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (fd || errno != ENOENT) return;
  (void)PosixFiles().MakeFolders(folder_ + "/open");
  fd = Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

void JobIndex::Close(const std::string& id, int64_t ended_us) const {
  const std::string path = folder_ + "/ended";
  const Fd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (fd) (void)WriteAll(fd.Get(), StrCat(ended_us, " ", id, "\n"));
  Forget(id);
}

void JobIndex::Forget(const std::string& id) const {
  unlink(StrCat(folder_, "/open/", id).c_str());
}

void JobIndex::ForgetOld(const std::string& id, int64_t now_us) const {
  struct stat info {};
  if (stat(StrCat(folder_, "/open/", id).c_str(), &info) != 0) return;
  if (info.st_mtim.tv_sec < now_us / 1'000'000 - kOldSeconds) Forget(id);
}

std::vector<std::string> JobIndex::OpenIds() const {
  std::vector<std::string> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir((folder_ + "/open").c_str()), closedir);
  if (!folder) return ids;
  while (const dirent* entry = readdir(folder.get())) {
    if (IsJobId(entry->d_name)) ids.emplace_back(entry->d_name);
  }
  return ids;
}

std::vector<std::string> JobIndex::LastEnded(size_t most) const {
  const std::string path = folder_ + "/ended";
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  const auto text = PosixFiles().ReadRange(path, std::max<int64_t>(0, info.st_size - kTail), kTail);
  if (!text) return {};
  std::vector<EndedJob> jobs = ParseEnded(*text);
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const EndedJob& a, const EndedJob& b) { return a.ended_us > b.ended_us; });
  std::vector<std::string> ids;
  std::unordered_set<std::string_view> seen;
  for (const EndedJob& job : jobs) {
    if (ids.size() == most) break;
    if (seen.insert(job.id).second) ids.emplace_back(job.id);
  }
  return ids;
}

}  // namespace overcap
