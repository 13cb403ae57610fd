// SPDX-License-Identifier: Apache-2.0
// Folders for the tests of src/snapshot: made, and described so that two can be compared.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/store.h"
#include "sys/clock.h"
#include "sys/testing/temp_folder.h"

namespace overcap {

// Makes the file and the folders above it.
void PutFile(const std::string& path, std::string_view content, bool executable = false);

// Path -> "dir", "link TARGET", "file CONTENT" or "exec CONTENT" for all below the folder.
std::map<std::string, std::string> Describe(const std::string& folder);

// The machine's time plus an offset that tests move; one hour ahead at first, so that no file is racily
// clean.
class OffsetClock : public Clock {
 public:
  int64_t WallUs() const override { return real_.WallUs() + offset_us_; }
  int64_t MonotonicUs() const override { return real_.MonotonicUs(); }
  void SetOffset(int64_t us) { offset_us_ = us; }

 private:
  PosixClock real_;
  int64_t offset_us_ = int64_t{3600} * 1'000'000;
};

// Runs a program without a shell; its stdout, or "" with a failure of the test when it cannot run or fails
// with another status than 0 and 1.
std::string RunProgram(const std::vector<std::string>& argv, const std::string& folder,
                       std::string_view input = {});
bool GitIsThere();

// In root/store, one that does not wait long for a lock.
SnapshotStore OpenTestStore(const TempFolder& temp, const Clock* clock = nullptr);

}  // namespace overcap
