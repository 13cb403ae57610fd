// SPDX-License-Identifier: Apache-2.0
// What a Slurm cluster looks like, read through its mirror.
#pragma once

#include <string>
#include <vector>

#include "clusters/cluster_view.h"
#include "clusters/slurm/slurm_context.h"
#include "clusters/slurm/slurm_picture.h"

namespace overcap {

class SlurmView : public ClusterView {
 public:
  // `context` must outlive it.
  explicit SlurmView(SlurmContext* context) : context_(context) {}

  Result<ClusterPicture> Picture(const PictureAges& ages) override;
  Result<std::vector<PastRun>> PastRuns() override;
  std::vector<std::string> Advise(const JobSpec& spec) override;
  std::vector<ClusterFinding> Check() override;

 private:
  enum class Jobs { kAll, kNone };  // a long queue takes its time to read
  // Fails only without jobs or nodes; of what else is missing `picture` has a note.
  Result<ClusterPicture> MakePicture(const PictureAges& ages, int64_t rare_age_us, Jobs jobs);
  Result<void> ReadJobs(int64_t age_us, SlurmFacts* facts, ClusterPicture* about);
  Result<void> ReadRest(int64_t nodes_age_us, int64_t rare_age_us, SlurmFacts* facts, ClusterPicture* about);
  template <typename Parse>
  auto ReadRare(MirrorKind kind, int64_t age_us, Parse parse, ClusterPicture* about)
      -> std::decay_t<decltype(*parse(std::string_view()))>;

  SlurmContext* context_;
};

}  // namespace overcap
