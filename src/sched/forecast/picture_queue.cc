// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/picture_queue.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/text.h"
#include "model/gpu_type.h"
#include "model/picture_fit.h"
#include "model/picture_use.h"
#include "sched/forecast/picture_pool.h"

namespace overcap::forecast {
namespace {

using pooled::Bit;

constexpr int kMostTasks = 1000;  // of one row
constexpr size_t kMostWaiting = 20'000;
constexpr int64_t kSecondUs = 1'000'000;

// Whether it is in line, so that a start can be foreseen.
bool InLine(const PictureJob& job) {
  switch (job.wait) {
    case WaitKind::kNone:
    case WaitKind::kTurn:
    case WaitKind::kLimit:
    case WaitKind::kNodes:
      return job.state != JobState::kHeld;
    default:
      return false;
  }
}

bool Contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Whether the limit that it waits for is one of the rules.
bool LimitIsKnown(const ClusterPicture& picture, const PictureJob& job) {
  const PictureQos* own = FindQos(picture, job.qos);
  const auto of_partition = [&](auto has) {
    const std::vector<std::string> names = Split(job.partition, ',');
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const PicturePartition* partition = FindPartition(picture, name);
      const PictureQos* qos = partition == nullptr ? nullptr : FindQos(picture, partition->qos);
      return qos != nullptr && has(*qos);
    });
  };
  const bool gpus = job.cap_thing == CapThing::kGpus, jobs = job.cap_thing == CapThing::kJobs;
  const auto per_user = [&](const PictureQos& qos) {
    return gpus ? qos.gpus_per_user.has_value() : qos.jobs_per_user.has_value();
  };
  switch (job.cap_of) {
    case CapOf::kLab:
      return gpus ? CappedLab(picture, job.lab) != nullptr : job.cap_thing == CapThing::kCpus;
    case CapOf::kQos:
      return gpus && own != nullptr && own->gpu_cap;
    case CapOf::kUserInQos:
      return (gpus || jobs) && ((own != nullptr && per_user(*own)) || of_partition(per_user));
    default:
      return false;
  }
}

bool IsDown(const ClusterPicture& picture, const std::string& name) {
  const PicturePartition* partition = FindPartition(picture, name);
  return partition != nullptr && !partition->up;
}

Result<void> CheckTarget(const ClusterPicture& picture, const PictureJob& job) {
  const auto no = [](std::string_view why) {
    return Fail(ErrorCode::kUnavailable, StrCat("no promise: ", why));
  };
  if (job.state == JobState::kHeld || job.wait == WaitKind::kHeld) return no("it is held");
  if (job.wait == WaitKind::kDependency) return no("it waits for other jobs first");
  if (job.wait == WaitKind::kTime) return no("it waits for a later time first");
  if (job.wait == WaitKind::kNever) return no("it never starts as it is");
  const std::vector<std::string> names = Split(job.partition, ',');
  if (std::all_of(names.begin(), names.end(), [&](const auto& name) { return IsDown(picture, name); }))
    return no(StrCat("partition '", job.partition, "' is down"));
  // The plain words say "down, drained or reserved" of any node; Slurm adds this where it is a reservation.
  if (job.wait == WaitKind::kNodes && job.reason_text.find("maintenance") != std::string::npos)
    return no("it waits for a maintenance, of which nothing more is known here");
  if (!InLine(job)) return no("nothing is known of what it waits for");
  if (job.wait == WaitKind::kLimit && !LimitIsKnown(picture, job))
    return no("the limit that it waits for is not known here");
  return {};
}

class Maker {
 public:
  Maker(const ClusterPicture& picture, int64_t now_us) : picture_(picture), pool_(MakePicturePool(picture)) {
    queue_.now_s = now_us / kSecondUs;
    queue_.assumed = pool_.assumed;
  }

  PictureQueue Make(size_t target) {
    AddRuns();
    AddHidden();
    AddWaiting(target);
    const std::vector<std::string> own = Split(picture_.jobs[target].partition, ',');
    PictureQueue made{{}, 0};
    for (const auto& [name, bit] : pool_.partitions) {
      const PicturePartition* partition = FindPartition(picture_, name.first);
      if (partition != nullptr && MayUse(*partition, picture_.jobs[target]) &&
          name.second == partition->overcap)
        made.offered |= Bit(bit);
    }
    queue_.rules = pool_.rules;
    queue_.away = pool_.away;
    queue_.assumed.push_back("no new job goes ahead of it");
    made.queue = std::move(queue_);
    return made;
  }

