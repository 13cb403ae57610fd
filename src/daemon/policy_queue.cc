// SPDX-License-Identifier: Apache-2.0
#include "daemon/policy_queue.h"

#include <algorithm>

#include "base/text.h"
#include "daemon/live_pool_of.h"

namespace overcap {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kLongestTime = 10'000'000;  // seconds that an agent can be told

std::set<int> CpusOf(const Machine& machine) {
  if (!machine.cpu_ids.empty()) return {machine.cpu_ids.begin(), machine.cpu_ids.end()};
  std::set<int> cpus;
  for (int cpu = 0; cpu < machine.cpus; ++cpu) cpus.insert(cpu);
  return cpus;
}

}  // namespace

PolicyQueue::PolicyQueue(const JobTable& table, const Clock& clock, pooled::MachinePool pool,
                         const Machine& machine)
    : table_(table),
      clock_(clock),
      pool_(std::move(pool)),
      scheduler_(pool_.rules()),
      free_cpus_(CpusOf(machine)) {
  const std::vector<pooled::LiveUse> uses = UsesOf(table, &pool_);
  AddAccounts();
  for (const pooled::LiveUse& use : uses) scheduler_.AddUse(use.account, use.gpu_seconds, use.at_s);
}

void PolicyQueue::AddAccounts() {
  for (; accounts_ < pool_.accounts().size(); ++accounts_)
    (void)scheduler_.AddAccount(pool_.accounts()[accounts_].rule);
}

Result<void> PolicyQueue::Check(const JobSpec& spec) {
  OC_TRY(job, pool_.Take(spec, 0));
  AddAccounts();
  pooled::JobRef ref = 0;
  const pooled::Refusal refusal = scheduler_.Submit(job, &ref);
  if (refusal != pooled::Refusal::kNone) return Fail(RefusalError(refusal, job));
  scheduler_.Ended(ref, NowS());
  return {};
}

void PolicyQueue::Checkpointed(uint64_t key, int slot, int64_t at_us) {
  const auto run = runs_.find({key, slot});
  if (run != runs_.end()) scheduler_.Checkpointed(run->second.ref, at_us / kSecondUs);
}

// ---- what waits

void PolicyQueue::Offer(uint64_t key, Waiting* waiting) {
  changed_ = true;
  if (waiting->ref || waiting->wanted <= 0) return;
  const JobSpec& spec = table_.FindKey(key)->spec;
  const auto job = pool_.Take(spec, key);
  AddAccounts();
  pooled::JobRef ref = 0;
  const pooled::Refusal refusal = job ? scheduler_.Submit(*job, &ref) : pooled::Refusal::kNone;
  if (job && refusal == pooled::Refusal::kNone) {
    waiting->ref = ref;
    waiting->refused.clear();
    return;
  }
  waiting->refused = StrCat("the policy does not let it start: ",
                            job ? RefusalError(refusal, *job).message : job.error().message);
}

void PolicyQueue::Withdraw(Waiting* waiting) {
  if (waiting->ref) scheduler_.Ended(*waiting->ref, NowS());
  waiting->ref.reset();
  changed_ = true;
}

void PolicyQueue::Enqueue(const QueuedJob& job) {
  Waiting& waiting = waiting_[job.key];
  Withdraw(&waiting);
  waiting.wanted = job.slots_wanted;
  waiting.next_slot = std::max(waiting.next_slot, job.first_slot);
  Offer(job.key, &waiting);
}

void PolicyQueue::Remove(uint64_t key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  Withdraw(&found->second);
  waiting_.erase(found);
}

void PolicyQueue::UpdateSlots(uint64_t key, int slots_wanted) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end() || found->second.wanted == slots_wanted) return;
  found->second.wanted = slots_wanted;
  if (slots_wanted > 0)
    Offer(key, &found->second);
  else
    Withdraw(&found->second);
}

// ---- what runs

void PolicyQueue::Adopt(const Running& running) {
  Release(running.key, running.slot);
  const Job& job = *table_.FindKey(running.key);
  const auto slot = std::find_if(job.slots.begin(), job.slots.end(),
                                 [&](const Slot& one) { return one.slot == running.slot; });
  const pooled::PoolJob told = pool_.TakeRunning(job.spec, running.key);
  AddAccounts();
  const int partition = pool_.PartitionAt(slot == job.slots.end() ? "" : slot->partition);
  Run run{scheduler_.Adopt(told, partition, pool_.SharesOf(running.allocation.gpus),
                           running.started_us / kSecondUs),
          running.allocation.cpus};
  for (const int cpu : run.cpus) free_cpus_.erase(cpu);
  if (slot != job.slots.end() && slot->preemption) scheduler_.IsLeaving(run.ref);
  by_ref_[run.ref] = {running.key, running.slot};
  runs_.emplace(std::pair(running.key, running.slot), std::move(run));
  Waiting& waiting = waiting_[running.key];
  waiting.next_slot = std::max({waiting.next_slot, running.next_slot, running.slot + 1});
  changed_ = true;
}

