// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/auto_leftovers.h"
#include "control/auto_requests.h"
#include "control/workspace_auto_log.h"
#include "control/workspace_auto_service.h"
#include "control/workspace_auto_start.h"
#include "sys/posix_files.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceAutoFlags[] = {
    {"--every", "", "TIME", "time from one backup to the next: 30m, 2h; by default 5m"},
    {"--margin", "", "TIME", "save it so long before the allocation ends; by default 5m"},
    {"--status", "", "", "tell how it goes"},
    {"--stop", "", "", "end it, after a last backup"},
    {"--foreground", "", "", "stay here: for job scripts and other services"},
    {"--log", "", "FILE", "with --foreground: write there instead of to stderr"},
    {"--passphrase-stdin", "", "", "with --foreground: the passphrase comes from stdin"},
};

// Flags of older versions, and what to use in their place.
constexpr FlagSynonym kRemovedFlags[] = {
    {"--on-change", "use '--every 5m'"},
    {"--settle", "it went with --on-change: use '--every 5m'"},
    {"--max-delay", "it went with --on-change: use '--every 5m'"},
    {"--check", "it went with --on-change: use '--every 5m'"},
    {"--reboot", "use a systemd user unit: docs/manual/workspaces-auto.md has one"},
};

constexpr int64_t kSecond = 1'000'000, kStopPatienceUs = 120 * kSecond, kHolderPatienceUs = 10 * kSecond,
                  kDyingUs = 10 * kSecond;

Result<void> ReadTime(const Args& args, std::string_view flag, int64_t* us) {
  if (!args.Has(flag)) return {};
  OC_TRY(seconds, OfFlag(flag, ParseDurationSeconds(args.Get(flag))));
  *us = seconds * kSecond;
  return {};
}

Result<AutoRules> ReadRules(const Args& args) {
  AutoRules rules;
  OC_TRY_VOID(ReadTime(args, "--every", &rules.every_us));
  OC_TRY_VOID(ReadTime(args, "--margin", &rules.margin_us));
  return rules;
}

std::string RulesText(const AutoRules& rules) {
  return StrCat("every ", FormatDuration(rules.every_us / kSecond));
}

Result<int> TellStatus(World& world, const FoundWorkspace& found, const std::string& host) {
  Output& out = world.out();
  const int64_t now_us = world.clock().WallUs();
  const std::vector<AutoState> states = ReadAutoStates(found.workspace.root, found.workspace.name);
  if (out.json()) {
    JsonWriter json;
    json.BeginArray();
    for (const AutoState& state : states) {
      json.BeginObject();
      WriteAutoFields(state, LifeOf(state, host, now_us), &json);
      json.EndObject();
    }
    out.Json(json.EndArray().Text());
    return 0;
  }
  if (states.empty()) {
    return Fail(ErrorCode::kNotFound,
                StrCat("nothing saves workspace '", found.workspace.name, "' by itself"),
                "overcap workspace auto --every 5m");
  }
  for (const AutoState& state : states) {
    const std::vector<std::string> lines = AutoLines(state, LifeOf(state, host, now_us), now_us);
    for (size_t i = 0; i < lines.size(); ++i) out.Line(StrCat(i == 0 ? "" : "  ", ToUtf8(lines[i])));
  }
  return 0;
}

// The line that an older version put into the user's crontab. True: there was one.
bool DropCrontabLine(World& world, const WorkspaceWorld& workspaces, const Workspace& workspace) {
  const auto removed = RemoveCrontabLine(workspaces.variables, workspace.id);
  if (!removed) world.out().Warn(StrCat(removed.error().message, "; ", removed.error().hint));
  if (!removed.value_or(false)) return false;
  world.out().Note(
      "removed the crontab line that started it after each reboot; docs/manual/workspaces-auto.md has a "
      "systemd "
      "user unit for that");
  return true;
}

Result<int> Stop(World& world, const WorkspaceWorld& workspaces, const FoundWorkspace& found) {
  const Workspace& workspace = found.workspace;
  const std::string& host = workspaces.host;
  const bool dropped = DropCrontabLine(world, workspaces, workspace);
  auto ended = StopAutoService(workspace.root, workspace.name, host, found.folder, kStopPatienceUs);
  if (!ended && ended.error().code == ErrorCode::kNotFound && dropped) return 0;
  if (!ended && ended.error().code == ErrorCode::kNotFound) {
    for (const AutoState& state : ReadAutoStates(workspace.root, workspace.name)) {
      if (state.host != host && LifeOf(state, host, world.clock().WallUs()) == AutoLife::kRuns)
        return Fail(ErrorCode::kNotFound, ended.error().message,
                    StrCat("it is on ", state.host, ": stop it there"));
    }
  }
  if (!ended) return Fail(ended.error());
  if (!*ended) {
    return Fail(ErrorCode::kUnavailable, StrCat("workspace '", workspace.name, "' is still being saved"),
                "'overcap workspace auto --status' tells when it is done");
  }
  const AutoState& state = **ended;
  if (state.failures > 0 || state.saved_us == 0) {
    return Fail(ErrorCode::kUnavailable,
                StrCat("it has ended, but could not save the last changes: ",
                       state.error.empty() ? "it was killed before" : state.error),
                "'overcap workspace backup' tries again");
  }
  world.out().Line(StrCat("workspace '", workspace.name, "' is no longer saved by itself; all is saved in ",
                          state.snapshot.substr(0, 10)));
  return 0;
}

