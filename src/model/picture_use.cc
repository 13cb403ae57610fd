// SPDX-License-Identifier: Apache-2.0
#include "model/picture_use.h"

#include <algorithm>

namespace overcap {
namespace {

constexpr int kDeepest = 100;  // labs within labs; a ring of parents is no reason to hang

}  // namespace

bool HoldsNodes(const PictureJob& job) {
  return !job.nodes.empty();
}

void AddUse(const PictureJob& job, PictureUse* use) {
  if (!HoldsNodes(job)) {
    use->waiting_jobs += job.tasks;
    use->waiting_gpus += job.gpus * job.tasks;
    use->waiting_cpus += job.cpus * job.tasks;
    if (job.wait != WaitKind::kLimit) return;
    use->capped_jobs += job.tasks;
    use->capped_gpus += job.gpus * job.tasks;
    return;
  }
  (job.overcap ? use->overcap_jobs : use->jobs) += 1;
  (job.overcap ? use->overcap_gpus : use->gpus) += job.gpus;
  (job.overcap ? use->overcap_cpus : use->cpus) += job.cpus;
  if (job.yields && !job.overcap) use->yielding_gpus += job.gpus;
  int typed = 0;
  for (const TypedGpus& kind : job.gpu_types) {
    use->types[kind.type] += kind.count;
    typed += kind.count;
  }
  if (typed < job.gpus) use->types[""] += job.gpus - typed;
}

PictureUse UseOf(const ClusterPicture& picture, const std::function<bool(const PictureJob&)>& counts) {
  PictureUse use;
  for (const PictureJob& job : picture.jobs) {
    if (counts(job)) AddUse(job, &use);
  }
  return use;
}

bool LabIsWithin(const ClusterPicture& picture, std::string_view lab, std::string_view of) {
  std::string_view at = lab;
  for (int depth = 0; depth < kDeepest && !at.empty(); ++depth) {
    if (at == of) return true;
    const PictureLab* found = FindLab(picture, at);
    at = found == nullptr ? std::string_view() : std::string_view(found->parent);
  }
  return false;
}

PictureUse LabUse(const ClusterPicture& picture, std::string_view lab) {
  std::map<std::string_view, bool> within;
  return UseOf(picture, [&](const PictureJob& job) {
    const auto [place, is_new] = within.try_emplace(job.lab, false);
    if (is_new) place->second = LabIsWithin(picture, job.lab, lab);
    return place->second;
  });
}

int GpusInTheWay(const PictureUse& of_lab, bool yields) {
  return yields ? of_lab.gpus : of_lab.gpus - of_lab.yielding_gpus;
}

const PictureLab* CappedLab(const ClusterPicture& picture, std::string_view lab) {
  const PictureLab* at = FindLab(picture, lab);
  for (int depth = 0; depth < kDeepest && at != nullptr; ++depth) {
    if (at->gpu_cap) return at;
    at = at->parent.empty() ? nullptr : FindLab(picture, at->parent);
  }
  return nullptr;
}

std::string DefaultLab(const ClusterPicture& picture, std::string_view user) {
  for (const PictureLab& lab : picture.labs) {
    if (std::find(lab.default_of.begin(), lab.default_of.end(), user) != lab.default_of.end())
      return lab.name;
  }
  return {};
}

}  // namespace overcap