void PolicyQueue::Release(uint64_t key, int slot) {
  const auto found = runs_.find({key, slot});
  if (found == runs_.end()) return;
  scheduler_.Ended(found->second.ref, NowS());
  free_cpus_.insert(found->second.cpus.begin(), found->second.cpus.end());
  by_ref_.erase(found->second.ref);
  runs_.erase(found);
  changed_ = true;
}

void PolicyQueue::Undo(const Start& start) {
  if (runs_.count({start.key, start.slot}) == 0) return;
  Release(start.key, start.slot);
  Waiting& waiting = waiting_[start.key];
  if (waiting.next_slot == start.slot + 1) --waiting.next_slot;
  ++waiting.wanted;
  Offer(start.key, &waiting);
}

// Those of its own, where there are enough; else it runs on all.
std::vector<int> PolicyQueue::TakeCpus(int count) {
  std::vector<int> cpus;
  if (count > static_cast<int>(free_cpus_.size())) return cpus;
  for (; count > 0; --count) {
    cpus.push_back(*free_cpus_.begin());
    free_cpus_.erase(free_cpus_.begin());
  }
  return cpus;
}

Start PolicyQueue::Begin(const pooled::Action& action) {
  const JobSpec& spec = table_.FindKey(action.key)->spec;
  const pooled::PoolJob& told = scheduler_.job(action.job).told;
  const pooled::PartitionRule& rule = pool_.rules().partitions[static_cast<size_t>(action.partition)];
  Waiting& waiting = waiting_[action.key];
  waiting.ref.reset();
  --waiting.wanted;
  Start start;
  start.key = action.key;
  start.slot = waiting.next_slot++;
  start.allocation.gpus = pool_.GpusOf(action.shares);
  start.allocation.cpus = TakeCpus(spec.resources.gpus > 0 || spec.resources.cpus > 0 ? told.need.cpus : 0);
  start.partition = rule.name;
  const int64_t limit_s = pooled::LimitIn(rule, spec.resources.time_seconds);
  if (spec.resources.time_seconds == 0 && limit_s < pooled::kForever)
    start.time_seconds = std::min(limit_s, kLongestTime);
  if (spec.resources.mem_bytes == 0) start.memory_mb = told.need.mem_mb;
  by_ref_[action.job] = {action.key, start.slot};
  runs_[{start.key, start.slot}] = {action.job, start.allocation.cpus};
  return start;
}

int64_t PolicyQueue::TimeLimitIn(const std::string& partition) const {
  for (const pooled::PartitionRule& rule : pool_.rules().partitions) {
    if (rule.name != partition) continue;
    const int64_t limit_s = pooled::LimitIn(rule, 0);
    return limit_s < pooled::kForever ? std::min(limit_s, kLongestTime) : 0;
  }
  return 0;
}

std::vector<Start> PolicyQueue::Pass(int64_t now_us) {
  std::vector<Start> starts;
  const int64_t now_s = now_us / kSecondUs;
  if (now_s >= scheduler_.NextWakeS()) changed_ = true;
  while (changed_) {
    changed_ = false;
    const std::vector<pooled::Action> actions = scheduler_.Pass(now_s);
    std::vector<uint64_t> started;
    for (const pooled::Action& action : actions) {
      if (action.kind == pooled::Action::Kind::kStart) {
        starts.push_back(Begin(action));
        started.push_back(action.key);
        continue;
      }
      const auto victim = by_ref_.at(action.job);
      const auto& rule = pool_.rules().partitions[static_cast<size_t>(action.partition)];
      preempts_.push_back({victim.first, victim.second, scheduler_.job(action.by).told.key, rule.grace_s});
    }
    for (const uint64_t key : started) {
      if (Waiting& waiting = waiting_[key]; waiting.wanted > 0) Offer(key, &waiting);
    }
  }
  return starts;
}

std::vector<Preempt> PolicyQueue::TakePreempts() {
  return std::exchange(preempts_, {});
}

int64_t PolicyQueue::WakeAtUs() const {
  const int64_t wake_s = scheduler_.queued() == 0 ? pooled::kForever : scheduler_.NextWakeS();
  return wake_s >= pooled::kForever ? 0 : wake_s * kSecondUs;
}

}  // namespace overcap
