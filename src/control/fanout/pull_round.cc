// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/pull_round.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace overcap {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTell{200};
constexpr std::chrono::seconds kGraceLeast{2};

class PullRound : public SessionListener {
 public:
  PullRound(const std::vector<int>& nodes, const PullOrder& order, const FanoutRequest& request)
      : binary_(request.binary), request_(request), began_(steady_clock::now()) {
    request_.stop = &stop_;
    outer_stop_ = request.stop;
    for (const int node : nodes) {
      nodes_[node].pulled.node = node;
      nodes_[node].session =
          std::make_unique<NodeSession>(node, SessionTask{.pull = &order}, request_, no_key_, &binary_, this);
    }
  }

  std::vector<PulledNode> Run() {
    std::vector<std::thread> threads;
    for (auto& entry : nodes_) {
      threads.emplace_back([this, &each = entry.second] {
        const Result<void> done = each.session->Run();
        const std::lock_guard lock(mutex_);
        if (!done && !stop_) each.pulled.failed = done.error();
        each.ended = true;
        ended_.push_back(std::move(each.pulled));
        changed_.notify_all();
      });
    }
    Watch();
    for (std::thread& thread : threads) thread.join();
    return std::move(ended_);
  }

  void OnHello(int, const fanout::Hello&) override {}
  void OnAsk(int, const std::string&) override {}
  void OnReady(int, const fanout::Ready&) override {}
  void OnProgress(int node, const fanout::Progress& progress) override {
    const std::lock_guard lock(mutex_);
    nodes_.at(node).progress = progress;
  }
  void OnNote(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    if (request_.note) request_.note(text);
  }
  void OnObject(int node, fanout::Object&& object) override {
    const std::lock_guard lock(mutex_);
    nodes_.at(node).pulled.objects.push_back(std::move(object));
  }
  void OnKnown(int node, const fanout::Known& known) override {
    const std::lock_guard lock(mutex_);
    nodes_.at(node).pulled.known = known;
    if (!grace_end_) {
      const auto took = steady_clock::now() - began_;
      grace_end_ = steady_clock::now() + std::max<steady_clock::duration>(took, kGraceLeast);
    }
  }
  void OnNotPulled(int node, const Error& error) override {
    const std::lock_guard lock(mutex_);
    nodes_.at(node).pulled.not_pulled = error;
  }

 private:
  struct Node {
    std::unique_ptr<NodeSession> session;
    PulledNode pulled;
    fanout::Progress progress;
    bool ended = false;
  };

  // With mutex_: that of the one that is ahead.
  FanoutProgress Progress() const {
    FanoutProgress progress;
    progress.nodes = static_cast<int>(request_.hosts.size());
    for (const auto& [node, each] : nodes_) {
      progress.bytes_done = std::max(progress.bytes_done, each.progress.bytes_done);
      progress.bytes_total = std::max(progress.bytes_total, each.progress.bytes_total);
    }
    return progress;
  }

  void Watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (request_.progress) request_.progress(Progress());
      if (std::all_of(nodes_.begin(), nodes_.end(), [](const auto& each) { return each.second.ended; }))
        return;
      if (outer_stop_ != nullptr && *outer_stop_) stop_ = true;
      if (grace_end_ && steady_clock::now() > *grace_end_) stop_ = true;
      changed_.wait_for(lock, kTell);
    }
  }

  const std::string no_key_;
  SharedBinary binary_;
  FanoutRequest request_;
  const std::atomic<bool>* outer_stop_ = nullptr;
  std::atomic<bool> stop_ = false;
  const steady_clock::time_point began_;
  std::mutex mutex_;  // guards what follows, but not the sessions themselves
  std::condition_variable changed_;
  std::optional<steady_clock::time_point> grace_end_;  // when those are left that are slower
  std::map<int, Node> nodes_;
  std::vector<PulledNode> ended_;
};

}  // namespace

std::vector<PulledNode> RunPullRound(const std::vector<int>& nodes, const PullOrder& order,
                                     const FanoutRequest& request) {
  return PullRound(nodes, order, request).Run();
}

}  // namespace overcap
