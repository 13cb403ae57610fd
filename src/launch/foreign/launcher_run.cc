// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/launcher_run.h"

#include <algorithm>
#include <csignal>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/free_port.h"
#include "sys/own_host_name.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int64_t kKnockUs = 10'000'000;
constexpr size_t kMostKnocks = 1024;
constexpr int64_t kPlaceWaitUs = 15'000'000;  // for rank 0; ranks that wait give up after 30 s

std::string_view ShortName(std::string_view host) {
  return host.substr(0, host.find('.'));
}

}  // namespace

LauncherRun::LauncherRun(const Attempt& attempt, RankLogs* logs, const Clock& clock, Random& random,
                         node_link::HeadSignals* signals)
    : attempt_(attempt),
      logs_(*logs),
      clock_(clock),
      random_(random),
      signals_(*signals),
      key_(LinkKey::Make(random)),
      ranks_(static_cast<size_t>(attempt.plan.world_size), RankState::kSilent),
      idle_(attempt.idle_us) {
  now_us_ = clock.MonotonicUs();
  idle_.Alive(now_us_);
}

AttemptEnd LauncherRun::CannotRun(const Error& error) {
  AttemptEnd end;
  end.cause = AttemptEnd::Cause::kCannotRun;
  end.message = error.message;
  end.code = error.code;
  return end;
}

AttemptEnd LauncherRun::Run() {
  if (const auto begun = Begin(); !begun) return CannotRun(begun.error());
  while (!Done()) Turn();
  Finish();
  launcher_.ShowRest();
  return end_;
}

Result<void> LauncherRun::Begin() {
  if (attempt_.launch.argv.empty())
    return Fail(ErrorCode::kInternal, "there is no command that starts the ranks");
  if (auto listener = ListenTcp()) {
    listener_ = std::move(*listener);
  } else {
    end_.notes.push_back(listener.error().message);
  }
  contact_ = MakeContact();
  return launcher_.Start(attempt_.launch.argv, EnvironmentOf(contact_), attempt_.folder, attempt_.log_folder);
}

LaunchContact LauncherRun::MakeContact() {
  LaunchContact contact;
  contact.id = LinkKey::Make(random_).Hex().substr(0, 16);
  contact.port = listener_.port;
  contact.addresses = OwnAddresses();
  contact.addresses.push_back("127.0.0.1");
  contact.head_host = OwnHostName();
  const bool one_host = attempt_.plan.hosts.size() == 1;
  contact.master_addr = one_host ? "127.0.0.1" : attempt_.plan.hosts.front().name;
  contact.master_port = attempt_.master_port != 0 ? attempt_.master_port : FreePort();
  contact.grace_us = attempt_.grace_us;
  return contact;
}

std::vector<std::string> LauncherRun::EnvironmentOf(const LaunchContact& contact) const {
  Variables variables(attempt_.env);
  for (const std::string& name : attempt_.launch.unset) variables.Remove(name);
  for (const std::string& entry : attempt_.launch.env) {
    const size_t equals = std::min(entry.find('='), entry.size() - 1);
    variables.Set(entry.substr(0, equals), entry.substr(equals + 1));
  }
  variables.Set(kRunVariable, EncodeRun(attempt_.run));
  variables.Set(kContactVariable, EncodeContact(contact));
  variables.Set(kKeyVariable, key_.Hex());
  return variables.entries();
}

void LauncherRun::Turn() {
  Wait();
  now_us_ = clock_.MonotonicUs();
  TakeSignals();
  AskWatcher();
  TakeKnocks();
  ServeNodes();
  TakeLauncher();
  logs_.Show();
  Decide();
  for (const auto& node : nodes_) {
    if (node->Open() && !node->channel.Flush()) Gone(node.get());
  }
}

