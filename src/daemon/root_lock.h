// SPDX-License-Identifier: Apache-2.0
// The lock that lets one engine or repair at a time work on a root, on all hosts that see it
// (docs/formats/job-folder.md, "daemon.lock").
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// What daemon.lock says about its last holder.
struct LockHolder {
  int64_t pid = 0;
  std::string host, boot_id;  // "": written by an older program
  bool ended = false;         // it has given the lock back
  // The boot and host in which an engine last read the journal to its end. Later holders that have not done
  // so keep the values.
  std::string opened_boot_id, opened_host;
};
LockHolder ParseLockHolder(std::string_view text);

// Whether locks on the file system that /proc/self/mountinfo lists with this device are seen on this host
// only.
bool LocksStayOnHost(std::string_view mountinfo, std::string_view device);

class RootLock {
 public:
  // kConflict while a process of this host holds it; kUnavailable, which names the host, while another host
  // has it or may have it. `gone`: a host that, by the user's word, will not come back.
  static Result<RootLock> Take(const std::string& root, std::string_view gone = "");
  RootLock(RootLock&& other) noexcept = default;
  RootLock& operator=(RootLock&& other) noexcept = delete;
  ~RootLock();  // gives it back

  const LockHolder& before() const { return before_; }  // its last holder
  void Opened();                                        // the journal has been read

 private:
  RootLock(Fd file, LockHolder before) : file_(std::move(file)), before_(std::move(before)) {}

  void Write(bool ended) const;

  Fd file_;
  LockHolder before_;
};

// What to type when a host that cannot be reached from here has the jobs of `root`.
std::string OtherHostHint(std::string_view host);

}  // namespace overcap
