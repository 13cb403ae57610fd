// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/backup.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sys/stat.h>
#include <thread>

#include "base/text.h"
#include "snapshot/backup/backup_run.h"

namespace overcap {
namespace {

constexpr int kMostThreads = 8;
constexpr int kAttempts = 3;

int ThreadsOf(const BackupRequest& request) {
  if (request.threads > 0) return std::min(request.threads, 64);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
}

Result<std::string> RealPath(const std::string& folder) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(folder.c_str(), nullptr), &free);
  if (!real) return Fail(ErrnoError(errno, StrCat("cannot back up ", Quoted(folder, 200))));
  return std::string(real.get());
}

// The cache's own folder is made before anything is looked at: later it would change the root's time.
void MakeRoomForSeen(const std::string& file) {
  const size_t cut = file.rfind('/');
  if (cut != std::string::npos && cut > 0) (void)mkdir(file.substr(0, cut).c_str(), 0700);
}

}  // namespace

Result<BackupReport> Backup(const Repository& repository, const BackupRequest& request) {
  OC_TRY_VOID(ValidWorkspaceName(request.workspace));
  OC_TRY(folder, RealPath(request.folder));
  if (!request.seen_file.empty()) MakeRoomForSeen(request.seen_file);
  const auto stopped = [&] { return request.stop != nullptr && *request.stop; };
  for (int attempt = 1;; ++attempt) {
    BackupRun run(repository, request, folder, ThreadsOf(request));
    // A prune took what the cache or an older snapshot promised: then everything is asked for.
    Result<BackupReport> report = run.Run(/*trust_cache=*/attempt == 1);
    const bool again = !report && report.error().code == ErrorCode::kConflict && !stopped();
    if (!again || attempt == kAttempts) return report;
  }
}

}  // namespace overcap
