// SPDX-License-Identifier: Apache-2.0
#include "launch/link/head.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/detect/host_name.h"
#include "sys/posix_files.h"

namespace overcap::node_link {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr size_t kLongestLine = 500;  // of a child, in messages
constexpr size_t kMostUnended = 64 << 10;

void WaitForAny(std::vector<pollfd>* fds, int64_t wait_us) {
  const timespec timeout{wait_us / 1'000'000, wait_us % 1'000'000 * 1000};
  if (ppoll(fds->data(), fds->size(), wait_us == kNever ? nullptr : &timeout, nullptr) >= 0) return;
  for (pollfd& entry : *fds) entry.revents = 0;
}

std::string EndWords(const Child& child, const ProcessEnd& end) {
  if (!child.last_line.empty()) return child.last_line;
  if (end.signal != 0) return StrCat("its connection was ended by signal ", end.signal);
  return StrCat("its connection ended with exit status ", end.exit_status);
}

}  // namespace

int64_t Transport::Prepare(std::vector<pollfd>*) {
  return kNever;
}

void Transport::Act(std::span<const pollfd>, Head*) {}

int Transport::HostOf(const Hello& hello, const RankPlan& plan) {
  const int count = static_cast<int>(plan.hosts.size());
  if (hello.node_rank >= 0) return hello.node_rank < count ? hello.node_rank : -1;
  int found = -1;
  for (int i = 0; i < count; ++i) {
    if (plan.hosts[i].name == hello.host) return i;
    if (SameHost(plan.hosts[i].name, hello.host)) found = found == -1 ? i : -2;  // -2: more than one
  }
  return std::max(found, -1);
}

bool Transport::Accept(int, const Hello&, Head*) {
  return true;
}

bool Transport::OnChildEnd(const Child&, const ProcessEnd&, Head*) {
  return false;
}

Head::Head(const Attempt& attempt, RankLogs* logs, const Clock& clock, HeadSignals* signals,
           Transport* transport)
    : attempt_(attempt),
      logs_(*logs),
      clock_(clock),
      transport_(*transport),
      state_(attempt, clock.MonotonicUs()),
      signals_(*signals),
      hellos_(attempt.plan.hosts.size()) {}

Head::~Head() = default;

AttemptEnd Head::Run() {
  if (const auto begun = transport_.Begin(this); !begun) state_.CannotRun(begun.error(), NowUs());
  Obey();
  while (!state_.Done()) Turn();
  DropLinks();
  transport_.Finish(&state_.End());
  return std::move(state_.End());
}

void Head::AddLink(Ends ends, int host, Channel::Preamble preamble) {
  links_.push_back(std::make_unique<Link>(Link{Channel(std::move(ends), preamble), host, host >= 0}));
}

void Head::AddChild(Child child) {
  const int flags = fcntl(child.output.Get(), F_GETFL);
  if (flags >= 0) (void)fcntl(child.output.Get(), F_SETFL, flags | O_NONBLOCK);
  children_.push_back(std::make_unique<Watched>(Watched{std::move(child), {}}));
  state_.OnChildren(static_cast<int>(children_.size()), NowUs());
}

void Head::AllowUntil(int host, int64_t monotonic_us) {
  state_.AllowUntil(host, monotonic_us);
}

void Head::FailHost(int host, const std::string& message) {
  state_.OnLost(host, message, NowUs());
}

void Head::AddNote(std::string text) {
  state_.End().notes.push_back(std::move(text));
}

// Links come before children: what a host has sent counts before the end of the ssh that brought it.
void Head::Turn() {
  std::vector<pollfd> fds{{signals_.PollFd(), POLLIN, 0}};
  for (const auto& link : links_) {
    const bool sending = link->channel.Pending() > 0;
    fds.push_back({link->channel.ReadFd(), POLLIN, 0});
    fds.push_back({sending ? link->channel.WriteFd() : -1, POLLOUT, 0});
  }
  for (const auto& child : children_) {
    fds.push_back({child->child.process.pidfd.Get(), POLLIN, 0});
    fds.push_back({child->child.output.Get(), POLLIN, 0});
  }
  const size_t links = links_.size(), children = children_.size(), own = fds.size();
  const int64_t deadline = std::min(transport_.Prepare(&fds), state_.NextUs());
  const size_t all = fds.size();
  logs_.WantsToShow(&fds);
  WaitForAny(&fds, deadline == kNever ? kNever : std::max<int64_t>(0, deadline - NowUs()));
  if (fds[0].revents != 0) TakeSignals();
  for (size_t i = 0; i < links; ++i) {
    if (fds[1 + 2 * i].revents != 0) Serve(links_[i].get());
  }
  for (size_t i = 0; i < children; ++i) {
    const pollfd* entry = &fds[1 + 2 * links + 2 * i];
    if (entry[1].revents != 0) ReadChild(children_[i].get());
    if (entry[0].revents != 0) CheckChild(children_[i].get());
  }
  transport_.Act(std::span<const pollfd>(fds).subspan(own, all - own), this);
  logs_.Show();
  state_.OnTime(NowUs());
  Obey();
  Sweep();
}

