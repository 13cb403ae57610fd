// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/log_watch.h"

#include <algorithm>
#include <fcntl.h>
#include <signal.h>

namespace overcap {

constexpr int kFilesPerStep = 128;

// dnotify tells once, of anything in the folder, by a signal; unlike inotify it costs nothing to let go of
// it.
LogWatch::LogWatch(const std::string& folder, int files, int64_t now_us, bool told)
    : shortest_us_(kStepUs * (1 + files / kFilesPerStep)), step_us_(shortest_us_) {
  auto inbox = told ? SignalInbox::Make({SIGIO}) : Result<SignalInbox>(SignalInbox());
  if (told && inbox) {
    inbox_ = std::move(*inbox);
    folder_ = Fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  armed_ = AskToBeTold();
  next_us_ = now_us + (armed_ ? kAnywayUs : step_us_);
}

bool LogWatch::AskToBeTold() {
  if (!folder_) return false;
  (void)inbox_.Take();  // of before
  if (fcntl(folder_.Get(), F_NOTIFY, DN_MODIFY) == 0) return true;
  folder_.Reset();
  return false;
}

int64_t LogWatch::Prepare(std::vector<pollfd>* fds) const {
  if (armed_) fds->push_back({inbox_.PollFd(), POLLIN, 0});
  return next_us_;
}

bool LogWatch::Look(int64_t now_us, const std::function<bool()>& grown) {
  const bool told = armed_ && !inbox_.Take().empty();
  if (!told && now_us < next_us_) return false;
  armed_ = armed_ && !told;
  bool any = grown();
  if (any) armed_ = false;  // it grows: looked at by the clock, told or not
  // What came between the look and the question would not be told.
  if (!any && !armed_) {
    armed_ = AskToBeTold();
    if (armed_) any = grown();
  }
  step_us_ = any || told ? shortest_us_ : std::min(2 * step_us_, std::max(kLongestUs, shortest_us_));
  next_us_ = now_us + (armed_ ? kAnywayUs : step_us_);
  return any;
}

}  // namespace overcap
