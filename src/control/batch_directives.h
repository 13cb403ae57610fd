// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "clusters/cluster.h"
#include "control/batch_script.h"
#include "control/job_request.h"

namespace overcap {

// What the directives of a batch script ask for, gathered before it is known how many nodes and ranks there
// are.
class BatchDirectives {
 public:
  BatchDirectives(std::string_view script, const Capabilities& can) : script_(script), can_(can) {}

  Result<void> Take(const BatchOption& option);
  // Fills what `request` does not say itself.
  void Complete(JobRequest* request);
  const std::vector<Dependency>& after() const { return wanted_.after; }

 private:
  using Handler = Result<void> (BatchDirectives::*)(const BatchOption&);
  struct Row {
    std::string_view name;
    Handler take;
  };
  static const Row kRows[];

  Result<void> TakeName(const BatchOption& option);
  Result<void> TakePlace(const BatchOption& option);
  Result<void> TakeNodes(const BatchOption& option);
  Result<void> TakeCount(const BatchOption& option);
  Result<void> TakeMemory(const BatchOption& option);
  Result<void> TakeTime(const BatchOption& option);
  Result<void> TakeGres(const BatchOption& option);
  Result<void> TakeGpus(const BatchOption& option);
  Result<void> TakeArray(const BatchOption& option);
  Result<void> TakeSwitch(const BatchOption& option);
  Result<void> TakeSignal(const BatchOption& option);
  Result<void> TakeExport(const BatchOption& option);
  Result<void> TakeFolder(const BatchOption& option);
  Result<void> TakeDependency(const BatchOption& option);
  Result<void> TakeAsIs(const BatchOption& option);
  Result<void> TakeNothing(const BatchOption&) { return {}; }
  Result<void> NoteOutput(const BatchOption& option);
  Result<void> NoteOwn(const BatchOption& option);
  Result<void> Refuse(const BatchOption& option);

  tl::unexpected<Error> Bad(const BatchOption& option, std::string_view why, std::string hint = {}) const {
    return Fail(ErrorCode::kUsage,
                StrCat(ToUtf8(script_), ":", option.line, ": ", Quoted(option.Text()), " ", why),
                std::move(hint));
  }
  void Note(const BatchOption& option, std::string_view why) {
    wanted_.notes.push_back(
        StrCat(ToUtf8(script_), ":", option.line, ": ", Quoted(option.Text()), " is not applied: ", why));
  }
  void CompleteRanks(JobRequest* request);
  void CompleteGpus(JobRequest* request);
  void CompletePlacement(JobRequest* request);

  std::string_view script_;
  const Capabilities& can_;
  JobRequest wanted_;
  std::optional<int> tasks_, tasks_per_node_, cpus_per_task_;
  std::optional<int> gpus_, gpus_per_node_, gpus_per_task_;
  std::vector<std::string> not_here_;  // what this cluster has no place for
  std::vector<std::string> outputs_;
};

}  // namespace overcap
