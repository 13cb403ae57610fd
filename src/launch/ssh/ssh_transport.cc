// SPDX-License-Identifier: Apache-2.0
#include "launch/ssh/ssh_transport.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/detect/host_name.h"
#include "sys/own_host_name.h"
#include "sys/variables.h"

namespace overcap {
namespace {

using node_link::Channel;
using node_link::Child;
using node_link::Head;

constexpr int64_t kCopyUs = 120'000'000;
constexpr int64_t kNameWaitUs = 1'000'000;
constexpr int kHostsAtOnce = 64;  // that a machine connects to without losing much time
constexpr int64_t kMoreUsPerHost = 30'000;

std::string WithoutUser(const std::string& host) {
  return host.substr(host.rfind('@') + 1);  // npos + 1 is 0
}

struct Pair {
  Fd ours, theirs;
};

Result<Pair> MakeSocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Fail(ErrnoError(errno, "cannot make a pair of sockets"));
  }
  return Pair{Fd(ends[0]), Fd(ends[1])};
}

Result<Pair> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "cannot make a pipe"));
  return Pair{Fd(ends[0]), Fd(ends[1])};
}

// Its own ssh is too old for it, or one that has been told to keep to certain algorithms.
bool RefusesKeyExchange(const std::string& words) {
  return words.find("KexAlgorithms") != std::string::npos || words.find("KEX algorithm") != std::string::npos;
}

}  // namespace

bool IsThisHost(const std::string& host) {
  return IsHostItself(host, OwnHostName());
}

SshTransport::SshTransport(const Attempt& attempt) : attempt_(attempt), ways_(attempt.plan.hosts.size()) {}

Result<void> SshTransport::Begin(Head* head) {
  for (const PlannedHost& host : attempt_.plan.hosts) {
    const std::string problem = HostNameProblem(host.name);
    if (!problem.empty()) return Fail(ErrorCode::kUsage, problem);
  }
  if (ways_.size() > 1) master_name_ = std::make_unique<NameLookup>(WithoutUser(NameOf(0)));
  for (size_t i = 0; i < ways_.size(); ++i) {
    const int host = static_cast<int>(i);
    ways_[i].local = IsThisHost(NameOf(host));
    if (host >= kHostsAtOnce) head->AllowUntil(host, head->NowUs() + ConnectUs(host));
    StartNode(host, head);
  }
  return {};
}

std::vector<std::string> SshTransport::SshWords(int host, const std::string& remote_command) const {
  std::vector<std::string> words = {attempt_.ssh_program};
  for (const std::string& option : attempt_.ssh_options) {
    if (ways_[host].plain_kex && option == kQuickKeyExchange) {
      words.pop_back();  // its -o
    } else {
      words.push_back(option);
    }
  }
  words.insert(words.end(), {NameOf(host), "--", remote_command});
  return words;
}

Result<pid_t> SshTransport::Spawn(int host, std::vector<std::string> argv, int stdin_fd, int stdout_fd,
                                  Head* head) {
  OC_TRY(errors, MakePipe());
  SpawnRequest request;
  request.argv = std::move(argv);
  request.env = attempt_.env;
  request.stdin_fd = stdin_fd;
  request.stdout_fd = stdout_fd >= 0 ? stdout_fd : errors.theirs.Get();
  request.stderr_fd = errors.theirs.Get();
  request.group = ProcessGroup::kSession;
  request.want_pidfd = true;
  request.parent_death_signal = ways_[host].local ? 0 : SIGTERM;  // a node sees its link close
  OC_TRY(spawned, overcap::Spawn(request));
  const pid_t pid = spawned.pid;
  Child child{NameOf(host), std::move(spawned), std::move(errors.ours), host, ""};
  head->AddChild(std::move(child));
  return pid;
}

// Every ssh keeps a processor of this machine busy for some time.
int64_t SshTransport::ConnectUs(int host) const {
  return attempt_.connect_us + std::max<int64_t>(0, host - kHostsAtOnce) * kMoreUsPerHost;
}

void SshTransport::StartNode(int host, Head* head) {
  Way& way = ways_[host];
  const std::string remote =
      way.copied ? binary_->NodeCommand() : StrCat(ShellQuote(attempt_.binary), " launch-node");
  Result<Pair> ends = MakeSocketPair();
  if (!ends) return head->FailHost(host, ends.error().message);
  const Result<pid_t> pid = Spawn(
      host, way.local ? std::vector<std::string>{attempt_.binary, "launch-node"} : SshWords(host, remote),
      ends->theirs.Get(), ends->theirs.Get(), head);
  if (!pid)
    return head->FailHost(host, StrCat("host '", NameOf(host), "' cannot be used: ", pid.error().message));
  way.node = *pid;
  head->AddLink({std::move(ends->ours), Fd()}, host, Channel::Preamble::kExpected);
}