void LauncherRun::Wait() {
  std::vector<pollfd> fds;
  fds.push_back({signals_.PollFd(), POLLIN, 0});
  if (listener_.fd) fds.push_back({listener_.fd.Get(), POLLIN, 0});
  for (const auto& knock : knocks_) fds.push_back({knock->fd.Get(), POLLIN, 0});
  for (const auto& node : nodes_) {
    if (!node->Open()) continue;
    fds.push_back({node->channel.ReadFd(), POLLIN, 0});
    if (node->channel.Pending() > 0) fds.push_back({node->channel.WriteFd(), POLLOUT, 0});
  }
  launcher_.AddFds(&fds);
  logs_.WantsToShow(&fds);
  const size_t own = fds.size();
  int64_t until = NextUs();
  if (attempt_.watcher != nullptr) until = std::min(until, attempt_.watcher->Prepare(&fds));
  const int64_t left = until - clock_.MonotonicUs();
  poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>((left + 999) / 1000, 0, 60'000)));
  watched_.assign(fds.begin() + static_cast<std::ptrdiff_t>(own), fds.end());
}

void LauncherRun::AskWatcher() {
  if (attempt_.watcher == nullptr || !attempt_.watcher->Act(watched_)) return;
  if (stop_us_ == 0) BeginStop(AttemptEnd::Cause::kCancelled, attempt_.grace_us);
}

void LauncherRun::TakeSignals() {
  const std::vector<int> cancels = signals_.Take();
  const bool warned = signals_.TakeWarning();
  if (warned) SendAll(node_link::Warn{});
  if (warned && attempt_.watcher != nullptr) attempt_.watcher->OnSignal(SIGUSR1);
  for (const int sig : cancels) {
    if (attempt_.watcher != nullptr) attempt_.watcher->OnSignal(sig);
    if (stop_us_ == 0) {
      end_.signal = sig;
      BeginStop(AttemptEnd::Cause::kCancelled, attempt_.grace_us);
    } else if (!attempt_.patient && now_us_ >= stop_us_ + kSameWordUs) {
      ++hurry_;
      SendAll(node_link::Stop{0});
      stop_until_us_ = std::min(stop_until_us_, now_us_ + 2'000'000);
    }
  }
}

void LauncherRun::TakeKnocks() {
  while (listener_.fd) {
    auto fd = AcceptTcp(listener_.fd);
    if (!fd || !*fd) break;
    if (knocks_.size() >= kMostKnocks) continue;  // closes it
    knocks_.push_back(std::make_unique<Knock>(
        Knock{std::move(**fd), Handshake(Handshake::Role::kHead, key_, random_), now_us_}));
  }
  std::erase_if(knocks_, [this](const auto& knock) {
    const auto known = knock->handshake.Step(knock->fd);
    if (known && *known) {
      nodes_.push_back(std::make_unique<Node>(
          Node{node_link::Channel({std::move(knock->fd), Fd()}), false, false, false, false, {}, "", {}, 0}));
    }
    return !known || *known || now_us_ >= knock->since_us + kKnockUs;
  });
}

void LauncherRun::TakeLauncher() {
  if (launcher_.Step()) idle_.Alive(now_us_);
  if (launcher_.Exited() && launcher_ended_us_ == 0) launcher_ended_us_ = now_us_;
}

void LauncherRun::ServeNodes() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->Open()) Serve(nodes_[i].get());
  }
}

void LauncherRun::Serve(Node* node) {
  const bool open = node->channel.Read();
  for (;;) {
    const auto frame = node->channel.Next();
    if (!frame) return Gone(node);
    if (!*frame) break;
    if (!Handle(node, **frame)) return Gone(node);
  }
  if (!open) Gone(node);
}

// False: it does not keep to the format.
bool LauncherRun::Handle(Node* node, const std::string& frame) {
  const auto message = node_link::DecodeToHead(frame);
  if (!message) return false;
  if (const auto* hello = std::get_if<node_link::Hello>(&*message)) return OnHello(node, *hello), true;
  if (!node->said_hello) return false;
  if (const auto* begun = std::get_if<node_link::Begun>(&*message)) return OnBegun(node, *begun);
  if (const auto* output = std::get_if<node_link::Output>(&*message)) return OnOutput(node, *output);
  if (const auto* ended = std::get_if<node_link::Ended>(&*message)) return OnEnded(node, *ended);
  if (const auto* stack = std::get_if<node_link::Stack>(&*message)) stacks_[stack->rank] = stack->text;
  if (const auto* note = std::get_if<node_link::Note>(&*message)) end_.notes.push_back(note->text);
  if (std::holds_alternative<node_link::NothingLeft>(*message)) {
    node->finished = true;  // it closes when it has ended itself
    node->gone_us = now_us_;
    shutdown(node->channel.WriteFd(), SHUT_WR);
  }
  return true;
}

