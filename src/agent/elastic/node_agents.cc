// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/node_agents.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <limits>

#include "agent/courier/start_courier.h"
#include "agent/elastic/nodes_sent.h"
#include "agent/elastic/stored_node.h"
#include "agent/ending.h"
#include "agent/log_keeper.h"
#include "agent/rank_environment.h"
#include "base/text.h"
#include "sys/devices.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"
#include "sys/prompt_files.h"
#include "sys/random.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeaveUs = 2'000'000;
constexpr int64_t kRestUs = 5'000'000;  // for the others to end after the one that led them
constexpr int64_t kSentUs = (kDrainSeconds + 5) * 1'000'000;  // and to have their logs in the job's store
constexpr int64_t kLookUs = 200'000;
constexpr int64_t kLateLookUs = 5'000'000;
constexpr int64_t kLateUs = 15'000'000;  // an agent has nothing to do any more when it has written its result
constexpr int kUsualUmask = 022;
constexpr int64_t kMostEvents = 4 << 20;

// All that the nodes of this machine may have.
JobSpec WholeOf(const JobSpec& spec, int nodes) {
  JobSpec whole = spec;
  whole.resources.mem_bytes *= nodes;
  whole.resources.cpus *= nodes;
  return whole;
}

std::string NewKey() {
  KernelRandom random;
  return StrCat(random.Next(), random.Next());
}

}  // namespace

// Keeps how the agents ended, and hands all on.
class NodeAgents::Ends : public GroupObserver {
 public:
  Ends(size_t agents, GroupObserver* next) : ends_(agents), next_(*next) {}
  void OnStarted(const std::vector<pid_t>& pids) override {
    pids_ = pids;
    next_.OnStarted(pids);
  }
  void OnMemberEnd(int member, const ProcessEnd& end) override {
    const auto at = static_cast<size_t>(member);
    if (at < pids_.size()) pids_[at] = 0;
    if (at >= ends_.size()) return;
    ends_[at] = end;
    next_.OnMemberEnd(member, end);
  }
  void OnNote(const std::string& text) override { next_.OnNote(text); }

  const std::vector<std::optional<ProcessEnd>>& ends() const { return ends_; }
  pid_t Alive(size_t agent) const { return agent < pids_.size() ? pids_[agent] : 0; }  // 0: it has ended
  bool AgentsEnded() const {
    return std::all_of(ends_.begin(), ends_.end(), [](const auto& end) { return end.has_value(); });
  }
  void Tell(int signal) const {
    for (size_t i = 0; i < ends_.size() && i < pids_.size(); ++i) {
      if (pids_[i] > 0) kill(pids_[i], signal);
    }
  }

 private:
  std::vector<std::optional<ProcessEnd>> ends_;
  std::vector<pid_t> pids_;
  GroupObserver& next_;
};

NodeAgents::NodeAgents(const JobSpec& spec, const AgentOptions& options, const RankVariables& variables,
                       const std::string& folder, const std::string& attempt_folder, int64_t grace_us,
                       const OtherNodes* others, const Clock& clock, Supervisor* supervisor,
                       ClusterWatch* watch)
    : spec_(spec),
      options_(options),
      clock_(clock),
      supervisor_(*supervisor),
      watch_(watch),
      command_{spec,
               options.attempt,
               options.nodes + (others == nullptr ? 0 : others->count),
               options.job_dir,
               attempt_folder,
               grace_us,
               JoinTimeoutOf(variables.submitter),
               others == nullptr ? 0 : others->slack_us},
      whole_(WholeOf(spec, options.nodes)),
      guard_(whole_, options),
      limits_(guard_.Limits()),
      grace_us_(grace_us),
      key_(NewKey()),
      leave_until_us_(kNever),
      rest_until_us_(kNever),
      ended_us_(kNever) {
  limits_.independent = limits_.companion_decides = true;
  limits_.warn_us = options.under.empty() ? spec.warn_seconds * 1'000'000 : 0;
  if (watch_ != nullptr) {
    limits_.leave_alone = [this, usual = limits_.leave_alone](pid_t pid) {
      return watch_->IsOwnHelper(pid) || (usual && usual(pid));
    };
  }
  for (int node = 0; node < options.nodes; ++node) AddAgent(variables, folder, node);
  agents_ = members_.size();
  told_us_.resize(agents_);
  if (others != nullptr) AddOthers(*others, variables, folder);
}

