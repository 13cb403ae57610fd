// SPDX-License-Identifier: Apache-2.0
// The lock that makes an engine (or a repair) the only one of its root, on all hosts that see it
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
  std::string host, boot_id;  // "": written before there was this
  bool ended = false;         // it has given the lock back
  // The boot and host in which an engine last read the journal to its end: holders that could not keep what
  // an earlier one wrote here.
  std::string opened_boot_id, opened_host;
};
LockHolder ParseLockHolder(std::string_view text);

// Whether a lock on the file system that /proc/self/mountinfo lists with this device is seen on this host
// alone.
bool LocksStayOnHost(std::string_view mountinfo, std::string_view device);

class RootLock {
 public:
  // kConflict while a process of this host holds it; kUnavailable, which names the host, while another host
  // has it or may have it. `gone`: the name of a host of which the user says that it will not come back.
  static Result<RootLock> Take(const std::string& root, std::string_view gone = "");
  RootLock(RootLock&& other) noexcept = default;
  RootLock& operator=(RootLock&& other) noexcept = delete;
  ~RootLock();  // gives it back

  const LockHolder& before() const { return before_; }  // who had it last
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
