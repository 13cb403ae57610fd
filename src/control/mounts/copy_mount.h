// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/result.h"
#include "control/mounts/changed_files.h"
#include "control/stores/open_store.h"
#include "model/mount_spec.h"

namespace overcap {

// A store that a job has a copy of.
class CopyMount {
 public:
  struct Request {
    MountSpec mount;
    StorePlace place;
    std::string folder;    // where the copy is made
    std::string had_file;  // what was there when the job began
    std::string kept;      // where copies wait for the next job
  };
  struct Hooks {
    const std::atomic<bool>* stop = nullptr;
    std::function<void()> alive = {};
    std::function<void(const std::string&)> note = {};
  };
  CopyMount(Request request, const StoreBook* book) : in_(std::move(request)), book_(*book) {}

  // The folder is the store then; nothing is left behind after an error.
  Result<void> Download(const Hooks& hooks);
  // What the job changed is in the store when it returns, and the folder is gone. After an error both are as
  // they were.
  Result<void> Release(const Hooks& hooks);
  // Without uploading anything.
  Result<void> Drop();

 private:
  Result<void> Fill(const Hooks& hooks);
  Result<void> Upload(const Hooks& hooks);
  Result<void> Keep(const CopyStamps& now);
  Result<std::unique_ptr<Store>> OpenCopy() const;
  std::string KeptPlace() const;

  const Request in_;
  const StoreBook& book_;
};

// Removes kept copies that nobody has taken for so long.
void RemoveOldCopies(const std::string& kept, int64_t older_than_seconds, int64_t now_seconds);

}  // namespace overcap
