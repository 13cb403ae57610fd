// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "snapshot/tar/byte_stream.h"

namespace overcap {

// Hands bytes on in a thread of its own, so that compressing and writing go on beside reading; at most a few
// MiB wait. An error of `next` comes back from a later call. The destructor drops what waits.
class BackgroundSink : public ByteSink {
 public:
  explicit BackgroundSink(ByteSink& next);
  ~BackgroundSink() override;
  Result<void> Write(std::string_view bytes) override;
  // All was written and `next` is finished.
  Result<void> Finish() override;

 private:
  Result<void> Hand();  // piece_ goes into the queue
  void Work();

  ByteSink& next_;
  std::string piece_;
  std::mutex mutex_;  // guards all up to thread_
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  bool last_ = false, done_ = false, drop_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace overcap
