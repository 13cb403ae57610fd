// SPDX-License-Identifier: Apache-2.0
// What a group can do beside writing logs: output apart by stream, into a sink, and company while it runs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/supervisor.h"
#include "sys/testing/in_child.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

class Silent : public GroupObserver {
 public:
  void OnStarted(const std::vector<pid_t>&) override {}
  void OnMemberEnd(int, const ProcessEnd&) override {}
  void OnNote(const std::string&) override {}
};

// Counts bytes by stream.
class Counter : public Silent {
 public:
  void OnOutput(int, int stream, int64_t bytes) override { bytes_[stream] += bytes; }
  int64_t bytes_[3] = {};
};

// Takes so many bytes, then no more until it is emptied.
class Bucket : public OutputSink {
 public:
  explicit Bucket(size_t size) : size_(size) {}
  bool Ready() override { return held_ < size_; }
  void Take(int stream, std::string_view bytes) override {
    text_[stream].append(bytes);
    held_ += bytes.size();
  }
  std::string text_[3];
  size_t held_ = 0;

 private:
  size_t size_;
};

// Empties the bucket whenever it is called.
class Emptier : public GroupCompanion {
 public:
  Emptier(Bucket* bucket, const Clock& clock) : bucket_(*bucket), clock_(clock) {}
  int64_t Prepare(std::vector<pollfd>*) override { return clock_.MonotonicUs() + 1000; }
  bool Act(std::span<const pollfd>) override {
    bucket_.held_ = 0;
    return false;
  }

 private:
  Bucket& bucket_;
  const Clock& clock_;
};

// Says stop when its pipe can be read.
class Stopper : public GroupCompanion {
 public:
  explicit Stopper(int fd) : fd_(fd) {}
  int64_t Prepare(std::vector<pollfd>* fds) override {
    fds->push_back({fd_, POLLIN, 0});
    return std::numeric_limits<int64_t>::max();
  }
  bool Act(std::span<const pollfd> fds) override { return fds.size() == 1 && fds[0].revents != 0; }

 private:
  int fd_;
};