void Head::TakeSignals() {
  for (const int signal : signals_.Take()) state_.OnSignal(signal, NowUs());
  if (signals_.TakeWarning()) SendAll(Encode(ToNode(Warn{})));
}

void Head::Serve(Link* link) {
  if (link->closed) return;
  const bool open = link->channel.Read();
  for (;;) {
    const auto frame = link->channel.Next();
    if (!frame) return Close(link, frame.error().message);
    if (!*frame) break;
    Handle(link, **frame);
    if (link->closed) return;
  }
  if (!open) Close(link, "");
}

void Head::Handle(Link* link, const std::string& frame) {
  const auto message = DecodeToHead(frame);
  if (!message) return Close(link, message.error().message);
  if (const auto* hello = std::get_if<Hello>(&*message)) return HandleHello(link, *hello);
  if (!link->greeted) return Close(link, "it did not say hello first");
  if (const auto* note = std::get_if<Note>(&*message)) {
    AddNote(StrCat("host '", attempt_.plan.hosts[link->host].name, "': ", ToUtf8(note->text)));
  } else if (std::get_if<NothingLeft>(&*message) != nullptr) {
    state_.OnNothingLeft(link->host, NowUs());
  } else {
    HandleRank(link, *message);
  }
}

void Head::HandleHello(Link* link, const Hello& hello) {
  if (link->greeted) return Close(link, "it said hello twice");
  if (link->host < 0) link->host = transport_.HostOf(hello, attempt_.plan);
  const auto taken = [link](const auto& other) {
    return other.get() != link && other->greeted && other->host == link->host;
  };
  if (link->host < 0 || std::any_of(links_.begin(), links_.end(), taken)) {
    link->host = -1;
    return Close(link, "");
  }
  if (!transport_.Accept(link->host, hello, this)) {
    link->closed = true;
    return;
  }
  if (hello.protocol != kProtocol) return Close(link, StrCat("it speaks protocol ", hello.protocol));
  link->greeted = true;
  hellos_[link->host] = hello;
  if (state_.Stopping()) link->channel.Send(Encode(ToNode(Stop{state_.StopGraceUs(), state_.Interrupted()})));
  state_.OnHello(link->host, NowUs());
}

void Head::HandleRank(Link* link, const ToHead& message) {
  const auto rank_of = [](const auto& m) {
    if constexpr (requires { m.rank; }) return m.rank;
    return -1;
  };
  const int rank = std::visit(rank_of, message);
  if (!Owns(*link, rank)) return Close(link, StrCat("it speaks of rank ", rank, ", which is not there"));
  if (const auto* output = std::get_if<Output>(&message)) {
    logs_.Write(rank, output->stream, output->bytes, clock_.WallUs());
    state_.OnOutput(NowUs());
  } else if (std::get_if<Begun>(&message) != nullptr) {
    state_.OnBegun(rank);
  } else if (const auto* stack = std::get_if<Stack>(&message)) {
    state_.OnStack(rank, stack->text, NowUs());
  } else if (const auto* ended = std::get_if<Ended>(&message)) {
    const std::string& host = attempt_.plan.hosts[link->host].name;
    const ProcessEnd end{ended->exit_status, ended->signal};
    state_.OnEnded({rank, host, end, ended->known, ended->out_of_memory, ToUtf8(ended->reason)}, NowUs());
  }
}

bool Head::Owns(const Link& link, int rank) const {
  if (rank < 0 || rank >= attempt_.plan.world_size) return false;
  const PlannedHost& host = attempt_.plan.hosts[link.host];
  return !link.placed || (rank >= host.first_rank && rank < host.first_rank + host.ranks);
}

bool Head::HasChild(int host) const {
  return std::any_of(children_.begin(), children_.end(),
                     [host](const auto& c) { return c->child.host == host && !c->ended; });
}

// Where a child is behind the link, its end tells more than the link's.
void Head::Close(Link* link, const std::string& why) {
  link->closed = true;
  if (link->host < 0) return;
  const std::string& name = attempt_.plan.hosts[link->host].name;
  if (!why.empty()) {
    state_.OnLost(link->host, StrCat("host '", name, "' is lost: ", why), NowUs());
  } else if (HasChild(link->host)) {
    state_.OnClosing(link->host, NowUs());
  } else {
    state_.OnLost(link->host, StrCat("host '", name, "' is lost: its connection was closed"), NowUs());
  }
}

void Head::ReadChild(Watched* watched) {
  char chunk[16 << 10];
  for (int i = 0; i < 64 && watched->child.output; ++i) {
    const ssize_t n = read(watched->child.output.Get(), chunk, sizeof chunk);
    if (n > 0) Say(watched, {chunk, static_cast<size_t>(n)});
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) watched->child.output.Reset();
  }
}

