// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/options.h"
#include "base/text.h"

namespace overcap {

// Names of the files of one attempt (docs/formats/job-folder.md).
class AttemptFolder {
 public:
  explicit AttemptFolder(const AgentOptions& options)
      : spec_(StrCat(options.job_dir, "/spec.json")),
        folder_(StrCat(options.job_dir, "/attempt-", options.attempt)),
        agent_(StrCat(folder_, "/agent-", options.slot)),
        slot_(options.slot) {}

  const std::string& Path() const { return folder_; }
  const std::string& Spec() const { return spec_; }
  std::string Claim() const { return agent_ + ".claim"; }
  std::string Report() const { return agent_ + ".jsonl"; }
  std::string Requeue() const {
    return slot_ == 0 ? folder_ + "/requeue" : StrCat(folder_, "/requeue-", slot_);
  }
  std::string Code() const { return folder_ + "/code"; }
  std::string OwnCode() const { return StrCat(folder_, "/code-", slot_); }  // of one slot
  std::string Environment() const { return folder_ + "/environment"; }
  std::string ScriptTools() const { return folder_ + "/tools"; }
  // Made by the stand-in of `scontrol requeue`; its presence is all that counts.
  std::string RequeueAsked() const { return folder_ + "/requeue-asked"; }
  std::string NextTask() const { return folder_ + "/next-task"; }
  std::string Log(int rank) const { return StrCat(folder_, "/rank-", rank, ".log"); }
  std::string TaskLog(int task, int attempt, int rank) const {
    if (attempt == 1) return StrCat(folder_, "/task-", task, ".rank-", rank, ".log");
    return StrCat(folder_, "/task-", task, ".try-", attempt, ".rank-", rank, ".log");
  }

 private:
  std::string spec_, folder_, agent_;
  int slot_;
};

}  // namespace overcap
