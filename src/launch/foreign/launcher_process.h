// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/foreign/launcher_words.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace overcap {

// The srun or mpiexec of an attempt: what it says goes to launcher.log and is understood; what it writes to
// stdout is also shown at once, on ours. Its stderr is shown once it is clear that ranks speak through it.
class LauncherProcess {
 public:
  ~LauncherProcess();

  Result<void> Start(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                     const std::string& folder, const std::string& log_folder);

  void AddFds(std::vector<pollfd>* fds) const;
  // Reads and shows what goes now; true when it said something.
  bool Step();
  // From now on its stderr is shown, too, with what it has said so far.
  void ShowErrors();
  // From now on nothing of it is shown: it tells about a failure that is known better from its hosts.
  void Hush() { hushed_ = true; }
  // It has ended, and all that it said has been read. Then its words are complete.
  bool Ended() const { return end_ && !out_ && !err_; }
  bool Exited() const { return end_.has_value(); }
  const std::optional<ProcessEnd>& end() const { return end_; }
  const LauncherWords& words() const { return words_; }
  bool RanksSpeakThroughIt() const { return ranks_speak_; }

  void Signal(int sig) const;  // to its process group; nothing when it has ended
  void CloseOutput();          // somebody still holds it, and nobody waits for that any more
  void ShowRest();             // what is left to be shown, waiting

 private:
  bool Take(Fd* fd, bool is_error);
  void Show();

  pid_t pid_ = -1;
  Fd pidfd_, out_, err_, log_;
  std::optional<ProcessEnd> end_;
  LauncherWords words_;
  std::string shown_[2];  // still to be written to our stdout and stderr
  bool show_errors_ = false, ranks_speak_ = false, hushed_ = false;
  std::string held_errors_;
};

}  // namespace overcap
