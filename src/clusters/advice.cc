// SPDX-License-Identifier: Apache-2.0
#include "clusters/advice.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "model/picture_fit.h"
#include "model/picture_use.h"

namespace overcap {
namespace {

bool Contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// What is free changes all the time: older pictures say nothing about it.
constexpr int64_t kFreeKnownS = 300;
constexpr int64_t kNowS = 15;  // what is no older is told as being so now

bool FreeKnown(int64_t age_s) {
  return age_s < kFreeKnownS;
}

std::vector<std::string> LabsOf(const ClusterPicture& picture, const std::string& user) {
  std::vector<std::string> labs;
  for (const PictureLab& lab : picture.labs) {
    if (Contains(lab.users, user)) labs.push_back(lab.name);
  }
  return labs;
}

class Adviser {
 public:
  Adviser(const ClusterPicture& picture, const AdviceRequest& request)
      : picture_(picture), spec_(request.spec), user_(request.user), age_s_(request.age_s) {
    const Resources& asked = spec_.resources;
    need_.nodes = std::max(1, asked.nodes);
    need_.gpus = (asked.gpus + need_.nodes - 1) / need_.nodes;
    need_.cpus = asked.cpus, need_.mem_bytes = asked.mem_bytes;
    need_.gpu_type = asked.gpu_type;
    lab_ = spec_.placement.account.empty() ? DefaultLab(picture, user_) : spec_.placement.account;
    for (const std::string& name : spec_.placement.partitions) TakePartition(name);
    for (const PicturePartition& one : picture.partitions) {
      if (spec_.placement.partitions.empty() && one.is_default) asked_.push_back(&one);
    }
  }

  std::vector<std::string> Advise() {
    if (picture_.partitions.empty() && picture_.nodes.empty()) return {};
    AboutAccount();
    AboutTime();
    if (AboutType() && AboutSize()) {
      AboutCpus();
      AboutStart();
    }
    return std::move(lines_);
  }

 private:
  void Say(std::string line) { lines_.push_back(std::move(line)); }

  void TakePartition(const std::string& name) {
    const PicturePartition* found = FindPartition(picture_, name);
    if (found != nullptr) {
      asked_.push_back(found);
    } else if (!picture_.partitions.empty()) {
      std::vector<std::string> names;
      for (const PicturePartition& one : picture_.partitions) names.push_back(one.name);
      Say(StrCat("there is no partition '", name, "' here; there is: ", Join(names, ", ")));
    }
  }

  void AboutAccount() {
    const std::string& account = spec_.placement.account;
    const std::vector<std::string> labs = LabsOf(picture_, user_);
    // Without any membership the cluster does not tell who is in which.
    if (!account.empty() && !labs.empty() && !Contains(labs, account)) {
      Say(StrCat("you are not in account '", account, "'; yours: ", Join(labs, ", ")));
    }
    for (const PicturePartition* one : asked_) {
      if (!lab_.empty() && !Takes(*one)) {
        Say(StrCat("partition '", one->name, "' takes no jobs of account '", lab_, "'"));
      }
      if (!one->up && FreeKnown(age_s_)) {
        Say(StrCat("partition '", one->name,
                   age_s_ > kNowS ? StrCat("' was down ", FormatDuration(age_s_), " ago")
                                  : std::string("' is down: nothing starts there now")));
      }
    }
  }

  bool Takes(const PicturePartition& partition) const {
    if (Contains(partition.denied_labs, lab_)) return false;
    return partition.allowed_labs.empty() || Contains(partition.allowed_labs, lab_);
  }

  bool LongEnough(const PicturePartition& one) const {
    return one.time_limit_s == 0 || spec_.resources.time_seconds <= one.time_limit_s;
  }

  void AboutTime() {
    for (const PicturePartition* one : asked_) {
      if (LongEnough(*one)) continue;
      std::string line =
          StrCat("partition '", one->name, "' allows at most ", FormatDuration(one->time_limit_s),
                 ", you ask for ", FormatDuration(spec_.resources.time_seconds));
      for (const PicturePartition& other : picture_.partitions) {
        if (!other.up || other.overcap || !LongEnough(other) || !Takes(other)) continue;
        line += StrCat("; partition '", other.name, "' allows ",
                       other.time_limit_s == 0 ? "any time" : FormatDuration(other.time_limit_s));
        break;
      }
      Say(std::move(line));
    }
  }

  // Of the nodes that the job may have.
  template <typename Each>
  void ForEachNode(Each each) const {
    for (const PictureNode& node : picture_.nodes) {
      const bool ours =
          asked_.empty() || std::any_of(asked_.begin(), asked_.end(), [&](const PicturePartition* one) {
            return Contains(node.partitions, one->name);
          });
      if (ours) each(node);
    }
  }

  bool AboutType() {
    if (need_.gpus == 0 || need_.gpu_type.empty()) return true;
    int found = 0;
    std::map<std::string, int> types;
    ForEachNode([&](const PictureNode& node) {
      found += GpusOfType(node, need_.gpu_type);
      for (const TypedGpus& kind : node.gpus) types[kind.type] += kind.count;
    });
    if (found > 0) return true;
    std::vector<std::string> known;
    for (const auto& [type, count] : types) {
      if (!type.empty()) known.push_back(StrCat(type, " (", count, ")"));
    }
    Say(StrCat("no node has a GPU of type '", need_.gpu_type, "'",
               known.empty() ? "" : "; there is: ", Join(known, ", ")));
    return false;
  }