GroupMember NodeAgents::MemberOf(std::vector<std::string> argv, std::vector<std::string> env,
                                 const std::string& folder) {
  GroupMember member;
  SpawnRequest& request = member.request;
  request.program = argv.front();
  request.argv = std::move(argv);
  request.env = std::move(env);
  request.cwd = folder;
  request.group = ProcessGroup::kGroup;
  request.parent_death_signal = SIGKILL;
  request.cgroup_procs = guard_.ProcsFiles();
  request.default_signals = false;
  request.umask = spec_.umask >= 0 ? spec_.umask & 0777 : kUsualUmask;
  request.nofile_soft = spec_.nofile;
  return member;
}

void NodeAgents::AddAgent(const RankVariables& variables, const std::string& folder, int node) {
  AgentOptions own = options_;
  own.gpus = ShareOf(options_.gpus, options_.nodes, node);
  Variables env(NodeVariables(
      command_, RankEnvironment(variables.submitter, NoRank(spec_), own, {folder, 0, variables.cluster}, 0)));
  if (node == 0) shown_env_ = env.entries();
  env.Set("OVERCAP_RDZV_KEY", key_);
  std::vector<std::string> argv = WordsOfNode(LaunchWords(command_), command_.attempt_folder, node);
  argv.insert(argv.begin(), OwnProgram());
  members_.push_back(MemberOf(std::move(argv), env.entries(), folder));
  // Its ranks share what one node has. This process is pinned to those of the job's processors that the
  // machine really has: a configuration may declare more.
  if (!options_.cpus.empty() && guard_.PinError().empty())
    members_.back().request.cpus = ShareOf(AffinityCpus(), options_.nodes, node);
}

void NodeAgents::AddOthers(const OtherNodes& others, const RankVariables& variables,
                           const std::string& folder) {
  for (GroupMember& member : members_) {
    Variables env(member.request.env);
    env.Set("OVERCAP_RDZV_HEAD", others.head);
    member.request.env = env.entries();
  }
  const bool stored = !options_.via.empty();  // then each node makes all for itself
  Variables env =
      stored ? Variables::OfThisProcess()
             : Variables(NodeVariables(command_, RankEnvironment(variables.submitter, NoRank(spec_), options_,
                                                                 {folder, 0, variables.cluster}, 0)));
  for (const std::string& name : others.unset) env.Remove(name);
  env.Set("OVERCAP_RDZV_KEY", key_);
  env.Set("OVERCAP_RDZV_HEAD", others.head);
  std::vector<std::string> argv = others.argv;
  const std::vector<std::string> words = LaunchWords(command_);
  argv.insert(argv.end(), {OwnProgram(), "agent", "node"});
  const std::vector<std::string> place =
      stored ? StoredNodeWords(options_) : std::vector<std::string>{command_.attempt_folder};
  argv.insert(argv.end(), place.begin(), place.end());
  argv.insert(argv.end(), words.begin(), words.end());
  members_.push_back(MemberOf(std::move(argv), env.entries(), stored ? "/" : folder));
}

Ending NodeAgents::Run(const std::vector<std::string>& logs, GroupObserver* observer) {
  std::vector<Fd> files;
  std::vector<std::string> paths;
  for (size_t i = 0; i < members_.size(); ++i) {
    const std::string path = i < agents_ ? logs[i] : command_.attempt_folder + "/launcher.log";
    files.emplace_back(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!files.back()) return CannotRun(ErrnoError(errno, StrCat("cannot make log '", path, "'")).message);
    members_[i].log_fd = files.back().Get();
    paths.push_back(path);
  }
  const PromptFiles prompt(std::move(paths));
  Ends ends(agents_, observer);
  ends_ = &ends;
  LogKeeper keeper(files, spec_.logs_max, clock_, observer, watch_);
  keeper_ = &keeper;
  guard_.Begin();
  const GroupEnd end = supervisor_.Run(&members_, limits_, &ends, this);
  ends_ = nullptr;
  keeper_ = nullptr;
  keeper.Finish();
  if (!end.reason.empty()) return CannotRun(end.reason);
  if (end.cause == StopCause::kTimeLimit || end.cause == StopCause::kMemoryLimit)
    return BeforeItsNextAttempt(overcap::EndingOf(end, whole_.resources, false), end, spec_, false);
  Ending ending = overcap::EndingOf(NodeEnds{ends.ends(), LastWord(), told_to_stop_});
  if (ending.state == JobState::kFailed && guard_.KernelKilled())
    ending = overcap::EndingOf(GroupEnd{StopCause::kMemoryLimit, -1, end.end, ""}, whole_.resources, true);
  return ending;
}

