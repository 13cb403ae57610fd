// SPDX-License-Identifier: Apache-2.0
// A job's variables kept for later shells: files of `export NAME='value'` lines in <root>/env/.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"
#include "sys/files.h"
#include "sys/variables.h"

namespace overcap {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

// "export NAME='value'\n" for each; a shell reads back every byte. What has no proper name, or a NUL or
// newline in its value, is left out.
std::string ExportLines(const NamedValues& values);

// What may be given to another shell of the job: the variables of PBS and Slurm without those that tell about
// one task, step or terminal, and without any that could be a secret. What was restored comes last.
NamedValues JobVariables(const Variables& variables, const Allocation& allocation);

// OVERCAP_NHOSTS, OVERCAP_GPUS_PER_HOST, OVERCAP_WORLD_SIZE, OVERCAP_HOSTS, OVERCAP_JOB ("" outside a job).
NamedValues FactsOf(const Allocation& allocation, int world_size);

// "slurm-123"; the scheduler's name alone outside a job.
std::string SavedName(const Allocation& allocation);

// Keeps them under that name and as the latest. Nobody else can read the file; a reader sees all or nothing.
Result<std::string> SaveEnvironment(const std::string& root, const std::string& name,
                                    const NamedValues& values, Files& files);

struct SavedEnvironment {
  std::string name;       // "slurm-123"
  std::string scheduler;  // "slurm"
  std::string job_id;     // "123"; "": it was saved outside a job
  NamedValues values;
};
// `job` is "" (the latest), an id ("123", also without PBS's server name) or a saved name ("slurm-123"):
// always a whole one. kNotFound when it was not saved, kConflict when several fit, kCorrupt when the file
// holds anything but export lines.
Result<SavedEnvironment> LoadEnvironment(const std::string& root, std::string_view job, const Files& files);

}  // namespace overcap
