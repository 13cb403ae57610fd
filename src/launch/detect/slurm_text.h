// SPDX-License-Identifier: Apache-2.0
// What Slurm's variables and programs say, taken apart. Pure; nothing here trusts its input.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/detect/found_job.h"
#include "sys/capture_output.h"

namespace overcap {

// "2", "a40:2", "gpu:a40:2(S:0-1)", "gres:gpu:a40:2", "gres/gpu:a40=2", several of them with commas. Entries
// of other things than GPUs count nothing.
struct SlurmGpus {
  int count = 0;
  std::string type;  // of the first entry that tells one, normalised
};
std::optional<SlurmGpus> ParseSlurmGpus(std::string_view text);  // nullopt: not such a text

// "2(x2),1" -> {2, 2, 1}; empty when it is no such text.
std::vector<int> ParseTasksPerNode(std::string_view text);

// What `squeue -h -j ID -o %T` answered about one job.
JobLife SlurmLifeFrom(const Captured& answer);

// The lines of `squeue -h -o "%A|%S|%N"`; anything else among them (warnings) is skipped.
struct SlurmQueueLine {
  std::string id;
  std::string start;  // "2026-11-15T02:15:09": compares as text
  std::string node_list;
};
std::vector<SlurmQueueLine> ParseSqueueLines(std::string_view output);

// What `scontrol -o -d show job ID` says about a job.
struct SlurmJobText {
  std::string id, name, partition, node_list, work_dir, account;
  std::map<std::string, int> gpus;  // by host: what is allocated there; empty: not told
  std::string gpu_type;
  SlurmGpus per_node;  // asked for (--gpus-per-node, --gres); count 0: not told
};
// kCorrupt when the text is not about that very job.
Result<SlurmJobText> ParseScontrolJob(std::string_view output, std::string_view id);

// The parts of a step id that mean "no step of ranks": batch, extern, interactive.
bool IsRankStep(std::string_view step_id, std::string_view tasks);

}  // namespace overcap
