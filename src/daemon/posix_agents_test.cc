// SPDX-License-Identifier: Apache-2.0
#include "daemon/posix_agents.h"

#include <fstream>
#include <gtest/gtest.h>
#include <poll.h>
#include <set>
#include <sys/stat.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(PosixAgents, EveryFolderIsEmptiedHoweverManyAreAskedForAtOnce) {
  const TempFolder folder;
  const std::string program = folder.Path() + "/overcap", seen = folder.Path() + "/seen";
  std::ofstream(program) << "#!/bin/sh\necho \"$3\" >> '" << seen << "'\n";
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  PosixAgents agents(program, folder.Path() + "/log", 10);
  const std::set<std::string> asked = {"/trash", "/jobs/a", "/jobs/b", "/jobs/c"};
  for (const std::string& one : asked) agents.EmptyTrash({one, {}, "/", one != "/trash"});
  std::set<std::string> emptied;
  pollfd ended{agents.EndedFd(), POLLIN, 0};
  while (emptied.size() < asked.size() && poll(&ended, 1, 30'000) > 0) {
    (void)agents.TakeEnded();
    const std::vector<std::string> lines = Split(PosixFiles().Read(seen).value_or(""), '\n');
    emptied = {lines.begin(), lines.end()};
    emptied.erase("");
  }
  EXPECT_EQ(emptied, asked);
}

}  // namespace
}  // namespace overcap
