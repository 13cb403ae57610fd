// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/text.h"
#include "control/fanout/node_session.h"
#include "control/fanout/peer_server.h"
#include "control/fanout/source_plan.h"
#include "launch/detect/host_name.h"
#include "net/handshake.h"
#include "net/tcp.h"

namespace overcap {
namespace {

constexpr int kConnectingMost = 32;
constexpr std::chrono::milliseconds kTell{200};
constexpr int kMostLeaving = 3;

class FanoutRun : public SessionListener {
 public:
  FanoutRun(const FanoutSource& source, const FanoutRequest& request)
      : source_(source),
        request_(request),
        key_(LinkKey::Make(*request.random).Hex()),
        binary_(request.binary),
        own_server_(static_cast<int>(request.hosts.size())),
        plan_(own_server_ + 1, SourcePlan::FirstOf(std::thread::hardware_concurrency())),
        nodes_(request.hosts.size()) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int node = static_cast<int>(i);
      nodes_[i].end.host = request.hosts[i];
      nodes_[i].session = std::make_unique<NodeSession>(node, source, request, key_, &binary_, this);
    }
  }

  FanoutReport Run() {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      threads.emplace_back([this, i] { RunOne(static_cast<int>(i)); });
    }
    Watch();
    for (std::thread& thread : threads) thread.join();
    FanoutReport report;
    for (Node& node : nodes_) report.nodes.push_back(std::move(node.end));
    return report;
  }

  void OnHello(int node, const fanout::Hello& hello) override {
    const std::lock_guard lock(mutex_);
    Node& greeted = nodes_[static_cast<size_t>(node)];
    greeted.addresses = hello.addresses;
    greeted.own_addresses = OwnAddressesNear(hello.addresses);
    if (!greeted.own_addresses.empty()) StartServer();
    if (greeted.own_addresses.empty() || !server_) plan_.Exclude(node, own_server_);
    LeaveConnecting(node);
  }
  void OnAsk(int node, const std::string& why) override {
    const std::lock_guard lock(mutex_);
    Node& asking = nodes_[static_cast<size_t>(node)];
    const bool failed = !why.empty() && !asking.by_server;
    if (!why.empty() && asking.by_server) LeaveServer(node, why);
    if (failed && request_.warn) {
      request_.warn(StrCat("host '", asking.end.host, "' could not fetch from host '", asking.end.from,
                           "' any more (", ToUtf8(why), ")"));
    }
    plan_.Ask(node, failed);
    Assign();
  }
  void OnProgress(int node, const fanout::Progress& progress) override {
    const std::lock_guard lock(mutex_);
    nodes_[static_cast<size_t>(node)].progress = progress;
  }
  void OnReady(int node, const fanout::Ready& ready) override {
    const std::lock_guard lock(mutex_);
    Node& done = nodes_[static_cast<size_t>(node)];
    done.end.ready = ready;
    done.progress.bytes_done = done.progress.bytes_total = ready.written_bytes;
    done.settled = done.complete = true;
    plan_.Complete(node, ready.port != 0);
    Assign();
    Settle();
  }
  void OnNote(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    if (request_.note) request_.note(text);
  }

 private:
  struct Node {
    std::unique_ptr<NodeSession> session;
    FanoutNodeEnd end;
    std::vector<std::string> addresses;
    std::vector<std::string> own_addresses;  // of this machine, near to it
    bool by_server = false;                  // it was sent to our own server
    fanout::Progress progress;
    bool connecting = false;
    bool settled = false, complete = false;
    bool ended = false;  // its thread has
  };

  void RunOne(int node) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return connecting_ < kConnectingMost; });
      ++connecting_;
      nodes_[static_cast<size_t>(node)].connecting = true;
    }
    Result<void> done = nodes_[static_cast<size_t>(node)].session->Run();
    const std::lock_guard lock(mutex_);
    Node& ended = nodes_[static_cast<size_t>(node)];
    LeaveConnecting(node);
    if (!done) ended.end.error = done.error();
    plan_.Lost(node);  // one that was complete serves no more, too
    ended.settled = ended.ended = true;
    Assign();
    Settle();
  }

  void LeaveConnecting(int node) {
    if (!std::exchange(nodes_[static_cast<size_t>(node)].connecting, false)) return;
    --connecting_;
    changed_.notify_all();
  }

  void Assign() {
    for (const SourcePlan::Assignment& made : plan_.Assign()) {
      Node& node = nodes_[static_cast<size_t>(made.node)];
      fanout::Use use;
      node.end.fetched = true;
      node.end.from = "";
      node.by_server = made.from == own_server_;
      if (node.by_server) {
        use = {"head", node.own_addresses, server_->port(), true};
      } else if (made.from != SourcePlan::kHead) {
        const Node& from = nodes_[static_cast<size_t>(made.from)];
        node.end.from = use.peer = from.end.host;
        use.addresses = from.addresses;
        use.port = from.end.ready.port;
      }
      node.session->Post(use);
    }
  }

  // When nobody can need anybody any more, those who serve may go.
  void Settle() {
    changed_.notify_all();
    for (const Node& node : nodes_) {
      if (!node.settled) return;
    }
    for (Node& node : nodes_) node.session->Post(fanout::Finish{});
  }

  // With mutex_.
  FanoutProgress Progress() const {
    FanoutProgress progress;
    progress.nodes = static_cast<int>(nodes_.size());
    int64_t most = 0;  // of those that do not know yet how much they miss, the same is expected
    int unknown = 0;
    for (const Node& node : nodes_) {
      most = std::max(most, node.progress.bytes_total);
      unknown += !node.settled && node.progress.bytes_total == 0 ? 1 : 0;
      progress.complete += node.complete ? 1 : 0;
      progress.failed += node.settled && !node.complete ? 1 : 0;
      progress.bytes_done += node.progress.bytes_done;
      progress.bytes_total += node.progress.bytes_total;
    }
    progress.bytes_total += most * unknown;
    return progress;
  }

  void Watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const bool over =
          std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.ended; });
      const FanoutProgress progress = Progress();
      if (request_.progress) request_.progress(progress);
      if (over) return;
      changed_.wait_for(lock, kTell);
    }
  }

  // Nodes near to this machine fetch from it as from each other; a single one through ssh, which is there
  // anyway. With mutex_.
  void StartServer() {
    const bool wanted = !request_.ssh_only && nodes_.size() > 1;
    const auto key = LinkKey::FromHex(key_);
    if (server_ || !wanted || !key) return;
    Result<std::unique_ptr<PeerServer>> server = PeerServer::Start(source_.chunks, *key);
    if (!server) return;
    server_ = *std::move(server);
    plan_.Complete(own_server_, true);
  }

  // The node could not fetch from the server. A firewall before this machine is nothing to wonder at: after
  // some such nodes nobody else tries. With mutex_.
  void LeaveServer(int node, const std::string& why) {
    plan_.Exclude(node, own_server_);
    if (++left_server_ == kMostLeaving) plan_.Lost(own_server_);
    if (left_server_ > 1 || !request_.note) return;
    request_.note(StrCat("host '", nodes_[static_cast<size_t>(node)].end.host,
                         "' fetches through ssh: it cannot do so from this machine directly (", ToUtf8(why),
                         ")"));
  }

  const FanoutSource& source_;
  const FanoutRequest& request_;
  const std::string key_;
  SharedBinary binary_;
  const int own_server_;  // the number of server_ in the plan
  std::mutex mutex_;      // guards what follows, but not the sessions themselves
  std::unique_ptr<PeerServer> server_;
  int left_server_ = 0;  // nodes that could not fetch from it
  std::condition_variable changed_;
  SourcePlan plan_;
  std::vector<Node> nodes_;
  int connecting_ = 0;
};

