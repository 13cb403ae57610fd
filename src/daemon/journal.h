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

  // All events or, with an error, none of them. Not durable before Commit(). The reserve is for records that
  // end, free or stop something: any other is refused as soon as the disk has no room beyond the reserve.
  Result<void> Append(const std::vector<Event>& events);
  // Makes what was appended durable. After an error nobody knows what is on disk: the engine must end and
  // start anew.
  Result<void> Commit();

  // Why the journal had no room to grow at the last attempt; nullopt: it had.
  const std::optional<Error>& problem() const { return problem_; }
  // Tries again to fill up the reserve, and updates problem().
  void FillReserve();

  int64_t SizeBytes() const { return file_ ? file_->Size() : 0; }
  bool dirty() const { return dirty_; }  // something waits for Commit()
  int64_t records() const { return records_; }
  bool cut_torn_record() const { return cut_torn_record_; }

  // `number`: of its line in the journal, from 1; 0: the record gets no number.
  static std::string EncodeRecord(const Event& event, int64_t number = 0);

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
  int64_t reserved_ = 0;  // bytes behind the end that are set aside
};

// What is usable of a damaged journal: each good record once, in the order in which they were written.
struct SalvagedJournal {
  struct Record {
    Event event;
    int64_t line = 0;    // at which it was found
    int64_t number = 0;  // the line as which it was written; 0: an older Overcap wrote no numbers
    int64_t place = 0;   // ascending; the number of the last record that has one
  };
  std::vector<Record> records;
  std::vector<std::pair<int64_t, std::string>> bad_lines;  // line, why
  std::vector<int64_t> doubled_lines;
  bool begun = false;      // its first line is that of a journal
  bool misplaced = false;  // a record is not at its line
  int64_t moved = 0;       // records that are not in the order in which they were written
  // Records that are missing, as far as the numbers of the others show.
  int64_t missing = 0;
  bool damaged() const {
    return !begun || misplaced || !bad_lines.empty() || !doubled_lines.empty() || moved > 0 || missing > 0;
  }
};
// kCorrupt when a newer Overcap wrote it.
Result<SalvagedJournal> SalvageJournal(std::string_view text);

}  // namespace overcap
