// SPDX-License-Identifier: Apache-2.0
#include "sys/prompt_files.h"

#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>

#include "sys/fd.h"
#include "sys/fresh_open.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kRound(1);
// A busy server's client may leave out what it was asked to send.
constexpr int kSendTimes = 3;

struct PromptFile {
  std::string path;
  Fd fd = {};
  int64_t size = 0;
  int sends_left = 0;
};

// As this host knows it, without a question to the server.
int64_t SizeHere(const Fd& fd) {
  struct statx info {};
  const bool known = statx(fd.Get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &info) == 0;
  return known ? static_cast<int64_t>(info.stx_size) : -1;
}

void Round(std::vector<PromptFile>* files) {
  for (PromptFile& file : *files) {
    if (!file.fd) file.fd = OpenRetrying(AT_FDCWD, file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file.fd) continue;
    const int64_t size = SizeHere(file.fd);
    if (size != file.size) file.sends_left = kSendTimes;
    file.size = size;
    if (file.sends_left == 0) continue;
    --file.sends_left;
    SendOn(file.fd.Get());
  }
}

}  // namespace

struct PromptFiles::Shared {
  std::mutex mutex;
  std::condition_variable ends;
  bool over = false;
};

void SendOn(int fd) {
  (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

PromptFiles::PromptFiles(std::vector<std::string> paths) {
  if (paths.empty() || !HostsKeepCaches(paths.front().substr(0, paths.front().rfind('/') + 1))) return;
  shared_ = std::make_shared<Shared>();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the thread that waits for them
  try {
    // Nobody waits for its end: it may hang as long as the server does.
    std::thread([shared = shared_, paths = std::move(paths)] {
      std::vector<PromptFile> files;
      for (const std::string& path : paths) files.push_back({path});
      std::unique_lock lock(shared->mutex);
      while (!shared->ends.wait_for(lock, kRound, [&] { return shared->over; })) {
        lock.unlock();
        Round(&files);
        lock.lock();
      }
    }).detach();
  } catch (const std::system_error&) {
    shared_ = nullptr;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PromptFiles::~PromptFiles() {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->over = true;
  shared_->ends.notify_all();
}

}  // namespace overcap
