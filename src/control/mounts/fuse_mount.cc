// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/fuse_mount.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "control/mounts/mount_table.h"
#include "control/mounts/mounter_words.h"
#include "control/mounts/rclone_cache.h"
#include "sys/capture_output.h"
#include "sys/clock.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"
#include "sys/remove_tree.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kMountTime = 60 * kSecond;
constexpr std::chrono::seconds kProbeTime{30};
constexpr int64_t kBusyTime = 10 * kSecond;      // a mount that is in use is taken away lazily after that
constexpr int64_t kEndTime = 15 * kSecond;       // of a mounter whose mount is gone, before TERM, then KILL
constexpr int64_t kUploadTime = 1800 * kSecond;  // without any file getting done
constexpr int kMostRestarts = 5;
constexpr int64_t kMostWords = 1 << 16;

int64_t NowUs() {
  return PosixClock().MonotonicUs();
}

// Calls `done` every few milliseconds until it is true; false when the time is over.
bool Await(int64_t time_us, const std::function<bool()>& done) {
  const int64_t end_us = NowUs() + time_us;
  for (useconds_t pause = 5'000; !done(); pause = std::min<useconds_t>(pause * 2, 100'000)) {
    if (NowUs() >= end_us) return false;
    usleep(pause);
  }
  return true;
}

// An empty value takes the variable away.
std::vector<std::string> Merged(const std::vector<std::string>& env, const std::vector<std::string>& over) {
  Variables merged(env);
  for (const std::string& entry : over) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    merged.Remove(name);
    if (equals + 1 < entry.size()) merged.Set(name, entry.substr(equals + 1));
  }
  return merged.entries();
}

Result<void> MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return Fail(ErrnoError(errno, StrCat("cannot make '", path, "'")));
}

}  // namespace

int ProbeFolder(const std::string& folder) {
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return 1;
  errno = 0;
  (void)readdir(dir);
  const bool well = errno == 0;
  closedir(dir);
  return well ? 0 : 1;
}

Result<void> FuseMount::MakePlaces() {
  OC_TRY_VOID(MakeFolder(in_.places.point));
  OC_TRY_VOID(MakeFolder(in_.places.cache));
  OC_TRY_VOID(MakeFolder(in_.places.cache + "/files"));
  if (in_.command.config.empty()) return {};
  return PosixFiles().CreateExclusive(in_.places.config, in_.command.config);
}

Result<void> FuseMount::Start(const std::function<bool()>& stopped) {
  Result<void> started = MakePlaces();
  if (started) started = Launch(stopped);
  if (!started) {
    TakeAway();
    End(true);
    (void)PosixFiles().Remove(in_.places.config);
    (void)RemoveUnmounted(in_.places.cache);
    (void)rmdir(in_.places.point.c_str());
  }
  return started;
}

Result<void> FuseMount::Launch(const std::function<bool()>& stopped) {
  OC_TRY_VOID(Spawned());
  OC_TRY_VOID(WaitMounted(stopped));
  return Probe();
}

