// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_picture.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "clusters/slurm/lab_accounts.h"
#include "clusters/slurm/pending_reason.h"
#include "clusters/slurm/slurm_time.h"
#include "model/host_list.h"
#include "model/job_spec.h"

namespace overcap {
namespace {

bool Contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

WaitKind WaitOf(ReasonKind kind) {
  switch (kind) {
    case ReasonKind::kTurn:
      return WaitKind::kTurn;
    case ReasonKind::kTime:
      return WaitKind::kTime;
    case ReasonKind::kDependency:
      return WaitKind::kDependency;
    case ReasonKind::kHeld:
      return WaitKind::kHeld;
    case ReasonKind::kLimit:
      return WaitKind::kLimit;
    case ReasonKind::kNodes:
      return WaitKind::kNodes;
    case ReasonKind::kNever:
      return WaitKind::kNever;
    case ReasonKind::kUnknown:
      return WaitKind::kUnknown;
    case ReasonKind::kNone:
    case ReasonKind::kEnded:
      break;
  }
  return WaitKind::kNone;
}

PictureNode MakeNode(const SlurmNode& from) {
  PictureNode node;
  node.name = from.name;
  node.state = from.raw_state;
  node.usable = from.state.takes_jobs;
  node.down = from.state.down || (!from.state.responding && !from.state.asleep);
  node.reason = from.reason;
  node.partitions = from.partitions;
  node.features = from.features;
  for (const SlurmNodeGpus& gpus : from.gpus) {
    node.gpus.push_back({gpus.type, gpus.total});
    node.gpus_used.push_back({gpus.type, gpus.used});
  }
  node.cpus = from.cpus, node.cpus_used = from.cpus_used;
  node.load = from.load;
  node.mem_bytes = from.mem_bytes, node.mem_used = from.mem_used;
  return node;
}

std::vector<std::string> LabsOf(const std::vector<std::string>& accounts, const LabAccounts& of) {
  std::vector<std::string> labs;
  for (const std::string& account : accounts) labs.push_back(of.LabOf(account));
  return labs;
}

PicturePartition MakePartition(const SlurmPartition& from, const LabAccounts& accounts) {
  PicturePartition partition;
  partition.name = from.name;
  partition.is_default = from.is_default, partition.up = from.up;
  partition.time_limit_s = from.max_time_s;
  partition.priority_tier = from.priority_tier;
  partition.grace_s = from.grace_s;
  partition.qos = from.qos;
  partition.allowed_labs = LabsOf(from.allowed_accounts, accounts);
  partition.denied_labs = LabsOf(from.denied_accounts, accounts);
  partition.allowed_qos = from.allowed_qos;
  return partition;
}

// Whether jobs of every QOS that the partition lets in may be stopped for jobs of another one.
bool GivesWayByQos(const SlurmFacts& facts, const SlurmPartition& of) {
  const auto preempted = [&](const std::string& name) {
    return std::any_of(facts.qos.begin(), facts.qos.end(),
                       [&](const SlurmQos& qos) { return Contains(qos.preempts, name); });
  };
  return (!of.qos.empty() && preempted(of.qos)) ||
         (!of.allowed_qos.empty() && std::all_of(of.allowed_qos.begin(), of.allowed_qos.end(), preempted));
}

// Slurm stops jobs either for those of a partition with a higher tier or for those of another QOS.
void MarkPreemptable(const SlurmFacts& facts, ClusterPicture* picture) {
  int highest = 0;
  for (const SlurmPartition& one : facts.partitions) highest = std::max(highest, one.priority_tier);
  for (size_t i = 0; i < facts.partitions.size(); ++i) {
    const SlurmPartition& from = facts.partitions[i];
    const bool by_tier = from.preempt_mode.find("REQUEUE") != std::string::npos ||
                         from.preempt_mode.find("CANCEL") != std::string::npos;
    picture->partitions[i].preemptable =
        (facts.preempt_type != "preempt/qos" && by_tier && from.priority_tier < highest) ||
        (facts.preempt_type != "preempt/partition_prio" && GivesWayByQos(facts, from));
  }
}

// A lab's cap may be that of a QOS which is called as its account (`overcap policy apply` makes it so): only
// jobs of that QOS, and of partitions that have it, are held to it. Where the account has it as well, its
// other jobs get what is left.
const SlurmQos* CappingQos(const SlurmFacts& facts, std::string_view account) {
  const auto found = std::find_if(facts.qos.begin(), facts.qos.end(),
                                  [&](const SlurmQos& qos) { return qos.name == account && qos.cap.gpus; });
  return found == facts.qos.end() ? nullptr : &*found;
}

// Where labs have an account for what does not count: the partitions that take those alone. One that lets in
// no QOS with a lab's cap has jobs that yield.
bool MarkByAccounts(const SlurmFacts& facts, const LabAccounts& accounts, ClusterPicture* picture) {
  if (accounts.empty()) return false;
  for (size_t i = 0; i < facts.partitions.size(); ++i) {
    const SlurmPartition& from = facts.partitions[i];
    const auto is_overcap = [&](const std::string& account) { return accounts.IsOvercap(account); };
    const auto has_cap = [&](const std::string& qos) { return CappingQos(facts, qos) != nullptr; };
    PicturePartition& made = picture->partitions[i];
    made.overcap = !from.allowed_accounts.empty() &&
                   std::all_of(from.allowed_accounts.begin(), from.allowed_accounts.end(), is_overcap);
    made.yields = !made.overcap && !from.allowed_qos.empty() &&
                  std::none_of(from.allowed_qos.begin(), from.allowed_qos.end(), has_cap);
  }
  return true;
}

// As the configuration says; else by their accounts; else by name; else all where jobs may be preempted.
void MarkOvercap(const SlurmFacts& facts, const LabAccounts& accounts, ClusterPicture* picture) {
  const std::vector<std::string>& configured = facts.overcap_partitions;
  if (configured.empty() && MarkByAccounts(facts, accounts, picture)) return;
  const auto named = [](const PicturePartition& one) {
    return one.name.find("overcap") != std::string::npos;
  };
  const bool by_name = std::any_of(picture->partitions.begin(), picture->partitions.end(), named);
  for (PicturePartition& one : picture->partitions) {
    one.overcap = !configured.empty() ? Contains(configured, one.name)
                  : by_name           ? named(one)
                                      : one.preemptable;
    // Where only the QOS of a job decides, a partition alone does not tell.
    one.preemptable = one.preemptable || (one.overcap && facts.preempt_type == "preempt/qos");
  }
}

void AddPartitions(const SlurmFacts& facts, const LabAccounts& accounts, ClusterPicture* picture) {
  for (const SlurmPartition& one : facts.partitions) {
    PicturePartition& made = picture->partitions.emplace_back(MakePartition(one, accounts));
    // sinfo is asked more often than scontrol.
    const auto told = facts.nodes.partition_up.find(one.name);
    if (told != facts.nodes.partition_up.end()) made.up = told->second;
  }
  MarkPreemptable(facts, picture);
  MarkOvercap(facts, accounts, picture);
  std::unordered_map<std::string_view, PicturePartition*> by_name;
  for (PicturePartition& one : picture->partitions) by_name[one.name] = &one;
  for (const PictureNode& node : picture->nodes) {
    const int total = GpuCountOf(node.gpus);
    const int free = node.usable ? std::max(0, total - GpuCountOf(node.gpus_used)) : 0;
    for (const std::string& name : node.partitions) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) continue;
      found->second->gpus_total += total, found->second->gpus_free += free;
      found->second->nodes += 1, found->second->nodes_usable += node.usable ? 1 : 0;
    }
  }
}

