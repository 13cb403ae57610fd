// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace overcap {

// While it lives, what processes of this host write to files directly in the folder is seen by other hosts a
// second later. NFS and SMB keep it for half a minute otherwise; elsewhere, and where no thread can be
// started, this does nothing. Never waits for the file server.
class PromptFolder {
 public:
  explicit PromptFolder(const std::string& folder);
  ~PromptFolder();
  PromptFolder(const PromptFolder&) = delete;
  PromptFolder& operator=(const PromptFolder&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // nullptr: nothing to do
};

}  // namespace overcap
