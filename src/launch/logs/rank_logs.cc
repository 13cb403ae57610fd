// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/rank_logs.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <errno.h>
#include <fcntl.h>
#include <limits>
#include <memory>
#include <optional>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "launch/local/node_ranks.h"
#include "launch/logs/log_watch.h"
#include "launch/logs/own_streams.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/file_limit.h"
#include "sys/log_bound.h"
#include "sys/prompt_files.h"

namespace overcap {
namespace {

constexpr int64_t kTimesStepUs = 1000;      // pieces that come closer together share a line of the times
constexpr int64_t kLongestLine = 64 << 10;  // a longer one is shown in pieces
constexpr int64_t kTailBytes = 64 << 10;    // how far back the last lines are looked for
constexpr size_t kLongestShownLine = 2000;
constexpr int kGiveUpStepMs = 100;
constexpr int64_t kShowBytes = 4 << 20;  // at a time: others have to be seen to
constexpr double kRoomBytes = 1 << 30;   // where less is free, a full disk must be expected

constexpr int kNotShown = 0;

// A stretch of a log that is still to be shown, or to be passed over.
struct Piece {
  int64_t end = 0;
  int stream = 1;
};

struct RankLog {
  std::string path;
  Fd file;      // our own: where our last write ended is where its position is
  Fd for_rank;  // its stdout; not there unless ranks write themselves
  Fd times;
  int64_t size = 0;
  int64_t times_size = 0;  // whole lines
  int64_t last_us = 0;     // of the last line of the times
  int last_stream = 0;
  int64_t shown = 0;  // bytes that need not be shown any more
  std::deque<Piece> to_show;
};

}  // namespace

struct RankLogs::Impl {
  Tee tee = Tee::kRank0;
  std::vector<RankView> views;  // empty: as `tee` says
  int first_rank = 0;
  std::string folder;
  std::optional<PromptFiles> prompt;
  std::unique_ptr<LogWatch> watch;  // while ranks write themselves
  std::vector<RankLog> ranks;
  std::optional<LogBound> bound;
  std::string cut;  // that a log has lost its middle; else ""
  std::string problem;
  int64_t dropped = 0;
  int64_t last_output_us = 0;
  OwnStreams streams;
  size_t next = 0;    // whose turn it is to be shown
  bool more = false;  // there was more to show than was shown at a time
  std::vector<char> buffer;

  bool Shows(size_t rank, int stream) const {
    if (!views.empty()) return (views[rank].shown & stream) != 0;
    return ShowsAllRanks(tee) || (tee == Tee::kRank0 && first_rank == 0 && rank == 0);
  }

  bool ByLine() const { return views.empty() ? ShowsAllRanks(tee) : views.size() > 1; }

  // What precedes each line; "" for none.
  std::string MarkOf(size_t rank, int stream) const {
    if (!views.empty()) return (views[rank].marked & stream) != 0 ? views[rank].mark : "";
    return tee == Tee::kAll ? StrCat("[", static_cast<size_t>(first_rank) + rank, "] ") : "";
  }

  void KeepTime(RankLog* log, int stream, int64_t now_us) {
    if (stream == log->last_stream && now_us - log->last_us < kTimesStepUs && now_us >= log->last_us) return;
    if (!log->times) {
      const std::string path = log->path.substr(0, log->path.size() - 3) + "times";
      log->times = Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    }
    log->last_us = now_us;
    log->last_stream = stream;
    char line[80];
    const int length = snprintf(line, sizeof line, "%" PRId64 " %d %" PRId64 "\n", log->size, stream, now_us);
    if (pwrite(log->times.Get(), line, length, log->times_size) == length) {
      log->times_size += length;
    } else {
      log->last_stream = 0;  // a full disk; the next piece says it again, in place of what is there of it
    }
  }

  void Drop(int rank, int error, int64_t bytes) {
    dropped += bytes;
    if (!problem.empty()) return;
    problem = StrCat("output of rank ", first_rank + rank, " was dropped: its log '",
                     ranks[static_cast<size_t>(rank)].path, "' cannot be written: ", strerror(error));
  }

