// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_folder.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <future>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int kMostAttempts = 100'000;

int64_t NumberOf(std::string_view object, std::string_view key) {
  return ParseInt(JsonMember(object, key)).value_or(0);
}

std::string TextOf(std::string_view object, std::string_view key) {
  return JsonString(JsonMember(object, key)).value_or("");
}

std::string AttemptPath(const std::string& job, int attempt) {
  return StrCat(job, "/attempt-", attempt);
}

int64_t TimeUs(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

// "0,2" or "0-3" of SLURM_JOB_GPUS, else of CUDA_VISIBLE_DEVICES, in the environment of rank 0.
std::vector<int> GpusIn(std::string_view environment) {
  std::string_view found;
  for (size_t at = 0; at < environment.size();) {
    const std::string_view entry = environment.substr(at, environment.find('\0', at) - at);
    at += entry.size() + 1;
    constexpr std::string_view kOfJob = "SLURM_JOB_GPUS=", kOfRank = "CUDA_VISIBLE_DEVICES=";
    if (entry.starts_with(kOfRank) && found.empty()) found = entry.substr(kOfRank.size());
    if (entry.starts_with(kOfJob)) found = entry.substr(kOfJob.size());
  }
  std::vector<int> gpus;
  if (found.empty()) return gpus;
  const auto indices = ParseArraySpec(found);
  for (int i = 0; indices && i < indices->Count(); ++i) gpus.push_back(indices->IndexAt(i));
  return gpus;
}

}  // namespace

std::optional<std::string> SlurmJobFolder::Read(std::string_view name) const {
  auto text = ReadPath(StrCat(path_, "/", name));
  if (!text) return std::nullopt;
  return *std::move(text);
}

Result<std::string> SlurmJobFolder::ReadPath(const std::string& path) const {
  return stranger_ ? StrangersFiles(path_).Read(path) : PosixFiles().Read(path);
}

bool SlurmJobFolder::HasPath(const std::string& path) const {
  return stranger_ ? StrangersFiles(path_).Exists(path) : PosixFiles().Exists(path);
}

// Opened, not only asked for: a network file system then looks at its server.
int64_t SlurmJobFolder::TouchedUs(const std::string& path) const {
  if (stranger_) return StrangersFiles(path_).ModifiedUs(path);
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.Get(), &info) != 0) return 0;
  return TimeUs(info.st_mtim);
}

// Attempts are made one after the other.
int SlurmJobFolder::LastAttempt() const {
  int last = 0;
  while (last < kMostAttempts && HasPath(AttemptPath(path_, last + 1))) ++last;
  return last;
}

Result<void> SlurmJobFolder::CheckOwn() const {
  if (!stranger_) return {};
  return Fail(ErrorCode::kDenied, StrCat("folder '", path_, "' belongs to another user"));
}

bool SlurmJobFolder::Exists() const {
  return HasPath(path_ + "/spec.json");
}

Result<JobSpec> SlurmJobFolder::Spec() const {
  OC_TRY(text, ReadPath(path_ + "/spec.json"));
  return SpecFromJson(text);
}

std::optional<SlurmHandle> SlurmJobFolder::Handle() const {
  const auto text = Read("handle.json");
  if (!text) return std::nullopt;
  SlurmHandle handle{TextOf(*text, "cluster"), NumberOf(*text, "slurm_id"), TextOf(*text, "made_by"),
                     NumberOf(*text, "t")};
  if (handle.slurm_id <= 0) return std::nullopt;
  return handle;
}

std::optional<CancelWish> SlurmJobFolder::Cancel() const {
  const auto text = Read("cancel.json");
  if (!text) return std::nullopt;
  return CancelWish{NumberOf(*text, "t"), TextOf(*text, "by"), TextOf(*text, "reason")};
}

std::optional<HoldAct> SlurmJobFolder::Hold() const {
  const auto text = Read("hold.json");
  if (!text) return std::nullopt;
  return HoldAct{NumberOf(*text, "t"), JsonMember(*text, "held") == "true"};
}

std::optional<JobRecord> SlurmJobFolder::Ended(const JobSpec& spec) const {
  const auto text = Read("ended.json");
  if (!text) return std::nullopt;
  auto record = RecordFromJson(*text);
  if (!record || !IsFinal(record->state)) return std::nullopt;
  record->spec = spec;
  return *std::move(record);
}

AttemptReport SlurmJobFolder::ReadReport(int attempt, int slot) const {
  AttemptReport found{attempt, slot, 0, 0, {}, {}, 0, {}};
  const std::string agent = StrCat(AttemptPath(path_, attempt), "/agent-", slot);
  if (const auto claim = ReadPath(agent + ".claim")) {
    found.slurm_id = NumberOf(*claim, "slurm_id");
    found.slurm_restart = static_cast<int>(NumberOf(*claim, "slurm_restart"));
    found.nodes = TextOf(*claim, "nodes");
    found.touched_us = TouchedUs(agent + ".claim");
  }
  if (const auto text = ReadPath(agent + ".jsonl")) {
    found.report = ParseAgentReport(*text);
    found.touched_us = std::max(found.touched_us, TouchedUs(agent + ".jsonl"));
  }
  return found;
}

std::vector<AttemptReport> SlurmJobFolder::ReadSlots(const ArraySpec& array) const {
  std::vector<AttemptReport> slots;
  if (stranger_) return slots;  // there may be any number of them, of any size
  const auto names = PosixFiles().List(AttemptPath(path_, 1));
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    constexpr std::string_view kStart = "agent-", kEnd = ".claim";
    if (!name.starts_with(kStart) || !name.ends_with(kEnd)) continue;
    const auto slot =
        ParseInt(std::string_view(name).substr(kStart.size(), name.size() - kStart.size() - kEnd.size()));
    if (slot && *slot >= 0 && *slot < int64_t{1000} * array.Count())
      slots.push_back(ReadReport(1, static_cast<int>(*slot)));
  }
  return slots;
}

