// SPDX-License-Identifier: Apache-2.0
// Where files are made that replace others, until they are renamed into their places.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "sys/fd.h"

namespace overcap {

// "restoring" in the folder that is never part of a snapshot; made at the first use. May be used from several
// threads.
class StagingFolder {
 public:
  // `keep_name` is made in the target if it is missing, and goes again with the staging folder then.
  StagingFolder(int target_fd, std::string keep_name);
  ~StagingFolder();

  // -1 and errno when it cannot be made.
  int Open();
  // "3/": a folder there for one thread, so that threads do not wait for each other; "" when it cannot be
  // made.
  std::string NewLane();
  // A name that nothing has, there or anywhere else in the target.
  std::string NewName();
  // Whether a name came and went in the target itself, which has changed its time.
  bool changed_target() const { return changed_target_; }
  // Whether what is made there inherits ACLs or a group; once it is open.
  bool hands_down() const { return hands_down_; }
  // Removes it with what an earlier restore may have left.
  void Remove();

 private:
  const int target_fd_;
  const std::string keep_name_;
  std::atomic<uint64_t> next_ = 0;
  std::atomic<bool> changed_target_ = false;
  std::atomic<bool> hands_down_ = true;
  std::mutex mutex_;  // guards what follows
  Fd parent_, fd_;
  bool made_parent_ = false;
};

}  // namespace overcap
