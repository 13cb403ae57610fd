// SPDX-License-Identifier: Apache-2.0
#include "sys/prompt_folder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kRound(1);
constexpr int kRoundsOfNew = 10;  // for so many rounds the folder is listed in each,
constexpr int kListEvery = 5;     // after that in every fifth: it is a question to the server

// NFS, SMB, CIFS, SMB2.
constexpr std::array<uint32_t, 4> kKeepWrites = {0x6969, 0x517B, 0xFF534D42, 0xFE534D42};

bool KeepsWrites(const std::string& folder) {
  struct statfs info {};
  return statfs(folder.c_str(), &info) == 0 &&
         std::find(kKeepWrites.begin(), kKeepWrites.end(), static_cast<uint32_t>(info.f_type)) !=
             kKeepWrites.end();
}

// As this host knows it, without a question to the server; -1: no file.
int64_t SizeHere(const std::string& path) {
  struct statx info {};
  constexpr int kFlags = AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW;
  if (statx(AT_FDCWD, path.c_str(), kFlags, STATX_SIZE | STATX_TYPE, &info) != 0) return -1;
  return S_ISREG(info.stx_mode) ? static_cast<int64_t>(info.stx_size) : -1;
}

// Begins to write what is not yet at the server.
void SendOn(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd) (void)sync_file_range(fd.Get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

void Round(const std::string& folder, bool list, std::map<std::string, int64_t>* sizes) {
  if (list) {
    const auto names = PosixFiles().List(folder);
    if (names)
      for (const std::string& name : *names) sizes->emplace(name, 0);
  }
  for (auto& [name, known] : *sizes) {
    const std::string path = StrCat(folder, "/", name);
    const int64_t size = SizeHere(path);
    if (size > 0 && size != known) SendOn(path);
    known = size;
  }
}

}  // namespace

struct PromptFolder::Shared {
  std::mutex mutex;
  std::condition_variable ends;
  bool over = false;
};

PromptFolder::PromptFolder(const std::string& folder) {
  if (!KeepsWrites(folder)) return;
  shared_ = std::make_shared<Shared>();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the thread that waits for them
  try {
    // Nobody waits for its end: it may hang as long as the server does.
    std::thread([shared = shared_, folder] {
      std::map<std::string, int64_t> sizes;
      std::unique_lock lock(shared->mutex);
      for (int round = 0; !shared->ends.wait_for(lock, kRound, [&] { return shared->over; }); ++round) {
        lock.unlock();
        Round(folder, round < kRoundsOfNew || round % kListEvery == 0, &sizes);
        lock.lock();
      }
    }).detach();
  } catch (const std::system_error&) {
    shared_ = nullptr;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PromptFolder::~PromptFolder() {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->over = true;
  shared_->ends.notify_all();
}

}  // namespace overcap
