// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/own_streams.h"

#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

bool IsNullDevice(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

}  // namespace

OwnStreams::OwnStreams() {
  struct stat status[3] = {};
  for (int stream = 1; stream <= 2; ++stream) {
    const bool known = fstat(stream, &status[stream]) == 0;
    const mode_t mode = status[stream].st_mode;
    to_file_[stream] = known && (S_ISREG(mode) || (S_ISCHR(mode) && isatty(stream) == 0));
    broken_[stream] = known && IsNullDevice(status[stream]);  // nothing need be read from the logs for it
    // A terminal polls writable when it takes one byte; a write of more would wait for the rest.
    if (isatty(stream) == 0) continue;
    const std::string path = StrCat("/proc/self/fd/", stream);
    terminal_[stream] = Fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  const bool same = status[1].st_dev == status[2].st_dev && status[1].st_ino == status[2].st_ino;
  if (same && !to_file_[1]) place_[2] = 1;
}

std::string OwnStreams::Problem() const {
  for (int place = 1; place <= 2; ++place) {
    if (error_[place] == 0 || error_[place] == EPIPE) continue;
    return StrCat(place == 1 ? "stdout" : "stderr", " cannot be written: ", strerror(error_[place]),
                  "; what it should have shown is in the logs");
  }
  return "";
}

bool OwnStreams::Full(int place) const {
  pollfd one{FdOf(place), POLLOUT, 0};
  return !to_file_[place] && poll(&one, 1, 0) <= 0;
}

bool OwnStreams::Ready(int stream) {
  const int place = place_[stream];
  if (waits_[place] || !FlushOne(place)) return false;
  if (!broken_[place] && Full(place)) waits_[place] = true;
  return !waits_[place];
}

void OwnStreams::Put(int stream, std::string_view text) {
  kept_[place_[stream]].append(text);
  FlushOne(place_[stream]);
}

void OwnStreams::Flush() {
  for (int place = 1; place <= 2; ++place) {
    waits_[place] = false;
    FlushOne(place);
  }
}

bool OwnStreams::FlushOne(int place) {
  std::string& text = kept_[place];
  size_t done = 0;
  while (done < text.size() && !broken_[place] && !waits_[place]) {
    if (Full(place)) {
      waits_[place] = true;
      break;
    }
    const size_t most = to_file_[place] ? text.size() : kChunk;
    const ssize_t size = write(FdOf(place), text.data() + done, std::min(text.size() - done, most));
    if (size >= 0) done += static_cast<size_t>(size);
    if (size < 0 && errno == EAGAIN) waits_[place] = true;
    if (size < 0 && errno != EAGAIN && errno != EINTR) {
      broken_[place] = true;
      error_[place] = errno;
    }
  }
  text.erase(0, broken_[place] ? text.size() : done);
  return text.empty();
}

void OwnStreams::AddFds(std::vector<pollfd>* fds) const {
  for (int place = 1; place <= 2; ++place) {
    if (waits_[place]) fds->push_back({FdOf(place), POLLOUT, 0});
  }
}

bool OwnStreams::WaitUntilTaken(int ms) const {
  std::vector<pollfd> fds;
  AddFds(&fds);
  return poll(fds.data(), fds.size(), ms) > 0;
}

void OwnStreams::GiveUp() {
  for (int place = 1; place <= 2; ++place) broken_[place] = broken_[place] || waits_[place];
}

}  // namespace overcap
