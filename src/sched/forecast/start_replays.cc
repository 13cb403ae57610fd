// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/start_replays.h"

#include <algorithm>
#include <unordered_map>

#include "sched/pooled/job_defaults.h"

namespace overcap::forecast {
namespace {

// Runs of one user resemble each other: of as many in 8 the chance is the user's and not their own.
constexpr uint64_t kAlikeOf8 = 4;
// Ends that come within this part of the time since now are looked at together: a replay of a long wait need
// not be exact to the second, and each look costs. What starts then counts from the middle of those ends:
// else GPUs would seem to stand idle until the last of them.
constexpr int64_t kGrain = 64;
// Fair shares, which fade over days, are looked at once an hour.
constexpr int64_t kShareLookS = 3600;

pooled::Rules Coarse(pooled::Rules rules) {
  rules.weights.look_every_s = kShareLookS;
  return rules;
}

// The limit that ends it: its own, else that of its partition; 0: none.
int64_t LimitOf(const LiveQueue& queue, const LiveJob& job) {
  const int partition = job.runs ? job.in : pooled::FirstPartition(queue.rules, job.told.partitions);
  if (partition < 0) return job.told.limit_s;
  const int64_t limit_s =
      pooled::LimitIn(queue.rules.partitions[static_cast<size_t>(partition)], job.told.limit_s);
  return limit_s == 0 ? job.told.limit_s : limit_s >= pooled::kForever ? 0 : limit_s;
}

}  // namespace

StartReplays::StartReplays(const LiveQueue& queue, const RunTimes& times, uint64_t seed)
    : queue_(queue), seed_(seed), begin_(Coarse(queue.rules)) {
  for (const pooled::AccountRule& account : queue.accounts) begin_.AddAccount(account);
  for (const pooled::LiveUse& use : queue.uses) begin_.AddUse(use.account, use.gpu_seconds, use.at_s);
  std::unordered_map<std::string_view, uint32_t> users;
  std::vector<size_t> order;
  times_.reserve(queue.jobs.size());
  runs_.resize(queue.jobs.size());
  for (size_t i = 0; i < queue.jobs.size(); ++i) {
    const LiveJob& job = queue.jobs[i];
    user_of_.push_back(users.try_emplace(job.user, static_cast<uint32_t>(users.size())).first->second);
    const int64_t ran_s = job.runs ? std::max<int64_t>(0, queue.now_s - job.started_s) : 0;
    times_.push_back(times.Of({job.user, job.lab, job.partition, LimitOf(queue, job), ran_s,
                               job.named_limit && job.told.limit_s > 0}));
    if (job.runs) order.push_back(i);
  }
  // What was used is counted from the first start on.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return queue.jobs[a].started_s < queue.jobs[b].started_s; });
  for (const size_t i : order) {
    const LiveJob& job = queue.jobs[i];
    runs_[i] = begin_.Adopt(job.told, job.in, job.shares, job.started_s);
  }
  for (const int node : queue.away) begin_.SetNodeUp(node, false);
  pooled::JobRef ref = 0;
  for (size_t i = 0; i < queue.jobs.size(); ++i) {
    // One that is refused can never start, and keeps nobody waiting.
    if (!queue.jobs[i].runs && i != queue.target) (void)begin_.Submit(queue.jobs[i].told, &ref);
  }
}

uint64_t StartReplays::ChanceOf(size_t job, uint64_t future) const {
  const uint64_t own = Mixed(seed_ + future, job, 1);
  return (own & 7) < kAlikeOf8 ? Mixed(seed_ + future, user_of_[job], 2) : Mixed(own, 3);
}

void StartReplays::Begin(uint64_t future, Room* room) const {
  room->scheduler = begin_;
  room->events.clear();
  room->run.assign(queue_.jobs.size(), 0);
  room->left_s.assign(queue_.jobs.size(), 0);
  room->began_s.assign(queue_.jobs.size(), 0);
  for (size_t i = 0; i < queue_.jobs.size(); ++i) {
    const LiveJob& job = queue_.jobs[i];
    if (!job.runs) continue;
    room->left_s[i] = times_[i].Draw(ChanceOf(i, future));
    room->began_s[i] = job.started_s;
    if (room->left_s[i] < kNever)
      room->events.push_back({std::max(queue_.now_s + 1, job.started_s + room->left_s[i]),
                              static_cast<uint32_t>(i), 0, runs_[i], false});
  }
  std::make_heap(room->events.begin(), room->events.end());
}

// A run ends, or one that was told to go is stopped and has what it saved.
void StartReplays::Happen(const Room::Event& event, int64_t now_s, Room* room) const {
  if (event.run != room->run[event.job]) return;
  ++room->run[event.job];
  if (!event.stop) {
    room->scheduler->Ended(event.ref, now_s);
    return;
  }
  const int64_t ran_s = now_s - room->began_s[event.job];
  if (room->left_s[event.job] < kNever)
    room->left_s[event.job] = std::max<int64_t>(1, room->left_s[event.job] - ran_s);
  room->scheduler->Requeue(event.ref, now_s);
}

int64_t StartReplays::Start(const pooled::PoolJob& asks, uint64_t future, int64_t until_s, Room* room) const {
  Begin(future, room);
  pooled::PooledScheduler& scheduler = *room->scheduler;
  pooled::JobRef target = 0;
  if (scheduler.Submit(asks, &target) != pooled::Refusal::kNone) return kNever;
  const auto push = [&](const Room::Event& event) {
    room->events.push_back(event);
    std::push_heap(room->events.begin(), room->events.end());
  };
  int64_t begin_s = queue_.now_s;
  for (int64_t now_s = queue_.now_s;;) {
    for (const pooled::Action& action : scheduler.Pass(now_s)) {
      const auto job = static_cast<size_t>(action.key);
      if (action.kind == pooled::Action::Kind::kPreempt) {
        const int64_t grace_s = queue_.rules.partitions[static_cast<size_t>(action.partition)].grace_s;
        push({now_s + grace_s, static_cast<uint32_t>(job), room->run[job], action.job, true});
        continue;
      }
      if (job == queue_.target) return begin_s;
      if (room->left_s[job] == 0) room->left_s[job] = times_[job].Draw(ChanceOf(job, future));
      room->began_s[job] = begin_s;
      if (room->left_s[job] < kNever)
        push({std::max(now_s, begin_s + room->left_s[job]), static_cast<uint32_t>(job), room->run[job],
              action.job, false});
    }
    int64_t next_s = std::min(scheduler.NextWakeS(), kNever);
    if (!room->events.empty()) next_s = std::min(next_s, room->events.front().at_s);
    if (next_s >= until_s) return kNever;
    const int64_t first_s = now_s = std::max(now_s, next_s);
    int64_t ends = 0, sum_s = 0;
    const int64_t with_s = now_s + std::max(grain_s_, (now_s - queue_.now_s) / kGrain);
    while (!room->events.empty() && room->events.front().at_s <= with_s) {
      const Room::Event event = room->events.front();
      std::pop_heap(room->events.begin(), room->events.end());
      room->events.pop_back();
      now_s = std::max(now_s, event.at_s);
      ++ends, sum_s += now_s - first_s;
      Happen(event, now_s, room);
    }
    begin_s = std::max(begin_s, first_s + (ends > 0 ? sum_s / ends : 0));
  }
}

}  // namespace overcap::forecast