void AddLabs(const SlurmFacts& facts, const LabAccounts& accounts, ClusterPicture* picture) {
  std::unordered_map<std::string_view, size_t> places;
  for (const SlurmAssociation& one : facts.associations) {
    if (!one.user.empty() || one.account.empty() || accounts.IsOvercap(one.account) ||
        accounts.IsParent(one.account) || !places.try_emplace(one.account, picture->labs.size()).second)
      continue;
    PictureLab lab;
    lab.name = one.account, lab.parent = accounts.AboveLab(one.parent);
    const SlurmQos* qos = one.cap.gpus ? nullptr : CappingQos(facts, one.account);
    const SlurmCap& cap = qos != nullptr ? qos->cap : one.cap;
    lab.gpu_cap = cap.gpus, lab.cpu_cap = cap.cpus, lab.max_jobs = one.max_jobs;
    for (const GpuCount& kind : cap.gpu_types) lab.gpu_caps.push_back({kind.type, kind.count});
    picture->labs.push_back(std::move(lab));
  }
  for (const SlurmAssociation& one : facts.associations) {
    const auto found = places.find(accounts.LabOf(one.account));
    if (one.user.empty() || found == places.end()) continue;
    std::vector<std::string>& users = picture->labs[found->second].users;
    if (!Contains(users, one.user)) users.push_back(one.user);
  }
  for (const SlurmUser& user : facts.users) {
    const auto found = places.find(accounts.LabOf(user.default_account));
    if (found != places.end()) picture->labs[found->second].default_of.push_back(user.name);
  }
}

