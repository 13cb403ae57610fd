// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>
#include <limits>
#include <unistd.h>

#include "base/text.h"
#include "launch/foreign/launcher_run.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

using Cause = AttemptEnd::Cause;

constexpr int64_t kSettleUs = 1'000'000;        // for what is under way when a process or a link has ended
constexpr int64_t kLostUs = 3'000'000;          // for a launcher to say why a link broke
constexpr int64_t kStacksUs = 8'000'000;        // for the stacks of all ranks
constexpr int64_t kMarginUs = 5'000'000;        // after the grace time, for hosts to say that nothing is left
constexpr int64_t kPartUs = 2'000'000;          // for hosts whose ranks have ended to say so
constexpr int64_t kLauncherExitUs = 2'000'000;  // for a launcher whose ranks are all gone
constexpr int64_t kSrunExitUs = 15'000'000;     // for one that also waits for the scheduler's clean-up
constexpr int64_t kLauncherTermUs = 2'000'000;  // between its TERM and KILL
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr size_t kShownLines = 8;
constexpr int64_t kSweepTermUs = 300'000;
constexpr int kAbortLines = 5;
constexpr int kMostLogsRead = 1024;

// It has the environment that its first rank had, and ends by itself.
bool IsNodeProcess(pid_t pid) {
  return PosixFiles().Read(StrCat("/proc/", pid, "/comm")).value_or("") == "overcap-watch\n";
}

}  // namespace

void LauncherRun::Decide() {
  DecidePlace();
  for (const auto& node : nodes_) {
    if (node->Open() && node->finished && now_us_ >= node->gone_us + kPartUs) Gone(node.get());
  }
  if (launcher_.RanksSpeakThroughIt()) launcher_.ShowErrors();
  if (stop_us_ == 0) LookForFailure();
  if (stop_us_ == 0) LookForBadHosts();
  if (stop_us_ == 0) LookForLostNodes();
  if (stop_us_ == 0) LookForSilence();
  if (stop_us_ == 0) LookAtLauncher();
  if (stop_us_ != 0) DriveStop();
}

// Everybody gets the same one, whenever they come.
void LauncherRun::DecidePlace() {
  if (!place_ && place_until_us_ != 0 && now_us_ >= place_until_us_) {
    place_ = {contact_.master_addr, contact_.master_port};
  }
  if (!place_) return;
  for (const auto& node : nodes_) {
    if (!node->said_hello || node->told_place) continue;
    SendTo(node.get(), *place_);
    node->told_place = true;
  }
}

void LauncherRun::LookForFailure() {
  if (failures_.Certain(launcher_.words().findings())) BeginStop(Cause::kRankFailed, attempt_.grace_us);
}

bool LauncherRun::FindBadHosts() {
  for (const LauncherFinding& finding : launcher_.words().findings()) {
    if (!finding.host_failed) continue;
    const std::string name = PlanNameOf(finding.host);
    end_.bad_hosts.push_back(name.empty() ? finding.host : name);
    end_.message = finding.text;
    end_.code = ErrorCode::kUnavailable;
  }
  std::sort(end_.bad_hosts.begin(), end_.bad_hosts.end());
  end_.bad_hosts.erase(std::unique(end_.bad_hosts.begin(), end_.bad_hosts.end()), end_.bad_hosts.end());
  return !end_.bad_hosts.empty();
}

void LauncherRun::LookForBadHosts() {
  if (FindBadHosts()) BeginStop(Cause::kHostFailed, attempt_.grace_us);
}

// A host whose node process is gone while ranks of it live: nobody can tell about them any more.
void LauncherRun::LookForLostNodes() {
  for (const auto& node : nodes_) {
    if (!node->gone || node->alive.empty() || now_us_ < node->gone_us + kLostUs) continue;
    if (launcher_.Exited()) continue;  // it may have taken the whole host's processes with it
    end_.bad_hosts.push_back(node->host);
    end_.message = StrCat("lost the connection to host '", node->host, "'");
    end_.code = ErrorCode::kUnavailable;
  }
  if (!end_.bad_hosts.empty()) BeginStop(Cause::kHostFailed, attempt_.grace_us);
}

