// SPDX-License-Identifier: Apache-2.0
// The seam between Overcap's verbs and a place where jobs run. testing/cluster_conformance.h says in code
// what every implementation must do; the list of implementations is all_clusters.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/job_record.h"
#include "model/job_spec.h"
#include "model/machine.h"

namespace overcap {

class ClusterSessions;  // cluster_sessions.h
class ClusterView;      // cluster_view.h
class ClusterPolicy;    // cluster_policy.h

// Nodes of a cluster with the same hardware, partitions and features.
struct NodeKind {
  Machine machine;                 // what each of them has
  std::vector<std::string> names;  // as the cluster calls them; empty: this machine alone
  std::vector<std::string> partitions;
  std::vector<std::string> features;  // may name the type of GPUs that have none
};

// What a cluster can do, as data: callers never ask for its name.
struct Capabilities {
  bool hold = false;
  bool array = false;
  bool dependencies = false;
  bool local_files = false;      // job folders are on a file system of this host
  bool placement = false;        // heeds JobSpec::placement: partitions, accounts, words of its own
  bool warning = false;          // heeds JobSpec::warn_seconds
  bool timeout_requeue = false;  // heeds JobSpec::requeue_on_timeout
  bool stores = false;           // heeds JobSpec::store
  int max_nodes = 1;             // 0: no limit known
  std::vector<NodeKind> nodes;   // if they are known without asking; for defaults
};

// What will be sent, exactly; what `--dry-run` prints.
struct SubmitPlan {
  JobSpec spec;
  std::string text;  // for people
  std::vector<std::string> notes =
      {};  // what the cluster will do differently from what was asked; for people
};

// How much of each record List() must fill; it may fill more.
enum class ListDetail {
  kFull,
  kTable,   // what a table shows: id, user, lab, partition, name, command, gpus, nodes, submitted_us, array,
            // state, reason, attempt, exit_status, started_us, ended_us
  kStored,  // what the store must keep for it: id, state, snapshot, environment
};

// Without `all`, `states` and `since_us`: every job that has not ended, and the 20 that ended last.
struct JobFilter {
  std::vector<JobState> states = {};  // empty: all
  std::string user = {};              // empty: everybody
  bool own = false;                   // only those of whoever asks
  int64_t since_us = 0;               // submitted or ended after
  bool all = false;                   // also what ended long ago
  ListDetail detail = ListDetail::kFull;
};

enum class WaitUntil { kStarted, kEnded };

struct NodeInfo {
  Machine machine;
  int gpus_free = 0;
  std::string state;  // the cluster's own word
};

class Cluster {
 public:
  virtual ~Cluster() = default;

  virtual const std::string& Name() const = 0;
  virtual Capabilities GetCapabilities() const = 0;

  // Checks the spec against this cluster and says what Submit() would send. Changes nothing and asks nobody
  // who is slow; kUsage tells the user what cannot be had ("asks for 8 GPUs, this machine has 4").
  virtual Result<SubmitPlan> Plan(const JobSpec& spec) = 0;
  // Submit() of a job with this id and placement follows soon (the rest of the plan need not be known),
  // unless something is wrong with it: what takes time may begin. Nothing is sent, and nothing is left by it.
  virtual void Expect(const SubmitPlan& plan) { (void)plan; }
  // Idempotent by spec.id: after an error with kUnavailable the same plan may be sent again and runs once;
  // another spec under a known id is kConflict. When it returns a record the job is durable. After any other
  // error there is no such job.
  virtual Result<JobRecord> Submit(const SubmitPlan& plan) = 0;

  // Many at once, in the order of `ids`; kNotFound names the first unknown one. A status word that the
  // implementation does not know is kUnknown with raw_state set, never an error.
  virtual Result<std::vector<JobRecord>> Query(const std::vector<std::string>& ids) = 0;
  // The same for those who look again and again: content with what is `max_age_us` old, where asking costs.
  virtual Result<std::vector<JobRecord>> QueryRecent(const std::vector<std::string>& ids,
                                                     int64_t max_age_us) {
    (void)max_age_us;
    return Query(ids);
  }
  // In the order of submission.
  virtual Result<std::vector<JobRecord>> List(const JobFilter& filter) = 0;
  // The same one by one, for those who keep little of each.
  virtual Result<void> ForEach(const JobFilter& filter, const std::function<void(const JobRecord&)>& take) {
    OC_TRY(records, List(filter));
    for (const JobRecord& record : records) take(record);
    return {};
  }
  // Whole ids for suffixes, whole ids and "last"; kConflict lists candidates, kNotFound suggests the nearest.
  virtual Result<std::vector<std::string>> Resolve(const std::vector<std::string>& refs) = 0;

  // Idempotent: a job that has ended stays as it is. Returns before the job has ended; Wait() for that.
  virtual Result<void> Cancel(const std::vector<std::string>& ids, const std::string& reason) = 0;
  virtual Result<void> Hold(const std::vector<std::string>& ids) = 0;     // kConflict once running
  virtual Result<void> Release(const std::vector<std::string>& ids) = 0;  // fine when not held
  // Forgets ended jobs and removes their folders; kConflict (and nothing removed) when one has not ended.
  virtual Result<void> Remove(const std::vector<std::string>& ids) = 0;

  // Blocks until all have come so far (an ended job has also started) or the time is over: true or false.
  // With 0 seconds it only looks.
  virtual Result<bool> Wait(const std::vector<std::string>& ids, WaitUntil until,
                            int64_t timeout_seconds) = 0;

  virtual Result<std::vector<NodeInfo>> Nodes() = 0;

  // What only some clusters have; nullptr: not this one. They live as long as the cluster.
  virtual ClusterView* View() { return nullptr; }
  virtual ClusterSessions* Sessions() { return nullptr; }
  virtual ClusterPolicy* Policies() { return nullptr; }
};

}  // namespace overcap
