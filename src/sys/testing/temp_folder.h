// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>
#include <string>

#include "sys/remove_tree.h"

namespace overcap {

// A fresh folder for one test, removed with all in it at the end.
class TempFolder {
 public:
  TempFolder() {
    const char* base = getenv("TMPDIR");
    path_ = std::string(base != nullptr && base[0] == '/' ? base : "/tmp") + "/overcap-test-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) abort();
  }
  ~TempFolder() { (void)RemoveTree(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& Path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace overcap
