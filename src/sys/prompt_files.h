// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace overcap {

// Begins to send to the file server what is written and was kept here. Waits for nothing.
void SendOn(int fd);

// While it lives, what processes of this host append to these files is seen by other hosts a second later:
// NFS and SMB keep it for half a minute otherwise. Elsewhere, and where no thread can be started, this does
// nothing. Its end waits for nothing.
class PromptFiles {
 public:
  // Files that are not there yet are looked for until they are.
  explicit PromptFiles(std::vector<std::string> paths);
  ~PromptFiles();
  PromptFiles(const PromptFiles&) = delete;
  PromptFiles& operator=(const PromptFiles&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // nullptr: nothing to do
};

}  // namespace overcap