void LauncherRun::LookForSilence() {
  if (stacks_until_us_ == 0) {
    if (!idle_.Expired(now_us_) || AllEnded()) return;
    idle_.Stop();
    stacks_until_us_ = now_us_ + kStacksUs;
    SendAll(node_link::Stacks{});
  }
  size_t wanted = 0;
  for (const auto& node : nodes_) wanted += node->Open() ? node->alive.size() : 0;
  if (stacks_.size() < wanted && now_us_ < stacks_until_us_) return;
  if (const auto kept = KeepStacks(attempt_.log_folder, {stacks_.begin(), stacks_.end()}); !kept) {
    end_.notes.push_back(kept.error().message);
  }
  BeginStop(Cause::kIdle, attempt_.grace_us);
}

void LauncherRun::LookAtLauncher() {
  if (AllEnded() && now_us_ >= all_ended_us_ + kPartUs) return BeginStop(Cause::kDone, attempt_.grace_us);
  if (launcher_.Exited() && now_us_ >= launcher_ended_us_ + kSettleUs && !NodesGone()) {
    // Ranks whose launcher has gone cannot go on: their MPI has lost its other end.
    const bool living = AnyRankAlive();
    if (living) end_.message = "the launcher ended before its ranks";
    BeginStop(living ? Cause::kCannotRun : Cause::kDone, attempt_.grace_us);
  }
}

void LauncherRun::BeginStop(Cause cause, int64_t grace_us) {
  stop_us_ = now_us_;
  stop_until_us_ = now_us_ + grace_us + kMarginUs;
  end_.cause = cause;
  SendAll(node_link::Stop{grace_us, Interrupted()});
  if (!nodes_.empty() && !launcher_.RanksSpeakThroughIt()) launcher_.Hush();
  if (nodes_.empty()) {
    launcher_.Signal(SIGTERM);
    launcher_killed_ = true;
  }
}

void LauncherRun::DriveStop() {
  const bool unlinked = begun_ < attempt_.plan.world_size && now_us_ >= stop_us_ + kPartUs;
  if (NodesGone()) {
    if (all_ended_us_ == 0) all_ended_us_ = now_us_;
    EndLauncher(all_ended_us_ + (unlinked ? 0 : PatienceUs()));
  } else if (unlinked) {
    EndLauncher(stop_us_ + kPartUs);
  }
  if (now_us_ < stop_until_us_) return;
  for (const auto& node : nodes_) {
    if (!node->Open()) continue;
    if (node->said_hello)
      end_.notes.push_back(StrCat("host '", node->host, "' did not say in time that its ranks are gone"));
    Gone(node.get());
  }
}

// How long a launcher whose ranks are gone may take to end by itself; it may still say who failed.
int64_t LauncherRun::PatienceUs() const {
  if (end_.cause == Cause::kDone && ProgramName() == "srun") return kSrunExitUs;
  return end_.cause == Cause::kHostFailed || end_.cause == Cause::kCannotRun ? 0 : kLauncherExitUs;
}

// TERM at `from_us`, KILL a while later.
void LauncherRun::EndLauncher(int64_t from_us) {
  if (launcher_.Exited() || now_us_ < from_us) return;
  const bool again = launcher_killed_;
  if (!again && AllEnded() && end_.cause != Cause::kCancelled) {
    end_.notes.push_back(StrCat("'", ProgramName(), "' did not end though all ranks had; it was ended"));
  }
  launcher_killed_ = true;
  if (now_us_ >= from_us + kLauncherTermUs || hurry_ > 0) {
    launcher_.Signal(SIGKILL);
  } else if (!again) {
    launcher_.Signal(SIGTERM);
  }
}

std::string LauncherRun::ProgramName() const {
  const std::string& program = attempt_.launch.argv[0];
  return program.substr(program.rfind('/') + 1);
}

bool LauncherRun::AnyRankAlive() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->Open() && !node->alive.empty(); });
}

// Somebody who knocks may be a node process, but a stranger must not keep a launch from its end: after its
// ranks have ended none comes that is waited for.
bool LauncherRun::NodesGone() const {
  int64_t end_us = kNever;
  for (const int64_t us : {stop_us_, all_ended_us_, launcher_ended_us_}) {
    if (us != 0) end_us = std::min(end_us, us + kSettleUs);
  }
  const auto matters = [&](const auto& knock) {
    return knock->since_us <= end_us && now_us_ < knock->since_us + kPartUs;
  };
  return std::none_of(knocks_.begin(), knocks_.end(), matters) &&
         std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return !node->Open(); });
}

bool LauncherRun::Done() const {
  if (!launcher_.Exited() || !NodesGone()) return false;
  return launcher_.Ended() || now_us_ >= launcher_ended_us_ + kSettleUs;
}

