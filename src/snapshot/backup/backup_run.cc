// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/backup_run.h"

#include <algorithm>
#include <iterator>

#include "snapshot/backup/cached_contents.h"
#include "snapshot/backup/tree_order.h"
#include "snapshot/backup/write_tree.h"
#include "snapshot/path_order.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"

namespace overcap {
namespace {

constexpr size_t kProblemsKept = 1000;

std::vector<std::unique_ptr<ChunkSink>> HashSinks(int count) {
  std::vector<std::unique_ptr<ChunkSink>> sinks;
  for (int i = 0; i < count; ++i) sinks.push_back(std::make_unique<HashSink>());
  return sinks;
}

}  // namespace

BackupRun::BackupRun(const Repository& repository, const BackupRequest& request, std::string folder,
                     int threads)
    : repository_(repository),
      request_(request),
      folder_(std::move(folder)),
      threads_(threads),
      began_us_(repository.clock().WallUs()),
      meter_(request.progress, repository.clock()) {}

Result<BackupReport> BackupRun::Run(bool trust_cache) {
  OC_TRY_VOID(LookAround());
  OC_TRY_VOID(Prove());
  OC_TRY_VOID(FindNewest());
  Conclude();
  bool done = NothingToWrite();
  if (done) {
    OC_TRY(all_there, HasAllPacks());
    done = all_there;
  }
  if (done) {
    TakeTotals(report_.parent->record);
  } else {
    OC_TRY_VOID(Store(trust_cache));
  }
  if (changed_ || scan_->racy || !seen_) KeepSeen();
  ReportProblems();
  meter_.Tell();
  return std::move(report_);
}

Result<void> BackupRun::LookAround() {
  if (!request_.seen_file.empty()) {
    seen_ = Seen::Load(request_.seen_file, repository_.config().id, folder_);
  }
  ScanRequest scan;
  scan.folder = folder_;
  scan.seen = seen_ ? &*seen_ : nullptr;
  scan.exclude = request_.exclude;
  scan.threads = threads_;
  scan.stop = request_.stop;
  scan.found = &meter_.entries;
  scan.on_progress = [this] { meter_.Tick(); };
  OC_TRY(found, ScanFolder(scan));
  scan_ = std::move(found);
  TakeProblems(std::move(scan_->problems));
  return {};
}

// All files of that fate, in the order of the tree, those with several names once.
std::vector<ReadJob> BackupRun::Jobs(EntryFate fate) {
  std::vector<ReadJob> jobs;
  links_.emplace();
  TreeOrder order(scan_.get());
  for (TreeOrder::Item item = order.Next(); item.entry != nullptr; item = order.Next()) {
    if (!item.entry->seen.IsFile()) continue;
    const bool stands_for_itself = links_->Note(item);
    if (stands_for_itself && item.entry->fate == fate) jobs.push_back({item.folder, item.entry});
  }
  return jobs;
}

// Files whose stamps do not tell whether they changed.
Result<void> BackupRun::Prove() {
  if (!scan_->racy) return {};
  OC_TRY_VOID(Read(Jobs(EntryFate::kProve), /*prove=*/true, HashSinks(threads_)));
  ShareLinks();
  return {};
}

void BackupRun::ShareLinks() {
  std::vector<BackupProblem> problems;
  links_->Share(&problems);
  TakeProblems(std::move(problems));
}

Result<void> BackupRun::Read(std::vector<ReadJob> jobs, bool prove,
                             const std::vector<std::unique_ptr<ChunkSink>>& sinks) {
  if (jobs.empty()) return {};
  ReadRequest read;
  read.root_fd = scan_->root_fd.Get();
  read.sizes = repository_.config().chunks;
  read.prove = prove;
  read.stop = request_.stop;
  read.counters = &counters_;
  read.on_progress = [this] {
    meter_.files_done = counters_.files.load();
    meter_.bytes_done = counters_.bytes.load();
    meter_.Tick();
  };
  meter_.scanning = false;
  meter_.files_total += static_cast<int64_t>(jobs.size());
  for (const ReadJob& job : jobs) meter_.bytes_total += job.entry->seen.stamp.size;
  OC_TRY(done, ReadFiles(read, std::move(jobs), sinks));
  TakeProblems(std::move(done.problems));
  std::move(done.bytes.begin(), done.bytes.end(), std::back_inserter(scan_->bytes));
  return {};
}

// Counts, and says whether anything that is in the tree, or was, differs from the cache. Files that are still
// to be read do.
void BackupRun::Conclude() {
  changed_ = !seen_ || scan_->removed;
  report_.entries = report_.files = report_.bytes = report_.unsteady = 0;
  for (const ScannedFolder& folder : scan_->folders) {
    for (const ScannedEntry& entry : folder.entries) {
      if (entry.fate == EntryFate::kGone) continue;
      changed_ = changed_ || entry.fate != EntryFate::kSame;
      ++report_.entries;
      if (!entry.seen.IsFile()) continue;
      if ((entry.seen.flags & kSeenUnsteady) != 0) ++report_.unsteady;
      if (links_ && links_->FirstOf(&entry) != nullptr) continue;
      ++report_.files;
      report_.bytes += entry.seen.stamp.size;
    }
  }
  ++report_.entries;  // the root
  changed_ = changed_ || scan_->root.fate != EntryFate::kSame;
}

Result<void> BackupRun::FindNewest() {
  report_.parent.reset();
  Result<NamedSnapshot> newest = repository_.Find(request_.workspace, "latest");
  if (newest) {
    report_.parent = *std::move(newest);
    return {};
  }
  if (newest.error().code == ErrorCode::kNotFound) return {};
  if (newest.error().code != ErrorCode::kCorrupt) return Fail(std::move(newest).error());
  OC_TRY(all, repository_.Snapshots(request_.workspace));  // without those that are damaged
  if (!all.empty()) report_.parent = std::move(all.back());
  return {};
}

bool BackupRun::NothingToWrite() const {
  return !changed_ && !request_.write_unchanged && report_.parent &&
         report_.parent->record.tree == seen_->tree();
}

// Whether no index names a pack that is gone, and all that the files have is in some pack: a prune, or a
// writer that merges indexes, leaves no trace of a pack that was lost.
Result<bool> BackupRun::HasAllPacks() const {
  ChunkIndex::LoadReport report;
  OC_TRY(index, ChunkIndex::Load(repository_, &report));
  if (!report.missing_packs.empty()) return false;
  ChunkReader reader(repository_, index);
  OC_TRY(lacking, LackingContents(scan_.get(), {[&](const Digest& id) { return index.Find(id).has_value(); },
                                                [&](const Digest& id) { return reader.Get(id); }}));
  return lacking.empty();
}

// Of a snapshot that has the very same tree.
void BackupRun::TakeTotals(const SnapshotRecord& record) {
  report_.tree = record.tree;
  report_.entries = record.entries;
  report_.files = record.files;
  report_.bytes = record.bytes;
  report_.unsteady = record.unsteady;
  report_.read_files = counters_.files;
  report_.read_bytes = counters_.bytes;
}

Result<void> BackupRun::Store(bool trust_cache) {
  OC_TRY(writer, ChunkWriter::Start(repository_));
  if (!seen_) return StoreWith(writer.get(), false);
  bool kept = false;
  if (trust_cache) {
    OC_TRY(has, HasSnapshotOf(repository_, request_.workspace, seen_->tree()));
    kept = has;
  }
  OC_TRY(lacking, LackingContents(scan_.get(), {[&](const Digest& id) { return writer->Has(id); },
                                                [&](const Digest& id) { return writer->GetMeta(id); }}));
  for (ScannedEntry* entry : lacking) entry->fate = EntryFate::kRead;
  OC_TRY(missing, writer->MissingPacks());
  if (kept && !lacking.empty()) {
    report_.read_again = static_cast<int64_t>(lacking.size());
    for (const Digest& pack : missing) report_.lost_packs.push_back(pack.Hex());
  }
  return StoreWith(writer.get(), kept && lacking.empty() && missing.empty());
}

Result<void> BackupRun::StoreWith(ChunkWriter* writer, bool trusted) {
  std::vector<std::unique_ptr<ChunkWriter::Lane>> lanes;
  std::vector<std::unique_ptr<ChunkSink>> sinks;
  for (int i = 0; i < threads_; ++i) {
    lanes.push_back(writer->NewLane());
    sinks.push_back(std::make_unique<LaneSink>(lanes.back().get()));
  }
  const auto flush = [&]() -> Result<void> {
    for (const auto& lane : lanes) OC_TRY_VOID(lane->Flush());
    return {};
  };
  Result<void> read = Read(Jobs(EntryFate::kRead), /*prove=*/false, sinks);
  if (!read) {
    // What was stored up to here serves the next backup.
    if (Stopped() && flush()) (void)writer->Finish();
    return read;
  }
  ShareLinks();
  Conclude();
  if (changed_ || !trusted) {
    OC_TRY(tree, WriteTree(scan_.get(), *links_, sinks[0].get()));
    report_.tree = tree;
  } else {
    report_.tree = seen_->tree();
  }
  OC_TRY_VOID(flush());
  return Commit(writer);
}

Result<void> BackupRun::Commit(ChunkWriter* writer) {
  OC_TRY(totals, writer->Finish());
  report_.new_bytes = totals.new_bytes;
  report_.stored_bytes = totals.stored_bytes;
  report_.read_files = counters_.files;
  report_.read_bytes = counters_.bytes;
  meter_.stored_bytes = totals.stored_bytes;
  const bool is_newest = report_.parent && report_.parent->record.tree == report_.tree;
  if (is_newest && !request_.write_unchanged) return {};
  OC_TRY(snapshot, writer->Commit(Record()));
  report_.snapshot = std::move(snapshot);
  return {};
}

SnapshotRecord BackupRun::Record() const {
  SnapshotRecord record;
  record.tree = report_.tree;
  record.workspace = request_.workspace;
  SetTimes(&record, began_us_, report_.parent ? report_.parent->record.time_us : 0);
  record.host = request_.host;
  record.folder = folder_;
  record.user = request_.user;
  record.message = request_.message;
  if (report_.parent) record.parent = report_.parent->Id();
  record.entries = report_.entries;
  record.files = report_.files;
  record.bytes = report_.bytes;
  record.unread = report_.unread;
  record.unsteady = report_.unsteady;
  record.program = OVERCAP_VERSION;
  return record;
}

// Without a cache the next backup only takes longer.
void BackupRun::KeepSeen() {
  if (request_.seen_file.empty()) return;
  (void)WriteSeen(*scan_, began_us_ * 1000, repository_.config().id, folder_, report_.tree,
                  request_.seen_file);
}

void BackupRun::TakeProblems(std::vector<BackupProblem> problems) {
  for (BackupProblem& problem : problems) {
    ++(problem.skipped ? report_.skipped : report_.unread);
    report_.problems.push_back(std::move(problem));
  }
}

void BackupRun::ReportProblems() {
  std::vector<BackupProblem>& problems = report_.problems;
  std::sort(problems.begin(), problems.end(),
            [](const BackupProblem& a, const BackupProblem& b) { return PathBefore(a.path, b.path); });
  if (problems.size() > kProblemsKept) problems.resize(kProblemsKept);
}

}  // namespace overcap