void LauncherRun::OnHello(Node* node, const node_link::Hello& hello) {
  node->said_hello = true;
  node->hello = hello;
  node->host = PlanNameOf(hello);
  if (stop_us_ != 0) SendTo(node, node_link::Stop{hurry_ > 0 ? 0 : attempt_.grace_us, Interrupted()});
  if (!place_ && place_until_us_ == 0) place_until_us_ = now_us_ + kPlaceWaitUs;
  if (!place_ && attempt_.plan.hosts.size() == 1) {
    place_ = {"127.0.0.1", attempt_.master_port != 0 ? attempt_.master_port : hello.free_port};
  }
}

bool LauncherRun::OnBegun(Node* node, const node_link::Begun& begun) {
  if (begun.rank >= attempt_.plan.world_size || ranks_[begun.rank] != RankState::kSilent) return false;
  ranks_[begun.rank] = RankState::kBegun;
  if (++begun_ == attempt_.plan.world_size && attempt_.watcher != nullptr) attempt_.watcher->OnAllBegun();
  node->alive.insert(begun.rank);
  failures_.OnBegun(begun.rank, begun.pid, node->host);
  idle_.Alive(now_us_);
  if (!place_ && begun.rank == 0) {
    place_ = {node->hello.address, attempt_.master_port != 0 ? attempt_.master_port : node->hello.free_port};
  }
  return true;
}

bool LauncherRun::OnOutput(Node*, const node_link::Output& output) {
  if (output.rank >= attempt_.plan.world_size || ranks_[output.rank] == RankState::kSilent) return false;
  logs_.Write(output.rank, output.stream, output.bytes, clock_.WallUs());
  idle_.Alive(now_us_);
  return true;
}

bool LauncherRun::OnEnded(Node* node, const node_link::Ended& ended) {
  if (node->alive.erase(ended.rank) == 0) return false;
  ranks_[ended.rank] = RankState::kEnded;
  if (++ended_ == attempt_.plan.world_size) all_ended_us_ = now_us_;
  RankFailure how;
  how.rank = ended.rank;
  how.host = node->host;
  how.end = {ended.exit_status, ended.signal};
  how.end_known = ended.known;
  how.out_of_memory = ended.out_of_memory;
  how.reason = ended.reason;
  if (attempt_.watcher != nullptr) attempt_.watcher->OnRankEnd(how.rank, how.end);
  if (!IsOurDoing(how.end)) failures_.OnEnded(how, now_us_);
  idle_.Alive(now_us_);
  return true;
}

// What is stopped does not fail by itself.
bool LauncherRun::IsOurDoing(const ProcessEnd& end) const {
  if (stop_us_ == 0) return false;
  const bool killing = hurry_ > 0 || now_us_ >= stop_us_ + attempt_.grace_us;
  return end.signal == SIGTERM || (end.signal == SIGKILL && killing);
}

void LauncherRun::Gone(Node* node) {
  node->gone = true;
  node->gone_us = now_us_;
}

void LauncherRun::SendTo(Node* node, const node_link::ToNode& message) {
  if (node->Open() && node->said_hello && !node->finished) node->channel.Send(node_link::Encode(message));
}

void LauncherRun::SendAll(const node_link::ToNode& message) {
  for (const auto& node : nodes_) SendTo(node.get(), message);
}

std::string LauncherRun::PlanNameOf(const node_link::Hello& hello) const {
  std::string by_name = PlanNameOf(hello.host);
  if (!by_name.empty()) return by_name;
  const auto& hosts = attempt_.plan.hosts;
  const bool told = hello.node_rank >= 0 && hello.node_rank < static_cast<int>(hosts.size());
  return told ? hosts[hello.node_rank].name : hello.host;
}

std::string LauncherRun::PlanNameOf(const std::string& host) const {
  for (const PlannedHost& each : attempt_.plan.hosts) {
    if (each.name == host) return each.name;
  }
  for (const PlannedHost& each : attempt_.plan.hosts) {
    if (ShortName(each.name) == ShortName(host)) return each.name;
  }
  return "";
}

}  // namespace overcap
