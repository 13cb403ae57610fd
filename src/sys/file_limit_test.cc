// SPDX-License-Identifier: Apache-2.0
#include "sys/file_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/text.h"
#include "sys/process.h"
#include "sys/testing/in_child.h"
#include "sys/user.h"

namespace overcap {
namespace {

// True when a program that this process starts sees that limit.
bool ProgramSees(int limit) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", StrCat("test $(ulimit -Sn) = ", limit)};
  const auto spawned = Spawn(request);
  int status = -1;
  return spawned && waitpid(spawned->pid, &status, 0) == spawned->pid && status == 0;
}

TEST(FileLimit, GrowsForThisProcessAndStaysForThoseItStarts) {
  EXPECT_EQ(InChild([] {
              const rlimit few{50, 90};
              setrlimit(RLIMIT_NOFILE, &few);
              std::string story;
              for (const int count : {40, 80, 1000}) {
                AllowOpenFiles(count);
                story += StrCat(OwnFileLimit(), ProgramSees(50) ? " as before, " : " CHANGED, ");
              }
              return story;
            }),
            "50 as before, 80 as before, 90 as before, ");
}

}  // namespace
}  // namespace overcap
