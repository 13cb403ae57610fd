// SPDX-License-Identifier: Apache-2.0
// Who starts next on a pooled cluster, where, and who gives way. Pure: no clock, file or thread; the same
// calls give the same answers. It keeps the state; the caller tells what happens and does what it says:
//
// - Jobs go by the priority of their partition, then by score (fair share, age, size). Inside it EASY
// backfill: the
//   first job of each partition that cannot start keeps its nodes for the time when they are free by the
//   limits of what runs, and others may take them only if they have ended by then. Caps and limits are kept
//   in the same way.
// - A job that is within its caps and does not fit names victims (policy.md, "Who may preempt whom"). What
// they give
//   back belongs to it: a claim. It starts when its claim is whole.
// - A victim that was told to go runs until the caller says Requeue() or Ended().
//
// Times are seconds of the caller's clock and never go back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sched/pooled/budget.h"
#include "sched/pooled/fair_share.h"
#include "sched/pooled/flat_index.h"
#include "sched/pooled/node_memory.h"
#include "sched/pooled/node_table.h"
#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"
#include "sched/pooled/victims.h"
#include "sched/pooled/waiting_lines.h"

namespace overcap::pooled {

// Why a job is not taken.
enum class Refusal {
  kNone,
  kNoPartition,  // none of its partitions takes it: lab, time limit
  kTooLarge,     // the nodes could not hold it even when they are empty
  kOverLimit,    // it asks for more than a cap or limit allows
};

class PooledScheduler {
 public:
  explicit PooledScheduler(Rules rules);

  int AddAccount(const AccountRule& account);

  // Queues it. Partitions that can never take it are left out; when none is left it says why and the job is
  // not taken.
  Refusal Submit(const PoolJob& job, JobRef* ref);
  // A job that runs already, in this partition and there. The caller answers for it: GPUs of others must not
  // be among them.
  JobRef Adopt(const PoolJob& job, int partition, std::vector<GpuShare> shares, int64_t started_s);
  // Its run has ended, or it is not wanted any longer, whatever its state: it is gone.
  void Ended(JobRef job, int64_t now_s);
  // Its run was stopped: it is queued again at its old place.
  void Requeue(JobRef job, int64_t now_s);
  void Checkpointed(JobRef job, int64_t at_s);
  // A job that runs was told to go before this scheduler was there; nobody has claimed what it gives back.
  void IsLeaving(JobRef job);
  // What an account has used before: GPU-seconds, as of `at_s`.
  void AddUse(int account, double gpu_seconds, int64_t at_s);
  void SetNodeUp(int node, bool up);

  // What is to be done now. The scheduler counts it as done.
  const std::vector<Action>& Pass(int64_t now_s);
  // When a pass may find something that no event has brought: a quantum is over, a node opens. kForever:
  // never.
  int64_t NextWakeS() const { return wake_s_; }

  // Drops all that is remembered between passes to spare work. Decisions are the same without it: tests look.
  void Forget();
  // From now on each pass looks at every line, also at those of a kind that was found stuck: as slow as the
  // definition, and the same decisions; tests look.
  void LookAtEveryLine() { every_line_ = true; }

