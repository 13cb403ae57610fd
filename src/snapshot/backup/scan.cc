// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/scan.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "snapshot/backup/scan_queue.h"
#include "snapshot/backup/scan_worker.h"

namespace overcap {
namespace {

Result<void> LookAtRoot(const ScanRequest& request, Scan* scan) {
  scan->root_fd.Reset(open(request.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statx status;
  if (!scan->root_fd || statx(scan->root_fd.Get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) != 0) {
    const int error_number = errno;
    Error error = ErrnoError(error_number, StrCat("cannot back up ", Quoted(request.folder, 200)));
    if (error_number == ENOTDIR) error.code = ErrorCode::kNotFound;
    return Fail(std::move(error));
  }
  ScannedEntry& root = scan->root;
  root.seen.type = SnapshotEntryType::kFolder;
  root.seen.stamp = SeenStamp::Of(status);
  root.below = &scan->folders.emplace_back();
  root.below->self = &root;
  if (request.seen != nullptr && request.seen->root_stamp() == root.seen.stamp) {
    root.seen = request.seen->root();
    scan->racy = RacilySeen(root.seen.stamp, request.seen->began_ns());
    root.fate = scan->racy ? EntryFate::kProve : EntryFate::kSame;
  }
  return {};
}

ScanRules RulesOf(const ScanRequest& request, const Scan& scan) {
  ScanRules rules;
  rules.request = &request;
  rules.root_fd = scan.root_fd.Get();
  if (!request.exclude.empty()) rules.exclude.emplace(Join(request.exclude, "\n"));
  return rules;
}

void RunWorkers(const ScanRules& rules, ScanQueue* queue, Scan* scan) {
  std::deque<ScanWorker> workers;
  for (int i = 0; i < std::max(1, rules.request->threads); ++i) workers.emplace_back(rules, queue);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers.size(); ++i) {
    try {
      threads.emplace_back([&worker = workers[i]] { worker.Run(); });
    } catch (const std::system_error&) {
      break;  // no more threads to be had; those there are do it all
    }
  }
  workers[0].Run();
  for (std::thread& thread : threads) thread.join();
  for (ScanWorker& worker : workers) {
    scan->problems.insert(scan->problems.end(), std::make_move_iterator(worker.problems().begin()),
                          std::make_move_iterator(worker.problems().end()));
    scan->bytes.push_back(std::move(worker.bytes()));
    scan->removed = scan->removed || worker.removed();
    scan->racy = scan->racy || worker.racy();
  }
}

}  // namespace

std::string ScannedFolder::Path() const {
  if (parent == nullptr) return {};
  size_t length = 0;
  for (const ScannedFolder* at = this; at->parent != nullptr; at = at->parent) {
    length += at->self->seen.name.size() + 1;
  }
  std::string path(length - 1, '/');
  size_t end = path.size();
  for (const ScannedFolder* at = this; at->parent != nullptr; at = at->parent) {
    const std::string_view name = at->self->seen.name;
    path.replace(end - name.size(), name.size(), name);
    end -= name.size() + 1;
  }
  return path;
}

std::string ScannedFolder::PathOf(const ScannedEntry& entry) const {
  return parent == nullptr ? std::string(entry.seen.name) : StrCat(Path(), "/", entry.seen.name);
}

Result<std::unique_ptr<Scan>> ScanFolder(const ScanRequest& request) {
  auto scan = std::make_unique<Scan>();
  OC_TRY_VOID(LookAtRoot(request, scan.get()));
  const ScanRules rules = RulesOf(request, *scan);
  ScanQueue queue(&scan->folders);
  queue.PushRoot({&scan->top(), request.seen != nullptr ? 0 : -1});
  RunWorkers(rules, &queue, scan.get());
  if (rules.Stopped()) return Fail(ErrorCode::kConflict, "the backup was stopped");
  return scan;
}

}  // namespace overcap