  void Add(size_t rank, int stream, int64_t bytes, int64_t now_us) {
    RankLog& log = ranks[rank];
    KeepTime(&log, stream, now_us);
    log.size += bytes;
    last_output_us = std::max(last_output_us, now_us);
    const int shown = Shows(rank, stream) ? stream : kNotShown;
    if (shown == kNotShown && log.to_show.empty()) {
      log.shown = log.size;
    } else if (!log.to_show.empty() && log.to_show.back().stream == shown) {
      log.to_show.back().end = log.size;
    } else {
      log.to_show.push_back({log.size, shown});
    }
  }

  // The rank has cut it short: what we knew of it is no more.
  void BeginAnew(RankLog* log) {
    if (problem.empty()) {
      problem = StrCat("a rank has emptied its own log '", log->path,
                       "' (it opened /dev/stdout anew); what was there is lost");
    }
    log->size = log->shown = log->times_size = 0;
    log->last_stream = 0;
    log->to_show.clear();
    if (log->times && ftruncate(log->times.Get(), 0) != 0) log->times.Reset();  // made anew
  }

  // What the rank itself has written up to `size`.
  bool AddOwn(size_t rank, int64_t size, int64_t now_us) {
    RankLog& log = ranks[rank];
    if (size == log.size) return false;
    if (size < log.size) BeginAnew(&log);
    if (size > log.size) Add(rank, 1, size - log.size, now_us);
    return true;
  }

  void KeepBound(bool at_once) {
    if (!bound) return;
    const int64_t now_us = PosixClock().MonotonicUs();
    if (at_once) bound->Look(now_us);
    bound->LookIfDue(now_us);
    if (auto note = bound->TakeNote()) cut = std::move(*note);
  }

  bool LookAtAll(int64_t now_us) {
    bool any = false;
    KeepBound(false);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      struct stat status {};
      if (!ranks[rank].for_rank || fstat(ranks[rank].file.Get(), &status) != 0) continue;
      any = AddOwn(rank, status.st_size, now_us) || any;
    }
    return any;
  }

  bool RanksMayWrite() const {
    rlimit limit{};
    struct statvfs room {};
    struct stat status {};
    for (const RankLog& log : ranks) {
      if (fstat(log.file.Get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    }
    return !ranks.empty() && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY &&
           fstatvfs(ranks[0].file.Get(), &room) == 0 &&
           static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize) >= kRoomBytes;
  }

  // The next bytes of a rank to be shown: whole lines when all ranks are, so that they do not mix. `rest`:
  // also a last line that is not ended. Empty when there is nothing (yet).
  std::string_view NextToShow(const RankLog& log, bool rest) {
    if (log.to_show.empty()) return {};
    const Piece& piece = log.to_show.front();
    int64_t end = piece.end;
    const FileStretch hole = bound ? bound->HoleOf(static_cast<size_t>(&log - ranks.data())) : FileStretch{};
    if (log.shown < hole.begin) end = std::min(end, hole.begin);
    const size_t want = std::min<int64_t>(end - log.shown, kLongestLine);
    buffer.resize(std::max(buffer.size(), want));
    const ssize_t got = pread(log.file.Get(), buffer.data(), want, log.shown);
    if (got <= 0) return {};
    const std::string_view text(buffer.data(), got);
    if (!ByLine() && MarkOf(static_cast<size_t>(&log - ranks.data()), piece.stream).empty()) return text;
    if (const size_t newline = text.rfind('\n'); newline != text.npos) return text.substr(0, newline + 1);
    const bool torn = log.shown + got == hole.begin;
    const bool no_more =
        rest || torn || log.to_show.size() > 1 || text.size() >= static_cast<size_t>(kLongestLine);
    return no_more ? text : std::string_view();
  }

  void Put(size_t rank, int stream, std::string_view text) {
    const std::string mark = MarkOf(rank, stream);
    mark.empty() && !ByLine() ? streams.Put(stream, text) : streams.Put(stream, WithMark(mark, text));
  }

  static std::string WithMark(const std::string& mark, std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      out += mark;
      out += text.substr(at, end - at);
      at = end;
    }
    if (!out.empty() && out.back() != '\n') out += '\n';
    return out;
  }

