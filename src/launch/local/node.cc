// SPDX-License-Identifier: Apache-2.0
#include "launch/local/node.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <limits>
#include <memory>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/link/messages.h"
#include "launch/local/local_cpus.h"
#include "launch/local/node_ranks.h"
#include "launch/local/stacks.h"
#include "launch/rank_threads.h"
#include "sys/devices.h"
#include "sys/file_limit.h"
#include "sys/free_port.h"
#include "sys/inherited_children.h"
#include "sys/oom.h"
#include "sys/own_host_name.h"
#include "sys/supervisor.h"
#include "sys/user.h"

namespace overcap {
namespace {

using node_link::Channel;

constexpr size_t kMaxPending = 4 << 20;
constexpr int64_t kStartWaitUs = 600'000'000;  // the head closes long before; this is for one that vanished
constexpr int64_t kFlushUs = 60'000'000;
constexpr int64_t kDrainUs = 60'000'000;  // a slow connection must not cost output
constexpr int64_t kStacksUs = 5'000'000;

// The third word of SSH_CONNECTION: by this address the head's side has reached us.
std::string AddressOfThisHost() {
  const char* connection = getenv("SSH_CONNECTION");
  const std::vector<std::string> words = Split(connection != nullptr ? connection : "", ' ');
  return words.size() == 4 ? words[2] : "";
}

// Waits until there is something to read, or while something is to be written until that goes on. False when
// the time is over.
bool WaitFor(const Channel& channel, bool reading, int64_t wait_us) {
  pollfd fds[2] = {{reading ? channel.ReadFd() : -1, POLLIN, 0},
                   {channel.Pending() > 0 ? channel.WriteFd() : -1, POLLOUT, 0}};
  const auto wait_ms = std::clamp<int64_t>(wait_us / 1000 + 1, 0, std::numeric_limits<int>::max());
  return wait_us > 0 && poll(fds, 2, static_cast<int>(wait_ms)) != 0;
}

// What the head says first; nullopt when it has nothing to be started.
Result<std::optional<node_link::Start>> ReceiveStart(Channel* channel, const Clock& clock) {
  const int64_t until = clock.MonotonicUs() + kStartWaitUs;
  do {
    const bool open = channel->Flush() && channel->Read();
    OC_TRY(frame, channel->Next());
    if (frame) {
      OC_TRY(message, node_link::DecodeToNode(*frame));
      if (auto* start = std::get_if<node_link::Start>(&message)) return std::optional(std::move(*start));
      if (std::get_if<node_link::Stop>(&message) != nullptr) return std::optional<node_link::Start>();
    }
    if (!open) return std::optional<node_link::Start>();
  } while (WaitFor(*channel, true, until - clock.MonotonicUs()));
  return Fail(ErrorCode::kUnavailable, "the launch has not said in time what to start");
}

// The ranks of this host while they run, and the connection to the head beside them.
class NodeRun : public GroupObserver, public GroupCompanion {
 public:
  NodeRun(Channel* channel, const Clock& clock, int first_rank, int ranks)
      : channel_(*channel),
        clock_(clock),
        first_rank_(first_rank),
        pids_(ranks),
        oom_kills_(KernelOomKills()) {
    for (int i = 0; i < ranks; ++i) sinks_.push_back(std::make_unique<Sink>(this, first_rank + i));
  }

  OutputSink* SinkOf(size_t member) { return sinks_[member].get(); }

  void OnStarted(const std::vector<pid_t>& pids) override {
    started_ = true;
    pids_ = pids;
    for (size_t i = 0; i < pids.size(); ++i)
      Send(node_link::Begun{first_rank_ + static_cast<int>(i), pids[i]});
  }

  void OnMemberEnd(int member, const ProcessEnd& end) override {
    pids_[member] = 0;
    const bool oom = end.signal == SIGKILL && !stopping_ && KernelOomKills() > oom_kills_;
    const node_link::Ended ended{first_rank_ + member, end.exit_status, end.signal, true, oom, ""};
    if (!end.ok()) stopping_ = true;
    if (started_) {
      Send(ended);
    } else {
      held_.push_back(ended);
    }
  }

  void OnNote(const std::string& text) override { Send(node_link::Note{text}); }

  int64_t Prepare(std::vector<pollfd>* fds) override {
    if (!gone_) fds->push_back({channel_.ReadFd(), POLLIN, 0});
    if (channel_.Pending() > 0) fds->push_back({channel_.WriteFd(), POLLOUT, 0});
    return std::numeric_limits<int64_t>::max();
  }

  bool Act(std::span<const pollfd>) override {
    if (!gone_ && !channel_.Read()) gone_ = true;
    for (;;) {
      const auto frame = channel_.Next();
      if (!frame) gone_ = true;  // not a head that we understand
      if (!frame || !*frame) break;
      Obey(**frame);
    }
    if (!channel_.Flush()) gone_ = true;
    stopping_ = stopping_ || gone_;
    return stopping_;
  }

  bool Interrupted() const override { return interrupted_; }

  // One that could not be started comes first, with the reason: the others ended because of it.
  void Finish(const GroupEnd& end) {
    const int culprit = first_rank_ + end.first_failed;
    std::stable_partition(held_.begin(), held_.end(), [culprit](const auto& e) { return e.rank == culprit; });
    for (node_link::Ended& ended : held_) {
      if (ended.rank == culprit) ended.reason = end.reason;
      Send(ended);
    }
    Send(node_link::NothingLeft{});
  }

  void Send(const node_link::ToHead& message) {
    if (!gone_) channel_.Send(node_link::Encode(message));
  }

