// SPDX-License-Identifier: Apache-2.0
#include "control/launch_folder.h"

#include <cstdio>
#include <ctime>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "launch/failure_text.h"
#include "model/json_fields.h"
#include "sys/posix_files.h"

namespace overcap {

void WritePlan(const RankPlan& plan, JsonWriter* out) {
  out->Key("hosts").BeginArray();
  for (const PlannedHost& host : plan.hosts) {
    out->BeginObject()
        .Field("name", host.name)
        .Field("first_rank", host.first_rank)
        .Field("ranks", host.ranks)
        .Field("gpus", host.gpus)
        .EndObject();
  }
  out->EndArray().Key("spares").BeginArray();
  for (const AllocatedHost& host : plan.spares) out->String(host.name);
  out->EndArray();
}

namespace {

void WriteAttempt(const AttemptRecord& record, JsonWriter* out) {
  const AttemptEnd& end = record.end;
  out->BeginObject()
      .Field("attempt", record.attempt)
      .Field("cause", CauseName(end.cause))
      .Field("exit_status", ExitStatusOf(end))
      .Field("signal", end.first ? end.first->end.signal : end.signal)
      .Field("first_failed_rank", end.first ? end.first->rank : -1)
      .Field("host", end.first ? end.first->host : "")
      .Field("out_of_memory", end.first && end.first->out_of_memory)
      .Key("bad_hosts")
      .BeginArray();
  for (const std::string& host : end.bad_hosts) out->String(host);
  out->EndArray()
      .Field("message", record.line)
      .Field("started_us", record.started_us)
      .Field("ended_us", record.ended_us)
      .EndObject();
}

Result<void> MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return {};
  return Fail(ErrnoError(errno, StrCat("cannot make folder '", path, "'")));
}

std::string TargetOf(const std::string& link) {
  char target[256];
  const ssize_t size = readlink(link.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
}

// A convenience: who looks at it while it changes sees the old or the new one.
void PointLink(const std::string& link, const std::string& target, const std::string& next) {
  if (symlink(target.c_str(), next.c_str()) == 0 && rename(next.c_str(), link.c_str()) != 0) {
    unlink(next.c_str());
  }
}

}  // namespace

std::string MakeLaunchId(int64_t unix_us, uint32_t random) {
  const time_t seconds = unix_us / 1'000'000;
  struct tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t size = strftime(text, sizeof text, "%Y%m%d-%H%M%S", &utc);
  snprintf(text + size, sizeof text - size, "-%06x", random & 0xffffff);
  return text;
}

std::string LaunchFactsJson(const LaunchFacts& facts) {
  JsonWriter out;
  out.BeginObject().Field("id", facts.id).Key("command").BeginArray();
  for (const std::string& word : facts.command) WriteBytes(&out, word);
  out.EndArray().Key("folder");
  WriteBytes(&out, facts.folder);
  out.Field("launcher", FlavourName(facts.launcher.flavour)).Key("launch_command").BeginArray();
  for (const std::string& word : facts.launch_command) WriteBytes(&out, word);
  out.EndArray().Field("world_size", facts.plan.world_size);
  WritePlan(facts.plan, &out);
  out.Field("scheduler", SchedulerName(facts.allocation.scheduler))
      .Field("job_id", facts.allocation.job_id)
      .Field("started_us", facts.started_us)
      .EndObject();
  return std::string(out.Text());
}

std::string LaunchResultJson(int exit_status, const std::vector<AttemptRecord>& attempts) {
  JsonWriter out;
  out.BeginObject().Field("exit_status", exit_status).Key("attempts").BeginArray();
  for (const AttemptRecord& record : attempts) WriteAttempt(record, &out);
  out.EndArray().EndObject();
  return std::string(out.Text());
}

Result<LaunchFolder> LaunchFolder::Make(const std::string& root, const std::string& asked,
                                        const std::string& id, bool below) {
  LaunchFolder folder;
  PosixFiles files;
  if (!asked.empty()) {
    if (const auto made = files.MakeFolders(asked); !made) {
      return Fail(ErrorCode::kUsage, StrCat("--logs: ", made.error().message));
    }
    folder.path_ = asked;
    const bool used = files.Exists(asked + "/launch.json") || files.Exists(asked + "/attempt-1");
    if (!below && !used) return folder;
    folder.path_ = asked + "/" + id;
    OC_TRY_VOID(MakeFolder(folder.path_));
    return folder;
  }
  const std::string launches = root + "/launches";
  folder.path_ = launches + "/" + id;
  folder.latest_ = launches + "/latest";
  folder.previous_ = TargetOf(folder.latest_);
  if (mkdir(folder.path_.c_str(), 0700) == 0) return folder;
  auto made = files.MakeFolders(launches);
  if (made) made = MakeFolder(folder.path_);
  if (made) return folder;
  if (made.error().hint.empty())
    made.error().hint = "name a folder for the logs with --logs, or set OVERCAP_HOME";
  return Fail(std::move(made).error());
}

Result<std::string> LaunchFolder::MakeAttempt(int number) const {
  std::string path = StrCat(path_, "/attempt-", number);
  OC_TRY_VOID(MakeFolder(path));
  return path;
}

Result<void> LaunchFolder::KeepFacts(const LaunchFacts& facts) const {
  OC_TRY_VOID(PosixFiles().WriteAtomic(path_ + "/launch.json", LaunchFactsJson(facts), false));
  if (latest_.empty()) return {};
  PointLink(latest_, facts.id, path_ + "/.latest");
  return {};
}

Result<void> LaunchFolder::KeepResult(int exit_status, const std::vector<AttemptRecord>& attempts) const {
  return PosixFiles().WriteAtomic(path_ + "/result.json", LaunchResultJson(exit_status, attempts), false);
}

// A folder that the user named may hold other things, and they stay.
void LaunchFolder::Remove() const {
  PosixFiles files;
  (void)files.RemoveTree(path_ + "/attempt-1");
  unlink((path_ + "/launch.json").c_str());
  if (!latest_.empty() && TargetOf(latest_) == path_.substr(path_.rfind('/') + 1)) {
    if (previous_.empty()) {
      unlink(latest_.c_str());
    } else {
      PointLink(latest_, previous_, path_ + "/.latest");
    }
  }
  rmdir(path_.c_str());
}

}  // namespace overcap
