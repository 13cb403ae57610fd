// SPDX-License-Identifier: Apache-2.0
// What srun, Open MPI, Hydra and PALS say when ranks or hosts fail, understood. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/process.h"

namespace overcap {

// One thing that a launcher has said. At least one of rank, pid and host is told.
struct LauncherFinding {
  int rank = -1;                  // -1: not told
  long long pid = 0;              // on `host`; 0: not told
  std::string host;               // as the launcher calls it; "": not told
  std::optional<ProcessEnd> end;  // of the rank, or of the process
  bool aborted = false;           // it called MPI_Abort: others that died with it did not fail by themselves
  bool out_of_memory = false;
  bool host_failed = false;  // not the rank's fault: `host` cannot be used
  std::string text;          // the line that says so
  bool operator==(const LauncherFinding&) const = default;
};

// Takes the words as they come, in any pieces.
class LauncherWords {
 public:
  void Feed(std::string_view bytes);
  void End();  // a last line without an end is one, too
  const std::vector<LauncherFinding>& findings() const { return findings_; }
  // The last lines that say something, oldest first: no rules, no empty ones.
  std::vector<std::string> LastLines(size_t count) const;

 private:
  void Line(std::string_view line);
  bool SrunLine(std::string_view line);
  bool OpenMpiLine(std::string_view line);
  bool HydraLine(std::string_view line);
  bool PalsLine(std::string_view line);
  bool SshLine(std::string_view line);
  void HostFailed(std::string_view host, std::string_view line);

  std::string rest_;  // a line that has not ended yet
  std::vector<LauncherFinding> findings_;
  std::vector<std::string> last_;
  LauncherFinding block_;     // that several lines tell
  bool lost_daemon_ = false;  // Open MPI is about to name a host
};

}  // namespace overcap
