// SPDX-License-Identifier: Apache-2.0
// Logs that grow beyond `logs.max` lose their middle: it becomes a hole in the file, so that programs that
// write the file themselves notice nothing (docs/formats/job-folder.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace overcap {

constexpr int64_t kLogsMaxByFileSystem = -1;            // the smaller of 10 GiB and a tenth of it
constexpr int64_t kMostLogHead = int64_t{64} << 20;     // bytes at the start of a log that always stay
constexpr int64_t kSmallestLogsMax = int64_t{1} << 20;  // a smaller bound counts as this
constexpr int64_t kSmallestLogHead = kSmallestLogsMax / 2;

// A stretch of a file, in bytes: [begin, end).
struct FileStretch {
  int64_t begin = 0, end = 0;
  bool operator==(const FileStretch&) const = default;
};

// What to release of a log of `size` bytes that takes `allocated` bytes on the disk and whose hole ends at
// `hole_end` (0: it has none); nullopt: it keeps within `max`. What stays after it are the head and three
// quarters of the rest of `max`.
std::optional<FileStretch> NextRelease(int64_t size, int64_t allocated, int64_t hole_end, int64_t max);
int64_t LogHead(int64_t max);  // bytes at the start of a log that stay

// Holds logs that others write to their bound.
class LogBound {
 public:
  struct Log {
    int fd = -1;       // borrowed, open for writing
    std::string name;  // for notes: "rank 0"
  };
  // `max` in bytes, 0: no bound, or kLogsMaxByFileSystem.
  LogBound(std::vector<Log> logs, int64_t max, int64_t now_us);

  int64_t DueUs() const { return due_us_; }  // when to look next (monotonic); INT64_MAX: never
  void LookIfDue(int64_t now_us) {
    if (now_us >= due_us_) Look(now_us);
  }
  void Look(int64_t now_us);
  // What the user should know: once that a log has lost its middle, or that it cannot be released here.
  std::optional<std::string> TakeNote();
  FileStretch HoleOf(size_t log) const;  // what it has lost; empty: nothing

 private:
  struct Bounded {
    Log log;
    int64_t size = 0, hole_end = 0;
  };
  int64_t LookAt(Bounded* log, int64_t* room);
  void Say(std::string note);

  std::vector<Bounded> logs_;
  int64_t max_ = 0, head_ = 0;  // the bound, 0: none; how much of a log lies before its hole
  int64_t due_us_, looked_us_, pause_us_ = 0;
  bool said_ = false;
  std::optional<std::string> note_;
};

// The holes of a file, in order, the first few of them. Where the file system cannot tell there are none.
std::vector<FileStretch> HolesOf(int fd);

// Some bytes of a log that may have holes.
struct LogPart {
  std::string bytes;
  int64_t dropped = 0;  // bytes before them that the log has lost
  int64_t next = 0;     // where to read on
  std::string Marker(
      int64_t offset) const;  // a line in place of what was dropped from `offset` on; "" if none
};
// Reads at most `limit` bytes from `offset` on; none at the end. The line that a hole tore is not given after
// it. 0 or an errno.
int ReadLogPart(int fd, int64_t offset, size_t limit, LogPart* part);

}  // namespace overcap
