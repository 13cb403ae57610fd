// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_wait.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>

#include "base/text.h"
#include "sys/clock.h"

namespace overcap {
namespace {

int64_t NowUs() {
  return PosixClock().MonotonicUs();
}

int PollMs(int64_t us) {
  return static_cast<int>(std::clamp<int64_t>((us + 999) / 1000, 0, 3'600'000));
}

}  // namespace

HttpWait::HttpWait(std::string peer, const HttpDeadlines& deadlines, const HttpCancel* cancel)
    : peer_(std::move(peer)), deadlines_(deadlines), cancel_(cancel), begin_us_(NowUs()) {}

void HttpWait::set_connecting(bool connecting) {
  connect_end_us_ = connecting ? NowUs() + deadlines_.connect_us : 0;
}

int64_t HttpWait::LeftUs() const {
  const int64_t now = NowUs();
  const int64_t total = begin_us_ + deadlines_.total_us - now;
  return std::min(total, connect_end_us_ != 0 ? connect_end_us_ - now : deadlines_.idle_us);
}

Error HttpWait::Late(bool idle) const {
  if (connect_end_us_ != 0)
    return {ErrorCode::kUnavailable,
            StrCat("'", peer_, "' could not be reached within ", deadlines_.connect_us / 1'000'000, " s"),
            ""};
  if (idle)
    return {ErrorCode::kUnavailable,
            StrCat("'", peer_, "' neither took nor gave anything for ", deadlines_.idle_us / 1'000'000, " s"),
            ""};
  return {ErrorCode::kUnavailable,
          StrCat("'", peer_, "' did not answer all within ", deadlines_.total_us / 1'000'000, " s"), ""};
}

Error HttpWait::Cancelled() const {
  return {ErrorCode::kConflict, StrCat("the request to '", peer_, "' was cancelled"), ""};
}

Result<void> HttpWait::MayGoOn() const {
  if (cancel_ != nullptr && cancel_->cancelled()) return Fail(Cancelled());
  if (begin_us_ + deadlines_.total_us <= NowUs()) return Fail(Late(false));
  return {};
}

Result<short> HttpWait::For(int fd, short events) const {
  OC_TRY(ready, For(fd, events, HttpDeadlines::kNever));
  if (ready != 0) return ready;
  return Fail(Late(begin_us_ + deadlines_.total_us > NowUs()));
}

Result<short> HttpWait::For(int fd, short events, int64_t most_us) const {
  const int64_t end = NowUs() + std::min(LeftUs(), most_us);
  pollfd fds[2] = {{fd, events, 0}, {cancel_ != nullptr ? cancel_->fd() : -1, POLLIN, 0}};
  while (true) {
    const int64_t left = end - NowUs();
    const int count = poll(fds, 2, PollMs(left));
    if (count < 0 && errno != EINTR) return Fail(ErrnoError(errno, StrCat("cannot wait for '", peer_, "'")));
    if (count > 0 && fds[1].revents != 0) return Fail(Cancelled());
    if (count > 0 && fds[0].revents != 0) return fds[0].revents;
    if (left <= 0) return short{0};
  }
}

}  // namespace overcap
