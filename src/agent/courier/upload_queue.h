// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "stores/segment_upload.h"
#include "stores/store.h"
#include "sys/clock.h"

namespace overcap {

// Uploads files that grow, in a thread of its own, for as long as it lives. The owner never waits for the
// store, but in Drain.
class UploadQueue {
 public:
  struct Options {
    std::function<Result<std::unique_ptr<Store>>()> open;
    std::function<void(Store*)> beside = {};  // done now and then, about every second, by the same thread
    int64_t backlog = 0;                      // bytes of all files that may wait; 0: no bound
    int64_t tick_us = 250'000;
  };
  struct Rest {
    int64_t unsent = 0;
    std::string why;  // of the last failure; "" after a success
  };

  explicit UploadQueue(Options options);
  ~UploadQueue();  // gives up what was not uploaded; may wait for a put that is under way
  UploadQueue(const UploadQueue&) = delete;

  void Add(const std::string& name, std::unique_ptr<SegmentUpload> upload);
  void Done(const std::string& name);  // it does not grow any more
  // Uploads without pauses until all that the files have now is in the store, or the time is over.
  Rest Drain(int64_t timeout_us);

 private:
  struct Item {
    std::unique_ptr<SegmentUpload> upload;  // only the thread touches it, but for its path
    bool done = false;
    int64_t sent = 0;  // after the last round
  };
  void Run();
  Result<bool> Round(bool hurry);
  void Pace(bool hurry);
  Rest RestNow() const;
  void NoteRound(const Result<bool>& round, bool hurry);
  void BoundBacklog(const std::map<std::string, Item*>& items);

  const Options options_;
  const PosixClock clock_;
  std::unique_ptr<Store> store_;  // only the thread touches it
  int64_t beside_us_ = 0;
  int64_t dropped_ = 0;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::map<std::string, Item> items_;
  bool stop_ = false;
  int64_t hurry_ = 0;   // how many wait in Drain
  int64_t rounds_ = 0;  // in a hurry, that ended with nothing left
  int64_t wanted_ = 0;  // Add and Done since
  Rest rest_;
  std::thread thread_;
};

}  // namespace overcap
