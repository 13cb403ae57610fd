// SPDX-License-Identifier: Apache-2.0
// A writers/ object and its beat (docs/formats/snapshot.md, "Writers and prune").
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "snapshot/repository/condemned_list.h"
#include "snapshot/repository/presence_record.h"
#include "snapshot/repository/repository.h"

namespace overcap {

constexpr int64_t kBeatEveryUs = 20'000'000;
// After so long without a beat it might have been given up, whatever can be seen of it.
constexpr int64_t kBeatLateUs = 600'000'000;

// There from Register until it is destroyed; a thread of its own keeps the beat.
class WriterPresence {
 public:
  // Puts the object, then lists condemned/. kCorrupt when an object there cannot be read.
  static Result<std::unique_ptr<WriterPresence>> Register(const Repository& repository, bool prune);
  ~WriterPresence();
  WriterPresence(const WriterPresence&) = delete;
  WriterPresence& operator=(const WriterPresence&) = delete;

  std::string id() const;
  // As it was listed; what it names stays condemned for this writer.
  const CondemnedList& condemned() const { return condemned_; }
  // False: a prune has, or may have, given this writer up. Stays so until RegisterAgain.
  Result<bool> StillThere();
  // For who waits by the repository's clock: beats when it is time.
  void BeatIfDue();
  // Under a new id. What was relied on before must be looked for again after this.
  Result<void> RegisterAgain();

 private:
  WriterPresence(const Repository& repository, bool prune);
  Result<void> Put();    // with mutex_
  void Beat();           // with mutex_
  void NoteTime();       // with mutex_
  bool TooLate() const;  // with mutex_
  void Run();

  const Repository& repository_;
  CondemnedList condemned_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stop_ = false;
  bool lost_ = false;
  std::string id_;
  WriterRecord record_;
  int64_t wall_us_ = 0, monotonic_us_ = 0;  // of the last beat
  std::thread thread_;
};

}  // namespace overcap