  // What a log has lost is not shown; a line in its place says how much that was. "" when there is nothing to
  // leave out.
  std::string LeaveOutHole(size_t rank) {
    RankLog& log = ranks[rank];
    const FileStretch hole = bound ? bound->HoleOf(rank) : FileStretch{};
    if (log.shown < hole.begin || log.shown >= hole.end) return "";
    LogPart part;
    part.dropped = hole.end - log.shown;
    log.shown = hole.end;
    while (!log.to_show.empty() && log.to_show.front().end <= log.shown) log.to_show.pop_front();
    return part.Marker(hole.begin);
  }

  // How many bytes it has shown, or need not be shown; 0: none.
  int64_t ShowSome(size_t rank, bool rest) {
    RankLog& log = ranks[rank];
    while (!log.to_show.empty() && log.to_show.front().stream == kNotShown) {
      log.shown = log.to_show.front().end;
      log.to_show.pop_front();
    }
    if (log.to_show.empty() || !streams.Ready(log.to_show.front().stream)) return 0;
    if (const std::string marker = LeaveOutHole(rank); !marker.empty()) {
      Put(rank, 1, ByLine() ? marker : "\n" + marker);
      return static_cast<int64_t>(marker.size());
    }
    const auto [end, stream] = log.to_show.front();
    const bool broken = streams.Broken(stream);
    const std::string_view text = broken ? std::string_view() : NextToShow(log, rest);
    if (text.empty() && !broken) return 0;
    log.shown = broken ? end : log.shown + static_cast<int64_t>(text.size());
    if (log.shown >= end) log.to_show.pop_front();
    Put(rank, stream, text);
    return broken ? 1 : static_cast<int64_t>(text.size());
  }

  void ShowWhile(bool rest) {
    streams.Flush();
    int64_t left = kShowBytes;
    for (size_t idle = 0; idle < ranks.size() && left > 0; ++next) {
      next %= ranks.size();
      const int64_t shown = ShowSome(next, rest);
      idle = shown > 0 ? 0 : idle + 1;
      left -= shown;
    }
    more = left <= 0;
  }
};