int64_t LauncherRun::NextUs() const {
  int64_t next = now_us_ + 1'000'000;
  if (stop_us_ != 0 || launcher_.Exited() || stacks_until_us_ != 0) next = now_us_ + 50'000;
  return std::min({next, idle_.DeadlineUs(), place_ || place_until_us_ == 0 ? kNever : place_until_us_});
}

// What an MPI says of an abort may stand in the rank's own output.
std::vector<LauncherFinding> LauncherRun::AllFindings() const {
  std::vector<LauncherFinding> findings = launcher_.words().findings();
  if (!failures_.Certain(findings)) return findings;
  LauncherWords words;
  for (int rank = 0; rank < attempt_.plan.world_size && rank < kMostLogsRead; ++rank) {
    words.Feed(logs_.LastLines(rank, kAbortLines) + "\n");
  }
  for (const LauncherFinding& each : words.findings()) {
    if (each.aborted) findings.push_back(each);
  }
  return findings;
}

// What a launcher that was ended leaves behind on this host: its ssh to the others, its own node processes.
void LauncherRun::SweepLauncher() {
  const std::string entry = StrCat(kContactVariable, "=", EncodeContact(contact_));
  const int64_t term_us = clock_.MonotonicUs() + kSweepTermUs, kill_us = term_us + kSweepTermUs;
  for (int64_t now = 0; (now = clock_.MonotonicUs()) < kill_us + kSweepTermUs;) {
    std::vector<pid_t> left = ProcessesWithEnvironment(entry);
    std::erase_if(left, [](pid_t pid) { return pid == getpid() || IsNodeProcess(pid); });
    if (left.empty()) return;
    for (const pid_t pid : left) {
      if (now >= term_us) kill(pid, now >= kill_us ? SIGKILL : SIGTERM);
    }
    poll(nullptr, 0, 10);
  }
}

// The last word: what the launcher knows counts now, too.
void LauncherRun::Finish() {
  launcher_.CloseOutput();
  if (launcher_killed_) SweepLauncher();
  const std::optional<ProcessEnd> launcher = launcher_killed_ ? std::nullopt : launcher_.end();
  if (end_.cause == Cause::kDone || end_.cause == Cause::kRankFailed || end_.cause == Cause::kCannotRun) {
    end_.first = failures_.Choose(AllFindings(), launcher);
    if (end_.first) end_.cause = Cause::kRankFailed;
    // A scheduler that has lost a host kills the ranks of the others: these are not to blame.
    const int signal = end_.first ? end_.first->end.signal : 0;
    if ((signal == SIGKILL || signal == SIGTERM) && FindBadHosts()) {
      end_.cause = Cause::kHostFailed;
      end_.first.reset();
    }
    if (end_.first && end_.first->host.empty() && end_.first->rank < attempt_.plan.world_size) {
      end_.first->host = attempt_.plan.hosts[attempt_.plan.HostOf(end_.first->rank)].name;
    }
  }
  // A scheduler that has lost a host may also tell us to stop.
  if (end_.cause == Cause::kCancelled) FindBadHosts();
  if (end_.cause == Cause::kDone && !AllEnded() && launcher && !launcher->ok()) FinishWithoutLinks();
  if (end_.cause == Cause::kDone && stop_us_ == 0) LookForBadHosts();
  for (const auto& node : nodes_) {
    if (!node->said_hello || node->finished || end_.cause != Cause::kDone) continue;
    end_.notes.push_back(StrCat("host '", node->host, "': the launcher ended its processes at once; ",
                                "the last lines of its ranks may be missing"));
  }
}

// Something failed, and no host has told what: there were no links, or no ranks.
void LauncherRun::FinishWithoutLinks() {
  const std::vector<std::string> lines = launcher_.words().LastLines(kShownLines);
  if (!launcher_.RanksSpeakThroughIt()) end_.notes.insert(end_.notes.end(), lines.begin(), lines.end());
  LookForBadHosts();
  if (end_.cause == Cause::kHostFailed) return;
  end_.message = StrCat("'", ProgramName(), "' ended with exit status ", launcher_.end()->exit_status);
  if (begun_ > 0 || launcher_.RanksSpeakThroughIt()) {
    end_.cause = Cause::kRankFailed;
    end_.first = RankFailure{-1, "", *launcher_.end(), true, false, ""};
  } else {
    end_.cause = Cause::kCannotRun;
    end_.code = ErrorCode::kUnavailable;
  }
}

}  // namespace overcap
