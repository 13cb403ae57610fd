// SPDX-License-Identifier: Apache-2.0
// The head's end of all links of an attempt: takes the ranks' output, finds the first that failed, stops the
// rest, and ends when nothing is left. How links and the processes behind them come about is its transport's
// business: one ssh for each host, or an srun or mpiexec whose hosts call back over TCP.
#pragma once

#include <cstdint>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

#include "launch/link/channel.h"
#include "launch/link/head_signals.h"
#include "launch/link/head_state.h"
#include "launch/link/messages.h"
#include "launch/runner.h"
#include "sys/clock.h"
#include "sys/process.h"

namespace overcap::node_link {

// A process that the transport has started: an ssh, or srun or mpiexec. What it says goes to launcher.log.
struct Child {
  std::string name;       // begins its lines in launcher.log; "": nothing does
  Spawned process;        // with its pidfd, in a process group of its own
  Fd output;              // read end of a pipe: its stderr (and stdout, if that is no link)
  int host = -1;          // ssh: the host that is behind it; -1: all of them
  std::string last_line;  // of its output so far, for messages
};

class Head;

// Called from inside Head::Run only; nothing here may wait.
class Transport {
 public:
  virtual ~Transport() = default;

  // Starts the children, adds the links that are there at once. An error ends the attempt: kCannotRun.
  virtual Result<void> Begin(Head* head) = 0;

  // More to wait for (a listening socket, connections that are not yet trusted): adds descriptors, gives when
  // it wants to be called at the latest (monotonic; INT64_MAX: never). Act gets them back after the wait.
  virtual int64_t Prepare(std::vector<pollfd>* fds);
  virtual void Act(std::span<const pollfd> fds, Head* head);

  // Which host of the plan it is, for a link that was added without one; -1: none of them (the link is
  // dropped). By node rank if it is told, else by name, with or without domain.
  virtual int HostOf(const Hello& hello, const RankPlan& plan);
  // A host has said hello. False: this link is not used (it is dropped) because the transport has begun
  // another way to the host.
  virtual bool Accept(int host, const Hello& hello, Head* head);
  // A child has ended, all it said is in launcher.log. True: it was expected, or the transport has begun
  // another way. False: what a host's child leaves unfinished has failed; when it was everybody's child,
  // hosts that have not said hello never will, and the others get the grace time to finish.
  virtual bool OnChildEnd(const Child& child, const ProcessEnd& end, Head* head);

  // All hosts have said hello, `hellos` in the plan's order: the frame that each gets now (S or P).
  virtual Result<std::vector<std::string>> FirstFrames(const std::vector<Hello>& hellos) = 0;

  // The last word: the transport may know more (an exit status that the node could not learn).
  virtual void Finish(AttemptEnd*) {}
};

class Head {
 public:
  // `connect_us` of the attempt limits the time until all hosts have said hello; 0: no limit.
  Head(const Attempt& attempt, RankLogs* logs, const Clock& clock, HeadSignals* signals,
       Transport* transport);
  ~Head();

  // Runs to the end of the attempt. INT, TERM and HUP cancel; a second INT kills at once. Bounded when the
  // ranks end: every stop has a deadline, after which links are dropped and children killed.
  AttemptEnd Run();

  // For the transport.
  void AddLink(Ends ends, int host, Channel::Preamble preamble);  // host -1: not known until hello
  void AddChild(Child child);
  void AllowUntil(int host, int64_t monotonic_us);  // another deadline for its hello
  void FailHost(int host, const std::string& message);
  void AddNote(std::string text);
  int64_t NowUs() const { return clock_.MonotonicUs(); }
  bool Stopping() const { return state_.Stopping(); }
  bool IsSilent(int host) const { return state_.Of(host) == HeadState::Host::kSilent; }  // no hello yet

 private:
  struct Link {
    Channel channel;
    int host;
    bool placed;           // we said which ranks it gets; a launcher may place them in another way
    bool greeted = false;  // its hello was accepted
    bool closed = false;
  };
  struct Watched {
    Child child;
    std::string line;  // the one that is not yet complete
    bool ended = false;
  };

  void Turn();  // one wait and what it brought
  void TakeSignals();
  void Serve(Link* link);
  void Handle(Link* link, const std::string& frame);
  void HandleHello(Link* link, const Hello& hello);
  void HandleRank(Link* link, const ToHead& message);
  bool Owns(const Link& link, int rank) const;
  void Close(Link* link, const std::string& why);  // "": the other end did
  bool HasChild(int host) const;
  void ReadChild(Watched* child);
  void Say(Watched* child, std::string_view text);
  void CheckChild(Watched* child);
  void JudgeChild(const Child& child, const ProcessEnd& end);
  void Obey();  // carries out the state's orders
  void SendFirst();
  void SendAll(const std::string& frame);
  void StopAll();
  void DropLinks();
  void SignalChildren(int sig);
  void WriteStacks();
  void Sweep();

  const Attempt& attempt_;
  RankLogs& logs_;
  const Clock& clock_;
  Transport& transport_;
  HeadState state_;
  HeadSignals& signals_;
  Fd launcher_log_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Watched>> children_;
  std::vector<Hello> hellos_;
};

}  // namespace overcap::node_link
