// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/read_worker.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <numeric>
#include <optional>
#include <sys/stat.h>

#include "snapshot/backup/long_path.h"
#include "snapshot/backup/xattrs.h"
#include "snapshot/file_io.h"

namespace overcap {
namespace {

constexpr int kAttempts = 3;
constexpr int kNotAFile = -1;  // in place of an errno: it is something else now

// Of an open regular file; else the errno.
int StampOf(int fd, SeenStamp* stamp) {
  struct statx status;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) != 0) return errno;
  *stamp = SeenStamp::Of(status);
  return S_ISREG(status.stx_mode) ? 0 : kNotAFile;
}

// Up to `size` bytes; -1 with errno.
int64_t ReadAll(int fd, char* to, int64_t size) {
  int64_t have = 0;
  while (have < size) {
    const ssize_t got = ReadSome(fd, to + have, static_cast<size_t>(size - have));
    if (got < 0) return -1;
    if (got == 0) break;
    have += got;
  }
  return have;
}

// Pieces that a file which changed meanwhile gave may be empty or leave holes side by side.
void AppendParts(const SharedFile::Piece& piece, std::vector<ContentPart>* parts) {
  if (!piece.run.hole) {
    parts->insert(parts->end(), piece.parts.begin(), piece.parts.end());
  } else if (!parts->empty() && parts->back().kind == ContentPart::Kind::kHole) {
    parts->back().length += piece.run.length;
  } else {
    parts->push_back({ContentPart::Kind::kHole, piece.run.length, Digest()});
  }
}

int64_t LengthOf(const std::vector<ContentPart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const ContentPart& part) { return sum + part.length; });
}

}  // namespace

Result<void> ReadWorker::Run() {
  while (!*given_up_) {
    if (Stopped()) return Fail(ErrorCode::kConflict, "the backup was stopped");
    const std::optional<ReadStep> step = queue_->Next();
    if (!step) break;
    OC_TRY_VOID(Step(*step));
  }
  return {};
}

bool ReadWorker::Stopped() const {
  return request_.stop != nullptr && *request_.stop;
}

Result<void> ReadWorker::Step(const ReadStep& step) {
  if (step.large != nullptr) return ShareOrEnd(Begin(*step.large, 1));
  if (step.file) {
    OC_TRY_VOID(Piece(step.file.get(), step.piece));
    if (--step.file->left != 0) return {};
    OC_TRY(done, End(step.file.get()));
    return done ? Result<void>() : ShareOrEnd(Begin(step.file->job, step.file->attempt + 1));
  }
  for (const ReadJob& job : step.small) {
    if (*given_up_ || Stopped()) break;
    OC_TRY_VOID(Small(job));
  }
  return {};
}

// Hands out the pieces of a file; one that has none is at its end already.
Result<void> ReadWorker::ShareOrEnd(std::shared_ptr<SharedFile> file) {
  while (file && file->pieces.empty()) {
    OC_TRY(done, End(file.get()));
    if (done) return {};
    file = Begin(file->job, file->attempt + 1);
  }
  if (file) queue_->Share(std::move(file));
  return {};
}

// Most files of most folders: one chunk, and nothing changes.
Result<void> ReadWorker::Small(const ReadJob& job) {
  const SeenStamp& expected = job.entry->seen.stamp;
  if (expected.size > request_.sizes.min || job.entry->sparse) return Whole(job);
  const Fd fd = Open(job);
  if (!fd) {
    Failed(job, errno);
    return {};
  }
  const int64_t size = ReadAll(fd.Get(), reader_.buffer(), expected.size + 1);
  if (size < 0) {
    Failed(job, errno);
    return {};
  }
  Read(job);
  Reading reading;
  if (StampOf(fd.Get(), &reading.stamp) != 0 || reading.stamp != expected || size != expected.size)
    return Whole(job);
  if (size > 0) {
    OC_TRY(id, sink_->Add(ChunkKind::kData, {reader_.buffer(), static_cast<size_t>(size)}));
    reading.parts.push_back({ContentPart::Kind::kChunk, size, id});
  }
  Count(size);
  return Settle(job, fd.Get(), std::move(reading));
}

Result<void> ReadWorker::Whole(const ReadJob& job) {
  for (int attempt = 1;; ++attempt) {
    const std::shared_ptr<SharedFile> file = Begin(job, attempt);
    if (!file) return {};
    for (size_t piece = 0; piece < file->pieces.size(); ++piece) OC_TRY_VOID(Piece(file.get(), piece));
    OC_TRY(done, End(file.get()));
    if (done || Stopped()) return {};
  }
}