  // ---- to look at, for those who explain and those who check
  enum class State : uint8_t { kGone, kQueued, kClaiming, kRunning, kLeaving };
  struct Job {
    PoolJob told;
    State state = State::kGone;
    int lab = 0, user = 0, demand = 0;
    int partition = -1;                       // while it runs or claims
    int64_t started_s = 0, checkpoint_s = 0;  // started: or has made its claim
    std::vector<GpuShare> shares;             // while it runs, and what of its claim it has
    uint32_t at_in_lab = 0;                   // position in the lab's list of runs
    int owed_nodes = 0;                       // of its claim
    uint64_t held_in = 0;                     // the round in which something was kept for it
  };
  // Nodes that are kept for a job that waits.
  struct Hold {
    JobRef job = 0;
    int partition = 0;
    int64_t from_s = 0;
    struct Part {
      int node = 0, spare_gpus = 0, spare_cpus = 0;
      int64_t spare_mem = 0;
      bool operator==(const Part&) const = default;
    };
    std::vector<Part> parts;
    bool operator==(const Hold&) const = default;
  };
  const Rules& rules() const { return rules_; }
  const std::vector<Job>& jobs() const { return jobs_; }
  const Job& job(JobRef ref) const { return jobs_[ref]; }
  const NodeTable& nodes() const { return nodes_; }
  const Budget& LabGpus(int lab) const { return budgets_[lab_gpus_[static_cast<size_t>(lab)]]; }
  const std::vector<Hold>& holds() const { return holds_; }  // of the last pass
  double ScoreOf(JobRef ref) const;
  size_t queued() const { return queued_; }
  size_t running() const { return running_; }
  // The budgets that hold an account's jobs in a partition; caps by GPU type stand apart.
  const std::vector<Check>& ChecksOf(int account, int partition) const {
    return checks_[static_cast<size_t>(account) * rules_.partitions.size() + static_cast<size_t>(partition)];
  }
  const Budget& budget(uint32_t at) const { return budgets_[at]; }
  bool MayPreempt(int by_partition, int by_lab, const Job& victim) const;
  bool IsOpen(int node, int64_t from_s, int64_t until_s) const;
  int64_t QuantumEnd(const Job& job) const;

 private:
  struct Demand {
    Need need;
    struct InPartition {
      uint64_t blocked = ~uint64_t{0};  // the version in which it was found not to fit anywhere
      uint64_t no_victims = 0;          // the pass in which none were found
      uint64_t types = 0;  // on which it fits when they are empty; nodes without GPUs: the last bit
    };
    std::vector<InPartition> in;
  };
  // What a claim still waits for, on one node.
  struct Owed {
    JobRef job = 0;
    int gpus = 0, cpus = 0;
    int64_t mem = 0;
    bool whole() const { return gpus == 0 && cpus == 0 && mem == 0; }
  };
  // A run of a lab, to be looked at without its job.
  struct LabRun {
    JobRef job = 0;
    int partition = 0, account = 0, user = 0, type = 0;
    int gpus = 0, cpus = 0;  // on all nodes
    bool leaving = false;
    int64_t end_s = 0;  // by its limit
  };
  struct NodeShape {
    int type = 0, gpus = 0, cpus = 0;
    int64_t mem = 0;
    uint64_t partitions = 0;
    int count = 0;
  };
  struct NodeEnd {
    int64_t end_s = 0, next_s = 0;  // when it ends, and when that is to be looked at again
    bool moves = false;             // it ends some seconds from now
    JobRef run = 0;
  };
  struct NodeUse {
    std::vector<JobRef> runs;
    std::vector<Owed> owed;  // in the order of the claims
    Amounts leaving = {};    // of jobs that were told to go
    int hold = -1;           // in holds_, in this pass
    size_t hold_part = 0;
  };
  struct Plan {  // where a job would go when its victims are gone
    std::vector<int> nodes;
    std::vector<JobRef> victims;
    int64_t loss = 0;
  };

  // pooled_queue.cc
  void ShapeNodes();
  uint32_t NewBudget(int limit, Unit unit);
  int DemandOf(const Need& need);
  uint64_t Allowed(const PoolJob& job, int demand, Refusal* why) const;
  uint64_t TypesThatFit(const Need& need, int partition) const;
  JobRef NewJob(const PoolJob& job);

  // pooled_lines.cc
  uint32_t CheckKindOf(int lab, int partition);
  uint32_t KindOf(int partition, const Job& job);
  uint32_t LineOf(int partition, const Job& job);
  void TakeOutOfLines(JobRef ref);
  void PutInLines(JobRef ref);
  void MarkDirty(uint32_t line);
  int64_t OwnPoints(const PoolJob& told) const;
  Place PlaceOf(uint32_t line) const;
  void MoveInOrder(Tier* tier, uint32_t line);
  bool Before(const Rank& rank, const Place& place) const;
  void SortChanged(Tier* tier);
  void ShareAnew();
  void MarkRanks(Tier* tier);
  bool Older(JobRef a, JobRef b) const;

