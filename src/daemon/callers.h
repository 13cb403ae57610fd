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

// What one user may take of the engine; 0: no bound. Root has none.
struct CallerBounds {
  size_t connections = 0;
  uint32_t request_bytes = 0;
  size_t unread_bytes =
      0;  // of replies, over all connections of the user; more is not answered before they go
  size_t requests_per_turn = 0;
  int64_t stall_us = 0;  // a connection in the middle of something that does not move for so long is closed
};

class Callers {
 public:
  virtual ~Callers() = default;
  // Who is at the other end; an error: nobody who is served.
  virtual Result<Asker> Identify(const Fd& connection) = 0;
  virtual CallerBounds Bounds() const { return {}; }
};

// The engine of one user serves that user.
class OneCaller : public Callers {
 public:
  Result<Asker> Identify(const Fd& connection) override;
};

// The engine of the machine serves everybody, each as the kernel says who it is.
class ManyCallers : public Callers {
 public:
  ManyCallers(UserAreaFiles& areas, const Clock& clock, int stall_seconds)
      : areas_(areas), clock_(clock), stall_seconds_(stall_seconds) {}
  Result<Asker> Identify(const Fd& connection) override;
  CallerBounds Bounds() const override;

 private:
  struct Name {
    std::string text;
    int64_t at_us = 0;
  };
  const std::string& NameOf(uid_t uid);

  UserAreaFiles& areas_;
  const Clock& clock_;
  const int stall_seconds_;
  std::map<uid_t, Name> names_;  // looking one up may take a while
};

}  // namespace overcap
