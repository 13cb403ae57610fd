// SPDX-License-Identifier: Apache-2.0
// A user's own batch script: its interpreter and its directives, read as sbatch reads them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct BatchOption {
  std::string name;   // long, without dashes, never abbreviated: "partition"
  std::string value;  // "" for a switch
  int line = 0;
  bool operator==(const BatchOption&) const = default;

  std::string Text() const;  // "--partition=short", "--requeue": as sbatch takes it
};

struct BatchScript {
  std::vector<std::string> interpreter;  // of its first line: {"/bin/bash", "-l"}
  std::vector<BatchOption> options;      // in their order
};

// Whether the text is a script with at least one directive before its first command.
bool IsBatchScript(std::string_view text);

// The words behind `srun`: its options, up to the first word of the command. kUsage "srun: ...".
struct SrunWords {
  std::vector<BatchOption> options;
  std::vector<std::string> command;
};
Result<SrunWords> ParseSrunWords(const std::vector<std::string>& words);

// kUsage "job.sh:3: ..." for what sbatch would refuse. Options that are not known are kept as they are: there
// are newer Slurms.
Result<BatchScript> ParseBatchScript(std::string_view text, std::string_view name);

}  // namespace overcap
