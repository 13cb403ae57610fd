// SPDX-License-Identifier: Apache-2.0
#include "control/gc.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <sys/stat.h>

#include "base/text.h"
#include "control/others_job.h"
#include "control/stored/stored_job.h"
#include "control/stores/job_stores.h"
#include "sys/posix_files.h"
#include "sys/strangers_files.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

// A submit stores its code before there is a job that needs it: what was used so lately stays.
constexpr int64_t kMinAgeUs = 3600LL * 1'000'000;
constexpr size_t kMostAtOnce = 5'000;  // jobs in one request

Result<std::vector<EndedJob>> EndedJobs(Cluster& cluster, std::map<std::string, JobStore>* stores) {
  OC_TRY(records, cluster.List({.own = true, .all = true}));
  std::vector<EndedJob> ended;
  for (const JobRecord& record : records) {
    if (IsOthers(record)) continue;
    if (!record.spec.store.empty()) stores->emplace(JobStoreToJson(record.spec.store), record.spec.store);
    if (IsFinal(record.state)) ended.push_back({record.spec.id, record.ended_us, FolderBytes(record.dir)});
  }
  return ended;
}

// The specs of all jobs with a folder there, whichever cluster they are on. One that cannot be read is of a
// job that cannot run.
std::vector<JobSpec> SpecsIn(const std::string& jobs_folder) {
  PosixFiles files;
  std::vector<JobSpec> specs;
  const auto ids = jobs_folder.empty() ? Result<std::vector<std::string>>() : files.List(jobs_folder);
  for (const std::string& id : ids ? *ids : std::vector<std::string>()) {
    const std::string folder = StrCat(jobs_folder, "/", id), path = folder + "/spec.json";
    const auto text = StrangerOf(folder) ? StrangersFiles(folder).Read(path) : files.Read(path);
    auto spec = text ? SpecFromJson(*text) : Result<JobSpec>(Fail(text.error()));
    if (spec) specs.push_back(std::move(*spec));
  }
  return specs;
}

Result<CollectReport> CollectStore(Cluster& cluster, const std::string& store_folder,
                                   const std::string& jobs_folder, const Clock& clock) {
  OC_TRY(store, SnapshotStore::Open(store_folder, {.clock = &clock}));
  OC_TRY(records, cluster.List({.own = true, .all = true, .detail = ListDetail::kStored}));
  std::vector<std::string> trees, blobs;
  const auto keep = [&](const JobSpec& spec) {
    if (!spec.snapshot.empty()) trees.push_back(spec.snapshot);
    if (!spec.environment.empty()) blobs.push_back(spec.environment);
  };
  for (const JobRecord& record : records) keep(record.spec);
  for (const JobSpec& spec : SpecsIn(jobs_folder)) keep(spec);
  for (std::vector<std::string>* ids : {&trees, &blobs}) {
    std::sort(ids->begin(), ids->end());
    ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
  }
  return store.Collect(trees, blobs, kMinAgeUs);
}

// What no spec in the store names goes, whoever has submitted the jobs.
Result<CollectReport> CollectJobStore(const JobStore& at, const std::string& root, const Clock& clock) {
  OC_TRY(jobs, OpenJobStore(at, "", Variables::OfThisProcess()));
  std::vector<std::string> trees, blobs;
  OC_TRY(objects, jobs->ListAll("jobs/"));
  for (const StoredObjectInfo& object : objects) {
    const std::vector<std::string> parts = Split(object.key, '/');
    if (parts.size() != 3 || parts[2] != "spec.json") continue;
    auto text = jobs->Get(object.key);
    if (!text && text.error().code == ErrorCode::kNotFound) continue;
    if (!text) return Fail(std::move(text).error());
    OC_TRY(spec, SpecFromJson(*text));
    if (!spec.snapshot.empty()) trees.push_back(spec.snapshot);
    if (!spec.environment.empty()) blobs.push_back(spec.environment);
  }
  OC_TRY(store, OpenCodeStoreOf(at, root, clock));
  return store.Collect(trees, blobs, kMinAgeUs);
}