Result<void> FuseMount::Spawned() {
  const Fd log(open(in_.places.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return Fail(ErrnoError(errno, StrCat("cannot open '", in_.places.log, "'")));
  struct stat info {};
  log_begin_ = fstat(log.Get(), &info) == 0 ? info.st_size : 0;
  SpawnRequest request;
  request.argv = in_.command.argv;
  request.env = Merged(in_.env, in_.command.env);
  request.cwd = "/";
  request.stdout_fd = log.Get();
  request.stderr_fd = log.Get();
  request.group = ProcessGroup::kSession;
  request.parent_death_signal = SIGTERM;
  OC_TRY(spawned, Spawn(request));
  pid_ = spawned.pid;
  return {};
}

bool FuseMount::IsMounted() const {
  const auto mounts = MountsBelow(in_.places.point);
  return !mounts || std::ranges::find(*mounts, in_.places.point) != mounts->end();
}

bool FuseMount::HasEnded() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ <= 0;
}

// What the mounter has said since it was started.
std::string FuseMount::LastWords() const {
  struct stat info {};
  const int64_t size = stat(in_.places.log.c_str(), &info) == 0 ? info.st_size : 0;
  const auto text =
      PosixFiles().ReadRange(in_.places.log, std::max(log_begin_, size - kMostWords), kMostWords);
  const std::string last = MounterLastWords(text ? *text : "");
  return last.empty() ? "it said nothing" : last;
}

Result<void> FuseMount::WaitMounted(const std::function<bool()>& stopped) {
  bool ended = false;
  const bool settled = Await(kMountTime, [&] {
    if (IsMounted()) return true;
    ended = HasEnded() && !IsMounted();
    return ended || stopped();
  });
  if (stopped()) return Fail(ErrorCode::kConflict, "stopped while it was mounted");
  if (ended) return Fail(ErrorCode::kUnavailable, StrCat("'", in_.mounter, "' ended: ", LastWords()));
  if (!settled)
    return Fail(ErrorCode::kUnavailable, StrCat("'", in_.mounter, "' has not mounted it after ",
                                                kMountTime / kSecond, " s: ", LastWords()));
  return {};
}

Result<void> FuseMount::Probe() const {
  SpawnRequest request;
  request.argv = {OwnProgram(), "agent", "mounts", "--probe", in_.places.point};
  request.env = in_.env;
  request.cwd = "/";
  const auto done = CaptureOutput(std::move(request), kProbeTime);
  if (done && done->end.ok()) return {};
  return Fail(ErrorCode::kUnavailable, StrCat("what '", in_.mounter, "' has mounted cannot be read",
                                              done ? "" : " within 30 s", ": ", LastWords()));
}

Result<void> FuseMount::Tend(std::string* note) {
  if (!HasEnded() || restarts_ >= kMostRestarts) return {};
  *note = StrCat("'", in_.mounter, "' ended while the job ran (", LastWords(), ")");
  ++restarts_;
  TakeAway();
  Result<void> again = Launch([] { return false; });
  *note += again ? ", it was started again" : StrCat(", and again: ", again.error().message);
  return again;
}

// However that goes, it does not stay mounted where the kernel lets us.
void FuseMount::TakeAway() {
  const bool gone = Await(kBusyTime, [&] {
    return !IsMounted() || (Unmount(in_.places.point, pid_ <= 0, in_.env) && !IsMounted());
  });
  if (!gone) (void)Unmount(in_.places.point, true, in_.env);
}

void FuseMount::End(bool at_once) {
  if (pid_ <= 0) return;
  if (!at_once && Await(kEndTime, [&] { return HasEnded(); })) return;
  (void)kill(pid_, SIGTERM);
  if (Await(kEndTime, [&] { return HasEnded(); })) return;
  (void)kill(pid_, SIGKILL);
  (void)Await(kEndTime, [&] { return HasEnded(); });
}

// How many files are left that are not in the store.
Result<int64_t> FuseMount::WaitForUploads(const std::function<void()>& alive) {
  if (!in_.writes || in_.mounter != "rclone") return 0;
  int64_t left = CountDirty(in_.places.cache);
  int64_t end_us = NowUs() + kUploadTime;
  while (left > 0 && NowUs() < end_us && !HasEnded()) {
    alive();
    usleep(200'000);
    const int64_t now_left = CountDirty(in_.places.cache);
    if (now_left < left) end_us = NowUs() + kUploadTime;
    left = now_left;
  }
  return left;
}

Result<void> FuseMount::Release(const std::function<void()>& alive) {
  OC_TRY(left, WaitForUploads(alive));
  alive();
  TakeAway();
  alive();
  End(false);
  // What was closed in the last moment.
  if (left == 0 && in_.writes && in_.mounter == "rclone") left = CountDirty(in_.places.cache);
  (void)PosixFiles().Remove(in_.places.config);
  if (left > 0)
    return Fail(ErrorCode::kUnavailable,
                StrCat(CountOf(left, "file"), " could not be uploaded by rclone and stay in '",
                       in_.places.cache, "': ", LastWords()));
  OC_TRY_VOID(RemoveUnmounted(in_.places.cache));
  if (rmdir(in_.places.point.c_str()) != 0 && errno != ENOENT)
    return Fail(ErrnoError(errno, StrCat("cannot remove '", in_.places.point, "'")));
  return {};
}

}  // namespace overcap
