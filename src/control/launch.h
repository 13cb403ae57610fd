// SPDX-License-Identifier: Apache-2.0
// `overcap launch`: finds out where it is, plans the ranks, starts them, and again when they fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"
#include "launch/compose/launch_command.h"
#include "launch/logs/rank_logs.h"
#include "launch/rank_plan.h"
#include "launch/site/site.h"
#include "sys/clock.h"
#include "sys/random.h"
#include "sys/variables.h"

namespace overcap {

struct Config;

struct LaunchOptions {
  PlanRequest plan;
  std::string hostfile;  // ""; else a file, relative to the current folder
  std::string cpu_bind;  // "": the site's, else the launcher's own
  std::string launcher = "auto";
  std::vector<std::string> launcher_args;
  std::vector<std::string> command;
  int64_t idle_us = 0;            // 0: silence is no fault
  int64_t grace_us = 30'000'000;  // between TERM and KILL, as torchrun has it
  int retries = 0;
  Tee tee = Tee::kRank0;
  bool pipes = false;       // ranks do not write their logs themselves
  std::string logs;         // folder; "": a new one below <root>/launches
  bool logs_below = false;  // in a folder of its own below `logs`
  int master_port = 0;      // 0: a free one
};

// What a launch uses of the world around it.
struct LaunchWorld {
  std::string root, binary, folder, user;
  const Clock& clock;
  Random& random;
  const Config& config;
  Variables variables;  // the environment it was called with
};

// All that is decided before anything is started.
struct PreparedLaunch {
  Allocation allocation;
  std::optional<SiteFacts> site;
  RankPlan plan;
  bool hosts_chosen = false;
  Launcher launcher;
  LaunchCommand command;  // as it would be now
  std::string cpu_bind;
  std::vector<std::string> ssh;  // by ssh: the words before the name of a host
  std::vector<std::string> env;  // of the ranks, without what makes each of them a rank
};

// An attempt that did not end well, as the user is told.
struct LaunchFailure {
  std::string_view cause;  // as result.json names it: "rank_failed", ...
  int attempt = 1;
  std::string line, last_lines;  // last_lines: of the rank that failed first; may be ""
  std::string logs, stacks;      // folder and file; "": nothing was kept
  std::string hint;              // what to type next; may be ""
  bool shown = false;            // last_lines were on the terminal when they were written
};

// Told what happens while it happens.
class LaunchVoice {
 public:
  virtual ~LaunchVoice() = default;
  virtual void Note(const std::string& text) = 0;  // may be silenced
  virtual void Warn(const std::string& text) = 0;
  virtual void Say(const std::string& text) = 0;  // goes with a failure: what comes next
  virtual void Failure(const LaunchFailure& failure) = 0;
};

// Starts nothing, writes nothing. When a launcher has already started this process as a rank
// (allocation.started_by), there is no plan: it only has to become the command.
Result<PreparedLaunch> PrepareLaunch(const LaunchOptions& options, const LaunchWorld& world);

// `logs.max` for its logs: what the job says that it is a part of, else the configuration.
int64_t LogsMax(const Config& config, const Variables& variables);

// The exit status that `overcap launch` ends with. An error means that nothing was started.
Result<int> RunLaunch(const LaunchOptions& options, PreparedLaunch prepared, const LaunchWorld& world,
                      LaunchVoice* voice);

// For --dry-run: lines for a shell that do what would be done, what is not to be typed as comments.
std::string LaunchText(const PreparedLaunch& prepared, const LaunchOptions& options);
std::string LaunchJson(const PreparedLaunch& prepared, const LaunchOptions& options);

}  // namespace overcap