int64_t SlurmJobFolder::ArrayBeganUs() const {
  return stranger_ ? 0 : ReadReport(1, 0).report.started_us;
}

// Whoever sends it holds a lock, which ends with them.
void SlurmJobFolder::ReadSending(JobEvidence* evidence) const {
  const std::string path = path_ + "/script.sh";
  if (stranger_) {
    evidence->made_us = TouchedUs(path);
    return;
  }
  const Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info {};
  if (fd && fstat(fd.Get(), &info) == 0) evidence->made_us = TimeUs(info.st_mtim);
  evidence->sending = fd && flock(fd.Get(), LOCK_SH | LOCK_NB) != 0;
  if (!evidence->sending) evidence->handle = Handle();  // it may have come just before the lock went
}

Result<Fd> SlurmJobFolder::LockSending() const {
  OC_TRY_VOID(CheckOwn());
  const std::string path = path_ + "/script.sh";
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  // Some file systems have no locks: then others wait a little longer before they give the job up.
  if (flock(fd.Get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Fail(ErrorCode::kUnavailable, StrCat("'", path_, "' is being sent by another process"),
                "try again in a moment");
  }
  return fd;
}

JobEvidence SlurmJobFolder::Evidence(JobSpec spec) const {
  JobEvidence evidence;
  evidence.folder = path_;
  evidence.handle = Handle();
  if (!evidence.handle) ReadSending(&evidence);
  evidence.cancel = Cancel();
  evidence.hold = Hold();
  if (spec.array.empty()) {
    if (const int last = LastAttempt(); last > 0) {
      evidence.last = ReadReport(last, 0);
      if (spec.resources.gpus > 0) {
        const auto environment = Read(StrCat("attempt-", last, "/environment"));
        if (environment) evidence.last.gpus = GpusIn(*environment);
      }
    }
  } else {
    evidence.slots = ReadSlots(spec.array);
  }
  evidence.spec = std::move(spec);
  return evidence;
}

Result<bool> SlurmJobFolder::Make(const JobSpec& spec, std::string_view script) {
  OC_TRY_VOID(CheckOwn());
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(path_));
  auto made = files.CreateExclusive(path_ + "/spec.json", SpecToJson(spec));
  if (!made && made.error().code != ErrorCode::kConflict) return Fail(std::move(made).error());
  if (!made) {
    OC_TRY(known, Spec());
    if (!(known == spec)) {
      return Fail(ErrorCode::kConflict, StrCat("there is another job '", spec.id, "'"));
    }
  }
  // Not written again: somebody may hold its lock.
  auto written = files.CreateExclusive(path_ + "/script.sh", script);
  if (!written && written.error().code != ErrorCode::kConflict) return Fail(std::move(written).error());
  return made.has_value();
}

Result<SlurmHandle> SlurmJobFolder::WriteHandle(const SlurmHandle& handle) {
  OC_TRY_VOID(CheckOwn());
  JsonWriter out;
  out.BeginObject().Field("driver", "slurm").Field("cluster", handle.cluster);
  out.Field("slurm_id", handle.slurm_id).Field("made_by", handle.made_by).Field("t", handle.at_us);
  out.EndObject();
  auto made = PosixFiles().CreateExclusive(path_ + "/handle.json", out.Take() + "\n");
  if (made) return handle;
  if (made.error().code != ErrorCode::kConflict) return Fail(std::move(made).error());
  const auto known = Handle();
  if (known) return *known;
  return Fail(ErrorCode::kCorrupt, StrCat("'", path_, "/handle.json' cannot be read"));
}

Result<void> SlurmJobFolder::WriteCancel(const CancelWish& wish) {
  OC_TRY_VOID(CheckOwn());
  JsonWriter out;
  out.BeginObject().Field("t", wish.at_us).Field("by", wish.by).Field("reason", wish.reason).EndObject();
  auto made = PosixFiles().CreateExclusive(path_ + "/cancel.json", out.Take() + "\n");
  if (!made && made.error().code != ErrorCode::kConflict) return Fail(std::move(made).error());
  return {};
}

Result<void> SlurmJobFolder::WriteHold(const HoldAct& act) {
  OC_TRY_VOID(CheckOwn());
  JsonWriter out;
  out.BeginObject().Field("t", act.at_us).Field("held", act.held).EndObject();
  return PosixFiles().WriteAtomic(path_ + "/hold.json", out.Take() + "\n", false);
}

Result<void> SlurmJobFolder::WriteEnded(const JobRecord& record, int64_t now_us) {
  OC_TRY_VOID(CheckOwn());
  return PosixFiles().WriteAtomic(path_ + "/ended.json", RecordToJson(record, now_us) + "\n", true);
}

// All three at once: what the disk is asked to do for one of them serves the others. Where there may be no
// more threads async() calls them one after the other.
Result<void> SlurmJobFolder::MakeDurable() const {
  const auto sync = [](const std::string& path) { return PosixFiles().SyncFolder(path); };
  auto folder = std::async(sync, path_);
  auto above = std::async(sync, path_.substr(0, path_.rfind('/')));
  const std::string spec = path_ + "/spec.json";
  const Fd fd(open(spec.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || fsync(fd.Get()) != 0) return Fail(ErrnoError(errno, StrCat("cannot sync '", spec, "'")));
  OC_TRY_VOID(folder.get());
  return above.get();
}

}  // namespace overcap
