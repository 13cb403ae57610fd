// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "agent/attempt_folder.h"
#include "agent/ending.h"
#include "agent/log_keeper.h"
#include "agent/rank_environment.h"
#include "agent/script_tools.h"
#include "base/text.h"
#include "sys/devices.h"
#include "sys/free_port.h"
#include "sys/proc_table.h"
#include "sys/prompt_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int kUsualUmask = 022;

}  // namespace

RankGroup::RankGroup(const JobSpec& spec, const AgentOptions& options, const RankVariables& variables,
                     const std::string& folder, const Clock& clock, Supervisor* supervisor,
                     ClusterWatch* watch)
    : spec_(spec),
      options_(options),
      clock_(clock),
      supervisor_(*supervisor),
      watch_(watch),
      guard_(spec, options),
      limits_(guard_.Limits()),
      master_port_(FreePort()),
      members_(spec.batch ? 1 : spec.resources.ranks_per_node) {
  limits_.term_when_unheard = options.under.empty();  // this machine's engine warns only before a stop
  limits_.warn_us = options.under.empty() ? spec.warn_seconds * 1'000'000 : 0;  // clusters warn us
  limits_.warn_members_only = spec.warn_shell;
  limits_.many_nodes = spec.resources.nodes > 1;
  if (watch_ != nullptr && spec.batch) {
    limits_.also_warned = [mark = watch_->JobMark()] {
      return mark.empty() ? std::vector<pid_t>() : ProcessesWithEnvironment(mark);
    };
  }
  if (watch_ != nullptr) {
    limits_.leave_alone = [this, usual = limits_.leave_alone](pid_t pid) {
      return watch_->IsOwnHelper(pid) || (usual && usual(pid));
    };
  }
  const RankSetting setting{folder, master_port_, variables.cluster, Cpus(variables.cluster),
                            HasScriptTools(spec, options)};
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    SpawnRequest& request = members_[rank].request;
    request.argv = spec.command;
    request.env = RankEnvironment(variables.submitter, spec, options, setting, static_cast<int>(rank));
    request.cwd = folder;
    request.group = ProcessGroup::kGroup;
    request.parent_death_signal = SIGKILL;
    request.cgroup_procs = guard_.ProcsFiles();
    request.default_signals = false;                                    // the agent ignores none
    request.umask = spec.umask >= 0 ? spec.umask & 0777 : kUsualUmask;  // the agent's own keeps all private
    request.nofile_soft = spec.nofile;
    // Looked up once; where that fails, each start tries again and says why.
    if (auto program = ResolveProgram(spec.command[0], PathOf(request.env), folder))
      request.program = *program;
  }
}

void RankGroup::NameTask(int task, int attempt) {
  // The task before may have left connections on its port, or another program may have taken it since.
  const bool meet = members_.size() > 1;
  if (meet) master_port_ = FreePort();
  for (GroupMember& member : members_) {
    SetTask(&member.request.env, spec_, options_, task, attempt);
    if (meet) SetMasterPort(&member.request.env, master_port_);
  }
}

// The agent is pinned to the job's processors by now, unless a cluster looks after that.
RankCpus RankGroup::Cpus(const std::vector<std::string>& cluster) const {
  const int own = static_cast<int>(AffinityCpus().size());
  const bool pinned = !options_.cpus.empty() && guard_.PinError().empty();
  return {own, pinned ? own : JobCpusHere(Variables(cluster))};
}

Ending RankGroup::Run(const std::vector<std::string>& logs, GroupObserver* observer) {
  const Result<std::vector<Fd>> files = OpenLogs(logs);
  if (!files) return CannotRun(files.error().message);
  const PromptFiles prompt(logs);
  LogKeeper keeper(*files, spec_.logs_max, clock_, observer, watch_);
  guard_.Begin();
  const GroupEnd end = supervisor_.Run(&members_, limits_, observer, &keeper);
  keeper.Finish();
  const bool kernel_killed = end.cause == StopCause::kMemberFailed && guard_.KernelKilled();
  Ending ending = EndingOf(end, spec_.resources, kernel_killed);
  const bool engine = options_.under.empty() && spec_.array.empty();
  if (!engine) return ending;
  const bool asked = access(AttemptFolder(options_).RequeueAsked().c_str(), F_OK) == 0;
  if (kernel_killed && !asked) return ending;
  return BeforeItsNextAttempt(std::move(ending), end, spec_, asked);
}

Result<std::vector<Fd>> RankGroup::OpenLogs(const std::vector<std::string>& logs) {
  std::vector<Fd> files;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    files.emplace_back(open(logs[rank].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!files.back()) return Fail(ErrnoError(errno, StrCat("cannot make log '", logs[rank], "'")));
    members_[rank].log_fd = files.back().Get();
  }
  return files;
}

}  // namespace overcap