bool SshTransport::Accept(int host, const node_link::Hello& hello, Head* head) {
  Way& way = ways_[host];
  if (hello.version == OVERCAP_VERSION || way.local || way.copied) return true;
  way.node = -1;
  StartCopy(host, StrCat("version ", ToUtf8(hello.version), " there"), head);
  return false;
}

bool SshTransport::OnChildEnd(const Child& child, const ProcessEnd& end, Head* head) {
  Way& way = ways_[child.host];
  if (child.process.pid == way.copy) return CopyEnded(child.host, child, end, head);
  if (child.process.pid != way.node) return true;  // a way that we have left
  if (head->Stopping() || !head->IsSilent(child.host)) return false;
  if (!way.plain_kex && end.exit_status == 255 && RefusesKeyExchange(child.last_line)) {
    way.plain_kex = true;
    head->AllowUntil(child.host, head->NowUs() + ConnectUs(child.host));
    StartNode(child.host, head);
    return true;
  }
  const bool missing = end.exit_status == 127 || end.exit_status == 126;
  if (!missing || way.local || way.copied) return false;
  way.node = -1;
  StartCopy(child.host, StrCat("no program at '", attempt_.binary, "' there"), head);
  return true;
}

void SshTransport::StartCopy(int host, const std::string& why, Head* head) {
  Way& way = ways_[host];
  const auto fail = [&](const Error& error) {
    head->FailHost(host, StrCat("host '", NameOf(host), "' cannot be used: ", why, ", and ", error.message));
  };
  if (!binary_) {
    Result<BinaryCopy> binary = BinaryCopy::Of(attempt_.binary, OVERCAP_VERSION);
    if (!binary) return fail(binary.error());
    binary_ = std::move(*binary);
  }
  Result<Pair> input = MakePipe();
  if (!input) return fail(input.error());
  const Result<pid_t> pid = Spawn(host, SshWords(host, binary_->StoreCommand()), input->ours.Get(), -1, head);
  if (!pid) return fail(pid.error());
  way.copy = *pid;
  way.copy_input = std::move(input->theirs);
  (void)fcntl(way.copy_input.Get(), F_SETFL, O_NONBLOCK);
  way.copy_sent = 0;
  head->AllowUntil(host, head->NowUs() + kCopyUs);
}

bool SshTransport::CopyEnded(int host, const Child& child, const ProcessEnd& end, Head* head) {
  Way& way = ways_[host];
  way.copy = -1;
  way.copy_input.Reset();
  if (head->Stopping() || !end.ok()) return false;
  if (child.last_line != "there") {
    head->AddNote(StrCat("overcap was copied to host '", NameOf(host), "', which did not have this version"));
  }
  way.copied = true;
  head->AllowUntil(host, head->NowUs() + ConnectUs(host));
  StartNode(host, head);
  return true;
}

int64_t SshTransport::Prepare(std::vector<pollfd>* fds) {
  for (const Way& way : ways_) {
    if (way.copy_input) fds->push_back({way.copy_input.Get(), POLLOUT, 0});
  }
  return std::numeric_limits<int64_t>::max();
}

void SshTransport::Act(std::span<const pollfd>, Head*) {
  for (Way& way : ways_) {
    if (way.copy_input) FeedCopy(&way);
  }
}

void SshTransport::FeedCopy(Way* way) {
  const std::string_view rest = std::string_view(binary_->bytes).substr(way->copy_sent);
  const ssize_t n = write(way->copy_input.Get(), rest.data(), rest.size());
  if (n > 0) way->copy_sent += static_cast<size_t>(n);
  const bool refused = n < 0 && errno != EAGAIN && errno != EINTR;  // it is there already, or ssh has ended
  if (refused || way->copy_sent == binary_->bytes.size()) way->copy_input.Reset();
}

Result<std::vector<std::string>> SshTransport::FirstFrames(const std::vector<node_link::Hello>& hellos) {
  node_link::Start start;
  const bool resolves = master_name_ && master_name_->Resolves(kNameWaitUs);
  start.master_addr =
      MasterAddress(static_cast<int>(ways_.size()), NameOf(0), resolves, hellos[0].address, OwnHostName());
  start.master_port = attempt_.master_port != 0 ? attempt_.master_port : hellos[0].free_port;
  start.world_size = attempt_.plan.world_size;
  start.command = attempt_.command;
  Variables env(attempt_.env);
  env.Set(kRunVariable, EncodeRun(attempt_.run));
  start.env = env.entries();
  start.folder = attempt_.folder;
  start.grace_us = attempt_.grace_us;
  start.cpu_bind = attempt_.cpu_bind;
  std::vector<std::string> frames;
  for (size_t i = 0; i < ways_.size(); ++i) {
    const PlannedHost& host = attempt_.plan.hosts[i];
    start.node_rank = static_cast<int>(i);
    start.first_rank = host.first_rank;
    start.ranks = host.ranks;
    frames.push_back(node_link::Encode(node_link::ToNode(start)));
  }
  return frames;
}

}  // namespace overcap
