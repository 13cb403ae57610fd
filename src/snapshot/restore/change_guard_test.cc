// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/change_guard.h"

#include <ctime>
#include <fcntl.h>
#include <gtest/gtest.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000'000, kHour = 3600 * kSecond;

struct statx ChangedAt(int64_t ns) {
  struct statx status {};
  status.stx_ctime.tv_sec = ns / kSecond;
  status.stx_ctime.tv_nsec = static_cast<uint32_t>(ns % kSecond);
  return status;
}

TEST(ChangeGuard, WhatIsNewIsToldByTheClockOfTheFileSystem) {
  for (const int64_t ahead_ns : {int64_t{0}, 5 * kHour, -5 * kHour}) {
    RestoreRequest request;
    request.looked_ns = time(nullptr) * kSecond + ahead_ns;
    const ChangeGuard guard(request);
    EXPECT_FALSE(guard.IsNew(ChangedAt(request.looked_ns - 1))) << ahead_ns;
    EXPECT_TRUE(guard.IsNew(ChangedAt(request.looked_ns))) << ahead_ns;
    EXPECT_TRUE(guard.IsNew(ChangedAt(request.looked_ns + kSecond))) << ahead_ns;
    // From before a clock was set back.
    EXPECT_FALSE(guard.IsNew(ChangedAt(request.looked_ns + 24 * kHour))) << ahead_ns;
  }
}

TEST(ChangeGuard, WhatChangedJustBeforeItsRemovalGoesBack) {
  const TempFolder temp;
  PosixFiles files;
  ASSERT_TRUE(files.MakeFolders(temp / ".overcap"));
  ASSERT_TRUE(files.WriteAtomic(temp / "a", "old", false));
  const Fd folder(open(temp.Path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct statx before;
  ASSERT_EQ(LookAtName(folder.Get(), "a", &before), 0);
  ASSERT_TRUE(files.WriteAtomic(temp / "a", "mine", false));
  StagingFolder staging(folder.Get(), ".overcap");
  ChangeGuard guard{RestoreRequest{}};
  EXPECT_EQ(guard.Remove(&staging, folder.Get(), "a", before), kChangedMeanwhile);
  EXPECT_EQ(files.Read(temp / "a").value_or(""), "mine");
  ASSERT_EQ(LookAtName(folder.Get(), "a", &before), 0);
  EXPECT_EQ(guard.Remove(&staging, folder.Get(), "a", before), 0);
  EXPECT_FALSE(files.Exists(temp / "a"));
}

}  // namespace
}  // namespace overcap
