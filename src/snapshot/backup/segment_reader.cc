// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/segment_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace overcap {
namespace {

constexpr int64_t kMargin = 1 << 20;  // beyond the longest chunk, so that little is moved

}  // namespace

SegmentReader::SegmentReader(const ChunkSizes& sizes, ChunkSink* sink)
    : sizes_(sizes),
      sink_(sink),
      capacity_(std::max(sizes.max, sizes.min) + kMargin),
      buffer_(new char[static_cast<size_t>(capacity_)]) {}

// At least `wanted` bytes in the buffer, as far as the run goes. False when there was an error or the file
// ended; then the run ends with what is there.
bool SegmentReader::Fill(int fd, int64_t wanted, Outcome* outcome) {
  if (begin_ + wanted > capacity_) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, static_cast<size_t>(have_));
    begin_ = 0;
  }
  while (have_ < wanted) {
    const int64_t length = std::min(wanted - have_, end_ - at_);
    const ssize_t got = pread(fd, buffer_.get() + begin_ + have_, static_cast<size_t>(length), at_);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      have_ += got;
      at_ += got;
      continue;
    }
    if (got < 0) outcome->error_number = errno;
    outcome->cut_short = got == 0;
    end_ = at_;
    return false;
  }
  return true;
}

Result<SegmentReader::Outcome> SegmentReader::Read(int fd, const FileRun& run,
                                                   std::vector<ContentPart>* parts,
                                                   const std::function<bool(int64_t bytes)>& on_bytes) {
  Outcome outcome;
  begin_ = have_ = 0;
  at_ = run.offset;
  end_ = run.offset + run.length;
  // Most chunks end a little after the average size: more is read only where one does not.
  const int64_t often = std::min(sizes_.max, 2 * sizes_.average);
  int64_t window = often;
  while (true) {
    const int64_t left = have_ + end_ - at_;
    Fill(fd, std::min(window, left), &outcome);
    if (have_ == 0) return outcome;
    const std::string_view view(buffer_.get() + begin_, static_cast<size_t>(std::min(have_, window)));
    const int64_t cut = NextChunk(view, sizes_);
    const int64_t rest = have_ + end_ - at_;
    if (cut == static_cast<int64_t>(view.size()) && cut < std::min(sizes_.max, rest)) {
      window = sizes_.max;  // perhaps it goes on
      continue;
    }
    window = often;
    OC_TRY(id, sink_->Add(ChunkKind::kData, view.substr(0, static_cast<size_t>(cut))));
    parts->push_back({ContentPart::Kind::kChunk, cut, id});
    begin_ += cut;
    have_ -= cut;
    if (!on_bytes(cut)) {
      outcome.cut_short = true;
      return outcome;
    }
  }
}

}  // namespace overcap
