// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "agent/agent.h"
#include "model/agent_report.h"
#include "model/job_spec.h"
#include "sys/testing/temp_folder.h"

namespace overcap {

// A root with a store and one job, whose agents run as processes of their own.
class AgentWorld {
 public:
  AgentWorld();

  JobSpec spec;          // changed by the test before the first agent
  AgentOptions options;  // of slot 0; short grace

  std::string Root() const { return folder_.Path(); }
  std::string Job() const { return options.job_dir; }
  std::string Attempt() const;
  void SetEnvironment(const std::vector<std::string>& entries);  // PATH is always in it
  void Shell(const std::string& script);                         // the command of the job
  void Save();                                                   // writes spec.json and the folders

  pid_t Start(int slot = 0);
  pid_t Start(const AgentOptions& other);
  int Wait(pid_t agent);  // exit status; -1 after a minute, or when it died
  // Save, Start, Wait, and the end: "failed 7 0 rank 1: reason".
  std::string Run();

  AgentReport Report(int slot = 0) const;
  std::string End(int slot = 0) const;
  std::string File(const std::string& name) const;      // of the attempt's folder
  std::string Scratch(const std::string& name) const;   // of the folder $DIR that the ranks see
  bool Appears(const std::string& scratch_name) const;  // waits for it
  bool IsGone(const std::string& pid_file) const;       // the process whose number is in this scratch file

 private:
  TempFolder folder_;
};

std::string Describe(const Ending& ending);
// Polls until it holds; false after half a minute.
bool Eventually(const std::function<bool()>& condition);
std::string ReadWhole(const std::string& path);

}  // namespace overcap