void AddQos(const SlurmFacts& facts, ClusterPicture* picture) {
  for (const SlurmQos& from : facts.qos) {
    PictureQos qos;
    qos.name = from.name, qos.preempts = from.preempts;
    qos.gpu_cap = from.cap.gpus, qos.gpus_per_user = from.per_user.gpus,
    qos.gpus_per_lab = from.per_account.gpus;
    qos.max_jobs = from.max_jobs, qos.jobs_per_user = from.jobs_per_user;
    qos.time_limit_s = from.max_time_s;
    qos.grace_s = from.grace_s, qos.exempt_s = from.exempt_s;
    picture->qos.push_back(std::move(qos));
  }
}

int WaitingTasks(const SqueueJob& job) {
  if (job.array_tasks.empty()) return 1;
  const auto array = ParseArraySpec(job.array_tasks);
  return array ? std::max(1, array->Count()) : 1;
}

// Where the types are not told, the nodes tell them if they have GPUs of one type only.
std::vector<TypedGpus> TypesOf(const SqueueJob& job, const std::vector<const PictureNode*>& nodes) {
  std::vector<TypedGpus> types;
  for (const GpuCount& kind : job.tres.gpu_types) types.push_back({kind.type, kind.count});
  if (!types.empty() || job.tres.gpus == 0 || nodes.empty()) return types;
  std::string only;
  for (const PictureNode* node : nodes) {
    if (node->gpus.size() != 1 || (!only.empty() && node->gpus[0].type != only)) return {};
    only = node->gpus[0].type;
  }
  if (!only.empty()) types.push_back({only, job.tres.gpus});
  return types;
}

void TakeReason(const SqueueJob& from, PictureJob* job) {
  if (!job->nodes.empty()) return;
  const PendingReason reason = ReadPendingReason(from.raw_reason);
  job->reason = reason.word;
  job->reason_text = reason.text;
  job->wait = WaitOf(reason.kind);
  if (job->state == JobState::kHeld && job->wait == WaitKind::kNone) job->wait = WaitKind::kHeld;
  job->cap_of = CapOfReason(reason.word);
  if (job->cap_of != CapOf::kNone) job->cap_thing = CapThingOfReason(reason.word);
}

class JobMaker {
 public:
  JobMaker(const SlurmFacts& facts, const LabAccounts& accounts, ClusterPicture* picture)
      : facts_(facts), accounts_(accounts), picture_(picture) {
    for (PictureNode& node : picture->nodes) nodes_[node.name] = &node;
    for (const PicturePartition& one : picture->partitions) {
      if (one.overcap) overcap_partitions_.insert(one.name);
    }
    for (const SlurmAssociation& account : facts.associations) {
      if (account.user.empty() && CappingQos(facts, account.account) != nullptr)
        (account.cap.gpus ? labs_by_both_ : labs_by_qos_).insert(account.account);
    }
    if (!overcap_partitions_.empty()) return;
    for (const SlurmQos& qos : facts.qos) overcap_qos_.insert(qos.preempts.begin(), qos.preempts.end());
  }

  void Add(const SqueueJob& from) {
    const SlurmState state = ReadSlurmState(from.raw_state, from.raw_reason);
    if (state.ended) return;
    PictureJob job;
    job.id = IdOfSlurmComment(from.comment);
    job.native_id = NativeSlurmId(from);
    job.user = from.user, job.lab = accounts_.LabOf(from.account), job.partition = from.partition,
    job.qos = from.qos;
    job.name = from.name;
    job.state = state.state, job.raw_state = state.word;
    job.gpus = from.tres.gpus, job.cpus = std::max(from.tres.cpus, from.cpus), job.node_count = from.nodes;
    job.features = from.features;
    job.submitted_us = from.submit_us;
    job.priority = from.priority, job.dependency = from.dependency;
    job.time_limit_s = from.time_limit_s && *from.time_limit_s != kSlurmUnlimited ? *from.time_limit_s : 0;
    const std::vector<const PictureNode*> at = TakeNodes(from, &job);
    job.gpu_types = TypesOf(from, at);
    (job.nodes.empty() ? job.estimated_start_us : job.started_us) = from.start_us;
    if (job.nodes.empty()) job.tasks = WaitingTasks(from);
    job.overcap = accounts_.IsOvercap(from.account) || IsOvercap(job);
    job.yields = !job.overcap && Yields(job);
    TakeReason(from, &job);
    picture_->jobs.push_back(std::move(job));
  }