std::vector<std::string> NodeAgents::GrowingFiles() const {
  const std::string attempt = StrCat("attempt-", command_.attempt, "/");
  std::vector<std::string> names{GroupEventsFile(command_).substr(command_.job_dir.size() + 1)};
  for (size_t node = 0; node < agents_; ++node) names.push_back(StrCat(attempt, "node-", node, "/"));
  if (members_.size() > agents_) names.push_back(attempt + "launcher.log");
  return names;
}

// What an agent that was there at the end said of it.
std::optional<GroupEvent> NodeAgents::LastWord() const {
  std::optional<GroupEvent> last;
  for (size_t node = 0; node < agents_; ++node) {
    const std::string path = StrCat(command_.attempt_folder, "/node-", node, "/events.jsonl");
    const auto text = PosixFiles().ReadRange(path, 0, kMostEvents);
    if (!text) continue;
    for (const std::string& line : Split(*text, '\n')) {
      auto event = ParseGroupEvent(line);
      const bool left = event && event->status == 128 + SIGTERM;
      const bool well = last && last->status == 0;
      if (event && event->event == "ended" && !left && !well) last = std::move(event);
    }
  }
  return last;
}

// The agents warn the ranks that handle the warning, stop all, and end when all have ended. That may take a
// third of the grace time, the grace time, and a moment.
void NodeAgents::TellToLeave() {
  told_to_stop_ = true;
  leave_until_us_ = clock_.MonotonicUs() + grace_us_ + grace_us_ / 3 + kLeaveUs;
  ends_->Tell(SIGTERM);
}

// Whether nodes of the last group have not said yet that their logs are in the job's store. Who was lost
// before will never say so.
bool NodeAgents::OthersSend(int64_t now_us) const {
  if (options_.via.empty() || members_.size() == agents_ || now_us - ended_us_ >= kSentUs) return false;
  const PosixFiles files;
  const auto said = files.ReadRange(command_.attempt_folder + "/launcher.log", 0, kMostEvents);
  const auto events = files.ReadRange(command_.attempt_folder + "/node-0/events.jsonl", 0, kMostEvents);
  return CountSent(said.value_or("")) + 1 < LastGroupSize(events.value_or(""));
}

// Nobody needs an agent that has told how it ended: whatever holds it, the job goes on without it.
void NodeAgents::KillLate(int64_t now_us) {
  if (now_us < look_us_) return;
  look_us_ = now_us + kLateLookUs;
  for (size_t node = 0; node < agents_; ++node) {
    const pid_t pid = ends_->Alive(node);
    const std::string result = StrCat(command_.attempt_folder, "/node-", node, "/result.json");
    if (pid <= 0 || !PosixFiles().Exists(result)) continue;
    if (!told_us_[node]) told_us_[node] = now_us;
    if (now_us - *told_us_[node] < kLateUs) continue;
    ends_->OnNote(
        StrCat("the agent of node ", node, " had written its result and did not end: it was killed"));
    kill(pid, SIGKILL);
    told_us_[node] = now_us;
  }
}

int64_t NodeAgents::Prepare(std::vector<pollfd>* fds) {
  const int64_t next = keeper_->Prepare(fds);
  return forced_ ? next : std::min({next, leave_until_us_, rest_until_us_, look_us_});
}

bool NodeAgents::Act(std::span<const pollfd> fds) {
  const bool stop = keeper_->Act(fds);
  const int64_t now_us = clock_.MonotonicUs();
  if ((stop || supervisor_.CancelRequested()) && !told_to_stop_) TellToLeave();
  if (rest_until_us_ == kNever && ends_->AgentsEnded()) {
    ended_us_ = now_us;
    rest_until_us_ = now_us + kRestUs;
  }
  if (now_us >= rest_until_us_ && OthersSend(now_us)) rest_until_us_ = now_us + kLookUs;
  KillLate(now_us);
  forced_ = now_us >= std::min(leave_until_us_, rest_until_us_);
  return forced_;
}

}  // namespace overcap
