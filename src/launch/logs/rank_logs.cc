// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/rank_logs.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "launch/local/node_ranks.h"
#include "launch/logs/own_streams.h"
#include "sys/fd.h"
#include "sys/file_limit.h"

namespace overcap {
namespace {

constexpr int64_t kTimesStepUs = 1000;      // pieces that come closer together share a line of the times
constexpr int64_t kLongestLine = 64 << 10;  // a longer one is shown in pieces
constexpr int64_t kTailBytes = 64 << 10;    // how far back the last lines are looked for
constexpr size_t kLongestShownLine = 2000;
constexpr int kGiveUpStepMs = 100;

// A stretch of a log that is still to be shown.
struct Piece {
  int64_t end = 0;
  int stream = 1;
};

struct RankLog {
  std::string path;
  Fd file;
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
  int first_rank = 0;
  std::vector<RankLog> ranks;
  std::string problem;
  int64_t last_output_us = 0;
  OwnStreams streams;
  size_t next = 0;  // whose turn it is to be shown
  std::vector<char> buffer;

  bool Shows(size_t rank) const {
    return tee == Tee::kAll || (tee == Tee::kRank0 && first_rank == 0 && rank == 0);
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

  void Add(size_t rank, int stream, int64_t bytes, int64_t now_us) {
    RankLog& log = ranks[rank];
    KeepTime(&log, stream, now_us);
    log.size += bytes;
    last_output_us = std::max(last_output_us, now_us);
    if (!Shows(rank)) {
      log.shown = log.size;
    } else if (!log.to_show.empty() && log.to_show.back().stream == stream) {
      log.to_show.back().end = log.size;
    } else {
      log.to_show.push_back({log.size, stream});
    }
  }

  // The next bytes of a rank to be shown: whole lines when all ranks are, so that they do not mix. `rest`:
  // also a last line that is not ended. Empty when there is nothing (yet).
  std::string_view NextToShow(const RankLog& log, bool rest) {
    if (log.to_show.empty()) return {};
    const Piece& piece = log.to_show.front();
    const bool lines = tee == Tee::kAll;
    const size_t want = std::min<int64_t>(piece.end - log.shown, kLongestLine);
    buffer.resize(std::max(buffer.size(), want));
    const ssize_t got = pread(log.file.Get(), buffer.data(), want, log.shown);
    if (got <= 0) return {};
    const std::string_view text(buffer.data(), got);
    if (!lines) return text;
    if (const size_t newline = text.rfind('\n'); newline != text.npos) return text.substr(0, newline + 1);
    const bool no_more = rest || log.to_show.size() > 1 || text.size() >= static_cast<size_t>(kLongestLine);
    return no_more ? text : std::string_view();
  }

  std::string WithPrefix(size_t rank, std::string_view text) const {
    const std::string prefix = StrCat("[", static_cast<size_t>(first_rank) + rank, "] ");
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      out += prefix;
      out += text.substr(at, end - at);
      at = end;
    }
    if (!out.empty() && out.back() != '\n') out += '\n';
    return out;
  }

  // True when it has shown something.
  bool ShowSome(size_t rank, bool rest) {
    RankLog& log = ranks[rank];
    if (log.to_show.empty() || !streams.Ready(log.to_show.front().stream)) return false;
    const auto [end, stream] = log.to_show.front();
    const bool broken = streams.Broken(stream);
    const std::string_view text = broken ? std::string_view() : NextToShow(log, rest);
    if (text.empty() && !broken) return false;
    log.shown = broken ? end : log.shown + static_cast<int64_t>(text.size());
    if (log.shown >= end) log.to_show.pop_front();
    if (tee == Tee::kAll) {
      streams.Put(stream, WithPrefix(rank, text));
    } else {
      streams.Put(stream, text);
    }
    return true;
  }

  void ShowWhile(bool rest) {
    streams.Flush();
    for (size_t idle = 0; idle < ranks.size(); ++next) {
      next %= ranks.size();
      idle = ShowSome(next, rest) ? 0 : idle + 1;
    }
  }
};

Result<RankLogs> RankLogs::Make(const std::string& folder, int ranks, Tee tee, int first_rank) {
  AllowOpenFiles(FilesFor(ranks));
  RankLogs logs(new Impl);
  logs.impl_->tee = tee;
  logs.impl_->first_rank = first_rank;
  logs.impl_->ranks.resize(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    RankLog& log = logs.impl_->ranks[rank];
    log.path = StrCat(folder, "/rank-", first_rank + rank, ".log");
    log.file = Fd(open(log.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!log.file) return Fail(ErrnoError(errno, StrCat("cannot make log '", log.path, "'")));
  }
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

int RankLogs::FileOf(int rank) const {
  return impl_->ranks[rank].file.Get();
}

void RankLogs::Wrote(int rank, int stream, int64_t bytes, int64_t now_us) {
  impl_->Add(rank, stream, bytes, now_us);
}

void RankLogs::Write(int rank, int stream, std::string_view bytes, int64_t now_us) {
  RankLog& log = impl_->ranks[rank];
  int64_t done = 0;
  while (done < static_cast<int64_t>(bytes.size())) {
    const ssize_t written = pwrite(log.file.Get(), bytes.data() + done, bytes.size() - done, log.size + done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      impl_->problem = StrCat("output of rank ", rank, " was dropped: its log '", log.path,
                              "' cannot be written: ", strerror(errno));
      break;
    }
    done += written;
  }
  impl_->Add(rank, stream, done, now_us);
}

bool RankLogs::WantsToShow(std::vector<pollfd>* fds) const {
  impl_->streams.AddFds(fds);
  return impl_->streams.Waits();
}

void RankLogs::Show() {
  impl_->ShowWhile(false);
}

void RankLogs::ShowRest(const std::function<bool()>& give_up) {
  for (impl_->ShowWhile(true); impl_->streams.Waits(); impl_->ShowWhile(true)) {
    if (!impl_->streams.WaitUntilTaken(kGiveUpStepMs) && give_up()) impl_->streams.GiveUp();
  }
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
  return impl_->problem.empty() ? impl_->streams.Problem() : impl_->problem;
}

}  // namespace overcap