Result<RankLogs> RankLogs::Make(const std::string& folder, int ranks, Tee tee, int first_rank) {
  AllowOpenFiles(FilesFor(ranks));
  RankLogs logs(new Impl);
  logs.impl_->tee = tee;
  logs.impl_->first_rank = first_rank;
  logs.impl_->folder = folder;
  logs.impl_->ranks.resize(ranks);
  std::vector<std::string> paths;
  for (int rank = 0; rank < ranks; ++rank) {
    RankLog& log = logs.impl_->ranks[rank];
    log.path = StrCat(folder, "/rank-", first_rank + rank, ".log");
    log.file = Fd(open(log.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
    if (!log.file) return Fail(ErrnoError(errno, StrCat("cannot make log '", log.path, "'")));
    paths.push_back(log.path);
  }
  logs.impl_->prompt.emplace(std::move(paths));
  return logs;
}

RankLogs::RankLogs(RankLogs&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}

RankLogs& RankLogs::operator=(RankLogs&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

RankLogs::~RankLogs() {
  delete impl_;
}

void RankLogs::Write(int rank, int stream, std::string_view bytes, int64_t now_us) {
  RankLog& log = impl_->ranks[rank];
  impl_->last_output_us = std::max(impl_->last_output_us, now_us);
  while (!bytes.empty()) {
    const ssize_t written = write(log.file.Get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return impl_->Drop(rank, errno, static_cast<int64_t>(bytes.size()));
    const off_t end = lseek(log.file.Get(), 0, SEEK_CUR);
    impl_->AddOwn(rank, end - written, now_us);
    impl_->Add(rank, stream, written, now_us);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  impl_->KeepBound(false);
}

void RankLogs::ShowAs(std::vector<RankView> views) {
  impl_->views = std::move(views);
}

void RankLogs::Bound(int64_t max) {
  std::vector<LogBound::Log> logs;
  for (size_t rank = 0; rank < impl_->ranks.size(); ++rank)
    logs.push_back(
        {impl_->ranks[rank].file.Get(), StrCat("rank ", impl_->first_rank + static_cast<int>(rank))});
  impl_->bound.emplace(std::move(logs), max, PosixClock().MonotonicUs());
}

// The mode keeps ranks from opening their stdout anew, which would empty it.
void RankLogs::LetRanksWrite(int64_t monotonic_us) {
  if (!impl_->RanksMayWrite()) return;
  for (RankLog& log : impl_->ranks) {
    log.for_rank = Fd(open(log.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (log.for_rank) (void)fchmod(log.file.Get(), 0400);
  }
  const int count = static_cast<int>(impl_->ranks.size());
  impl_->watch = std::make_unique<LogWatch>(impl_->folder, count, monotonic_us);
}

int RankLogs::FileOf(int rank) const {
  return impl_->ranks[rank].for_rank.Get();
}

int64_t RankLogs::PrepareLook(std::vector<pollfd>* fds) const {
  return impl_->watch ? impl_->watch->Prepare(fds) : std::numeric_limits<int64_t>::max();
}

bool RankLogs::Look(int64_t monotonic_us, int64_t now_us) {
  impl_->KeepBound(false);
  return impl_->watch && impl_->watch->Look(monotonic_us, [&] { return LookAtAll(now_us); });
}

bool RankLogs::LookAtAll(int64_t now_us) {
  return impl_->LookAtAll(now_us);
}

void RankLogs::TakeBack(int64_t now_us) {
  LookAtAll(now_us);
  impl_->KeepBound(true);
  impl_->watch.reset();
  for (RankLog& log : impl_->ranks) {
    if (log.for_rank) (void)fchmod(log.file.Get(), 0600);
    log.for_rank.Reset();
  }
}

bool RankLogs::WantsToShow(std::vector<pollfd>* fds) const {
  impl_->streams.AddFds(fds);
  if (impl_->more) fds->push_back({impl_->ranks.front().file.Get(), POLLIN, 0});  // always ready
  return impl_->streams.Waits() || impl_->more;
}

void RankLogs::Show() {
  impl_->ShowWhile(false);
}

void RankLogs::ShowRest(const std::function<bool()>& give_up) {
  do {
    impl_->ShowWhile(true);
    const bool full = impl_->streams.Waits() && !impl_->streams.WaitUntilTaken(kGiveUpStepMs);
    if ((full || impl_->more) && give_up() && full) impl_->streams.GiveUp();
  } while (impl_->streams.Waits() || impl_->more);
}

int64_t RankLogs::LastOutputUs() const {
  return impl_->last_output_us;
}

std::string RankLogs::LastLines(int rank, int lines) const {
  const RankLog& log = impl_->ranks[rank];
  const int64_t from = std::max<int64_t>(0, log.size - kTailBytes);
  std::string text(log.size - from, '\0');
  const ssize_t got = pread(log.file.Get(), text.data(), text.size(), from);
  text.resize(std::max<ssize_t>(0, got));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t begin = text.size();
  for (int line = 0; line < lines && begin != std::string::npos && begin > 0; ++line) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin != std::string::npos && begin > 0 && begin < text.size()) text.erase(0, begin + 1);
  std::string out;
  for (const std::string& line : Split(text, '\n')) {
    // What a terminal would show of a progress bar: the text after the last carriage return.
    std::string_view shown = line;
    while (shown.ends_with('\r')) shown.remove_suffix(1);
    if (const size_t back = shown.rfind('\r'); back != shown.npos) shown.remove_prefix(back + 1);
    out += ToUtf8(shown.substr(0, kLongestShownLine));
    out += '\n';
  }
  return text.empty() ? "" : out;
}

std::string RankLogs::PathOf(int rank) const {
  return impl_->ranks[rank].path;
}

std::string RankLogs::Problem() const {
  if (impl_->problem.empty() && !impl_->cut.empty()) return impl_->cut;
  if (impl_->problem.empty()) return impl_->streams.Problem();
  if (impl_->dropped == 0) return impl_->problem;
  return StrCat(impl_->problem, "; ", FormatBytes(impl_->dropped), " were dropped in all");
}

}  // namespace overcap
