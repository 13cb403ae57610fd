// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace overcap {

struct TypedGpus {
  std::string type;  // as the cluster calls it; "": not told
  int count = 0;
  bool operator==(const TypedGpus&) const = default;
};

int GpuCountOf(const std::vector<TypedGpus>& gpus);  // of all types
int GpuCountOf(const std::vector<TypedGpus>& gpus, std::string_view type);

}  // namespace overcap
