// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <poll.h>
#include <string>
#include <vector>

#include "launch/foreign/launch_contact.h"
#include "net/handshake.h"
#include "sys/fd.h"

namespace overcap {

// Looks for the head of a launch at all its addresses at once; the first that proves to know the key is it.
// Its name is resolved too, beside, when no address has answered soon. Nothing here waits.
class HeadSearch {
 public:
  // Gives up after `limit_us`. Times are monotonic.
  HeadSearch(const LaunchContact& contact, LinkKey key, Random& random, int64_t now_us, int64_t limit_us);
  ~HeadSearch();

  void AddFds(std::vector<pollfd>* fds) const;
  // Goes as far as it can now, whichever descriptors are ready.
  void Step(int64_t now_us);
  int64_t NextUs() const;  // when Step wants to be called at the latest

  bool Found() const { return static_cast<bool>(found_); }
  bool Failed() const { return failed_; }
  Fd TakeConnection() { return std::move(found_); }
  const std::string& why() const { return why_; }  // of the last address that failed

 private:
  struct Try;
  void Begin(const std::string& address);
  bool Advance(Try* each);  // false: it has failed
  void ResolveBeside();
  void TakeResolved();

  const std::string head_host_;
  const int port_;
  const LinkKey key_;
  Random& random_;
  const int64_t resolve_at_us_, deadline_us_;
  std::vector<std::unique_ptr<Try>> tries_;
  std::vector<std::string> known_;  // addresses that were tried
  Fd resolved_;                     // addresses, a line each, as they are found; the end: no more
  bool resolving_ = false, resolve_done_ = false;
  std::string resolved_text_;
  Fd found_;
  bool failed_ = false;
  std::string why_ = "it has no address";
};

}  // namespace overcap