// The words of the service's own command line.
std::vector<std::string> ServiceWords(World& world, const Args& args, const FoundWorkspace& found,
                                      const std::string& log) {
  std::vector<std::string> argv = {world.binary()};
  const std::string& file = world.config_places().named_file;
  if (!file.empty()) argv.insert(argv.end(), {"--config", file});
  argv.insert(argv.end(), {"--cluster", world.cluster_name(), "workspace", "auto", found.workspace.name});
  for (const std::string_view flag : {"--every", "--margin"}) {
    if (args.Has(flag)) argv.insert(argv.end(), {std::string(flag), std::string(args.Get(flag))});
  }
  argv.insert(argv.end(), {"--foreground", "--log", log});
  if (found.workspace.secret == WorkspaceSecret::kPassphrase) argv.push_back("--passphrase-stdin");
  return argv;
}

// In a held allocation its holder starts it: what a shell there starts ends with the shell.
Result<pid_t> StartWhereItLasts(const WorkspaceWorld& workspaces, const FoundWorkspace& found,
                                const AutoStart& start) {
  const std::string file = AllocationFileOf(workspaces.roots, workspaces.variables.Get("OVERCAP_JOB_ID"));
  if (!file.empty() && start.secret.empty()) {
    OC_TRY(pid, AskHolder(file, {workspaces.host, found.folder, start.argv}, kHolderPatienceUs));
    if (pid != 0) return pid;
  }
  return StartAutoService(start);
}

Result<int> Start(World& world, const Args& args, const WorkspaceWorld& workspaces,
                  const FoundWorkspace& found, const AutoRules& rules) {
  const Workspace& workspace = found.workspace;
  if (const pid_t pid = LastingLockHolder(found.folder, kDyingUs)) {
    const auto state = ReadAutoState(workspace.root, workspace.name, workspaces.host);
    if (state && state->pid == pid && state->rules == RulesText(rules)) {
      DropCrontabLine(world, workspaces, workspace);
      world.out().Line(StrCat("workspace '", workspace.name, "' is saved by itself already (pid ", pid, ", ",
                              state->rules, ")"));
      return 0;
    }
    return Fail(ErrorCode::kConflict,
                StrCat("workspace '", workspace.name, "' is saved by itself already (pid ", pid,
                       state ? StrCat(", ", state->rules) : "", ")"),
                "'overcap workspace auto --stop' ends that first");
  }
  // What would fail in a minute should fail here, where somebody sees it.
  AutoStart start;
  if (workspace.secret == WorkspaceSecret::kPassphrase) {
    OC_TRY(secret, SecretOf(workspaces, workspace));
    start.secret = std::move(secret);
  }
  start.log = AutoLogFile(workspace.root, workspace.name, workspaces.host);
  start.argv = ServiceWords(world, args, found, start.log);
  start.variables = workspaces.variables;
  start.variables.Set("PWD", found.folder);
  start.in_job = !AllocationHere(workspaces.variables).job.empty();
  OC_TRY(pid, StartWhereItLasts(workspaces, found, start));
  DropCrontabLine(world, workspaces, workspace);
  if (world.out().json()) {
    JsonWriter json;
    json.BeginObject().Field("workspace", workspace.name).Field("folder", found.folder).Field("pid", pid);
    world.out().Json(json.Field("rules", RulesText(rules)).Field("log", start.log).EndObject().Text());
    return 0;
  }
  world.out().Line(StrCat("workspace '", workspace.name, "' is saved by itself from now on, ",
                          RulesText(rules), " (pid ", pid, ")"));
  world.out().Note("'overcap workspace status' tells how it goes, 'overcap workspace auto --stop' ends it");
  return 0;
}

Result<std::string> SecretFromStdin() {
  std::string secret(65'536, '\0');
  const ssize_t count = read(STDIN_FILENO, secret.data(), secret.size());
  secret.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) return Fail(ErrorCode::kDenied, "no passphrase came on stdin");
  return secret;
}