  // pooled_runs.cc
  void Charge(const Job& job, int sign, int Budget::*part);
  bool IsCharged(const Budget& budget, const Job& job) const;
  bool IsCharged(const Budget& budget, const LabRun& run) const;
  void Touch(int node);
  void Begin(JobRef ref, int64_t now_s);
  void TakeShares(Job* job, const std::vector<int>& found);
  void Leave(JobRef ref, int64_t now_s);
  void FeedClaims(int node);
  void DropClaim(JobRef ref);
  void StartReady(int64_t now_s);

  // pooled_pass.cc
  enum class Verdict { kStarted, kStuck };  // started: or has made its claim
  void Walk(Tier* tier, int64_t now_s);
  Verdict TryHead(uint32_t line, JobRef ref, int64_t now_s);
  bool AnyRuns(uint64_t partitions) const;
  bool AnyRunsInLab(int lab, uint64_t partitions) const;
  bool IsStuck(const LineKind& kind) const;
  void NoteStuck(const Place& place);
  bool NothingLeft(const Tier& tier) const;
  bool WithinBudgets(const Line& line, JobRef ref, const Need& need);
  bool MayOvertake(const Line& line, JobRef ref, const Need& need, int64_t now_s);
  void SpendSpare(const Line& line, const Need& need, int64_t now_s);
  void HoldBudget(Budget* budget, JobRef ref, int partition, int64_t not_before_s);
  void LearnBudget(Budget* budget, int64_t now_s);
  Budget* TypeBudget(const Job& job, int partition, int type);  // nullptr: there is no cap of that type
  bool NodeTakes(int node, int partition, int64_t limit_s, int64_t now_s) const;
  bool FindPlace(const Line& line, const Job& job, bool with_holds, int64_t now_s);  // in found_
  bool FindOnType(const Line& line, const Job& job, int type, bool with_holds, int64_t now_s);
  void Start(JobRef ref, uint32_t line, int64_t now_s);

  // pooled_holds.cc
  void WantHold(JobRef ref, int partition);
  void MakeHolds(int64_t now_s);
  void MakeHold(JobRef ref, int partition, int64_t now_s);
  int64_t EndFor(const Job& viewer, int partition, const Job& run, int64_t now_s) const;
  struct EndChange {
    bool moves = false;
    int64_t next_s = kForever;
  };
  EndChange EndChangeOf(const Job& viewer, int partition, const Job& run, int64_t now_s) const;
  uint64_t MemoryKey(int demand, int partition, int lab, int type) const;
  FreeMemory::Entry FreeAt(const Job& job, int partition, int node, int64_t now_s);
  int64_t FreeNow(const Job& job, int partition, int node, int64_t now_s, int64_t before_s);
  Amounts UnclaimedOn(int node) const;  // free there, less what is owed to claims
  FreeMemory& FreeTimes(const Job& job, int partition, int type);
  bool GoneBefore(const Hold& hold, int partition, int lab, int64_t limit_s, int64_t now_s) const;
  bool HoldAllows(int node, const Need& need, int partition, int lab, int64_t limit_s, int64_t now_s) const;
  void SpendHold(int node, const Need& need, int partition, int lab, int64_t limit_s, int64_t now_s);
  void ClearHolds();

  // pooled_preempt.cc
  bool TryPreempt(uint32_t line, JobRef ref, bool over_budget, int64_t now_s);
  bool BudgetVictims(const Line& line, const Job& job, int64_t now_s, std::vector<JobRef>* victims);
  std::optional<Plan> PlanOn(int type, const Line& line, const Job& job, const std::vector<JobRef>& gone,
                             int64_t now_s);
  std::optional<Plan> BestPlan(const Line& line, const Job& job, const std::vector<JobRef>& gone,
                               int64_t now_s);
  Amounts MissingOn(int node, const Need& need, const std::vector<JobRef>& gone) const;
  void PrunePlan(const Line& line, const Job& job, int64_t now_s, Plan* plan) const;
  bool Suffices(const Line& line, const Job& job, const Plan& plan) const;
  VictimMemory& VictimNodes(const Line& line, const Job& job, int type, int64_t now_s);
  std::optional<int64_t> NoneBefore(int node, const Line& line, const Job& job, int64_t now_s) const;
  bool IsCandidate(const Job& victim, int partition, int lab, int64_t now_s);
  Candidate CandidateOf(JobRef ref, int64_t now_s) const;
  void TellToGo(Job* victim);
  void Claim(JobRef ref, const Plan& plan, int partition, int64_t now_s);

