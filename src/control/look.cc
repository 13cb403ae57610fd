// SPDX-License-Identifier: Apache-2.0
#include "control/look.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "clusters/cluster_policy.h"

namespace overcap {
namespace {

PictureNode MakeNode(const NodeInfo& info) {
  PictureNode node;
  node.name = info.machine.host;
  node.state = info.state;
  std::map<std::string, int> types;
  for (const Gpu& gpu : info.machine.gpus) types[gpu.type] += 1;
  for (const auto& [type, count] : types) node.gpus.push_back({type, count});
  node.cpus = info.machine.cpus;
  node.mem_bytes = info.machine.mem_bytes;
  return node;
}

std::vector<TypedGpus> TypesOf(const JobRecord& record, const NodeInfo& info) {
  std::map<std::string, int> types;
  for (const int index : record.gpu_indices) {
    for (const Gpu& gpu : info.machine.gpus) types[gpu.type] += gpu.index == index ? 1 : 0;
  }
  std::vector<TypedGpus> gpus;
  for (const auto& [type, count] : types) {
    if (count > 0) gpus.push_back({type, count});
  }
  return gpus;
}

// `waiting`: jobs that have not ended.
PictureJob MakeJob(const JobRecord& record, const std::set<std::string>& waiting) {
  const Resources& asked = record.spec.resources;
  PictureJob job;
  job.id = job.native_id = record.spec.id;
  job.user = record.spec.user, job.name = record.spec.name;
  job.lab = record.spec.lab;
  job.partition = PartitionText(record.state, record.partition, record.spec.placement.partitions);
  job.state = record.state, job.raw_state = record.raw_state;
  job.reason_text = record.reason;
  job.gpus = asked.gpus, job.cpus = asked.cpus * asked.nodes, job.node_count = asked.nodes;
  job.submitted_us = record.spec.submitted_us, job.started_us = record.started_us;
  job.time_limit_s = asked.time_seconds, job.priority = record.spec.priority;
  if (record.state == JobState::kRunning) job.gives_way_to = record.preempted_by;
  if (!asked.gpu_type.empty()) job.gpu_types = {{asked.gpu_type, asked.gpus}};
  if (record.state == JobState::kHeld) job.wait = WaitKind::kHeld;
  const bool after = std::any_of(record.spec.after.begin(), record.spec.after.end(),
                                 [&](const Dependency& other) { return waiting.contains(other.job_id); });
  if (after || waiting.contains(record.spec.replaces)) job.wait = WaitKind::kDependency;
  return job;
}

// An array is one record: its tasks that run and those that wait are told apart here.
void AddJobs(const JobRecord& record, const std::set<std::string>& all, const NodeInfo& here,
             ClusterPicture* picture) {
  PictureJob job = MakeJob(record, all);
  const bool array = !record.spec.array.empty();
  const int running = record.state != JobState::kRunning ? 0 : array ? record.tasks.running : 1;
  const int waiting = record.state != JobState::kRunning ? (array ? std::max(1, record.tasks.queued) : 1)
                                                         : (array ? record.tasks.queued : 0);
  PictureNode& node = picture->nodes.front();
  if (running > 0) {
    PictureJob at = job;
    at.nodes = {node.name};
    at.gpus *= running, at.cpus *= running;
    at.gpu_types = TypesOf(record, here);
    node.cpus_used += at.cpus;
    if (std::find(node.users.begin(), node.users.end(), job.user) == node.users.end())
      node.users.push_back(job.user);
    picture->jobs.push_back(std::move(at));
  }
  if (waiting > 0) {
    job.tasks = waiting;
    picture->jobs.push_back(std::move(job));
  }
}

// Labs and partitions, where the cluster's own engine follows a policy.
Result<void> AddPolicy(Cluster& cluster, ClusterPicture* picture) {
  if (cluster.Policies() == nullptr) return {};
  OC_TRY(policy, cluster.Policies()->InForce());
  if (!policy) return {};
  for (const PolicyLab& lab : policy->labs) {
    PictureLab made;
    made.name = lab.name;
    made.gpu_cap = lab.gpu_cap, made.gpu_caps = lab.type_caps, made.cpu_cap = lab.cpu_cap;
    made.users = lab.members;
    for (const std::string& user : lab.members) {
      if (LabsOf(*policy, user).front() == lab.name) made.default_of.push_back(user);
    }
    picture->labs.push_back(std::move(made));
  }
  for (const PolicyPartition& one : policy->partitions) {
    PicturePartition made;
    made.name = one.name;
    made.is_default = one.is_default;
    made.time_limit_s = one.max_time_s;
    made.priority_tier = one.priority;
    made.preemptable = !one.preempted_by.empty();
    made.grace_s = one.grace_s;
    made.overcap = one.counts == CapRule::kFree;
    made.yields = one.counts == CapRule::kYields;
    made.allowed_labs = one.labs;
    picture->partitions.push_back(std::move(made));
  }
  for (PictureJob& job : picture->jobs) {
    if (const PolicyPartition* own = DefaultPartition(*policy); own != nullptr && job.partition.empty())
      job.partition = own->name;
    const PolicyPartition* partition = FindPolicyPartition(*policy, job.partition);
    job.overcap = partition != nullptr && partition->counts == CapRule::kFree;
    job.yields = partition != nullptr && partition->counts == CapRule::kYields;
    if (partition == nullptr || job.time_limit_s != 0) continue;
    job.time_limit_s = partition->default_time_s > 0 ? partition->default_time_s : partition->max_time_s;
    job.limit_of_partition = true;
  }
  return {};
}

Result<ClusterPicture> LookWithoutView(Cluster& cluster, int64_t now_us) {
  ClusterPicture picture;
  picture.taken_us = picture.nodes_taken_us = now_us;
  OC_TRY(nodes, cluster.Nodes());
  JobFilter filter;
  filter.states = {JobState::kHeld, JobState::kQueued, JobState::kRunning};
  OC_TRY(records, cluster.List(filter));
  for (const NodeInfo& info : nodes) picture.nodes.push_back(MakeNode(info));
  if (picture.nodes.empty()) return picture;
  std::set<std::string> all;
  for (const JobRecord& record : records) all.insert(record.spec.id);
  for (const JobRecord& record : records) AddJobs(record, all, nodes.front(), &picture);
  OC_TRY_VOID(AddPolicy(cluster, &picture));
  PictureNode& node = picture.nodes.front();
  std::map<std::string, int> used;
  for (const PictureJob& job : picture.jobs) {
    for (const TypedGpus& kind : job.gpu_types) used[kind.type] += job.nodes.empty() ? 0 : kind.count;
  }
  for (const TypedGpus& kind : node.gpus) node.gpus_used.push_back({kind.type, used[kind.type]});
  return picture;
}

}  // namespace

Result<ClusterPicture> LookAt(Cluster& cluster, const PictureAges& ages, int64_t now_us) {
  if (ClusterView* view = cluster.View()) return view->Picture(ages);
  return LookWithoutView(cluster, now_us);
}

bool HasView(Cluster& cluster) {
  return cluster.View() != nullptr;
}

std::optional<Policy> PolicyInForce(Cluster& cluster) {
  if (cluster.Policies() == nullptr) return std::nullopt;
  auto policy = cluster.Policies()->InForce();
  return policy ? std::move(*policy) : std::nullopt;
}

std::string AgeText(const ClusterPicture& picture, int64_t now_us) {
  const int64_t age_s = std::max<int64_t>(0, now_us - picture.taken_us) / 1'000'000;
  const std::string age = age_s == 0 ? "now" : StrCat(FormatDuration(age_s), " ago");
  return picture.stale.empty() ? age : StrCat("last known ", age, ": ", picture.stale);
}

}  // namespace overcap
