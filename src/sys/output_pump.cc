// SPDX-License-Identifier: Apache-2.0
#include "sys/output_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include "sys/pipe.h"
#include "sys/supervisor.h"

namespace overcap {
namespace {

constexpr size_t kPipeBytes = 1 << 20;
constexpr size_t kSinkBytes = 64 << 10;
constexpr ssize_t kGrowAtBytes = 32 << 10;
constexpr int64_t kRetryUs = 100'000;

// Shared by all pumps of a thread: its content is written or dropped before anybody else uses it.
std::vector<char>& Scratch() {
  thread_local std::vector<char> buffer(kPipeBytes);
  return buffer;
}

}  // namespace

Result<OutputPump> OutputPump::Make(int file, int stream) {
  OC_TRY(pump, MakePump());
  pump.file_ = file;
  pump.stream_ = stream;
  return pump;
}

Result<OutputPump> OutputPump::MakeToSink(OutputSink* sink, int stream) {
  OC_TRY(pump, MakePump());
  pump.sink_ = sink;
  pump.stream_ = stream;
  return pump;
}

Result<OutputPump> OutputPump::MakePump() {
  OC_TRY(ends, MakePipe());
  OutputPump pump;
  pump.read_end_ = std::move(ends.read);
  pump.write_end_ = std::move(ends.write);
  // Only our end: the children's must block, as programs expect of their output.
  if (fcntl(pump.read_end_.Get(), F_SETFL, O_NONBLOCK) != 0)
    return Fail(ErrnoError(errno, "cannot make a pipe"));
  return pump;
}

bool OutputPump::Blocked() const {
  return sink_ != nullptr && !sink_->Ready();
}

bool OutputPump::Pump(int64_t now_us, int64_t limit) {
  while (!Ended() && limit > 0 && !Blocked()) {
    const bool dropping = now_us < retry_us_;
    const ssize_t moved = dropping ? Drop() : Move();
    if (moved == 0) read_end_.Reset();
    if (moved > 0) {
      limit -= moved;
      if (!dropping) moved_bytes_ += moved;
      Grow(moved);
      continue;
    }
    if (moved == 0 || errno == EAGAIN) return false;
    if (errno == EINTR) continue;
    if (dropping) return read_end_.Reset(), false;  // a pipe that cannot be read: there is no more to get
    WriteFailed(errno, now_us);
  }
  return !Ended() && !Blocked();
}

ssize_t OutputPump::Move() {
  if (sink_ != nullptr) return GiveToSink();
  if (splice_) {
    const ssize_t moved = splice(read_end_.Get(), nullptr, file_, nullptr, kPipeBytes, SPLICE_F_NONBLOCK);
    if (moved >= 0 || errno != EINVAL) return moved;
    splice_ = false;
  }
  return CopyToFile();
}

ssize_t OutputPump::CopyToFile() {
  std::vector<char>& buffer = Scratch();
  const ssize_t size = read(read_end_.Get(), buffer.data(), buffer.size());
  ssize_t done = 0;
  while (done < size) {
    const ssize_t written = write(file_, buffer.data() + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      dropped_bytes_ += size - done;  // they have left the pipe
      return done > 0 ? done : -1;    // what the file has counts; the next write tells why it takes no more
    }
    done += written;
  }
  return size;
}

ssize_t OutputPump::GiveToSink() {
  std::vector<char>& buffer = Scratch();
  const ssize_t size = read(read_end_.Get(), buffer.data(), kSinkBytes);
  if (size > 0) sink_->Take(stream_, {buffer.data(), static_cast<size_t>(size)});
  return size;
}

ssize_t OutputPump::Drop() {
  std::vector<char>& buffer = Scratch();
  const ssize_t size = read(read_end_.Get(), buffer.data(), buffer.size());
  if (size > 0) dropped_bytes_ += size;
  return size;
}

void OutputPump::WriteFailed(int error, int64_t now_us) {
  if (drop_error_ == 0) drop_error_ = error;
  retry_us_ = now_us + kRetryUs;
}

// A rank that writes much gets a large pipe; most never need one. Refusal (a limit per user) does not matter.
void OutputPump::Grow(ssize_t moved) {
  if (large_ || moved < kGrowAtBytes) return;
  large_ = true;
  (void)fcntl(read_end_.Get(), F_SETPIPE_SZ, kPipeBytes);
}

}  // namespace overcap