Result<void> CheckHosts(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return Fail(ErrorCode::kUsage, "there is no host to fan out to");
  for (const std::string& host : hosts) {
    const std::string problem = HostNameProblem(host);
    if (!problem.empty()) return Fail(ErrorCode::kUsage, problem);
  }
  return {};
}

// While it lives a node that dies is seen by its connection, and no signal comes of it.
class IgnoredPipeSignal {
 public:
  IgnoredPipeSignal() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoredPipeSignal() { (void)std::signal(SIGPIPE, before_); }
  IgnoredPipeSignal(const IgnoredPipeSignal&) = delete;
  IgnoredPipeSignal& operator=(const IgnoredPipeSignal&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace

int64_t FanoutReport::Complete() const {
  int64_t count = 0;
  for (const FanoutNodeEnd& node : nodes) count += node.error ? 0 : 1;
  return count;
}

int64_t FanoutReport::FromHead() const {
  int64_t bytes = 0;
  for (const FanoutNodeEnd& node : nodes) bytes += node.ready.from_head;
  return bytes;
}

int64_t FanoutReport::FromPeers() const {
  int64_t bytes = 0;
  for (const FanoutNodeEnd& node : nodes) bytes += node.ready.from_peers;
  return bytes;
}

Result<FanoutReport> RunFanout(const FanoutSource& source, const FanoutRequest& request) {
  OC_TRY_VOID(CheckHosts(request.hosts));
  const IgnoredPipeSignal ignored;
  return FanoutRun(source, request).Run();
}

}  // namespace overcap
