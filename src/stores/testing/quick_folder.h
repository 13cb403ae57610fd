// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>
#include <string>
#include <unistd.h>

#include "sys/remove_tree.h"

namespace overcap {

// A fresh folder in memory where there is such a file system, else in /tmp: for tests that sync hundreds of
// times and are not about disks. $OVERCAP_TEST_QUICK_FOLDER names another place, for those that are. Removed
// with all in it at the end.
class QuickFolder {
 public:
  QuickFolder() {
    const char* wanted = getenv("OVERCAP_TEST_QUICK_FOLDER");
    if (wanted == nullptr) wanted = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    path_ = std::string(wanted) + "/overcap-test-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) abort();
  }
  ~QuickFolder() { (void)RemoveTree(path_); }
  QuickFolder(const QuickFolder&) = delete;
  QuickFolder& operator=(const QuickFolder&) = delete;

  const std::string& Path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace overcap