// Takes the signal of a member's end, which it lets go when it is first called: as an agent does that looks
// whether it was told to stop, or so that nobody else hears of it.
class Taker : public GroupCompanion {
 public:
  Taker(Supervisor* supervisor, Fd go, bool hides)
      : supervisor_(*supervisor), go_(std::move(go)), hides_(hides) {}
  int64_t Prepare(std::vector<pollfd>*) override { return std::numeric_limits<int64_t>::max(); }
  bool Act(std::span<const pollfd>) override {
    if (!go_) return false;
    go_.Reset();
    pollfd inbox{supervisor_.SignalFd(), POLLIN, 0};
    signalfd_siginfo info;
    if (poll(&inbox, 1, 30'000) != 1) return false;
    if (hides_) return read(inbox.fd, &info, sizeof info) < 0;
    return supervisor_.CancelRequested();
  }

 private:
  Supervisor& supervisor_;
  Fd go_;  // what the member waits for
  bool hides_;
};

GroupMember Shell(const std::string& script) {
  GroupMember member;
  member.request.argv = {"/bin/sh", "-c", script};
  member.request.env = {"PATH=/usr/bin:/bin"};
  return member;
}

TEST(GroupCompanion, StreamsOfASplitMemberAreToldApartAndStandInOneLog) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    PosixClock clock;
    auto supervisor = Supervisor::Make(clock, {});
    const Fd log(open((folder / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    std::vector<GroupMember> members{Shell("echo out; echo error >&2")};
    members[0].log_fd = log.Get();
    members[0].split = true;
    Counter counter;
    (*supervisor)->Run(&members, {}, &counter);
    char text[100];
    const ssize_t size = pread(log.Get(), text, sizeof text, 0);
    return StrCat(counter.bytes_[1], " ", counter.bytes_[2], " ", std::string_view(text, size));
  });
  EXPECT_EQ(story, "4 6 out\nerror\n");
}

TEST(GroupCompanion, ASinkThatIsFullLosesNothing) {
  const std::string story = InChild([&] {
    PosixClock clock;
    auto supervisor = Supervisor::Make(clock, {});
    Bucket bucket(1000);
    Emptier emptier(&bucket, clock);
    std::vector<GroupMember> members{Shell("head -c 300000 /dev/zero; head -c 5 /dev/zero >&2")};
    members[0].sink = &bucket;
    members[0].split = true;
    Silent silent;
    const GroupEnd end = (*supervisor)->Run(&members, {}, &silent, &emptier);
    return StrCat(bucket.text_[1].size(), " ", bucket.text_[2].size(), " ", end.end.exit_status);
  });
  EXPECT_EQ(story, "300000 5 0");
}

// What a member whose stdout is a file says to it and to its sink.
std::string StoryOfAWriter(const TempFolder& folder, const std::string& script) {
  return InChild([&] {
    PosixClock clock;
    SupervisorTimes times;
    times.linger = 20'000'000;
    auto supervisor = Supervisor::Make(clock, times);
    const Fd log(open((folder / "log").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Bucket bucket(1000);
    std::vector<GroupMember> members{Shell(script)};
    members[0].sink = &bucket;
    members[0].stdout_file = log.Get();
    Counter counter;
    (*supervisor)->Run(&members, {}, &counter);
    char text[100];
    const ssize_t size = pread(log.Get(), text, sizeof text, 0);
    return StrCat(std::string_view(text, size), "|", bucket.text_[1], "|", bucket.text_[2], "|",
                  counter.bytes_[2]);
  });
}

TEST(GroupCompanion, AMemberWhoseStdoutIsAFileHasAPipeForItsStderrOnly) {
  const TempFolder folder;
  EXPECT_EQ(StoryOfAWriter(folder, "echo out; echo error >&2; exit 3"), "out\n||error\n|6");
}

TEST(GroupCompanion, WhatStillHoldsTheFileOfAMemberMayFinishIt) {
  const TempFolder folder;
  EXPECT_EQ(StoryOfAWriter(folder, "(sleep 0.3; echo late) 2>/dev/null & echo out"), "out\nlate\n|||0");
}

TEST(GroupCompanion, MayStopTheGroup) {
  const std::string story = InChild([&] {
    PosixClock clock;
    auto supervisor = Supervisor::Make(clock, {});
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0 || write(ends[1], "x", 1) != 1) return std::string("no pipe");
    const Fd log(open("/dev/null", O_WRONLY | O_CLOEXEC));
    std::vector<GroupMember> members{Shell("exec sleep 100")};
    members[0].log_fd = log.Get();
    Silent silent;
    Stopper stopper(ends[0]);
    const GroupEnd end = (*supervisor)->Run(&members, {}, &silent, &stopper);
    return StrCat(static_cast<int>(end.cause == StopCause::kCancelled), " ", end.end.signal);
  });
  EXPECT_EQ(story, StrCat("1 ", SIGTERM));
}

// A member that writes a line, and ends when `Taker` lets it; whether its end is seen before the supervisor
// looks by itself.
std::string StoryOfATakenSignal(bool hides, int64_t look_us) {
  return InChild([&] {
    PosixClock clock;
    SupervisorTimes times;
    times.look = look_us;
    auto supervisor = Supervisor::Make(clock, times);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return std::string("no pipe");
    const Fd wait(ends[0]), log(open("/dev/null", O_WRONLY | O_CLOEXEC));
    std::vector<GroupMember> members{Shell("echo ready; read go; exit 7")};
    members[0].log_fd = log.Get();
    members[0].request.stdin_fd = wait.Get();
    Taker taker(supervisor->get(), Fd(ends[1]), hides);
    Silent silent;
    const GroupEnd end = (*supervisor)->Run(&members, {}, &silent, &taker);
    return StrCat(end.end.exit_status);
  });
}

// It has nothing else to wake up for: looking is an hour away.
TEST(GroupCompanion, TheEndOfAMemberIsSeenAlsoWhenTheCompanionTookItsSignal) {
  EXPECT_EQ(StoryOfATakenSignal(false, 3'600'000'000), "7");
}

TEST(GroupCompanion, TheEndOfAMemberIsFoundAlsoWhenNoSignalTellsOfIt) {
  EXPECT_EQ(StoryOfATakenSignal(true, 50'000), "7");
}

TEST(GroupCompanion, ASecondInterruptEndsTheGraceTime) {
  const std::string story = InChild([&] {
    signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
    PosixClock clock;
    SupervisorTimes times;
    times.grace = 60'000'000;
    auto supervisor = Supervisor::Make(clock, times, {.hangup_cancels = true, .second_kills = true});
    const Fd log(open("/dev/null", O_WRONLY | O_CLOEXEC));
    // The second comes from the member itself, a while after it was asked to end.
    std::vector<GroupMember> members{
        Shell(StrCat("trap 'sleep 0.2; kill -INT ", getpid(), "' TERM; kill -HUP ", getpid(),
                     "; while :; do sleep 0.01; done"))};
    members[0].log_fd = log.Get();
    Silent silent;
    const GroupEnd end = (*supervisor)->Run(&members, {}, &silent);
    return StrCat(static_cast<int>(end.cause == StopCause::kCancelled), " ", end.end.signal, " ",
                  (*supervisor)->CancelSignal());
  });
  EXPECT_EQ(story, StrCat("1 ", SIGKILL, " ", SIGHUP));
}

// However slow the machine is, little time passes between the two signals of a test.
class SlowClock : public PosixClock {
 public:
  int64_t MonotonicUs() const override { return PosixClock::MonotonicUs() / 100; }
};

TEST(GroupCompanion, ASignalThatIsSentTwiceLeavesTheGraceTime) {
  const std::string story = InChild([] {
    const SlowClock clock;
    SupervisorTimes times;
    times.grace = 30'000'000;
    auto supervisor = Supervisor::Make(clock, times, {.hangup_cancels = true, .second_kills = true});
    const Fd log(open("/dev/null", O_WRONLY | O_CLOEXEC));
    std::vector<GroupMember> members{
        Shell(StrCat("trap 'kill -TERM ", getpid(), "; sleep 0.1; exit 7' TERM; ", "kill -TERM ", getpid(),
                     "; while :; do sleep 0.01; done"))};
    members[0].log_fd = log.Get();
    Silent silent;
    const GroupEnd end = (*supervisor)->Run(&members, {}, &silent);
    return StrCat(static_cast<int>(end.cause == StopCause::kCancelled), " ", end.end.exit_status);
  });
  EXPECT_EQ(story, "1 7");
}

}  // namespace
}  // namespace overcap