Result<AutoSaved> Save(const WorkspaceWorld& workspaces, const FoundWorkspace& found,
                       const std::atomic<bool>& stop) {
  OC_TRY(now, FindWorkspaceHere(workspaces, found.workspace.name));
  OC_TRY(repository, OpenRepositoryOf(workspaces, now.workspace));
  WorkspaceBackupOptions options;
  options.who = "overcap workspace auto";
  options.stop = &stop;
  OC_TRY(backup, BackUpWorkspace(workspaces, now, repository, options));
  return AutoSaved{backup.Newest().Id(), backup.report.snapshot.has_value(), backup.report.new_bytes,
                   backup.report.unread};
}

Result<int> Serve(const Args& args, WorkspaceWorld workspaces, const FoundWorkspace& found,
                  const AutoRules& rules, bool detached) {
  const Workspace& workspace = found.workspace;
  if (args.Has("--passphrase-stdin")) {
    OC_TRY(secret, SecretFromStdin());
    workspaces.ask_secret = [secret](const std::string&) -> Result<std::string> { return secret; };
  }
  // Wherever it was started: this copy is meant.
  workspaces.folder = found.folder;
  const AutoAllocation allocation = AllocationHere(workspaces.variables);
  AutoServiceParts parts;
  parts.rules = rules;
  parts.state.workspace = workspace.name;
  parts.state.id = workspace.id;
  parts.state.host = workspaces.host;
  parts.state.folder = found.folder;
  parts.state.log = args.Get("--log");
  parts.state.rules = RulesText(rules);
  parts.state.job = allocation.job;
  parts.state.job_end_us = allocation.end_us;
  parts.state_file = AutoStateFile(workspace.root, workspace.name, workspaces.host);
  parts.lock_file = AutoLockFile(found.folder);
  parts.clock = workspaces.clock;
  parts.save = [&](const std::atomic<bool>& stop) { return Save(workspaces, found, stop); };
  const AllocationEndWatch allocation_end(workspaces.variables, allocation.end_us);
  parts.allocation_end = &allocation_end;
  AutoLog log(std::string(args.Get("--log")), !allocation.job.empty());
  parts.tell = [&](std::string_view line, bool important) {
    log.Write(StrCat("workspace '", workspace.name, "': ", line), important);
  };
  OC_TRY_VOID(PosixFiles().MakeFolders(parts.state_file.substr(0, parts.state_file.rfind('/'))));
  OC_TRY(saved, RunAutoService(std::move(parts), [&] {
           if (!detached) return;
           printf("pid %d\n", getpid());
           fflush(stdout);
           (void)!freopen("/dev/null", "w", stdout);
         }));
  return saved ? 0 : ExitStatus(ErrorCode::kUnavailable);
}

Result<int> RunWorkspaceAuto(World& world, const Args& args) {
  OC_TRY(workspaces, WorkspacesOf(world));
  const bool detached = args.Has("--foreground") && LeaveStarter(&workspaces.variables);
  // Who starts it from elsewhere says so which copy is meant.
  if (args.Has("--log")) workspaces.folder = std::string(workspaces.variables.Get("PWD"));
  const std::string name = args.words().empty() ? "" : args.words()[0];
  const bool asks = args.Has("--status") || args.Has("--stop");
  if (asks) {
    OC_TRY(found, FindWorkspace(workspaces, name));
    return args.Has("--stop") ? Stop(world, workspaces, found) : TellStatus(world, found, workspaces.host);
  }
  OC_TRY(rules, ReadRules(args));
  OC_TRY(found, FindWorkspaceHere(workspaces, name));
  if (!args.Has("--foreground")) {
    for (const std::string_view flag : {"--log", "--passphrase-stdin"}) {
      if (args.Has(flag)) return Fail(ErrorCode::kUsage, StrCat(flag, " goes with --foreground"));
    }
    return Start(world, args, workspaces, found, rules);
  }
  if (!detached) DropCrontabLine(world, workspaces, found.workspace);
  auto status = Serve(args, std::move(workspaces), found, rules, detached);
  if (!status && detached) {
    printf("%s %s\n", std::string(ErrorCodeName(status.error().code)).c_str(),
           status.error().message.c_str());
    fflush(stdout);
  }
  return status;
}

}  // namespace

constinit const Command kWorkspaceAuto = {
    .name = "workspace auto",
    .summary = "save a workspace in the background at intervals",
    .usage = "[NAME] [--every TIME] | --status | --stop",
    .flags = kWorkspaceAutoFlags,
    .max_words = 1,
    .run = RunWorkspaceAuto,
    .group = CommandGroup::kCode,
    .synonyms = kRemovedFlags,
};

}  // namespace overcap::cli