  bool AboutSize() {
    int most_gpus = 0, most_cpus = 0;
    ForEachNode([&](const PictureNode& node) {
      const int gpus = GpusOfType(node, need_.gpu_type);
      most_gpus = std::max(most_gpus, gpus);
      if (gpus > 0 || need_.gpus == 0) most_cpus = std::max(most_cpus, node.cpus);
    });
    if (need_.gpus > most_gpus) {
      const int nodes = most_gpus > 0 ? (spec_.resources.gpus + most_gpus - 1) / most_gpus : 0;
      Say(StrCat("asks for ", CountOf(need_.gpus, "GPU"), " on one node; the biggest has ", most_gpus,
                 nodes > 1 ? StrCat(": --nodes ", nodes, " would do") : ""));
      return false;
    }
    if (need_.cpus > most_cpus && most_cpus > 0) {
      Say(StrCat("asks for ", CountOf(need_.cpus, "CPU"), " on one node; the biggest has ", most_cpus));
      return false;
    }
    return true;
  }

  // How many GPUs of an empty node nobody could use beside this job, at the node's own CPUs per GPU.
  int Wasted(const PictureNode& node) const {
    const int gpus = GpuCountOf(node.gpus), ratio = node.cpus / gpus;
    const int usable = ratio == 0 ? 0 : std::max(0, node.cpus - need_.cpus) / ratio;
    return std::max(0, gpus - need_.gpus - usable);
  }

  void AboutCpus() {
    if (need_.gpus == 0 || need_.cpus == 0) return;
    const PictureNode* best = nullptr;  // on which it does the least harm
    ForEachNode([&](const PictureNode& node) {
      if (GpusOfType(node, need_.gpu_type) < need_.gpus || node.cpus < need_.cpus) return;
      if (best == nullptr || Wasted(node) < Wasted(*best)) best = &node;
    });
    if (best == nullptr || Wasted(*best) == 0) return;
    const int ratio = best->cpus / GpuCountOf(best->gpus), asked = need_.cpus / need_.gpus;
    Say(StrCat(ratio, " CPUs per GPU here (", best->name, "); you ask ", asked, ": ",
               CountOf(Wasted(*best), "GPU"), " of this node could not be used"));
  }

  // Whether the lab's cap keeps it from starting outside the overcap partitions.
  bool Capped(std::string* why) const {
    const PictureLab* lab = lab_.empty() ? nullptr : CappedLab(picture_, lab_);
    if (lab == nullptr || spec_.resources.gpus == 0) return false;
    const bool yields =
        !asked_.empty() &&
        std::all_of(asked_.begin(), asked_.end(), [](const PicturePartition* one) { return one->yields; });
    const int used = GpusInTheWay(LabUse(picture_, lab->name), yields);
    if (used + spec_.resources.gpus <= *lab->gpu_cap) return false;
    *why = spec_.resources.gpus > *lab->gpu_cap ? StrCat("asks for ", CountOf(spec_.resources.gpus, "GPU"),
                                                         ", lab '", lab->name, "' may have ", *lab->gpu_cap)
                                                : StrCat("lab '", lab->name, "' has ", used, " of its ",
                                                         CountOf(*lab->gpu_cap, "GPU"), " in use");
    return true;
  }

  bool TakesQos(const PicturePartition& one) const {
    const std::string& qos = spec_.placement.qos;
    return qos.empty() || one.allowed_qos.empty() || Contains(one.allowed_qos, qos);
  }

  bool StartsNow(const PicturePartition& one, bool capped) const {
    return one.up && (!capped || one.overcap) && LongEnough(one) && Takes(one) && TakesQos(one) &&
           CountFits(picture_, one.name, need_).now >= need_.nodes;
  }

  void AboutStart() {
    if (!FreeKnown(age_s_) || asked_.empty()) return;
    std::string why;
    const bool capped = Capped(&why);
    for (const PicturePartition* one : asked_) {
      if (StartsNow(*one, capped)) return;
    }
    const PicturePartition* better = nullptr;
    for (const PicturePartition& one : picture_.partitions) {
      if (!StartsNow(one, capped)) continue;
      if (better == nullptr || (better->preemptable && !one.preemptable)) better = &one;
    }
    if (better == nullptr) {
      if (capped) Say(StrCat(why, ": the job will wait"));
      return;
    }
    // Alone: a job has one account and one QOS, which another partition of a list may not take.
    Say(StrCat(why.empty() ? "nothing is free for it now" : why, "; partition '", better->name,
               "' would start it now: -p ", better->name,
               better->preemptable ? " (jobs there may be preempted: --requeue)" : ""));
  }

  const ClusterPicture& picture_;
  const JobSpec& spec_;
  const std::string& user_;
  int64_t age_s_;
  PictureNeed need_;
  std::string lab_;
  std::vector<const PicturePartition*> asked_;
  std::vector<std::string> lines_;
};

}  // namespace

bool AdviceNeedsJobs(const ClusterPicture& picture, const AdviceRequest& request) {
  const std::string& account = request.spec.placement.account;
  const std::string lab = account.empty() ? DefaultLab(picture, request.user) : account;
  return FreeKnown(request.age_s) && request.spec.resources.gpus > 0 && CappedLab(picture, lab) != nullptr;
}

std::vector<std::string> AdviceFor(const ClusterPicture& picture, const AdviceRequest& request) {
  return Adviser(picture, request).Advise();
}

}  // namespace overcap
