// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "control/mounts/mounter_command.h"

namespace overcap {

// One store that a mounter shows as a folder. Its mounter is told to end when the thread that started it
// does.
class FuseMount {
 public:
  struct Request {
    std::string mounter;
    MounterCommand command;
    MountPlaces places;
    std::vector<std::string> env;  // of the keeper
    bool writes = false;
  };
  explicit FuseMount(Request request) : in_(std::move(request)) {}

  // Mounted and readable when it returns; nothing is left behind after an error.
  Result<void> Start(const std::function<bool()>& stopped);
  // Starts a mounter that has ended again; what happened is in `note`.
  Result<void> Tend(std::string* note);
  // Waits for what is on its way to the store, then takes the mount away. `alive` is called meanwhile.
  // kUnavailable, and nothing that is not in the store is removed, when that takes too long.
  Result<void> Release(const std::function<void()>& alive);

 private:
  Result<void> MakePlaces();
  Result<void> Launch(const std::function<bool()>& stopped);
  Result<void> Spawned();
  Result<void> WaitMounted(const std::function<bool()>& stopped);
  Result<void> Probe() const;
  bool IsMounted() const;
  bool HasEnded();
  void End(bool at_once);
  void TakeAway();
  Result<int64_t> WaitForUploads(const std::function<void()>& alive);
  std::string LastWords() const;

  Request in_;
  pid_t pid_ = -1;
  int64_t log_begin_ = 0;
  int restarts_ = 0;
};

// `overcap agent mounts --probe FOLDER`: 0 when it can be read.
int ProbeFolder(const std::string& folder);

}  // namespace overcap
