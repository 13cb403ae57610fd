// SPDX-License-Identifier: Apache-2.0
// The options of sbatch 22.05 and of its srun.
#pragma once

#include <string_view>
#include <vector>

namespace overcap {

enum class Takes { kNothing, kValue, kPerhaps };  // kPerhaps: only behind '='

struct SlurmOption {
  std::string_view name;
  char letter;  // 0: none
  Takes takes;
};

enum class SlurmProgram { kSbatch, kSrun };

// Where two options of the list have the same name or letter, the first counts.
std::vector<const SlurmOption*> OptionsOf(SlurmProgram program);

}  // namespace overcap
