// SPDX-License-Identifier: Apache-2.0
#include "sys/log_bound.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostByDefault = int64_t{10} << 30;
constexpr int64_t kStep = 4096;          // releases begin and end at whole blocks
constexpr int64_t kLargeStep = 1 << 20;  // of large logs: blocks of some file systems are that large
constexpr int64_t kSoonestUs = 5'000;    // between looks
constexpr int64_t kSoonUs = 100'000;     // while nothing tells how fast it grows
constexpr int64_t kLatestUs = 2'000'000;
constexpr int64_t kBytesPerUs = 2048;  // a log is not expected to grow faster
constexpr size_t kMostHoles = 64;
constexpr size_t kTornLine = 64 << 10;  // a longer one is given from its middle on

int64_t MaxOf(int64_t wanted, int fd) {
  if (wanted >= 0) return wanted == 0 ? 0 : std::max(wanted, kSmallestLogsMax);
  struct statvfs room {};
  if (fstatvfs(fd, &room) != 0 || room.f_blocks == 0) return kMostByDefault;
  const double tenth = static_cast<double>(room.f_blocks) * static_cast<double>(room.f_frsize) / 10;
  if (tenth >= static_cast<double>(kMostByDefault)) return kMostByDefault;
  return std::max(static_cast<int64_t>(tenth), kSmallestLogsMax);
}

int64_t StepOf(int64_t max) {
  return max >= 2 * kMostLogHead ? kLargeStep : kStep;
}

int64_t SizeOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_size : 0;
}

// The first byte from `offset` on that is in no hole; -1: there is none.
int64_t DataFrom(int fd, int64_t offset) {
  const off_t found = lseek(fd, offset, SEEK_DATA);
  if (found < 0 && errno != ENXIO) return offset;
  return found;
}

}  // namespace

int64_t LogHead(int64_t max) {
  return std::min(kMostLogHead, max / 2) / kStep * kStep;
}

std::optional<FileStretch> NextRelease(int64_t size, int64_t allocated, int64_t hole_end, int64_t max) {
  const int64_t head = LogHead(max);
  const int64_t hole = std::max<int64_t>(0, hole_end - head);
  if (max <= 0 || std::min(allocated, size - hole) <= max) return std::nullopt;
  const int64_t tail = (max - head) / 4 * 3;
  const int64_t begin = std::max(head, hole_end);
  const int64_t end = (size - tail) / StepOf(max) * StepOf(max);
  if (end <= begin) return std::nullopt;
  return FileStretch{begin, end};
}

LogBound::LogBound(std::vector<Log> logs, int64_t max, int64_t now_us)
    : due_us_(now_us + kSoonUs), looked_us_(now_us) {
  for (Log& log : logs) logs_.push_back({std::move(log)});
  if (!logs_.empty()) max_ = MaxOf(max, logs_.front().log.fd);
  head_ = LogHead(max_);
  if (max_ == 0) due_us_ = kNever;
}

// The nearer a log is to its bound, and the faster it grows, the sooner it is looked at again; rarely while
// nothing grows.
void LogBound::Look(int64_t now_us) {
  if (max_ == 0) return;
  int64_t growth = 0;  // of the log that has grown most
  int64_t room = max_;
  for (Bounded& log : logs_) growth = std::max(growth, LookAt(&log, &room));
  if (max_ == 0) return;
  const int64_t unexpected = std::clamp(room / kBytesPerUs, kSoonUs, kLatestUs);
  if (growth == 0) {
    pause_us_ = std::clamp(2 * pause_us_, unexpected, kLatestUs);
  } else {
    const double elapsed_us = static_cast<double>(std::max<int64_t>(1, now_us - looked_us_));
    const double full_us = static_cast<double>(room) * elapsed_us / static_cast<double>(growth);
    const double half_us = std::min(full_us / 2, static_cast<double>(unexpected));
    pause_us_ = std::max(kSoonestUs, static_cast<int64_t>(half_us));
  }
  looked_us_ = now_us;
  due_us_ = now_us + pause_us_;
}

