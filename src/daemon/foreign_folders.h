// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sys/files.h"

namespace overcap {

// The folders under <root>/jobs that are not the engine's: clusters with a scheduler of their own keep their
// jobs there too (docs/formats/slurm-job.md), and the engine leaves them alone.
class ForeignFolders {
 public:
  ForeignFolders(const Files& files, std::string root);

  bool Has(const std::string& id) const;
  // Those under <root>/jobs that it has not.
  std::vector<std::string> OwnIds() const;

 private:
  const Files& files_;
  std::string root_;
  std::set<std::string> open_;  // that a cluster has on its list; a job stands there before it has a folder
};

}  // namespace overcap