 private:
  class Sink : public OutputSink {
   public:
    Sink(NodeRun* run, int rank) : run_(*run), rank_(rank) {}
    bool Ready() override { return run_.gone_ || run_.channel_.Pending() < kMaxPending; }
    void Take(int stream, std::string_view bytes) override {
      if (!run_.gone_) run_.channel_.SendOutput(rank_, stream, bytes);
    }

   private:
    NodeRun& run_;
    int rank_;
  };

  void Obey(const std::string& frame) {
    const auto message = node_link::DecodeToNode(frame);
    if (!message) {
      gone_ = true;
    } else if (std::get_if<node_link::Stacks>(&*message) != nullptr) {
      SendStacks();
    } else if (std::get_if<node_link::Warn>(&*message) != nullptr) {
      kill(getpid(), SIGUSR1);  // the supervisor warns
    } else if (const auto* stop = std::get_if<node_link::Stop>(&*message)) {
      stopping_ = true;
      interrupted_ = stop->interrupted;
      if (stop->grace_us == 0) kill(getpid(), SIGQUIT);  // the supervisor's word for "at once"
    }
  }

  void SendStacks() {
    std::vector<pid_t> alive;
    std::vector<int> ranks;
    for (size_t i = 0; i < pids_.size(); ++i) {
      if (pids_[i] <= 0) continue;
      alive.push_back(pids_[i]);
      ranks.push_back(first_rank_ + static_cast<int>(i));
    }
    const std::vector<std::string> stacks = CollectStacks(alive, clock_.MonotonicUs() + kStacksUs);
    for (size_t i = 0; i < stacks.size(); ++i) Send(node_link::Stack{ranks[i], stacks[i]});
  }

  Channel& channel_;
  const Clock& clock_;
  int first_rank_;
  std::vector<pid_t> pids_;  // 0: ended, or not yet known
  int64_t oom_kills_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<node_link::Ended> held_;  // while not all were started
  bool started_ = false;
  bool stopping_ = false;  // ranks may be killed by us from now on
  bool interrupted_ = false;
  bool gone_ = false;  // the head
};

// What this host cannot do is told as the failure of its first rank.
void Refuse(int rank, const Error& error, Channel* channel) {
  const node_link::Ended ended{rank, ExitStatus(error.code), 0, true, false, error.message};
  channel->Send(node_link::Encode(node_link::ToHead(ended)));
  channel->Send(node_link::Encode(node_link::ToHead(node_link::NothingLeft{})));
}

Result<void> RunRanks(const node_link::Start& start, Channel* channel, const Clock& clock) {
  SupervisorTimes times;
  times.grace = start.grace_us;
  times.drain = kDrainUs;
  OC_TRY(supervisor, Supervisor::Make(clock, times, {.hangup_cancels = false, .second_kills = true}));
  AllowOpenFiles(FilesFor(start.ranks));
  const auto cpus = CpusPerLocalRank(start.cpu_bind, start.ranks, AffinityCpus());
  if (!cpus) {
    Refuse(start.first_rank, cpus.error(), channel);
    return {};
  }
  Variables env(start.env);
  const TorchRun run_facts = TakeRun(&env).value_or(TorchRun());
  std::vector<GroupMember> members = MembersOf({.node_rank = start.node_rank,
                                                .first_rank = start.first_rank,
                                                .ranks = start.ranks,
                                                .world_size = start.world_size,
                                                .command = start.command,
                                                .env = env.entries(),
                                                .folder = start.folder,
                                                .master_addr = start.master_addr,
                                                .master_port = start.master_port,
                                                .run = run_facts,
                                                .cpus = *cpus,
                                                .job_cpus = JobCpusHere({})});
  NodeRun run(channel, clock, start.first_rank, start.ranks);
  for (size_t i = 0; i < members.size(); ++i) members[i].sink = run.SinkOf(i);
  GroupLimits limits;
  limits.leave_alone = InheritedChildren();  // of login scripts
  run.Finish(supervisor->Run(&members, limits, &run, &run));
  return {};
}

void FlushAll(Channel* channel, const Clock& clock) {
  const int64_t until = clock.MonotonicUs() + kFlushUs;
  while (channel->Flush() && channel->Pending() > 0) {
    if (!WaitFor(*channel, false, until - clock.MonotonicUs())) return;
  }
}

}  // namespace

Result<int> RunLaunchNode(node_link::Ends ends, const Clock& clock) {
  signal(SIGPIPE, SIG_IGN);
  Channel channel(std::move(ends));
  channel.SendRaw(node_link::kPreamble);
  const node_link::Hello hello{node_link::kProtocol, OVERCAP_VERSION, OwnHostName(),
                               AddressOfThisHost(),  FreePort(),      -1};
  channel.Send(node_link::Encode(node_link::ToHead(hello)));
  OC_TRY(start, ReceiveStart(&channel, clock));
  if (start) {
    OC_TRY_VOID(RunRanks(*start, &channel, clock));
  } else {
    channel.Send(node_link::Encode(node_link::ToHead(node_link::NothingLeft{})));
  }
  FlushAll(&channel, clock);
  return 0;
}

Result<int> RunLaunchNode() {
  node_link::Ends ends{Fd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)),
                       Fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3))};
  const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!ends.read || !ends.write || !nothing || dup2(nothing.Get(), STDIN_FILENO) < 0 ||
      dup2(nothing.Get(), STDOUT_FILENO) < 0) {
    return Fail(ErrnoError(errno, "cannot take standard input and output"));
  }
  return RunLaunchNode(std::move(ends), PosixClock());
}

}  // namespace overcap
