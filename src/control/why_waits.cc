// SPDX-License-Identifier: Apache-2.0
#include "control/why_waits.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "model/picture_fit.h"
#include "model/picture_use.h"

namespace overcap {
namespace {

constexpr size_t kMostNamed = 8;

std::vector<std::string> PartitionsOf(const PictureJob& job) {
  return Split(job.partition, ',');
}

bool SharePartition(const PictureJob& a, const PictureJob& b) {
  const std::vector<std::string> theirs = PartitionsOf(b);
  for (const std::string& name : PartitionsOf(a)) {
    if (std::find(theirs.begin(), theirs.end(), name) != theirs.end()) return true;
  }
  return false;
}

bool GoesFirst(const PictureJob& other, const PictureJob& job) {
  if (other.priority != job.priority) return other.priority > job.priority;
  return other.submitted_us < job.submitted_us;
}

int CountThing(const PictureJob& job, CapThing thing) {
  switch (thing) {
    case CapThing::kGpus:
      return job.gpus;
    case CapThing::kCpus:
      return job.cpus;
    default:
      return 1;
  }
}

std::string ThingName(CapThing thing) {
  return thing == CapThing::kGpus ? "GPUs" : thing == CapThing::kCpus ? "CPUs" : "jobs";
}

// The QOS that limits a job: of its partitions, or its own.
const PictureQos* LimitingQos(const ClusterPicture& picture, const PictureJob& job,
                              const std::function<bool(const PictureQos&)>& limits) {
  for (const std::string& name : PartitionsOf(job)) {
    const PicturePartition* partition = FindPartition(picture, name);
    const PictureQos* qos = partition == nullptr ? nullptr : FindQos(picture, partition->qos);
    if (qos != nullptr && limits(*qos)) return qos;
  }
  const PictureQos* own = FindQos(picture, job.qos);
  return own != nullptr && limits(*own) ? own : nullptr;
}

bool IsUnder(const ClusterPicture& picture, const PictureJob& job, const PictureQos& qos) {
  if (job.qos == qos.name) return true;
  const PicturePartition* partition = FindPartition(picture, job.partition);
  return partition != nullptr && partition->qos == qos.name;
}

WhyCap CountCap(const ClusterPicture& picture, std::string name, CapThing thing, int cap,
                const std::function<bool(const PictureJob&)>& counts) {
  WhyCap found{std::move(name), ThingName(thing), cap, 0, {}};
  std::map<std::string, int> users;
  for (const PictureJob& job : picture.jobs) {
    if (!HoldsNodes(job) || !counts(job)) continue;
    const int count = CountThing(job, thing);
    users[job.user] += count;
    found.used += count;
  }
  for (const auto& [user, count] : users) {
    if (count > 0) found.by.emplace_back(user, count);
  }
  std::stable_sort(found.by.begin(), found.by.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return found;
}

std::optional<int> LabCap(const PictureLab& lab, CapThing thing) {
  return thing == CapThing::kGpus ? lab.gpu_cap : thing == CapThing::kCpus ? lab.cpu_cap : lab.max_jobs;
}

std::optional<WhyCap> CapOfLab(const ClusterPicture& picture, const PictureJob& job) {
  const PictureLab* lab = FindLab(picture, job.lab);
  for (int depth = 0; depth < 100 && lab != nullptr && !LabCap(*lab, job.cap_thing); ++depth) {
    lab = lab->parent.empty() ? nullptr : FindLab(picture, lab->parent);
  }
  if (lab == nullptr || !LabCap(*lab, job.cap_thing)) return std::nullopt;
  return CountCap(
      picture, StrCat("lab '", lab->name, "'"), job.cap_thing, *LabCap(*lab, job.cap_thing),
      [&](const PictureJob& other) { return !other.overcap && LabIsWithin(picture, other.lab, lab->name); });
}

std::optional<int> QosCap(const PictureQos& qos, CapOf of, CapThing thing) {
  if (thing == CapThing::kJobs) return of == CapOf::kUserInQos ? qos.jobs_per_user : qos.max_jobs;
  if (thing != CapThing::kGpus) return std::nullopt;
  return of == CapOf::kUserInQos  ? qos.gpus_per_user
         : of == CapOf::kLabInQos ? qos.gpus_per_lab
                                  : qos.gpu_cap;
}

std::optional<WhyCap> CapOfQos(const ClusterPicture& picture, const PictureJob& job) {
  const auto cap_of = [&](const PictureQos& qos) { return QosCap(qos, job.cap_of, job.cap_thing); };
  const PictureQos* qos =
      LimitingQos(picture, job, [&](const PictureQos& one) { return cap_of(one).has_value(); });
  if (qos == nullptr) return std::nullopt;
  const std::string who =
      job.cap_of == CapOf::kUserInQos  ? StrCat("user '", job.user, "' in QOS '", qos->name, "'")
      : job.cap_of == CapOf::kLabInQos ? StrCat("lab '", job.lab, "' in QOS '", qos->name, "'")
                                       : StrCat("QOS '", qos->name, "'");
  return CountCap(picture, who, job.cap_thing, *cap_of(*qos), [&](const PictureJob& other) {
    return IsUnder(picture, other, *qos) && (job.cap_of != CapOf::kUserInQos || other.user == job.user) &&
           (job.cap_of != CapOf::kLabInQos || other.lab == job.lab);
  });
}

void ExplainCap(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  answer->cap = CapBehind(picture, job);
  if (!answer->cap) return;
  const WhyCap& cap = *answer->cap;
  std::vector<std::string> shares;
  for (const auto& [user, count] : cap.by) {
    if (shares.size() == kMostNamed) break;
    shares.push_back(StrCat(user, " ", count));
  }
  answer->facts.push_back(StrCat(cap.name, " may have ", cap.cap, " ", cap.thing, " at a time; ", cap.used,
                                 cap.used == 1 ? " is in use" : " are in use",
                                 shares.empty() ? "" : StrCat(": ", Join(shares, ", "))));
  const int asked = CountThing(job, job.cap_thing);
  if (asked > cap.cap) {
    answer->facts.push_back(StrCat("this job asks for ", asked, ", so it can never start"));
  } else {
    answer->facts.push_back(StrCat("this job asks for ", asked, "; ", std::max(0, cap.used + asked - cap.cap),
                                   " must become free"));
  }
}

std::string WhatOf(const PictureNeed& need) {
  return need.gpu_type.empty() ? "GPUs" : StrCat("GPUs of type '", need.gpu_type, "'");
}

std::string CountWhat(int count, const PictureNeed& need) {
  return StrCat(CountOf(count, "GPU"), need.gpu_type.empty() ? "" : StrCat(" of type '", need.gpu_type, "'"));
}

void AddRoom(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  const PictureNeed need = NeedOf(job);
  for (const std::string& partition : PartitionsOf(job)) {
    const NodeFit fit = CountFits(picture, partition, need);
    if (need.gpus > 0) {
      const GpuRoom room = GpuRoomOf(picture, partition, need.gpu_type);
      answer->facts.push_back(
          StrCat("partition '", partition, "': ", room.free, " of ", room.total, " ", WhatOf(need), " free",
                 room.away > 0 ? StrCat(", ", room.away, " on nodes that take no jobs") : ""));
    }
    const std::string share = need.gpus > 0
                                  ? StrCat(CountOf(need.gpus, "GPU"), " and ", CountOf(need.cpus, "CPU"))
                                  : CountOf(need.cpus, "CPU");
    answer->facts.push_back(StrCat("it needs ", CountOf(need.nodes, "node"), " with ", share, " free; ",
                                   fit.now, fit.now == 1 ? " has that now, " : " have that now, ", fit.up,
                                   " could"));
  }
}

void AddAhead(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  const Ahead ahead = JobsAhead(picture, job);
  answer->jobs_ahead = ahead.jobs, answer->gpus_ahead = ahead.gpus;
  if (ahead.jobs == 0) return;
  answer->facts.push_back(StrCat(CountOf(ahead.jobs, "job"), ahead.jobs == 1 ? " is" : " are", " ahead in '",
                                 job.partition, "'",
                                 ahead.gpus > 0 ? StrCat(", asking for ", CountOf(ahead.gpus, "GPU")) : ""));
}

void AddNodesAway(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  const PictureNeed need = NeedOf(job);
  size_t named = 0, all = 0;
  for (const PictureNode& node : picture.nodes) {
    if (node.usable || !FeaturesMatch(node.features, need.features)) continue;
    if (need.gpus > 0 && GpusOfType(node, need.gpu_type) == 0) continue;
    const auto partitions = PartitionsOf(job);
    const bool ours = std::any_of(partitions.begin(), partitions.end(), [&](const std::string& name) {
      return std::find(node.partitions.begin(), node.partitions.end(), name) != node.partitions.end();
    });
    if (!ours || ++all > kMostNamed) continue;
    ++named;
    answer->facts.push_back(StrCat("node '", node.name, "' is ", node.state,
                                   node.reason.empty() ? "" : StrCat(": ", ToUtf8(node.reason))));
  }
  if (all > named) answer->facts.push_back(StrCat("and ", all - named, " more nodes take no jobs"));
}

// "afterok:5(unfulfilled),afterany:7_2(failed)".
void ExplainDependency(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  size_t named = 0;
  std::string text = job.dependency;
  std::replace(text.begin(), text.end(), '?', ',');
  for (const std::string& entry : Split(text, ',')) {
    const size_t colon = entry.find(':');
    if (colon == std::string::npos || named++ == kMostNamed) continue;
    const std::string how = entry.substr(0, colon);
    const std::string native = entry.substr(colon + 1, entry.find_first_of("(+_:", colon + 1) - colon - 1);
    const PictureJob* other = nullptr;
    for (const PictureJob& one : picture.jobs) {
      if (one.native_id == native || one.native_id.rfind(native + "_", 0) == 0) other = &one;
    }
    const std::string what = how == "afterok"      ? "must succeed"
                             : how == "afternotok" ? "must fail"
                             : how == "after"      ? "must start"
                                                   : "must end";
    const bool failed = entry.find("(failed)") != std::string::npos;
    std::string line =
        StrCat("job ", other != nullptr && !other->id.empty() ? other->id : native, " ", what, " first");
    if (failed) {
      line += ", and it did not";
    } else if (other != nullptr) {
      line += StrCat("; it is ", HoldsNodes(*other) ? "running" : "waiting", ", of ", other->user);
      if (!other->reason_text.empty() && !HoldsNodes(*other)) line += StrCat(" (", other->reason_text, ")");
    }
    answer->facts.push_back(std::move(line));
  }
}

void AddTimeLimit(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  for (const std::string& name : PartitionsOf(job)) {
    const PicturePartition* partition = FindPartition(picture, name);
    if (partition == nullptr) continue;
    if (partition->time_limit_s > 0 && job.time_limit_s > partition->time_limit_s) {
      answer->facts.push_back(StrCat("partition '", name, "' allows at most ",
                                     FormatDuration(partition->time_limit_s), ", it asks for ",
                                     FormatDuration(job.time_limit_s)));
    }
    if (!partition->up) answer->facts.push_back(StrCat("partition '", name, "' is down"));
  }
}

// What can never be had.
void AddImpossible(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  const PictureNeed need = NeedOf(job);
  for (const std::string& partition : PartitionsOf(job)) {
    const NodeFit fit = CountFits(picture, partition, need);
    if (fit.ever >= need.nodes) continue;
    PictureNeed bare = need;
    bare.features.clear();
    const std::string with = need.features.empty() || CountFits(picture, partition, bare).ever < need.nodes
                                 ? ""
                                 : StrCat(" and the features '", need.features, "'");
    answer->facts.push_back(StrCat("it needs ", CountOf(need.nodes, "node"), " with ",
                                   CountWhat(need.gpus, need), ", ", CountOf(need.cpus, "CPU"), with,
                                   "; partition '", partition, "' has ", fit.ever));
  }
}

}  // namespace

Ahead JobsAhead(const ClusterPicture& picture, const PictureJob& job) {
  Ahead ahead;
  for (const PictureJob& other : picture.jobs) {
    const bool in_line = other.wait == WaitKind::kTurn || other.wait == WaitKind::kNone;
    if (HoldsNodes(other) || !in_line || other.native_id == job.native_id) continue;
    if (!SharePartition(other, job) || !GoesFirst(other, job)) continue;
    ahead.jobs += other.tasks;
    ahead.gpus += other.gpus * other.tasks;
  }
  return ahead;
}

std::optional<WhyCap> CapBehind(const ClusterPicture& picture, const PictureJob& job) {
  if (job.cap_of == CapOf::kNone || job.cap_thing == CapThing::kOther) return std::nullopt;
  return job.cap_of == CapOf::kLab ? CapOfLab(picture, job) : CapOfQos(picture, job);
}

void ExplainWait(const ClusterPicture& picture, const PictureJob& job, const std::string& id,
                 WhyAnswer* answer) {
  answer->reason = job.reason;
  answer->text = job.reason_text.empty() ? "the scheduler has not looked at it yet" : job.reason_text;
  switch (job.wait) {
    case WaitKind::kLimit:
      ExplainCap(picture, job, answer);
      break;
    case WaitKind::kNone:
    case WaitKind::kTurn:
      AddAhead(picture, job, answer);
      AddRoom(picture, job, answer);
      break;
    case WaitKind::kDependency:
      ExplainDependency(picture, job, answer);
      break;
    case WaitKind::kHeld:
      answer->sooner.push_back(job.reason.find("Admin") != std::string::npos
                                   ? "ask an administrator to release it"
                                   : StrCat("overcap release ", id));
      break;
    case WaitKind::kNodes:
      AddNodesAway(picture, job, answer);
      AddAhead(picture, job, answer);
      AddRoom(picture, job, answer);
      break;
    case WaitKind::kNever:
      answer->text += ": it never starts as it is";
      ExplainCap(picture, job, answer);
      ExplainDependency(picture, job, answer);
      AddImpossible(picture, job, answer);
      break;
    case WaitKind::kTime:
    case WaitKind::kUnknown:
      break;
  }
  AddTimeLimit(picture, job, answer);
}

}  // namespace overcap
