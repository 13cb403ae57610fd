// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "net/http/http_cancel.h"
#include "net/http/http_message.h"

namespace overcap {

// The waits of one request: until a socket is ready, a deadline has passed or it is cancelled.
class HttpWait {
 public:
  // `peer` is for messages; `cancel` may be null.
  HttpWait(std::string peer, const HttpDeadlines& deadlines, const HttpCancel* cancel);

  // While connecting, the deadline for that counts instead of the idle one.
  void set_connecting(bool connecting);
  // Of poll's `events` those that are there now. kUnavailable at a deadline, kConflict when cancelled.
  Result<short> For(int fd, short events) const;
  // At most so long, for one of several addresses; 0: that has passed.
  Result<short> For(int fd, short events, int64_t most_us) const;
  // For who need not wait, because there is always more: the same errors, once the deadline for all has
  // passed or it is cancelled.
  Result<void> MayGoOn() const;
  int64_t LeftUs() const;  // until the nearer of the deadlines
  const std::string& peer() const { return peer_; }

 private:
  Error Late(bool idle) const;
  Error Cancelled() const;

  const std::string peer_;
  const HttpDeadlines deadlines_;
  const HttpCancel* const cancel_;
  const int64_t begin_us_;
  int64_t connect_end_us_ = 0;  // 0: not connecting
};

}  // namespace overcap
