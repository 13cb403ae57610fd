// SPDX-License-Identifier: Apache-2.0
// What the service that saves a workspace by itself says of itself (docs/formats/workspaces.md): for
// `workspace status`, `workspace auto --status`, and whoever ends an allocation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"

namespace overcap {

// All times are wall time in microseconds; 0: none.
struct AutoState {
  std::string workspace, id;  // name and id of the workspace
  std::string host, folder, log;
  pid_t pid = 0;
  std::string rules;  // "every 30m"
  std::string doing;  // "waits", "saves", "paused" (the last try failed), "ended"
  int64_t started_us = 0;
  int64_t beat_us = 0;   // when this was written; at least once a minute while it lives
  int64_t saved_us = 0;  // when the last backup that succeeded began: what was done before is safe
  std::string snapshot;  // id of that
  int64_t unread = 0;    // files that it could not read
  int64_t next_us = 0;   // when the next is due
  std::string next_why;
  int64_t failures = 0;   // tries since the last success
  int64_t failed_us = 0;  // when the last of them ended
  std::string error;      // of that; "" when there is none
  std::string job;        // of the allocation it was started in; "" outside
  int64_t job_end_us = 0;
  std::string ended_why;  // of "ended"

  bool operator==(const AutoState&) const = default;
};

std::string AutoStateToJson(const AutoState& state);
Result<AutoState> AutoStateFromJson(std::string_view json, const std::string& file);

// <root>/workspaces/NAME/auto/HOST.json (and .log); <folder>/.overcap/auto.lock, held while it lives.
std::string AutoStateFile(const std::string& root, std::string_view name, std::string_view host);
std::string AutoLogFile(const std::string& root, std::string_view name, std::string_view host);
std::string AutoLockFile(const std::string& folder);

// Of all hosts, the one that wrote last first. Files that cannot be read are left out.
std::vector<AutoState> ReadAutoStates(const std::string& root, std::string_view name);
// Of one host.
std::optional<AutoState> ReadAutoState(const std::string& root, std::string_view name, std::string_view host);

enum class AutoLife {
  kRuns,    // on this host: its lock is held; on another: it was heard of lately
  kSilent,  // on another host, and nothing was heard for minutes
  kEnded,   // as it should
  kDied,    // it is gone and has not said why
};
AutoLife LifeOf(const AutoState& state, std::string_view own_host, int64_t now_us);
// The process that holds the lock of a folder; 0: nobody.
pid_t AutoLockHolder(const std::string& folder);
// The same; one that was killed holds it until its threads are out of the kernel, and is waited for so long.
pid_t LastingLockHolder(const std::string& folder, int64_t patience_us);

// For people, one line each: "saves by itself on node7 (pid 4711, every 30m); last backup 3m ago, next in
// 27m", then what they should worry about.
std::vector<std::string> AutoLines(const AutoState& state, AutoLife life, int64_t now_us);
// The same as members of a JSON object: "host", "pid", "life", ...
void WriteAutoFields(const AutoState& state, AutoLife life, JsonWriter* json);

}  // namespace overcap
