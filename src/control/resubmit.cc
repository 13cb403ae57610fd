// SPDX-License-Identifier: Apache-2.0
#include "control/resubmit.h"

#include <algorithm>

#include "base/text.h"
#include "control/job_request.h"
#include "control/others_job.h"
#include "model/job_id.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// Jobs with one rank per GPU, or one per node, stay so; any other number of ranks was the user's own.
void ChangeGpus(int gpus, const Machine* node, Resources* resources) {
  const int before = resources->gpus;
  const bool rank_per_gpu =
      resources->ranks_per_node * resources->nodes == std::max(before, resources->nodes);
  if (rank_per_gpu) resources->ranks_per_node = std::max(1, gpus / resources->nodes);
  if (before > 0 && gpus > 0) resources->cpus = resources->cpus * gpus / before;
  if (node != nullptr) resources->cpus = std::min(resources->cpus, node->cpus);
  if (gpus == 0) resources->gpu_type.clear();
  resources->gpus = gpus;
}

}  // namespace

Result<JobSpec> ReadSpec(const JobRecord& record) {
  OC_TRY_VOID(CheckNotOthers(record));
  if (record.dir.empty()) {
    return Fail(ErrorCode::kUsage,
                StrCat("job '", record.spec.id, "' was not submitted by overcap, which has no copy of it"),
                "only jobs of 'overcap submit' can be run again");
  }
  auto text = PosixFiles().Read(record.dir + "/spec.json");
  if (!text)
    return Fail(text.error().code,
                StrCat("the folder of job '", record.spec.id, "' has no spec: ", text.error().message));
  return SpecFromJson(*text);
}

JobSpec ResubmitSpec(const JobRecord& old, const JobSpec& old_spec, std::optional<int> gpus,
                     const std::vector<NodeKind>& nodes, const Clock& clock, Random& random) {
  JobSpec spec = old_spec;
  spec.submitted_us = clock.WallUs();
  spec.id = MakeJobId(spec.user, spec.submitted_us / 1'000'000, static_cast<uint32_t>(random.Next()));
  spec.resubmit_of = old_spec.id;
  spec.replaces = IsFinal(old.state) ? "" : old_spec.id;
  spec.hold = false;
  // What it waited for has happened once it has started, and is not wanted any more once it has ended.
  if (old.attempt > 0 || IsFinal(old.state)) spec.after.clear();
  if (gpus) ChangeGpus(*gpus, NodeForDefaults(nodes, spec.resources, spec.placement), &spec.resources);
  return spec;
}

Result<SubmitPlan> PlanResubmit(Cluster& cluster, const JobRecord& old, std::optional<int> gpus,
                                const Clock& clock, Random& random) {
  OC_TRY(old_spec, ReadSpec(old));
  if (gpus && *gpus % old_spec.resources.nodes != 0) {
    return Fail(ErrorCode::kUsage, StrCat(*gpus, " GPUs cannot be shared evenly by the ",
                                          old_spec.resources.nodes, " nodes of job '", old_spec.id, "'"));
  }
  return cluster.Plan(ResubmitSpec(old, old_spec, gpus, cluster.GetCapabilities().nodes, clock, random));
}

}  // namespace overcap
