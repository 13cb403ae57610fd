// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "control/workspace_folder.h"
#include "model/json_fields.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

// A beat comes every minute.
constexpr int64_t kSilentUs = 200'000'000;
constexpr useconds_t kDyingLookUs = 20'000;

std::string FolderOf(const std::string& root, std::string_view name) {
  return StrCat(root, "/workspaces/", name, "/auto");
}

std::string SafeHost(std::string_view host) {
  std::string safe(host.substr(0, 200));
  for (char& c : safe) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && &c != safe.data());
    if (!plain) c = '_';
  }
  return safe.empty() ? "_" : safe;
}

std::string Ago(int64_t then_us, int64_t now_us) {
  return FormatDuration(std::max<int64_t>(1, (now_us - then_us) / 1'000'000)) + " ago";
}

std::string LifeWords(const AutoState& state, AutoLife life, int64_t now_us) {
  switch (life) {
    case AutoLife::kRuns:
      return StrCat("saves by itself on ", state.host, " (pid ", state.pid, ", ", state.rules, ")");
    case AutoLife::kSilent:
      return StrCat("saved by itself on ", state.host, ", not heard of since ", Ago(state.beat_us, now_us));
    case AutoLife::kDied:
      return StrCat("saved by itself on ", state.host, " until it died, ", Ago(state.beat_us, now_us));
    case AutoLife::kEnded:
      break;
  }
  return StrCat("saved by itself on ", state.host, " until ", Ago(state.beat_us, now_us), " (",
                state.ended_why, ")");
}

std::string NextWords(const AutoState& state, int64_t now_us) {
  if (state.doing == "saves") return ", saving now";
  if (state.next_us == 0) return "";
  const int64_t seconds = (state.next_us - now_us) / 1'000'000;
  return seconds <= 0 ? ", next is due" : StrCat(", next in ", FormatDuration(seconds));
}

std::string_view LifeWord(AutoLife life) {
  switch (life) {
    case AutoLife::kRuns:
      return "runs";
    case AutoLife::kSilent:
      return "silent";
    case AutoLife::kDied:
      return "died";
    case AutoLife::kEnded:
      break;
  }
  return "ended";
}

}  // namespace

std::string AutoStateToJson(const AutoState& state) {
  JsonWriter json;
  json.BeginObject().Field("format", "overcap workspace auto").Field("version", 1);
  json.Field("workspace", state.workspace).Field("id", state.id);
  WriteBytes(&json, "host", state.host);
  WriteBytes(&json, "folder", state.folder);
  WriteBytes(&json, "log", state.log);
  json.Field("pid", state.pid).Field("rules", state.rules).Field("doing", state.doing);
  json.Field("started_us", state.started_us)
      .Field("beat_us", state.beat_us)
      .Field("saved_us", state.saved_us);
  json.Field("snapshot", state.snapshot).Field("unread", state.unread);
  json.Field("next_us", state.next_us).Field("next_why", state.next_why);
  json.Field("failures", state.failures).Field("failed_us", state.failed_us).Field("error", state.error);
  json.Field("job", state.job).Field("job_end_us", state.job_end_us).Field("ended_why", state.ended_why);
  return json.EndObject().Take() + "\n";
}

Result<AutoState> AutoStateFromJson(std::string_view text, const std::string& file) {
  const std::string what = StrCat("'", file, "'");
  OC_TRY(json, ParseJsonObject(text, what));
  FieldReader reader(json, what);
  AutoState state;
  int64_t pid = 0;
  reader.Read("workspace", &state.workspace);
  reader.Read("id", &state.id);
  reader.Read("host", &state.host);
  reader.Read("folder", &state.folder);
  reader.Read("log", &state.log);
  reader.Read("pid", &pid);
  reader.Read("rules", &state.rules);
  reader.Read("doing", &state.doing);
  reader.Read("started_us", &state.started_us);
  reader.Read("beat_us", &state.beat_us);
  reader.Read("saved_us", &state.saved_us);
  reader.Read("snapshot", &state.snapshot);
  reader.Read("unread", &state.unread);
  reader.Read("next_us", &state.next_us);
  reader.Read("next_why", &state.next_why);
  reader.Read("failures", &state.failures);
  reader.Read("failed_us", &state.failed_us);
  reader.Read("error", &state.error);
  reader.Read("job", &state.job);
  reader.Read("job_end_us", &state.job_end_us);
  reader.Read("ended_why", &state.ended_why);
  OC_TRY_VOID(reader.Check());
  state.pid = static_cast<pid_t>(pid);
  return state;
}

std::string AutoStateFile(const std::string& root, std::string_view name, std::string_view host) {
  return StrCat(FolderOf(root, name), "/", SafeHost(host), ".json");
}

