// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/gpu_count.h"

#include <algorithm>

#include "base/text.h"
#include "launch/detect/host_name.h"

namespace overcap {
namespace {

struct Answer {
  int count = 0;
  std::string reason;
  std::string type;
  std::string type_reason;
};

// A job's host is like the others of its site; the place where jobs are submitted is not.
bool SiteSpeaksOfUs(const Allocation& allocation) {
  return allocation.in_job || allocation.scheduler == SchedulerKind::kLocal ||
         allocation.scheduler == SchedulerKind::kMpi;
}

void LimitToVisible(const Variables& variables, bool counted, Answer* answer) {
  const auto visible = VisibleGpusOf(variables);
  if (!visible || (counted && visible->count >= answer->count)) return;
  answer->reason = counted ? StrCat(answer->reason, ", limited by ", visible->variable) : visible->variable;
  answer->count = visible->count;
}

Answer OfDrivers(const DetectInputs& inputs, bool site, Allocation* allocation) {
  const ProbedGpus probed = inputs.probe_gpus ? inputs.probe_gpus() : ProbedGpus{};
  for (const std::string& problem : probed.problems) allocation->warnings.push_back(problem);
  Answer answer;
  bool counted = true;
  if (probed.count > 0 && !(probed.counts_cards && site)) {
    answer = {probed.count, probed.how, probed.type, probed.how};
  } else if (site) {
    answer = {inputs.site_gpus, StrCat("site '", inputs.site_name, "'"), probed.type, probed.how};
  } else if (inputs.declared_gpus >= 0) {
    return {inputs.declared_gpus, "overcap.yaml", inputs.declared_gpu_type, "overcap.yaml"};
  } else {
    answer.reason = probed.count == 0 ? StrCat(probed.how, " finds none") : "no GPU was found";
    counted = probed.count == 0;
  }
  LimitToVisible(inputs.variables, counted, &answer);
  return answer;
}

Answer OfThisHost(const DetectInputs& inputs, Allocation* allocation) {
  const bool ours = SiteSpeaksOfUs(*allocation);
  if (inputs.declared_gpus >= 0 && allocation->scheduler == SchedulerKind::kLocal) {
    return {inputs.declared_gpus, "overcap.yaml", inputs.declared_gpu_type, "overcap.yaml"};
  }
  return OfDrivers(inputs, ours && inputs.site_gpus >= 0, allocation);
}

void SetType(const std::string& type, const std::string& reason, Allocation* allocation) {
  if (!allocation->gpu_type.empty() || type.empty()) return;
  allocation->gpu_type = type;
  allocation->reasons.gpu_type = reason;
}

}  // namespace

void CountGpus(const DetectInputs& inputs, const FoundJob* job, Allocation* allocation) {
  auto& hosts = allocation->hosts;
  const bool told = std::ranges::all_of(hosts, [](const auto& host) { return host.gpus >= 0; });
  const bool by_job = job != nullptr && !job->gpus_reason.empty();
  if (by_job) SetType(job->gpu_type, job->gpus_reason, allocation);
  if (told) {
    allocation->gpus_from_scheduler = by_job;
    allocation->reasons.gpus = by_job ? job->gpus_reason : allocation->reasons.hosts;
  } else {
    const Answer answer = OfThisHost(inputs, allocation);
    const bool others = std::ranges::any_of(
        hosts, [&](const auto& host) { return host.gpus < 0 && !SameHost(host.name, inputs.this_host); });
    for (AllocatedHost& host : hosts) {
      if (host.gpus < 0) host.gpus = answer.count;
    }
    allocation->reasons.gpus =
        others ? StrCat(answer.reason, "; this host's number is taken for the others") : answer.reason;
    SetType(answer.type, answer.type_reason, allocation);
  }
  if (std::ranges::none_of(hosts, [](const auto& host) { return host.gpus > 0; })) return;
  SetType(inputs.site_gpu_type, StrCat("site '", inputs.site_name, "'"), allocation);
  SetType(inputs.declared_gpu_type, "overcap.yaml", allocation);
}

}  // namespace overcap
