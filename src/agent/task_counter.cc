// SPDX-License-Identifier: Apache-2.0
#include "agent/task_counter.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <utility>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {

namespace {

static_assert(std::endian::native == std::endian::little, "next-task is little endian");

constexpr int64_t kAhead = 64;  // positions that share a sync

void RaiseTo(int64_t* number, int64_t least) {
  const std::atomic_ref<int64_t> shared(*number);
  for (int64_t seen = shared.load(); seen < least && !shared.compare_exchange_weak(seen, least);) {
  }
}

}  // namespace

Result<TaskCounter> TaskCounter::Open(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  // Takes its block now: a store into a mapped hole on a full disk would be a SIGBUS. Content is kept.
  if (const int error = posix_fallocate(fd.Get(), 0, sizeof(Numbers)); error != 0) {
    return Fail(ErrnoError(error, StrCat("cannot extend '", path, "'")));
  }
  void* memory = mmap(nullptr, sizeof(Numbers), PROT_READ | PROT_WRITE, MAP_SHARED, fd.Get(), 0);
  if (memory == MAP_FAILED) return Fail(ErrnoError(errno, StrCat("cannot map '", path, "'")));
  return TaskCounter(static_cast<Numbers*>(memory));
}

TaskCounter::TaskCounter(TaskCounter&& other) noexcept : numbers_(std::exchange(other.numbers_, nullptr)) {}

TaskCounter::~TaskCounter() {
  if (numbers_ != nullptr) munmap(numbers_, sizeof(Numbers));
}

int64_t TaskCounter::Take() {
  return std::atomic_ref<int64_t>(numbers_->next).fetch_add(1, std::memory_order_relaxed);
}

// `synced` alone is not believed: a power cut may leave it ahead of the number that it is about.
void TaskCounter::MayBegin(int64_t position) {
  const int64_t synced = std::atomic_ref<int64_t>(numbers_->synced).load();
  if (position < std::min(synced, std::atomic_ref<int64_t>(numbers_->may_have_begun).load())) return;
  const int64_t until = position + kAhead;
  RaiseTo(&numbers_->may_have_begun, until);
  if (msync(numbers_, sizeof(Numbers), MS_SYNC) == 0) RaiseTo(&numbers_->synced, until);
}

}  // namespace overcap