// Opens the file and says of which pieces it consists; nullptr when it cannot be read.
std::shared_ptr<SharedFile> ReadWorker::Begin(const ReadJob& job, int attempt) {
  auto file = std::make_shared<SharedFile>();
  file->job = job;
  file->attempt = attempt;
  file->fd = Open(job);
  const int error = file->fd ? StampOf(file->fd.Get(), &file->before) : errno;
  if (error != 0) {
    Failed(job, error);
    return nullptr;
  }
  const int64_t size = file->before.size;
  std::vector<FileRun> runs;
  if (job.entry->sparse || size != job.entry->seen.stamp.size) {
    runs = FindRuns(file->fd.Get(), size);
  } else if (size > 0) {
    runs.push_back({0, size, false});
  }
  for (const FileRun& run : CutRuns(runs, request_.sizes.segment)) file->pieces.push_back({run, {}});
  file->left = file->pieces.size();
  return file;
}

Result<void> ReadWorker::Piece(SharedFile* file, size_t number) {
  SharedFile::Piece& piece = file->pieces[number];
  if (piece.run.hole || file->error_number != 0) return {};
  OC_TRY(outcome, reader_.Read(file->fd.Get(), piece.run, &piece.parts, [this](int64_t bytes) {
    Count(bytes);
    return !*given_up_ && !Stopped();
  }));
  if (outcome.error_number != 0) file->error_number = outcome.error_number;
  if (outcome.cut_short) file->cut_short = true;
  return {};
}

// All pieces were read. False: it changed meanwhile and has to be read again.
Result<bool> ReadWorker::End(SharedFile* file) {
  if (*given_up_ || Stopped()) return true;  // nobody will ask for it
  Read(file->job);
  Reading reading;
  int error = file->error_number;
  if (error == 0) error = StampOf(file->fd.Get(), &reading.stamp);
  if (error != 0) {
    Failed(file->job, error);
    return true;
  }
  const bool steady = reading.stamp == file->before && !file->cut_short;
  if (!steady && file->attempt < kAttempts) return false;
  for (const SharedFile::Piece& piece : file->pieces) AppendParts(piece, &reading.parts);
  reading.unsteady = !steady;
  if (!steady) reading.stamp.size = LengthOf(reading.parts);
  OC_TRY_VOID(Settle(file->job, file->fd.Get(), std::move(reading)));
  return true;
}

Result<void> ReadWorker::Settle(const ReadJob& job, int fd, Reading reading) {
  OC_TRY(content, ContentOf(reading.parts, sink_));
  const std::string xattrs = ReadXattrs(fd);
  SeenEntry& seen = job.entry->seen;
  if (request_.counters != nullptr) ++request_.counters->files;
  if (request_.prove) {
    const bool same = reading.stamp == seen.stamp && content == seen.content && xattrs == seen.xattrs;
    job.entry->fate = same ? EntryFate::kSame : EntryFate::kRead;
    return {};
  }
  seen.stamp = reading.stamp;
  seen.content = content;
  seen.xattrs = bytes_.Keep(xattrs);
  seen.flags = (seen.flags & kSeenHardLink) | (reading.unsteady ? kSeenUnsteady : 0);
  job.entry->fate = EntryFate::kRead;
  return {};
}

// What vanished is not part of the folder any more; all else is told.
void ReadWorker::Failed(const ReadJob& job, int error_number) {
  if (request_.prove) {
    job.entry->fate = EntryFate::kRead;  // and will fail there
    return;
  }
  job.entry->fate = EntryFate::kGone;
  if (error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP ||
      error_number == kNotAFile) {
    return;
  }
  problems_.push_back({job.folder->PathOf(*job.entry), ProblemText(error_number), false});
}

Fd ReadWorker::Open(const ReadJob& job) {
  if (folder_ != job.folder) {
    folder_ = nullptr;
    folder_fd_ = OpenBelow(request_.root_fd, job.folder->Path(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!folder_fd_) return Fd();
    folder_ = job.folder;
  }
  scratch_ = job.entry->seen.name;
  return Fd(
      openat(folder_fd_.Get(), scratch_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
}

void ReadWorker::Read(const ReadJob& job) {
  if (request_.on_read) request_.on_read(job.folder->PathOf(*job.entry));
}

void ReadWorker::Count(int64_t bytes) {
  if (request_.counters != nullptr) request_.counters->bytes += bytes;
  if (request_.on_progress) request_.on_progress();
}

}  // namespace overcap