std::vector<StoreCollected> CollectJobStores(const std::map<std::string, JobStore>& stores,
                                             const std::string& root, const Clock& clock) {
  std::vector<StoreCollected> all;
  for (const auto& [text, at] : stores) {
    auto collected = CollectJobStore(at, root, clock);
    all.push_back({at.at, collected.value_or(CollectReport{}), collected ? "" : collected.error().message});
  }
  return all;
}

}  // namespace

Result<std::vector<JobRecord>> QueryInParts(Cluster& cluster, const std::vector<std::string>& ids) {
  auto asked = ids.size() <= kMostAtOnce ? cluster.Query(ids) : Fail(ErrorCode::kUsage, "too many");
  if (asked || asked.error().code != ErrorCode::kUsage || ids.size() < 2) return asked;
  const auto half = ids.begin() + std::ssize(ids) / 2;
  OC_TRY(records, QueryInParts(cluster, {ids.begin(), half}));
  OC_TRY(rest, QueryInParts(cluster, {half, ids.end()}));
  std::move(rest.begin(), rest.end(), std::back_inserter(records));
  return records;
}

Result<void> RemoveJobs(Cluster& cluster, const std::vector<std::string>& ids) {
  if (ids.empty()) return {};
  // An engine limits both the number of jobs in a request and the size of its reply.
  auto asked = ids.size() <= kMostAtOnce ? cluster.Query(ids) : Fail(ErrorCode::kUsage, "too many");
  if (!asked && asked.error().code == ErrorCode::kUsage && ids.size() > 1) {
    const auto half = ids.begin() + std::ssize(ids) / 2;
    OC_TRY_VOID(RemoveJobs(cluster, {ids.begin(), half}));
    return RemoveJobs(cluster, {half, ids.end()});
  }
  OC_TRY(records, std::move(asked));
  OC_TRY_VOID(cluster.Remove(ids));
  for (const JobRecord& record : records) {
    if (record.spec.store.empty() || IsOthers(record)) continue;
    const auto removed = RemoveStoredJob(record.spec.store, record.spec.id);
    if (removed) continue;
    return Fail(removed.error().code,
                StrCat("job '", record.spec.id, "' is removed, its logs in '", record.spec.store.at,
                       "' are not: ", removed.error().message),
                StrCat("overcap store rm -r ", record.spec.store.at, "/jobs/", record.spec.id));
  }
  return {};
}

std::vector<EndedJob> ChooseJobs(std::vector<EndedJob> ended, const GcRequest& request, int64_t now_us) {
  std::sort(ended.begin(), ended.end(),
            [](const EndedJob& a, const EndedJob& b) { return a.ended_us < b.ended_us; });
  int64_t bytes = 0;
  for (const EndedJob& job : ended) bytes += job.bytes;
  std::vector<EndedJob> chosen;
  for (EndedJob& job : ended) {
    const bool old = request.age_seconds > 0 && job.ended_us < now_us - request.age_seconds * 1'000'000;
    const bool too_much = request.size_bytes > 0 && bytes > request.size_bytes;
    if (!old && !too_much) continue;
    bytes -= job.bytes;
    chosen.push_back(std::move(job));
  }
  return chosen;
}

Result<GcReport> CollectGarbage(Cluster& cluster, const std::string& store_folder, const GcRequest& request,
                                const Clock& clock) {
  std::map<std::string, JobStore> stores;
  OC_TRY(ended, EndedJobs(cluster, &stores));
  GcReport report;
  report.jobs = ChooseJobs(std::move(ended), request, clock.WallUs());
  std::vector<std::string> ids;
  for (const EndedJob& job : report.jobs) {
    report.job_bytes += job.bytes;
    ids.push_back(job.id);
  }
  if (request.dry_run) return report;
  OC_TRY_VOID(RemoveJobs(cluster, ids));
  OC_TRY(store, CollectStore(cluster, store_folder, request.jobs_folder, clock));
  report.store = std::move(store);
  report.job_stores = CollectJobStores(stores, store_folder.substr(0, store_folder.rfind('/')), clock);
  return report;
}

int64_t FolderBytes(const std::string& folder) {
  if (folder.empty()) return 0;
  int64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
  while (!error && at != end) {
    struct stat info {};
    if (lstat(at->path().c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1) {
      bytes += static_cast<int64_t>(info.st_blocks) * 512;
    }
    at.increment(error);
  }
  return bytes;
}

}  // namespace overcap
