// SPDX-License-Identifier: Apache-2.0
// What a user asked for. Immutable once submitted; jobs/<id>/spec.json is this (docs/formats/job-folder.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job_owner.h"
#include "model/job_store.h"
#include "model/mount_spec.h"

namespace overcap {

// What one attempt of a job (or one task of an array) needs at the same time.
struct Resources {
  int nodes = 1;      // of an elastic job: at least
  int max_nodes = 0;  // of an elastic job: at most; 0: `nodes`, for good
  int gpus = 0;       // in all, over all nodes; of an elastic job: when it has the least
  int ranks_per_node = 1;
  int cpus = 0;              // per node; 0: no share of its own
  int64_t mem_bytes = 0;     // per node; 0: not limited
  int64_t time_seconds = 0;  // 0: no limit
  std::string gpu_type;      // GpuTypeExpression text; empty: any
  bool operator==(const Resources&) const = default;
  int world_size() const { return nodes * ranks_per_node; }
  bool elastic() const { return max_nodes > 0; }
};

// How many logs an attempt has at least: one for each rank; of an elastic job, whose ranks come and go, one
// for each node.
inline int LogsOf(const Resources& resources) {
  return resources.elastic() ? resources.nodes : resources.world_size();
}

// Tasks of an array: indices in ascending order, as closed ranges with a step.
struct ArraySpec {
  struct Range {
    int first = 0, last = 0, step = 1;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> ranges;  // empty: not an array
  int limit = 0;              // tasks at the same time; 0: as many as fit
  bool operator==(const ArraySpec&) const = default;
  bool empty() const { return ranges.empty(); }
  int Count() const;
  int IndexAt(int position) const;  // 0 <= position < Count()
  int PositionOf(int index) const;  // -1 when there is no such task
};
constexpr int kMaxArrayTasks = 1'000'000;
Result<ArraySpec> ParseArraySpec(std::string_view text);  // "0-9999%100", "1,3,5-9:2"
std::string FormatArraySpec(const ArraySpec& array);

// Another job that must have ended first.
struct Dependency {
  std::string job_id;
  bool any_end = false;  // false: it must have succeeded, else this job is cancelled
  bool operator==(const Dependency&) const = default;
};

// A sweep is an array whose tasks differ in variables: every combination of the values, the last axis
// changing fastest.
struct SweepAxis {
  std::string name;  // of the variable
  std::vector<std::string> values;
  bool operator==(const SweepAxis&) const = default;
};

// The variables (NAME=VALUE) of the combination at a position of the array.
std::vector<std::string> SweepVariables(const std::vector<SweepAxis>& sweep, int position);
int64_t SweepCount(const std::vector<SweepAxis>& sweep);  // of combinations; 0 without axes

// Where in a cluster a job shall run, in that cluster's own words; empty: as its configuration says.
struct Placement {
  std::vector<std::string> partitions;  // the first that can start it takes it
  std::string account, qos, node;       // node: this one
  std::vector<std::string> args;        // more words for the cluster's own program; they win
  bool operator==(const Placement&) const = default;
};

struct JobSpec {
  std::string id;
  std::string user;
  // Whose GPUs it uses, where labs share them: what `placement.account` names or the user's default one; "":
  // there are no labs. The engine says it, as it says the owner.
  std::string lab;
  JobOwner owner;
  std::string cluster;
  std::string name;
  std::vector<std::string> command;  // argv, byte for byte
  Resources resources;
  Placement placement;
  ArraySpec array;
  std::vector<SweepAxis> sweep;  // of the array; empty: tasks differ in their number only
  std::string workdir;           // relative to the captured folder; where the ranks start
  std::string source;            // the folder that was captured, as the user sees it
  std::string snapshot;     // SHA-256 (hex) of the code's tree; empty: no code captured, workdir is absolute
  std::string environment;  // SHA-256 of the private blob with the submitter's variables
  JobStore store;           // where code, environment and logs are; none: a folder that all nodes see
  std::vector<std::string> env_names;  // names (never values) given with --env
  std::vector<MountSpec> mounts;       // stores in the job's folder
  std::string mounts_at;               // the node's own folder for them, as written; "": /tmp
  std::vector<Dependency> after;
  std::string replaces;  // resubmit: stop this job first, start only when it has ended
  std::string resubmit_of;
  std::string allocation;  // its name, when the job only holds its resources for a person; "": it does work
  // The command is a batch script: it runs once, on the first node, and starts its ranks itself.
  bool batch = false;
  bool hold = false;
  bool requeue = false;             // start again after preemption, reboot or a lost agent
  bool requeue_on_timeout = false;  // and when its time limit comes
  int64_t warn_seconds = 0;         // USR1 so long before the time limit; 0: none
  bool warn_shell = false;  // of a batch script: the warning goes to its shell alone (--signal=B:USR1@60)
  bool cpus_asked = false;  // by its user: then a control group holds it to them, not its affinity alone
  int max_restarts = 0;     // start again after a failure, so many times
  int priority = 0;         // higher goes first
  int umask = -1;           // the submitter's, which the ranks get; -1: not told
  int64_t nofile = 0;       // the submitter's soft limit of open files, which the ranks get; 0: not told
  int64_t logs_max = -1;    // bytes of each log that are kept; 0: all, -1: as its file system allows
  int64_t submitted_us = 0;
  bool operator==(const JobSpec&) const = default;
};

// What holds for every cluster: a command, positive counts, an id of the right form. kUsage names the field.
Result<void> ValidateSpec(const JobSpec& spec);

// Bytes of the command and of paths that are no UTF-8 are kept: such strings are written as {"hex": "..."}.
std::string SpecToJson(const JobSpec& spec);
Result<JobSpec> SpecFromJson(std::string_view json);

}  // namespace overcap