void Head::Say(Watched* watched, std::string_view text) {
  watched->line.append(text);
  std::string out;
  size_t begin = 0;
  for (size_t end; (end = watched->line.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(watched->line).substr(begin, end - begin);
    out += watched->child.name.empty() ? StrCat(line, "\n") : StrCat(watched->child.name, ": ", line, "\n");
    if (const std::string_view words = Trim(line); !words.empty()) {
      watched->child.last_line = ToUtf8(words.substr(0, kLongestLine));
    }
  }
  watched->line.erase(0, begin);
  if (watched->line.size() > kMostUnended) watched->line.clear();  // no line, and nobody will read it
  if (out.empty()) return;
  if (!launcher_log_) {
    const std::string path = attempt_.log_folder + "/launcher.log";
    launcher_log_ = Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  }
  if (write(launcher_log_.Get(), out.data(), out.size()) < 0) return;  // a full disk: it is only for people
}

void Head::CheckChild(Watched* watched) {
  int status = 0;
  Child& child = watched->child;
  if (waitpid(child.process.pid, &status, WNOHANG) != child.process.pid) return;
  watched->ended = true;
  ReadChild(watched);
  if (!watched->line.empty()) Say(watched, "\n");
  const ProcessEnd end = ProcessEndOf(status);
  if (!transport_.OnChildEnd(child, end, this)) JudgeChild(child, end);
}

void Head::JudgeChild(const Child& child, const ProcessEnd& end) {
  if (child.host < 0) {
    const std::string words = child.last_line.empty() ? "" : StrCat(": ", child.last_line);
    return state_.OnCommonChildEnd(
        end, StrCat("'", child.name, "' ended with exit status ", end.exit_status, words), NowUs());
  }
  for (const auto& link : links_) {  // what is still in its socket was sent before
    for (int i = 0; link->host == child.host && !link->closed && i < 1000; ++i) Serve(link.get());
  }
  const bool greeted = state_.Of(child.host) != HeadState::Host::kSilent;
  const std::string& name = attempt_.plan.hosts[child.host].name;
  state_.OnLost(child.host,
                StrCat("host '", name, greeted ? "' is lost: " : "' cannot be used: ", EndWords(child, end)),
                NowUs());
}

void Head::Obey() {
  for (std::vector<HeadState::Order> orders; !(orders = state_.TakeOrders()).empty();) {
    for (const HeadState::Order order : orders) {
      switch (order) {
        case HeadState::Order::kStart:
          SendFirst();
          break;
        case HeadState::Order::kStacks:
          SendAll(Encode(ToNode(Stacks{})));
          break;
        case HeadState::Order::kWriteStacks:
          WriteStacks();
          break;
        case HeadState::Order::kStop:
          StopAll();
          break;
        case HeadState::Order::kGiveUp:
          DropLinks();
          SignalChildren(SIGKILL);
          break;
        case HeadState::Order::kTermChildren:
          AddNote(StrCat("'", children_.front()->child.name, "' did not end by itself and was stopped"));
          SignalChildren(SIGTERM);
          break;
        case HeadState::Order::kKillChildren:
          SignalChildren(SIGKILL);
          break;
      }
    }
  }
  for (const auto& link : links_) {
    if (!link->closed && link->channel.Pending() > 0) (void)link->channel.Flush();  // its reader will tell
  }
}

void Head::SendFirst() {
  const auto frames = transport_.FirstFrames(hellos_);
  if (!frames) return state_.CannotRun(frames.error(), NowUs());
  for (const auto& link : links_) {
    if (link->greeted && !link->closed) link->channel.Send((*frames)[link->host]);
  }
}

void Head::SendAll(const std::string& frame) {
  for (const auto& link : links_) {
    if (link->greeted && !link->closed) link->channel.Send(frame);
  }
}

// Hosts without a hello cannot be told: their child ends, or the one that is everybody's.
void Head::StopAll() {
  SendAll(Encode(ToNode(Stop{state_.StopGraceUs(), state_.Interrupted()})));
  const auto greeted = [this](int host) {
    return std::any_of(links_.begin(), links_.end(),
                       [host](const auto& l) { return l->greeted && (l->host == host || host < 0); });
  };
  const auto all_greeted = [this] {
    return static_cast<size_t>(std::count_if(links_.begin(), links_.end(),
                                             [](const auto& l) { return l->greeted; })) == hellos_.size();
  };
  for (const auto& watched : children_) {
    const int host = watched->child.host;
    if (watched->ended || (host < 0 ? all_greeted() : greeted(host))) continue;
    kill(-watched->child.process.pid, SIGTERM);
    for (const auto& link : links_) {
      if (host >= 0 && link->host == host) link->closed = true;
    }
  }
}

void Head::DropLinks() {
  for (const auto& link : links_) link->closed = true;
  Sweep();
}

void Head::SignalChildren(int sig) {
  for (const auto& watched : children_) {
    if (!watched->ended) kill(-watched->child.process.pid, sig);
  }
}

void Head::WriteStacks() {
  const std::string path = attempt_.log_folder + "/stacks.txt";
  const auto written = PosixFiles().WriteAtomic(path, state_.StacksText(), false);
  if (!written) AddNote(written.error().message);
}

void Head::Sweep() {
  std::erase_if(links_, [](const auto& link) { return link->closed; });
  const size_t erased = std::erase_if(children_, [](const auto& child) { return child->ended; });
  if (erased > 0) state_.OnChildren(static_cast<int>(children_.size()), NowUs());
}

}  // namespace overcap::node_link
