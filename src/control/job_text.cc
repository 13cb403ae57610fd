// SPDX-License-Identifier: Apache-2.0
#include "control/job_text.h"

#include "base/text.h"
#include "clusters/plan_text.h"

namespace overcap {

std::string ResourcesLine(const JobRecord& record) {
  std::string line = ResourcesText(record.spec.resources);
  if (record.gpu_indices.empty()) return line;
  std::vector<std::string> indices;
  for (const int index : record.gpu_indices) indices.push_back(StrCat(index));
  return StrCat(line, "; has GPU ", Join(indices, ","));
}

}  // namespace overcap
