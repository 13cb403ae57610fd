// SPDX-License-Identifier: Apache-2.0
#include "agent/keeper_link.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/pipe.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr std::string_view kBeat = "beat ";
constexpr int kLookMs = 100;
constexpr size_t kMostHeard = 1 << 20;

}  // namespace

void KeeperWords::Take(const std::string& line) {
  const size_t blank = line.find(' ');
  const std::string word = line.substr(0, blank);
  const std::string text = blank == std::string::npos ? "" : line.substr(blank + 1);
  if (word == "note") notes.push_back(text);
  if (word == "unsaved") unsaved.push_back(text);
  if (word == "failed" && failure.empty()) failure = text;
  if (word == "place" && place.empty()) place = text;
  if (word == "ready") ++ready;
  if (word == "released") released.insert(text);
}

Result<KeeperLink> KeeperLink::Start(const Program& program) {
  OC_TRY(input, MakePipe());
  OC_TRY(output, MakePipe());
  const Fd log(open(program.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return Fail(ErrnoError(errno, StrCat("cannot open '", program.log, "'")));
  (void)fcntl(output.read.Get(), F_SETFL, O_NONBLOCK);
  SpawnRequest request;
  request.argv = program.argv;
  request.env = program.env;
  request.cwd = "/";
  request.stdin_fd = input.read.Get();
  request.stdout_fd = output.write.Get();
  request.stderr_fd = log.Get();
  request.group = ProcessGroup::kSession;
  request.want_pidfd = true;
  OC_TRY(spawned, Spawn(request));
  return KeeperLink(std::move(input.write), std::move(output.read), std::move(spawned.pidfd), program.nodes);
}

// False at the end.
bool KeeperLink::ReadMore() {
  char buffer[4096];
  for (;;) {
    const ssize_t size = read(output_.Get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return true;
    if (size <= 0 || heard_.size() > kMostHeard) return false;
    heard_.append(buffer, static_cast<size_t>(size));
  }
}

// Whether any of them was more than a sign of life.
bool KeeperLink::TakeLines(int64_t now_us) {
  bool more = false;
  for (size_t end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
    const std::string line = heard_.substr(0, end);
    heard_.erase(0, end + 1);
    const bool beat = line.starts_with(kBeat);
    if (beat) beat_us_[line.substr(kBeat.size())] = now_us;
    if (!beat) words_.Take(line);
    more |= !beat;
  }
  return more;
}

void KeeperLink::Kill() const {
  if (pidfd_) (void)syscall(SYS_pidfd_send_signal, pidfd_.Get(), SIGKILL, nullptr, 0);
}

KeeperLink::Heard KeeperLink::Await(const Clock& clock, int64_t most_us, const std::function<bool()>& done,
                                    const std::function<bool()>& stop) {
  int64_t deadline_us = clock.MonotonicUs() + most_us;
  while (clock.MonotonicUs() < deadline_us) {
    if (stop && stop()) return Heard::kStopped;
    pollfd fds[] = {{output_.Get(), POLLIN, 0}};
    (void)poll(fds, 1, kLookMs);
    const bool more = ReadMore();
    if (TakeLines(clock.MonotonicUs())) deadline_us = clock.MonotonicUs() + kSilentUs;
    if (done()) return Heard::kAll;
    if (stop && !words_.failure.empty()) return Heard::kFailed;
    if (!more) return Heard::kGone;
  }
  Kill();
  return Heard::kGone;
}

KeeperLink::Heard KeeperLink::AwaitReady(const Clock& clock, const std::function<bool()>& stop) {
  return Await(
      clock, kSilentUs, [this] { return words_.ready >= Keepers(); }, stop);
}

bool KeeperLink::AllLostOrReleased(int64_t now_us) const {
  if (nodes_.empty()) return !words_.released.empty();
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const std::string& node) {
    return words_.released.contains(node) || now_us - beat_us_.at(node) > kLostUs;
  });
}

KeeperLink::Heard KeeperLink::AwaitReleased(const Clock& clock, int64_t most_us) {
  for (const std::string& node : nodes_) beat_us_[node] = clock.MonotonicUs();
  const Heard heard = Await(clock, most_us, [&] { return AllLostOrReleased(clock.MonotonicUs()); }, {});
  if (heard != Heard::kAll || words_.released.size() >= Keepers()) return heard;
  Kill();  // srun waits for nodes that are lost
  return Heard::kGone;
}

}  // namespace overcap