 private:
  static bool MayUse(const PicturePartition& partition, const PictureJob& job) {
    return partition.up &&
           (partition.time_limit_s == 0 ||
            (job.time_limit_s > 0 && job.time_limit_s <= partition.time_limit_s)) &&
           !Contains(partition.denied_labs, job.lab) &&
           (partition.allowed_labs.empty() || Contains(partition.allowed_labs, job.lab));
  }

  int UserAt(const std::string& name) {
    return users_.try_emplace(name, static_cast<int>(users_.size())).first->second;
  }

  // Whose cap it counts against: that of its QOS, that of its lab or of one above it, or nobody's.
  int LabAt(const PictureJob& job) {
    const PictureQos* qos = FindQos(picture_, job.qos);
    const PictureLab* lab = CappedLab(picture_, job.lab);
    // A QOS that is called as its lab has the lab's cap, against which others of the lab may count too.
    const bool of_lab = lab != nullptr && lab->name == job.qos && lab->gpu_cap;
    const bool by_qos = qos != nullptr && qos->gpu_cap && !of_lab;
    const std::string key =
        by_qos ? StrCat("q ", job.qos) : StrCat("l ", lab != nullptr ? lab->name : job.lab);
    const auto [found, is_new] = labs_.try_emplace(key, static_cast<int>(pool_.rules.labs.size()));
    if (!is_new) return found->second;
    pooled::LabRule rule;
    rule.name = by_qos ? job.qos : lab != nullptr ? lab->name : job.lab;
    if (by_qos) rule.gpu_cap = *qos->gpu_cap;
    if (!by_qos && lab != nullptr) rule.gpu_cap = lab->gpu_cap.value_or(pooled::kNoLimit);
    if (!by_qos && lab != nullptr && lab->cpu_cap) rule.cpu_cap = *lab->cpu_cap;
    if (!by_qos && lab != nullptr) TakeTypeCaps(*lab, &rule);
    pool_.rules.labs.push_back(rule);
    return found->second;
  }

  void TakeTypeCaps(const PictureLab& lab, pooled::LabRule* rule) {
    for (const TypedGpus& cap : lab.gpu_caps) {
      const auto& types = pool_.rules.types;
      const auto kinds = std::count(types.begin(), types.end(), cap.type);
      if (kinds != 1) {
        if (kinds > 1)
          queue_.assumed.push_back(
              StrCat("the cap of lab '", lab.name, "' on ", cap.type, " is not counted"));
        continue;
      }
      rule->type_caps.resize(types.size(), pooled::kNoLimit);
      rule->type_caps[static_cast<size_t>(std::find(types.begin(), types.end(), cap.type) - types.begin())] =
          cap.count;
    }
  }

  int AccountAt(const PictureJob& job) {
    const int lab = LabAt(job);
    const auto [found, is_new] = accounts_.try_emplace(StrCat(lab, " ", job.user, " ", job.qos),
                                                       static_cast<int>(queue_.accounts.size()));
    if (!is_new) return found->second;
    pooled::AccountRule rule;
    rule.lab = lab, rule.user = UserAt(job.user);
    if (const PictureQos* qos = FindQos(picture_, job.qos); qos != nullptr) {
      rule.limits.gpus = qos->gpus_per_user.value_or(pooled::kNoLimit);
      rule.limits.jobs = qos->jobs_per_user.value_or(pooled::kNoLimit);
    }
    queue_.accounts.push_back(rule);
    return found->second;
  }

  LiveJob JobOf(const PictureJob& row) {
    LiveJob job;
    job.told.key = job.told.seq = queue_.jobs.size();
    job.told.account = AccountAt(row);
    job.told.need = pool_.NeedOf(row);
    job.told.limit_s = row.time_limit_s;
    job.named_limit = !row.limit_of_partition;
    job.user = row.user, job.lab = row.lab, job.partition = row.partition;
    job.told.partitions = 0;
    job.submitted_s = row.submitted_us / kSecondUs;
    job.priority = static_cast<int>(std::clamp<int64_t>(row.priority, -1'000'000, 1'000'000));
    for (const std::string& name : Split(row.partition, ',')) {
      if (row.nodes.empty() && IsDown(picture_, name)) continue;
      const auto found = pool_.partitions.find(name.empty() ? default_ : std::make_pair(name, row.overcap));
      if (found != pool_.partitions.end()) job.told.partitions |= Bit(found->second);
    }
    return job;
  }