  const PartitionRule& PartitionAt(int partition) const {
    return rules_.partitions[static_cast<size_t>(partition)];
  }

  Rules rules_;
  NodeTable nodes_;
  FairShare shares_;
  std::vector<int64_t> share_points_;  // by account: what the order goes by
  std::vector<NodeShape> shapes_;
  std::vector<NodeUse> uses_;     // by node
  std::vector<int> run_gpus_;     // by node and partition: of jobs that run and were not told to go
  std::vector<int64_t> all_run_;  // the same by partition, counted in jobs
  std::vector<Job> jobs_;
  std::vector<JobRef> free_refs_;
  std::vector<Demand> demands_;
  FlatIndex demand_index_;
  std::vector<Line> lines_;
  FlatIndex line_index_;
  std::vector<LineKind> kinds_;
  std::vector<Stuck> stuck_;  // by kind
  FlatIndex kind_index_;
  uint32_t stuck_round_ = 0;
  std::vector<Tier> tiers_;
  std::vector<size_t> tier_of_;  // by partition
  std::vector<Budget> budgets_;
  std::vector<uint32_t> lab_gpus_, lab_cpus_;
  std::vector<std::vector<uint32_t>> lab_types_;  // by lab and type; empty: none
  struct Account {
    int lab = 0, user = 0;
    uint32_t limits = 0;  // its first budget: GPUs, CPUs, jobs
    uint64_t partitions = 0;
  };
  std::vector<Account> accounts_;
  std::vector<std::vector<Check>> checks_;  // by account and partition
  std::vector<uint32_t> check_kinds_;  // by account and partition: the first of checks_ that holds the same
  std::vector<uint32_t> lab_check_kinds_;  // by lab and partition: that of the lab's own budgets only
  std::vector<std::vector<uint32_t>> user_limits_;  // by partition and user: its first budget
  std::vector<std::vector<int>> user_labs_;
  std::vector<std::vector<LabRun>> lab_runs_;
  std::vector<int> lab_counts_;  // by lab and partition: of jobs that run and were not told to go
  NodeLog log_;
  Memories<VictimMemory> victim_nodes_;
  Memories<FreeMemory> free_times_;
  std::vector<JobRef> claims_;  // jobs that claim, the oldest claim first
  std::vector<std::pair<JobRef, int>> wanted_holds_;
  std::vector<Hold> holds_;
  uint64_t hold_partitions_ = 0;  // that have one in this pass
  uint64_t counting_ = 0;         // partitions that count against caps
  uint64_t preempted_ = 0;        // partitions whose jobs may be told to go
  std::vector<Action> actions_;
  std::vector<Place> again_;                   // lines whose next job is to be looked at in this pass: a heap
  std::vector<int64_t> openings_;              // when closed nodes open, ascending
  std::vector<int> found_;                     // the nodes that FindPlace() has found
  std::vector<std::pair<int64_t, int>> ends_;  // scratch: when runs end, and what
  std::vector<NodeEnd> node_ends_;             // scratch of FreeAt()
  std::vector<uint64_t> looked_at_;            // scratch: positions of nodes, as bits
  int64_t opened_s_ = -kForever;               // the last pass, as far as openings are concerned
  size_t queued_ = 0, running_ = 0;
  uint64_t pass_ = 0, version_ = 0;  // pass_: rounds of passes
  bool every_line_ = false;
  bool unsure_ = false;     // why the last one is stuck may be otherwise for the next one of its kind
  bool once_more_ = false;  // somebody for whom something was kept has started elsewhere
  int64_t wake_s_ = kForever;
  int64_t pool_gpus_ = 0;
  bool cpu_jobs_ = false;    // there are, or were, jobs without GPUs
  bool plain_nodes_ = true;  // every node is open to every partition at all times
};

}  // namespace overcap::pooled
