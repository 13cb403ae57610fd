// SPDX-License-Identifier: Apache-2.0
#include "daemon/asker.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "model/job_id.h"
#include "model/policy/lab_choice.h"
#include "model/request_limits.h"

namespace overcap {
namespace {

constexpr int kMostOpenJobs = 20'000;  // of one user

tl::unexpected<Error> Denied(std::string message, std::string hint = {}) {
  return Fail(ErrorCode::kDenied, std::move(message), std::move(hint));
}

// "ann_" of "ann_17_0000beef".
std::string_view NameIn(std::string_view id) {
  return id.substr(0, id.find('_') + 1);
}

Result<void> CheckLink(const Asker& asker, const std::string& id, const Policy* policy,
                       const JobTable& table) {
  const Job* job = id.empty() ? nullptr : table.Find(id);
  if (job == nullptr || Owns(asker, *job) || IsAdmin(asker, policy)) return {};
  return Denied(StrCat("job '", id, "' belongs to user '", job->spec.user, "'"),
                "only jobs of your own can be named");
}

Result<void> CheckLinks(const JobSpec& spec, const Asker& asker, const Policy* policy,
                        const JobTable& table) {
  for (const Dependency& dependency : spec.after)
    OC_TRY_VOID(CheckLink(asker, dependency.job_id, policy, table));
  OC_TRY_VOID(CheckLink(asker, spec.replaces, policy, table));
  return CheckLink(asker, spec.resubmit_of, policy, table);
}

// The engine keeps all specs in memory.
Result<void> CheckBytes(const JobSpec& spec, const Asker& asker, const JobTable& table) {
  const JobTable::HeldBytes held = table.HeldBy(asker.owner.uid);
  const int64_t more = SpecBytes(spec);
  if (asker.root()) return {};
  if (held.open + more > kMaxOpenSpecBytes)
    return Denied(StrCat("the specs of user '", asker.user, "' that have not ended would be larger than ",
                         FormatBytes(kMaxOpenSpecBytes)),
                  "wait for some of the jobs, or write long commands into a file that the job runs");
  if (held.all + more > kMaxKeptSpecBytes)
    return Denied(StrCat("the specs of all jobs of user '", asker.user, "' would be larger than ",
                         FormatBytes(kMaxKeptSpecBytes)),
                  "overcap gc removes jobs that have ended");
  return {};
}

Result<void> CheckCount(const Asker& asker, const JobTable& table) {
  if (asker.root() || table.ActiveCount() < kMostOpenJobs) return {};
  const auto open = std::ranges::count_if(
      table.jobs(), [&](const auto& entry) { return !entry.second->ended() && Owns(asker, *entry.second); });
  if (open < kMostOpenJobs) return {};
  return Denied(StrCat("user '", asker.user, "' has ", open, " jobs that have not ended"),
                "one array takes the place of many jobs: --array 0-9999");
}

// Replaces very many ranges by one, so that no array fills the lists of others: from its first index to about
// its last, with at most as many tasks.
ArraySpec PublicArray(const ArraySpec& array) {
  if (array.ranges.size() <= kMaxPublicRanges) return array;
  const int first = array.ranges.front().first, last = array.ranges.back().last;
  const int gaps = std::max(1, array.Count() - 1);
  const int step = std::max(1, (last - first + gaps - 1) / gaps);
  ArraySpec open;
  open.ranges.push_back({first, first + (last - first) / step * step, step});
  open.limit = array.limit;
  return open;
}

}  // namespace

bool Owns(const Asker& asker, const Job& job) {
  return asker.only_user || (asker.owner.told() && asker.owner.uid == job.spec.owner.uid);
}

bool IsAdmin(const Asker& asker, const Policy* policy) {
  return asker.only_user || asker.root() || (policy != nullptr && IsClusterAdmin(*policy, asker.user));
}

bool MaySee(const Asker& asker, const Job& job, const Policy* policy) {
  return Owns(asker, job) || IsAdmin(asker, policy);
}

Result<void> CheckMayStop(const Asker& asker, const Job& job, const Policy* policy, std::string_view verb) {
  if (Owns(asker, job) || IsAdmin(asker, policy)) return {};
  if (policy != nullptr && !job.spec.lab.empty() && IsLabAdmin(*policy, asker.user, job.spec.lab)) return {};
  return Denied(StrCat("job '", job.spec.id, "' belongs to user '", job.spec.user, "' and cannot be ", verb,
                       " by '", asker.user, "'"),
                job.spec.lab.empty() ? "" : StrCat("administrators of lab '", job.spec.lab, "' can"));
}

Result<void> CheckMayRemove(const Asker& asker, const Job& job) {
  if (Owns(asker, job) || asker.root()) return {};
  return Denied(StrCat("job '", job.spec.id, "' belongs to user '", job.spec.user,
                       "' and cannot be removed by '", asker.user, "'"));
}

Result<void> CheckMayRuleEngine(const Asker& asker, std::string_view what) {
  if (asker.only_user || asker.root()) return {};
  return Denied(StrCat("only root can ", what, " the engine of this machine"));
}

Result<JobSpec> StampSpec(JobSpec spec, const Asker& asker, const Policy* policy, const JobTable& table,
                          int64_t now_us) {
  spec.owner = {};
  spec.lab.clear();
  if (asker.only_user) return spec;
  const std::string own_id = MakeJobId(asker.user, 0, 0);
  if (NameIn(spec.id) != NameIn(own_id))
    return Denied(StrCat("'", ToUtf8(spec.id), "' is no id for a job of user '", asker.user, "'"));
  spec.user = asker.user;
  spec.owner = asker.owner;
  if (const Job* known = table.Find(spec.id); known != nullptr && Owns(asker, *known)) {
    // Sent again: it stays as it was taken the first time, whatever has changed since.
    spec.submitted_us = known->spec.submitted_us;
    spec.owner = known->spec.owner;
    spec.lab = known->spec.lab;
    return spec;
  }
  if (spec.priority > 0 && !IsAdmin(asker, policy))
    return Denied("only administrators can submit with a priority above 0", "leave --priority out");
  OC_TRY_VOID(CheckLinks(spec, asker, policy, table));
  if (policy != nullptr) {
    OC_TRY(lab, ChooseLab(*policy, asker.user, spec.placement.account));
    spec.lab = std::move(lab);
  }
  if (table.Find(spec.id) == nullptr) {
    spec.submitted_us = now_us;
    OC_TRY_VOID(CheckCount(asker, table));
    OC_TRY_VOID(CheckBytes(spec, asker, table));
  }
  return spec;
}

Job PublicJob(const Job& job) {
  Job open;
  open.key = job.key;
  open.spec.id = job.spec.id;
  open.spec.user = job.spec.user;
  open.spec.lab = job.spec.lab;
  open.spec.resources = job.spec.resources;
  open.spec.array = PublicArray(job.spec.array);
  open.spec.placement.partitions = job.spec.placement.partitions;
  open.spec.priority = job.spec.priority;
  open.spec.submitted_us = job.spec.submitted_us;
  open.state = job.state;
  open.progress = job.progress;
  open.last_gpus = job.last_gpus;
  return open;
}

JobRecord PublicRecord(const JobRecord& record) {
  JobRecord open;
  open.spec.id = record.spec.id;
  open.spec.user = record.spec.user;
  open.spec.lab = record.spec.lab;
  open.spec.resources = record.spec.resources;
  open.spec.array = PublicArray(record.spec.array);
  open.spec.placement.partitions = record.spec.placement.partitions;
  open.spec.priority = record.spec.priority;
  open.spec.submitted_us = record.spec.submitted_us;
  open.state = record.state;
  open.attempt = record.attempt;
  open.restarts = record.restarts;
  open.started_us = record.started_us;
  open.ended_us = record.ended_us;
  open.gpu_indices = record.gpu_indices;
  open.partition = record.partition;
  open.preempted_by = record.preempted_by;
  open.tasks = record.tasks;
  return open;
}

}  // namespace overcap