std::string AutoLogFile(const std::string& root, std::string_view name, std::string_view host) {
  return StrCat(FolderOf(root, name), "/", SafeHost(host), ".log");
}

std::string AutoLockFile(const std::string& folder) {
  return LocalFolderOf(folder) + "/auto.lock";
}

std::vector<AutoState> ReadAutoStates(const std::string& root, std::string_view name) {
  const PosixFiles files;
  const std::string folder = FolderOf(root, name);
  std::vector<AutoState> states;
  const auto names = files.List(folder);
  for (const std::string& one : names ? *names : std::vector<std::string>()) {
    if (!one.ends_with(".json")) continue;
    const std::string file = StrCat(folder, "/", one);
    const auto text = files.Read(file);
    auto state = text ? AutoStateFromJson(*text, file) : Result<AutoState>(Fail(text.error()));
    if (state) states.push_back(std::move(*state));
  }
  std::stable_sort(states.begin(), states.end(),
                   [](const AutoState& a, const AutoState& b) { return a.beat_us > b.beat_us; });
  return states;
}

std::optional<AutoState> ReadAutoState(const std::string& root, std::string_view name,
                                       std::string_view host) {
  const std::string file = AutoStateFile(root, name, host);
  const auto text = PosixFiles().Read(file);
  if (!text) return std::nullopt;
  auto state = AutoStateFromJson(*text, file);
  if (!state) return std::nullopt;
  return std::move(*state);
}

pid_t AutoLockHolder(const std::string& folder) {
  const std::string path = AutoLockFile(folder);
  const Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return 0;
  // A shared lock that cannot be had says that somebody has the other; it is gone with the descriptor.
  if (flock(fd.Get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return 0;
  const auto text = PosixFiles().ReadRange(path, 0, 40);
  const auto pid = ParseInt(text ? Trim(*text) : "");
  return pid && *pid > 0 && *pid < (1LL << 31) ? static_cast<pid_t>(*pid) : 0;
}

pid_t LastingLockHolder(const std::string& folder, int64_t patience_us) {
  const PosixClock clock;
  const int64_t until = clock.MonotonicUs() + patience_us;
  while (true) {
    const pid_t pid = AutoLockHolder(folder);
    if (pid == 0 || Identify(pid) || clock.MonotonicUs() >= until) return pid;
    usleep(kDyingLookUs);
  }
}

AutoLife LifeOf(const AutoState& state, std::string_view own_host, int64_t now_us) {
  if (state.doing == "ended") return AutoLife::kEnded;
  if (state.host != own_host) {
    return now_us - state.beat_us > kSilentUs ? AutoLife::kSilent : AutoLife::kRuns;
  }
  return state.pid != 0 && AutoLockHolder(state.folder) == state.pid ? AutoLife::kRuns : AutoLife::kDied;
}

std::vector<std::string> AutoLines(const AutoState& state, AutoLife life, int64_t now_us) {
  const bool runs = life == AutoLife::kRuns;
  const std::string last =
      state.saved_us == 0 ? "no backup yet" : StrCat("last backup ", Ago(state.saved_us, now_us));
  std::vector<std::string> lines = {
      StrCat(LifeWords(state, life, now_us), "; ", last, runs ? NextWords(state, now_us) : "")};
  if (state.failures > 0) {
    lines.push_back(StrCat("the last ", state.failures == 1 ? "try" : StrCat(state.failures, " tries"),
                           " failed: ", state.error));
  }
  if (state.unread > 0) lines.push_back(StrCat(CountOf(state.unread, "file"), " could not be read"));
  if (!runs && life != AutoLife::kEnded)
    lines.push_back("what was done since is not saved: 'overcap workspace backup'");
  if (runs && state.job_end_us > now_us) {
    lines.push_back(
        StrCat("job '", state.job, "' ends in ", FormatDuration((state.job_end_us - now_us) / 1'000'000)));
  }
  return lines;
}

void WriteAutoFields(const AutoState& state, AutoLife life, JsonWriter* json) {
  json->Field("host", state.host)
      .Field("pid", state.pid)
      .Field("life", LifeWord(life))
      .Field("doing", state.doing);
  json->Field("rules", state.rules).Field("folder", state.folder).Field("log", state.log);
  json->Field("started_us", state.started_us).Field("beat_us", state.beat_us);
  json->Field("saved_us", state.saved_us).Field("snapshot", state.snapshot).Field("unread", state.unread);
  json->Field("next_us", state.next_us).Field("next_why", state.next_why);
  json->Field("failures", state.failures).Field("failed_us", state.failed_us).Field("error", state.error);
  json->Field("job", state.job).Field("job_end_us", state.job_end_us).Field("ended_why", state.ended_why);
}

}  // namespace overcap
