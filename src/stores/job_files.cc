// SPDX-License-Identifier: Apache-2.0
#include "stores/job_files.h"

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>

#include "base/text.h"
#include "stores/segment_keys.h"
#include "stores/stored_log_reader.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostSmall = 4 << 20;
constexpr int64_t kMostReport = 256 << 20;
constexpr int kMostAttempts = 100'000;

// What listings say of one report.
struct Report {
  int64_t size = 0;
  int64_t touched_us = 0;
};

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

Result<void> BringFile(const Store& store, const std::string& key, const std::string& path) {
  PosixFiles files;
  if (files.Exists(path)) return {};
  OC_TRY(text, store.Get(key, 0, kMostSmall));
  OC_TRY_VOID(files.MakeFolders(FolderOf(path)));
  Result<void> made = files.CreateExclusive(path, text);
  if (!made && made.error().code != ErrorCode::kConflict) return made;
  return {};
}

// That there is one, whatever is in it.
Result<void> Mark(const std::string& path) {
  PosixFiles files;
  if (files.Exists(path)) return {};
  OC_TRY_VOID(files.MakeFolders(FolderOf(path)));
  (void)files.CreateExclusive(path, "");
  return {};
}

int64_t SizeOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

void SetTime(const std::string& path, int64_t us) {
  const timespec time{us / 1'000'000, us % 1'000'000 * 1000};
  const timespec times[2] = {time, time};
  (void)utimensat(AT_FDCWD, path.c_str(), times, 0);
}

// Several processes may do this at the same time: each writes the whole under its own name.
Result<void> BringReport(const Store& store, const std::string& key, const Report& report,
                         const std::string& path) {
  PosixFiles files;
  if (SizeOf(path) < report.size && report.size <= kMostReport) {
    std::string text = files.Read(path).value_or("");
    StoredLogReader reader(store, key);
    OC_TRY_VOID(reader.SeekTo(static_cast<int64_t>(text.size())));
    while (static_cast<int64_t>(text.size()) < report.size) {
      OC_TRY(bytes, reader.Read(kMostSegment));
      if (bytes.empty()) break;
      text += bytes;
    }
    OC_TRY_VOID(files.MakeFolders(FolderOf(path)));
    OC_TRY_VOID(files.WriteAtomic(path, text, false));
  }
  if (files.Exists(path)) SetTime(path, report.touched_us);
  return {};
}

}  // namespace

Result<void> BringSpec(const Store& store, const std::string& job, const std::string& folder) {
  OC_TRY_VOID(BringFile(store, job + "spec.json", folder + "/spec.json"));
  return BringCancel(store, job, folder);
}

Result<void> BringCancel(const Store& store, const std::string& job, const std::string& folder) {
  Result<void> cancel = BringFile(store, job + "cancel.json", folder + "/cancel.json");
  if (!cancel && cancel.error().code == ErrorCode::kNotFound) return {};
  return cancel;
}

Result<size_t> BringReports(const Store& store, const std::string& job, const std::string& prefix,
                            const std::string& folder) {
  OC_TRY(objects, store.ListAll(job + prefix));
  std::map<std::string, Report> reports;
  for (const StoredObjectInfo& object : objects) {
    const std::string name = object.key.substr(job.size());
    const bool node = name.find(".node-") != std::string::npos;
    if (name.ends_with(".claim") && !node)
      OC_TRY_VOID(BringFile(store, object.key, StrCat(folder, "/", name)));
    const std::string file = name.substr(0, name.rfind('/'));
    const bool beat = name.ends_with(".beat");
    if (beat || file.ends_with(".jsonl")) {
      Report& report = reports[beat ? name.substr(0, name.size() - 5) + ".jsonl" : file];
      report.touched_us = std::max(report.touched_us, object.modified_us);
      if (const auto start = SegmentOffset(job + file, object.key); start && !beat)
        report.size = std::max(report.size, *start + object.size);
    } else if (file.find("/task-") != std::string::npos && file.ends_with(".log")) {
      OC_TRY_VOID(Mark(StrCat(folder, "/", file)));
    } else if (node && name.ends_with(".claim")) {
      OC_TRY_VOID(Mark(StrCat(folder, "/", name)));
    }
  }
  for (const auto& [name, report] : reports)
    OC_TRY_VOID(BringReport(store, job + name, report, StrCat(folder, "/", name)));
  return objects.size();
}

Result<void> BringAttempts(const Store& store, const std::string& job, const std::string& folder) {
  int attempt = 1;
  const PosixFiles files;
  while (attempt < kMostAttempts && files.Exists(StrCat(folder, "/attempt-", attempt + 1))) ++attempt;
  for (; attempt < kMostAttempts; ++attempt) {
    OC_TRY(found, BringReports(store, job, StrCat("attempt-", attempt, "/agent-"), folder));
    if (found == 0) return {};
  }
  return {};
}

Result<std::string> CreateOrRead(Store* store, const std::string& key, const std::string& text) {
  const Result<void> made = store->Put(key, text, PutMode::kCreate);
  if (made) return text;
  if (made.error().code != ErrorCode::kConflict) return Fail(made.error());
  return store->Get(key, 0, kMostSmall);
}

Result<std::string> CreateFromFile(Store* store, const std::string& job, const std::string& folder,
                                   const std::string& name) {
  OC_TRY(text, PosixFiles().Read(StrCat(folder, "/", name)));
  return CreateOrRead(store, job + name, text);
}

}  // namespace overcap
