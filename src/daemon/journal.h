// SPDX-License-Identifier: Apache-2.0
// The engine's append-only journal (docs/formats/journal.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "sys/files.h"

namespace overcap {

class Journal {
 public:
  Journal(Files& files, std::string path) : files_(files), path_(std::move(path)) {}

  // Reads all records, in order, into `replay`, cuts a torn last one off, and opens for appending. kCorrupt
  // with file, line and what to type when a record in the middle is damaged; nothing is changed then.
  Result<void> Open(const std::function<Result<void>(Event)>& replay);
  // Replaces the content by these events: the old journal stays complete until the new one is durable.
  Result<void> Rewrite(const std::vector<Event>& events);

  // All events or, with an error, none of them. Not durable before Commit(). The reserve is for what ends,
  // frees or stops something: anything else is refused as soon as the disk has no room beyond it.
  Result<void> Append(const std::vector<Event>& events);
  // Makes what was appended durable. After an error nobody knows what is on disk: the engine must end and
  // start anew.
  Result<void> Commit();

  // Why the journal has no room to grow, since the last attempt; nothing: it has.
  const std::optional<Error>& problem() const { return problem_; }
  // Tries again to fill up the reserve: problem() is up to date afterwards.
  void FillReserve();

  int64_t SizeBytes() const { return file_ ? file_->Size() : 0; }
  bool dirty() const { return dirty_; }  // something waits for Commit()
  int64_t records() const { return records_; }
  bool cut_torn_record() const { return cut_torn_record_; }

  static std::string EncodeRecord(const Event& event);

 private:
  Result<int64_t> Replay(std::string_view text, const std::function<Result<void>(Event)>& replay);
  Result<void> BeginNew();
  Result<void> Replace(const std::string& text);
  Result<void> MakeRoom(int64_t bytes, bool from_reserve);

  Files& files_;
  std::string path_;
  std::unique_ptr<AppendFile> file_;
  int64_t records_ = 0;
  bool dirty_ = false;
  bool broken_ = false;
  bool cut_torn_record_ = false;
  std::optional<Error> problem_;
  bool can_reserve_ = true;
  int64_t reserved_ = 0;  // bytes behind the end that are ours
};

// What of a damaged journal can still be used: every good record, and the numbers of the bad lines.
struct SalvagedJournal {
  std::vector<Event> events;
  std::vector<int64_t> bad_lines;
};
SalvagedJournal SalvageJournal(std::string_view text);

}  // namespace overcap