// By how much it has grown; `room` becomes what it has left, if that is less.
int64_t LogBound::LookAt(Bounded* log, int64_t* room) {
  struct stat info {};
  if (fstat(log->log.fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  const int64_t growth = std::max<int64_t>(0, info.st_size - log->size);
  if (info.st_size < log->hole_end) log->hole_end = 0;  // its program has emptied it
  log->size = info.st_size;
  int64_t allocated = int64_t{info.st_blocks} * 512;
  if (const auto cut = NextRelease(info.st_size, allocated, log->hole_end, max_)) {
    constexpr int kHow = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    int error = 0;
    do {
      error = fallocate(log->log.fd, kHow, cut->begin, cut->end - cut->begin) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error != 0) {
      max_ = 0;
      due_us_ = kNever;
      Say(StrCat("the log of ", log->log.name,
                 " is larger than logs.max and stays so: its file system cannot ",
                 "release a part of a file (", strerror(error), ")"));
      return growth;
    }
    allocated -= cut->end - cut->begin;
    log->hole_end = cut->end;
    Say(StrCat("the log of ", log->log.name, " is larger than logs.max (", FormatBytes(max_),
               "): its middle was dropped; the first ", FormatBytes(head_), " and the newest ",
               FormatBytes((max_ - head_) / 4 * 3), " or more are kept"));
  }
  const int64_t hole = std::max<int64_t>(0, log->hole_end - head_);
  *room = std::min(*room, std::max<int64_t>(0, max_ - std::min(allocated, log->size - hole)));
  return growth;
}

void LogBound::Say(std::string note) {
  if (said_) return;
  said_ = true;
  note_ = std::move(note);
}

std::optional<std::string> LogBound::TakeNote() {
  return std::exchange(note_, std::nullopt);
}

FileStretch LogBound::HoleOf(size_t log) const {
  const int64_t end = logs_[log].hole_end;
  return end == 0 ? FileStretch{} : FileStretch{head_, end};
}

std::vector<FileStretch> HolesOf(int fd) {
  std::vector<FileStretch> holes;
  const int64_t size = SizeOf(fd);
  for (int64_t at = 0; at < size && holes.size() < kMostHoles;) {
    const off_t begin = lseek(fd, at, SEEK_HOLE);
    if (begin < 0 || begin >= size) break;
    const int64_t data = DataFrom(fd, begin);
    if (data == begin) break;
    holes.push_back({begin, data < 0 ? size : data});
    at = holes.back().end;
  }
  return holes;
}

std::string LogPart::Marker(int64_t offset) const {
  if (dropped == 0) return "";
  const bool ours = offset >= kSmallestLogHead;
  return StrCat("[overcap: ", FormatBytes(dropped), " of this log were dropped here (",
                ours ? "logs.max" : "its program has emptied it", ")]\n");
}

namespace {

int ReadAt(int fd, int64_t offset, size_t limit, std::string* bytes) {
  bytes->resize(limit);
  ssize_t count;
  do {
    count = pread(fd, bytes->data(), limit, offset);
  } while (count < 0 && errno == EINTR);
  bytes->resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
  return count < 0 ? errno : 0;
}

// Cuts off what lies in a hole, or was zeroed beside one. Holes are looked for after the read: one that was
// made meanwhile is seen, too.
void CutAtHole(int fd, int64_t offset, LogPart* part) {
  const off_t hole = lseek(fd, offset, SEEK_HOLE);
  if (hole < 0 || hole >= part->next) return;
  part->next = hole;
  part->bytes.resize(static_cast<size_t>(hole - offset));
  part->bytes.resize(part->bytes.find_last_not_of('\0') + 1);
}

}  // namespace

int ReadLogPart(int fd, int64_t offset, size_t limit, LogPart* part) {
  const int64_t asked = offset;
  *part = {};
  bool behind_hole = false;
  while (true) {
    const int error = ReadAt(fd, offset, limit, &part->bytes);
    part->next = offset + static_cast<int64_t>(part->bytes.size());
    if (error != 0 || part->bytes.empty()) return error;
    const bool nul = part->bytes.find('\0') != std::string::npos;
    const int64_t data = nul ? DataFrom(fd, offset) : offset;
    if (data < 0) {  // nothing was written behind the hole yet
      part->bytes.clear();
      part->next = asked;
      return 0;
    }
    if (data > offset) {
      behind_hole = true;
      offset = data;
      continue;
    }
    if (nul) CutAtHole(fd, offset, part);
    if (part->bytes.empty()) {  // it was zeroed beside the hole
      offset = part->next;
      continue;
    }
    if (!behind_hole) return 0;
    const size_t nuls = std::min(part->bytes.find_first_not_of('\0'), part->bytes.size());
    const size_t line = part->bytes.find('\n');
    const size_t torn = nuls > 0 ? nuls : line < kTornLine ? line + 1 : 0;
    part->bytes.erase(0, torn);
    part->dropped = offset + static_cast<int64_t>(torn) - asked;
    return 0;
  }
}

}  // namespace overcap