  void AddRuns() {
    for (const PictureJob& row : picture_.jobs) {
      if (row.nodes.empty() || row.state == JobState::kSucceeded) continue;
      LiveJob job = JobOf(row);
      job.runs = true;
      if (job.told.partitions == 0) job.told.partitions = Bit(firm_);
      job.in = __builtin_ctzll(job.told.partitions);
      job.started_s = row.started_us > 0 ? std::min(queue_.now_s, row.started_us / kSecondUs) : queue_.now_s;
      job.shares = pool_.Take(row);
      if (job.shares.empty()) continue;
      // What it has, whatever was asked for: shares of different size count as the largest.
      job.told.need.nodes = static_cast<int>(job.shares.size());
      job.told.need.gpus = 0;
      for (const pooled::GpuShare& share : job.shares)
        job.told.need.gpus = std::max(job.told.need.gpus, __builtin_popcountll(share.gpus));
      queue_.jobs.push_back(std::move(job));
    }
  }

  // GPUs that are in use by nobody who can be seen: nobody knows for how long.
  void AddHidden() {
    int hidden = 0;
    for (size_t i = 0; i < pool_.rules.nodes.size(); ++i) {
      const int count = pool_.Unexplained(i);
      if (count <= 0) continue;
      PictureJob row;
      row.gpus = count, row.node_count = 1;
      LiveJob job = JobOf(row);
      job.runs = true, job.told.partitions = Bit(firm_), job.in = firm_, job.started_s = queue_.now_s;
      job.told.need.gpus = count, job.told.need.cpus = 0;
      job.shares = {{static_cast<int>(i), pool_.TakeOn(i, count)}};
      job.user = "?";
      hidden += count;
      queue_.jobs.push_back(std::move(job));
    }
    if (hidden > 0)
      queue_.assumed.push_back(StrCat(CountOf(hidden, "GPU"), " in use by jobs that cannot be seen stay",
                                      hidden == 1 ? "s so" : " so"));
  }

  void AddWaiting(size_t target) {
    std::vector<size_t> order;
    int aside = 0;
    for (size_t i = 0; i < picture_.jobs.size(); ++i) {
      const PictureJob& job = picture_.jobs[i];
      if (!job.nodes.empty()) continue;
      if (i == target || InLine(job)) {
        order.push_back(i);
      } else {
        aside += job.tasks;
      }
    }
    if (aside > 0)
      queue_.assumed.push_back(StrCat(CountOf(aside, "job"), aside == 1 ? " that is" : " that are",
                                      " held or wait", aside == 1 ? "s" : "", " for something else stay",
                                      aside == 1 ? "s" : "", " so"));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const PictureJob &one = picture_.jobs[a], &other = picture_.jobs[b];
      if (one.priority != other.priority) return one.priority > other.priority;
      return one.submitted_us < other.submitted_us;
    });
    size_t waiting = 0, cut = 0;
    for (const size_t i : order) {
      const PictureJob& row = picture_.jobs[i];
      const int tasks = i == target ? 1 : std::clamp(row.tasks, 1, kMostTasks);
      for (int task = 0; task < tasks; ++task) {
        if (i != target && waiting >= kMostWaiting) {
          ++cut;
          continue;
        }
        ++waiting;
        if (i == target) queue_.target = queue_.jobs.size();
        LiveJob job = JobOf(row);
        if (job.told.partitions == 0 && i != target) continue;
        queue_.jobs.push_back(std::move(job));
      }
    }
    if (cut > 0)
      queue_.assumed.push_back(StrCat(CountOf(static_cast<int64_t>(cut), "job"), " far behind left out"));
  }

  static std::pair<std::string, bool> DefaultOf(const ClusterPicture& picture) {
    for (const PicturePartition& one : picture.partitions) {
      if (one.is_default) return {one.name, one.overcap};
    }
    return {"", false};
  }

  // A partition whose jobs give way to nobody, for those whose own is not known.
  static int FirmOf(const pooled::Rules& rules) {
    uint64_t victims = 0;
    for (const pooled::PartitionRule& rule : rules.partitions) victims |= rule.preempts;
    for (size_t i = 0; i < rules.partitions.size(); ++i) {
      if ((victims & Bit(static_cast<int>(i))) == 0) return static_cast<int>(i);
    }
    return 0;
  }

  const ClusterPicture& picture_;
  PicturePool pool_;
  const std::pair<std::string, bool> default_ = DefaultOf(picture_);  // of jobs that name none
  const int firm_ = FirmOf(pool_.rules);
  LiveQueue queue_;
  std::unordered_map<std::string, int> users_, labs_, accounts_;
};

}  // namespace

Result<PictureQueue> QueueOf(const ClusterPicture& picture, size_t target, int64_t now_us) {
  OC_TRY_VOID(CheckTarget(picture, picture.jobs[target]));
  PictureQueue made = Maker(picture, now_us).Make(target);
  if (made.queue.jobs[made.queue.target].told.partitions == 0)
    return Fail(ErrorCode::kUnavailable, "no promise: its partition is not known");
  return made;
}

}  // namespace overcap::forecast
