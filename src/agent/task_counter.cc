// SPDX-License-Identifier: Apache-2.0
#include "agent/task_counter.h"

#include <atomic>
#include <bit>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <utility>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {

static_assert(std::endian::native == std::endian::little, "next-task is little endian");

Result<TaskCounter> TaskCounter::Open(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  // Takes its block now: a store into a mapped hole on a full disk would be a SIGBUS. Content is kept.
  if (const int error = posix_fallocate(fd.Get(), 0, sizeof(int64_t)); error != 0) {
    return Fail(ErrnoError(error, StrCat("cannot extend '", path, "'")));
  }
  void* memory = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd.Get(), 0);
  if (memory == MAP_FAILED) return Fail(ErrnoError(errno, StrCat("cannot map '", path, "'")));
  return TaskCounter(static_cast<int64_t*>(memory));
}

TaskCounter::TaskCounter(TaskCounter&& other) noexcept : number_(std::exchange(other.number_, nullptr)) {}

TaskCounter::~TaskCounter() {
  if (number_ != nullptr) munmap(number_, sizeof(int64_t));
}

int64_t TaskCounter::Take() {
  return std::atomic_ref<int64_t>(*number_).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace overcap
