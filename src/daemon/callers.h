// SPDX-License-Identifier: Apache-2.0
// Who is let in at the engine's socket, and how much each may take.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "daemon/asker.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/user_area_files.h"

namespace overcap {

// Bounds of one user (model/request_limits.h); 0: no bound. Root has none.
struct CallerBounds {
  size_t connections = 0;
  size_t connections_when_full = 0;  // while fewer than half of the places are free
  size_t places_of_root = 0;         // places kept for root
  uint32_t request_bytes = 0;
  size_t held_bytes = 0;         // of incomplete requests, over all connections of the user
  size_t unread_bytes = 0;       // of unread replies, likewise; beyond that nothing is answered
  size_t requests_per_turn = 0;  // of one connection
  int64_t turn_us = 0;           // of the engine's time, over all connections
  int64_t stall_us = 0;  // a connection in the middle of something that does not move for so long is closed
};

class Callers {
 public:
  virtual ~Callers() = default;
  // Whether this user is served at all; asked before a connection is read.
  virtual Result<void> Admits(uid_t uid) = 0;
  // All about the other end; asked when its first request has come.
  virtual Result<Asker> Identify(const Fd& connection) = 0;
  virtual CallerBounds Bounds() const { return {}; }
};

// The engine of one user serves that user.
class OneCaller : public Callers {
 public:
  Result<void> Admits(uid_t uid) override;
  Result<Asker> Identify(const Fd& connection) override;
};

// The engine of the machine serves everybody, each as the kernel says who it is.
class ManyCallers : public Callers {
 public:
  ManyCallers(UserAreaFiles& areas, const Clock& clock, int stall_seconds)
      : areas_(areas), clock_(clock), stall_seconds_(stall_seconds) {}
  // Serves the users in the machine's user database, which does not list the 65,536 subordinate ids that each
  // of them may have.
  Result<void> Admits(uid_t uid) override;
  Result<Asker> Identify(const Fd& connection) override;
  CallerBounds Bounds() const override;

 private:
  struct Name {
    std::string text;  // "": the database does not know the user
    int64_t at_us = 0;
    bool asked = false;
  };
  const std::string& NameOf(uid_t uid);

  UserAreaFiles& areas_;
  const Clock& clock_;
  const int stall_seconds_;
  std::map<uid_t, Name> names_;  // looking one up may take a while
};

}  // namespace overcap
