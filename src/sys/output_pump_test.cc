// SPDX-License-Identifier: Apache-2.0
#include "sys/output_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace overcap {
namespace {

void Put(const OutputPump& pump, const std::string& text) {
  ASSERT_EQ(write(pump.WriteFd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string Content(int fd) {
  std::string text(1 << 20, '\0');
  text.resize(pread(fd, text.data(), text.size(), 0));
  return text;
}

TEST(OutputPump, CarriesBytesUntilTheEnd) {
  const Fd file(memfd_create("log", MFD_CLOEXEC));
  auto pump = OutputPump::Make(file.Get());
  ASSERT_TRUE(pump);
  Put(*pump, std::string("a\0b", 3));
  EXPECT_FALSE(pump->Pump(0));
  EXPECT_FALSE(pump->Ended());
  Put(*pump, "c");
  pump->CloseWriteEnd();
  EXPECT_FALSE(pump->Pump(0));
  EXPECT_TRUE(pump->Ended());
  EXPECT_EQ(Content(file.Get()), std::string("a\0bc", 4));
}

TEST(OutputPump, CarriesBytesWhereSpliceCannot) {
  const Fd file(memfd_create("log", MFD_CLOEXEC));
  ASSERT_EQ(fcntl(file.Get(), F_SETFL, O_APPEND), 0);  // splice refuses such a file
  auto pump = OutputPump::Make(file.Get());
  ASSERT_TRUE(pump);
  Put(*pump, "text");
  EXPECT_FALSE(pump->Pump(0));
  EXPECT_EQ(Content(file.Get()), "text");
}

// A sealed file takes no byte more, as a full disk does.
TEST(OutputPump, DropsWhileTheFileTakesNothingAndNeverBlocksTheWriter) {
  const Fd file(memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(fcntl(file.Get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  auto pump = OutputPump::Make(file.Get());
  ASSERT_TRUE(pump);
  const std::string block(60'000, 'x');
  for (int i = 0; i < 10; ++i) {
    Put(*pump, block);
    EXPECT_FALSE(pump->Pump(1000 + i));
  }
  EXPECT_EQ(pump->dropped_bytes(), 600'000);
  EXPECT_EQ(pump->drop_error(), EPERM);
}

// Whoever reads the log by what has been moved must not lose his place.
TEST(OutputPump, CountsWhatAFileTookBeforeItWasFull) {
  const Fd file(memfd_create("log", MFD_CLOEXEC));
  const pid_t pid = fork();
  if (pid == 0) {
    const rlimit small{1000, 1000};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    auto pump = OutputPump::Make(file.Get());
    Put(*pump, std::string(1500, 'x'));
    (void)pump->Pump(0);
    Put(*pump, "more");
    (void)pump->Pump(0);
    _exit(pump->moved_bytes() == 1000 && pump->dropped_bytes() == 504 && pump->drop_error() == EFBIG ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Content(file.Get()), std::string(1000, 'x'));
}

TEST(OutputPump, GoesOnWhenThereIsRoomAgain) {
  const Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  const Fd target(dup(full.Get()));
  auto pump = OutputPump::Make(target.Get());
  ASSERT_TRUE(pump);
  Put(*pump, "lost");
  EXPECT_FALSE(pump->Pump(0));
  EXPECT_EQ(pump->drop_error(), ENOSPC);
  const Fd file(memfd_create("log", MFD_CLOEXEC));
  ASSERT_GE(dup2(file.Get(), target.Get()), 0);
  Put(*pump, "kept");
  EXPECT_FALSE(pump->Pump(1'000'000));
  EXPECT_EQ(Content(file.Get()), "kept");
  EXPECT_EQ(pump->dropped_bytes(), 4);
}

}  // namespace
}  // namespace overcap
