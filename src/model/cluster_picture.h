// SPDX-License-Identifier: Apache-2.0
// A shared cluster at one moment: nodes, partitions, labs with their caps, and everybody's jobs. Data only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_state.h"
#include "model/typed_gpus.h"

namespace overcap {

struct PictureNode {
  std::string name = {};
  std::string state = {};   // the cluster's own word
  bool usable = true;       // new jobs may start there
  bool down = false;        // nothing can run there; else it is only taken out, or reserved
  std::string reason = {};  // why it is not, as an administrator wrote it
  std::vector<std::string> partitions = {};
  std::vector<std::string> features = {};
  std::vector<TypedGpus> gpus = {}, gpus_used = {};  // by type
  int cpus = 0, cpus_used = 0;
  double load = -1;  // -1: not known
  int64_t mem_bytes = 0, mem_used = 0;
  std::vector<std::string> users = {};  // who has something there, sorted
};

struct PicturePartition {
  std::string name = {};
  bool is_default = false, up = true;
  int64_t time_limit_s = 0;  // 0: none
  int priority_tier = 0;
  bool preemptable = false;                    // jobs there may be stopped for others
  int64_t grace_s = 0;                         // and are told so long before
  bool overcap = false;                        // use of others' idle GPUs: counted apart
  bool yields = false;                         // counts, but gives way to labmates
  std::string qos = {};                        // whose limits hold for all jobs there
  std::vector<std::string> allowed_labs = {};  // empty: all
  std::vector<std::string> denied_labs = {};
  std::vector<std::string> allowed_qos = {};  // empty: all
  int gpus_total = 0, gpus_free = 0;          // free: on nodes that take jobs
  int nodes = 0, nodes_usable = 0;
};

// A lab is what the scheduler calls an account.
struct PictureLab {
  std::string name = {}, parent = {};
  std::optional<int> gpu_cap = {};       // none: no cap
  std::vector<TypedGpus> gpu_caps = {};  // by type, where those are capped
  std::optional<int> cpu_cap = {}, max_jobs = {};
  std::vector<std::string> users = {};
  std::vector<std::string> default_of = {};  // users whose jobs are its, when they name no lab
};

// A class of service: limits of its own, for all its jobs together or for each user and lab.
struct PictureQos {
  std::string name = {};
  std::vector<std::string> preempts = {};  // jobs of those give way to its jobs
  std::optional<int> gpu_cap = {}, gpus_per_user = {}, gpus_per_lab = {}, max_jobs = {}, jobs_per_user = {};
  int64_t time_limit_s = 0;  // 0: none
  int64_t grace_s = 0,
          exempt_s = 0;  // of its jobs that give way: the notice, and the time that each has first
};

// What kind of thing a job waits for.
enum class WaitKind {
  kNone,        // it does not wait, or nobody says for what
  kTurn,        // others are ahead, or nothing is free
  kTime,        // a later time
  kDependency,  // other jobs
  kHeld,        // somebody who releases it
  kLimit,       // a cap is in use
  kNodes,       // nodes that are away
  kNever,       // as it is it never starts
  kUnknown,     // the cluster's own word is all there is
};

// Whose cap it is, of kLimit and of what asks for more than a cap allows.
enum class CapOf { kNone, kLab, kQos, kUserInQos, kLabInQos };
enum class CapThing { kNone, kGpus, kCpus, kJobs, kOther };

struct PictureJob {
  std::string id = {};         // ours; "": not submitted with Overcap
  std::string native_id = {};  // "123", "123_4", "123_[5-9]"
  std::string user = {}, lab = {}, partition = {}, qos = {}, name = {};
  std::vector<std::string> nodes = {};  // while it runs
  JobState state = JobState::kUnknown;
  std::string raw_state = {};
  std::string reason = {}, reason_text = {};  // why it waits: the cluster's own word, and plain ones
  WaitKind wait = WaitKind::kNone;
  CapOf cap_of = CapOf::kNone;
  CapThing cap_thing = CapThing::kNone;
  bool overcap = false;                    // does not count against its lab's cap
  bool yields = false;                     // counts, but labmates' jobs that do not yield start all the same
  int tasks = 1;                           // waiting tasks of an array stand in one row
  int gpus = 0, cpus = 0, node_count = 0;  // of one task
  std::vector<TypedGpus> gpu_types = {};   // of one task; fewer than `gpus` where types are not told
  std::string features = {};               // that its nodes must have, in the cluster's own words
  int64_t submitted_us = 0, started_us = 0, estimated_start_us = 0, time_limit_s = 0;
  bool limit_of_partition = false;  // the job itself named none
  int64_t priority = 0;
  std::string dependency = {};    // in the cluster's own words
  std::string gives_way_to = {};  // the job for which it was told to go, where the cluster tells
};

struct ClusterPicture {
  std::vector<PictureNode> nodes;
  std::vector<PicturePartition> partitions;
  std::vector<PictureLab> labs;  // empty where the scheduler keeps no accounts
  std::vector<PictureQos> qos;
  std::vector<PictureJob> jobs;  // waiting and running, of everybody
  int64_t taken_us = 0;          // the jobs; nodes_taken_us: the nodes
  int64_t nodes_taken_us = 0;
  std::string stale;               // "": fresh; else why it could not be asked again
  std::vector<std::string> notes;  // what is missing in it: "the accounts could not be read: ..."
};

const PicturePartition* FindPartition(const ClusterPicture& picture, std::string_view name);
const PictureLab* FindLab(const ClusterPicture& picture, std::string_view name);
const PictureQos* FindQos(const ClusterPicture& picture, std::string_view name);

}  // namespace overcap