 private:
  std::vector<const PictureNode*> TakeNodes(const SqueueJob& from, PictureJob* job) {
    std::vector<const PictureNode*> at;
    if (from.node_list.empty()) return at;
    auto names = ExpandHostList(from.node_list);
    job->nodes = names ? std::move(*names) : std::vector<std::string>{from.node_list};
    for (const std::string& name : job->nodes) {
      const auto found = nodes_.find(name);
      if (found == nodes_.end()) continue;
      if (!Contains(found->second->users, from.user)) found->second->users.push_back(from.user);
      at.push_back(found->second);
    }
    return at;
  }

  // A job that waits for several partitions is only over the cap when all of them are.
  bool IsOvercap(const PictureJob& job) const {
    if (labs_by_both_.contains(job.lab)) return false;
    const std::vector<std::string> partitions = Split(job.partition, ',');
    if (labs_by_qos_.contains(job.lab)) return job.qos != job.lab && !UnderQos(partitions, job.lab);
    return overcap_qos_.contains(job.qos) ||
           std::all_of(partitions.begin(), partitions.end(),
                       [&](const std::string& name) { return overcap_partitions_.contains(name); });
  }

  // Whether jobs of one of the partitions are held to the limits of the QOS, whatever their own is.
  bool UnderQos(const std::vector<std::string>& partitions, std::string_view qos) const {
    return std::any_of(partitions.begin(), partitions.end(), [&](const std::string& name) {
      const PicturePartition* partition = FindPartition(*picture_, name);
      return partition != nullptr && partition->qos == qos;
    });
  }

  bool Yields(const PictureJob& job) const {
    if (!labs_by_both_.contains(job.lab)) return false;
    const SlurmQos* own = CappingQos(facts_, job.lab);
    return own != nullptr && Contains(own->preempts, job.qos);
  }

  const SlurmFacts& facts_;
  const LabAccounts& accounts_;
  ClusterPicture* picture_;
  std::unordered_map<std::string_view, PictureNode*> nodes_;
  std::set<std::string, std::less<>> overcap_partitions_, overcap_qos_;
  std::set<std::string, std::less<>> labs_by_qos_;   // whose cap is that of a QOS
  std::set<std::string, std::less<>> labs_by_both_;  // whose account has it as well
};

}  // namespace

CapOf CapOfReason(std::string_view word) {
  const auto ends = [&](std::string_view end) {
    if (word.size() > 5 && word.substr(word.size() - 5) == "Limit") word.remove_suffix(5);
    return word.size() >= end.size() && word.substr(word.size() - end.size()) == end;
  };
  if (word.substr(0, 8) == "AssocGrp") return CapOf::kLab;
  if (word.substr(0, 6) == "QOSGrp") return CapOf::kQos;
  if (word.substr(0, 6) == "QOSMax" && ends("PerUser")) return CapOf::kUserInQos;
  if (word.substr(0, 6) == "QOSMax" && ends("PerAccount")) return CapOf::kLabInQos;
  return CapOf::kNone;
}

CapThing CapThingOfReason(std::string_view word) {
  const auto has = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (has("GRES")) return CapThing::kGpus;
  if (has("Cpu") || has("CPU")) return CapThing::kCpus;
  if (has("Job")) return CapThing::kJobs;
  return CapThing::kOther;
}

std::string NativeSlurmId(const SqueueJob& job) {
  if (job.array_job_id == 0) return StrCat(job.job_id);
  if (job.array_task >= 0) return StrCat(job.array_job_id, "_", job.array_task);
  return StrCat(job.array_job_id, "_[", job.array_tasks, "]");
}

ClusterPicture MakeSlurmPicture(const SlurmFacts& facts) {
  ClusterPicture picture;
  for (const SlurmNode& node : facts.nodes.nodes) picture.nodes.push_back(MakeNode(node));
  const LabAccounts accounts(facts.associations);
  AddPartitions(facts, accounts, &picture);
  AddLabs(facts, accounts, &picture);
  AddQos(facts, &picture);
  JobMaker maker(facts, accounts, &picture);
  picture.jobs.reserve(facts.jobs.size());
  for (const SqueueJob& job : facts.jobs) maker.Add(job);
  for (PictureNode& node : picture.nodes) std::sort(node.users.begin(), node.users.end());
  return picture;
}

}  // namespace overcap
