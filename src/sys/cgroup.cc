// SPDX-License-Identifier: Apache-2.0
#include "sys/cgroup.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/gpu_filter.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kV1Controllers[] = {"freezer", "pids", "memory", "cpuset", "devices"};

// The kernel's files take one write(2) and answer with errno; 0 when it worked.
int WriteKernelFile(const std::string& path, std::string_view text) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return write(fd.Get(), text.data(), text.size()) < 0 ? errno : 0;
}

std::string ReadKernelFile(const std::string& path) {
  return PosixFiles().Read(path).value_or("");
}

bool HasWord(const std::string& list, std::string_view word) {
  const std::vector<std::string> words = Split(Trim(list), ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Whether children of this v2 group have the controller. Our `own` group is asked to give it now; it refuses
// (EBUSY) while it holds processes. Groups above it are others' too and stay as they are.
bool GivesController(const std::string& folder, bool own, const std::string& controller) {
  const std::string file = folder + "/cgroup.subtree_control";
  if (HasWord(ReadKernelFile(file), controller)) return true;
  return own && WriteKernelFile(file, "+" + controller) == 0;
}

bool MayUse(const std::string& folder) {
  return access(folder.c_str(), W_OK | X_OK) == 0 && access((folder + "/cgroup.procs").c_str(), W_OK) == 0;
}

// Also groups that the job made inside its own. 0 or the errno.
int RemoveGroup(const std::string& folder) {
  if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return 0;
  const int error = errno;
  bool any = false;
  for (const std::string& name : PosixFiles().List(folder).value_or(std::vector<std::string>())) {
    struct stat info {};
    const std::string child = StrCat(folder, "/", name);
    if (lstat(child.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) any |= RemoveGroup(child) == 0;
  }
  if (!any) return error;
  return rmdir(folder.c_str()) == 0 || errno == ENOENT ? 0 : errno;
}

// Calls `done` until it says true or the time is over, with pauses that grow from 0.2 to 20 ms.
bool Poll(milliseconds timeout, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (useconds_t pause = 200;; pause = std::min<useconds_t>(pause * 2, 20'000)) {
    if (done()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    usleep(pause);
  }
}

}  // namespace

Result<Cgroup> Cgroup::Create(const CgroupRequest& request) {
  if (request.name.empty() || request.name[0] == '.' || request.name.find('/') != std::string::npos) {
    return Fail(ErrorCode::kUsage, StrCat("'", request.name, "' is no name of a control group"));
  }
  const CgroupPlaces places = OwnCgroupPlaces();
  const auto final = [](const Result<Cgroup>& made) {
    return made || made.error().code != ErrorCode::kUnavailable;
  };
  // Where both kinds are mounted, v1 may hold the cpuset that v2 then cannot have; last, v2 without it.
  auto made = CreateV2(places.v2, request, !request.cpus.empty());
  if (!final(made) && !places.v1.empty()) made = CreateV1(places, request);
  if (!final(made) && !request.cpus.empty()) made = CreateV2(places.v2, request, false);
  if (!made || !request.gpus || made->LimitsGpus() || !made->v2_ || !places.v1.contains("devices"))
    return made;
  // A kernel that has both kinds of groups but no device programs.
  (void)made->Remove(milliseconds(0));
  auto other = CreateV1(places, request);
  return other ? std::move(other) : CreateV2(places.v2, request, false);
}

Result<Cgroup> Cgroup::CreateV2(const CgroupPlace& place, const CgroupRequest& request, bool with_cpus) {
  for (const std::string& parent : place.Upwards()) {
    if (!MayUse(parent)) break;  // processes cannot be moved past a group that is not ours
    const bool own = parent == place.folder;
    if (request.memory_bytes > 0 && !GivesController(parent, own, "memory")) continue;
    if (with_cpus && !GivesController(parent, own, "cpuset")) continue;
    Cgroup group;
    group.v2_ = true;
    OC_TRY_VOID(group.AddPart("", parent, request.name));
    auto limited = request.memory_bytes > 0 ? group.LimitMemory(request.memory_bytes) : Result<void>();
    if (!limited) {
      (void)group.Remove(milliseconds(0));
      return Fail(std::move(limited).error());
    }
    if (with_cpus) group.LimitCpus(request.cpus);
    if (request.gpus) group.limits_gpus_ = FilterGpusV2(group.parts_[0].folder, *request.gpus).has_value();
    return group;
  }
  return Fail(ErrorCode::kUnavailable,
              "no control group (v2) with the needed controllers is given to this user");
}

Result<Cgroup> Cgroup::CreateV1(const CgroupPlaces& places, const CgroupRequest& request) {
  Cgroup group;
  for (const std::string_view controller : kV1Controllers) {
    const bool needed = controller == "memory"    ? request.memory_bytes > 0
                        : controller == "cpuset"  ? !request.cpus.empty()
                        : controller == "devices" ? request.gpus.has_value()
                                                  : group.parts_.empty();
    const auto place = places.v1.find(std::string(controller));
    if (!needed || place == places.v1.end() || !MayUse(place->second.folder)) continue;
    auto added = group.AddPart(place->first, place->second.folder, request.name);
    if (added && controller == "memory") added = group.LimitMemory(request.memory_bytes);
    if (!added) {
      (void)group.Remove(milliseconds(0));
      return Fail(std::move(added).error());
    }
    if (controller == "cpuset") group.LimitCpus(request.cpus);
    if (controller == "devices")
      group.limits_gpus_ = FilterGpusV1(group.parts_.back().folder, *request.gpus).has_value();
  }
  if (!group.parts_.empty() && (request.memory_bytes == 0 || group.limits_memory_)) return group;
  (void)group.Remove(milliseconds(0));
  return Fail(ErrorCode::kUnavailable, "no hierarchy of control groups is writable for this user");
}

Result<Cgroup> Cgroup::Find(const std::string& name) {
  const CgroupPlaces places = OwnCgroupPlaces();
  Cgroup group;
  struct stat info {};
  for (const std::string& parent : places.v2.Upwards()) {
    const std::string folder = StrCat(parent, "/", name);
    if (stat(folder.c_str(), &info) != 0) continue;
    group.v2_ = true;
    group.parts_.push_back(Part{"", folder});
    return group;
  }
  for (const std::string_view controller : kV1Controllers) {
    const auto place = places.v1.find(std::string(controller));
    if (place == places.v1.end()) continue;
    const std::string folder = StrCat(place->second.folder, "/", name);
    if (stat(folder.c_str(), &info) == 0) group.parts_.push_back(Part{place->first, folder});
  }
  if (group.parts_.empty()) return Fail(ErrorCode::kNotFound, StrCat("no control group '", name, "'"));
  return group;
}

Result<void> Cgroup::AddPart(const std::string& controller, const std::string& parent,
                             const std::string& name) {
  const std::string folder = StrCat(parent, "/", name);
  if (mkdir(folder.c_str(), 0700) != 0) {
    const int error = errno;
    Error reason = ErrnoError(error, StrCat("cannot make control group '", folder, "'"));
    if (error != EEXIST) reason.code = ErrorCode::kUnavailable;
    return Fail(std::move(reason));
  }
  parts_.push_back(Part{controller, folder});
  return {};
}

Result<void> Cgroup::LimitMemory(int64_t bytes) {
  const std::string& folder = PartOf("memory")->folder;
  const std::string limit = std::to_string(bytes);
  const int error = WriteKernelFile(folder + (v2_ ? "/memory.max" : "/memory.limit_in_bytes"), limit);
  if (error != 0) {
    Error reason = ErrnoError(error, StrCat("cannot limit memory in '", folder, "'"));
    reason.code = ErrorCode::kUnavailable;
    return Fail(std::move(reason));
  }
  // Kernels without swap accounting have no such file; then there is nothing to limit.
  (void)WriteKernelFile(folder + (v2_ ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"),
                        v2_ ? "0" : limit);
  limits_memory_ = true;
  return {};
}

void Cgroup::LimitCpus(const std::string& cpus) {
  const std::string& folder = PartOf("cpuset")->folder;
  bool ready = true;
  if (!v2_) {  // a fresh v1 group has no memory nodes, and nothing can join it
    const std::string parent = folder.substr(0, folder.rfind('/'));
    ready = WriteKernelFile(folder + "/cpuset.mems",
                            Trim(ReadKernelFile(parent + "/cpuset.effective_mems"))) == 0;
  }
  limits_cpus_ = ready && WriteKernelFile(folder + "/cpuset.cpus", cpus) == 0;
  if (limits_cpus_ || v2_) return;
  rmdir(folder.c_str());
  parts_.pop_back();
}

const Cgroup::Part* Cgroup::PartOf(std::string_view controller) const {
  for (const Part& part : parts_) {
    if (v2_ || part.controller == controller) return &part;
  }
  return nullptr;
}

std::vector<std::string> Cgroup::ProcsFiles() const {
  std::vector<std::string> files;
  for (const Part& part : parts_) files.push_back(part.folder + "/cgroup.procs");
  return files;
}

Result<void> Cgroup::AddProcess(pid_t pid) {
  for (const std::string& file : ProcsFiles()) {
    const int error = WriteKernelFile(file, std::to_string(pid));
    if (error != 0) return Fail(ErrnoError(error, StrCat("cannot put process ", pid, " into '", file, "'")));
  }
  return {};
}

Result<void> Cgroup::Release(pid_t pid) {
  const CgroupPlaces places = OwnCgroupPlaces();
  for (const Part& part : parts_) {
    const auto place = places.v1.find(part.controller);
    if (!v2_ && place == places.v1.end()) continue;
    const std::string file = (v2_ ? places.v2 : place->second).folder + "/cgroup.procs";
    const int error = WriteKernelFile(file, std::to_string(pid));
    if (error != 0) return Fail(ErrnoError(error, StrCat("cannot put process ", pid, " into '", file, "'")));
  }
  return {};
}

// A process in any part counts: a child may have been stopped between joining two of them.
std::vector<pid_t> Cgroup::Processes() const {
  std::vector<pid_t> pids;
  for (const std::string& file : ProcsFiles()) {
    for (const std::string& line : Split(ReadKernelFile(file), '\n')) {
      if (const auto pid = ParseInt(line); pid && *pid > 0) pids.push_back(static_cast<pid_t>(*pid));
    }
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

// v2 knows about groups inside it too.
bool Cgroup::Empty() const {
  if (!v2_) return Processes().empty();
  const std::string events = ReadKernelFile(parts_[0].folder + "/cgroup.events");
  return events.find("populated 1") == std::string::npos;
}

void Cgroup::Freeze(bool frozen) const {
  const Part* part = PartOf("freezer");
  if (part == nullptr) return;
  if (v2_) {
    (void)WriteKernelFile(part->folder + "/cgroup.freeze", frozen ? "1" : "0");
  } else {
    (void)WriteKernelFile(part->folder + "/freezer.state", frozen ? "FROZEN" : "THAWED");
  }
}

// At once where the kernel can do that, else frozen meanwhile, so that nothing can fork away.
void Cgroup::Signal() const {
  if (v2_ && WriteKernelFile(parts_[0].folder + "/cgroup.kill", "1") == 0) return;
  Freeze(true);
  for (const pid_t pid : Processes()) {
    if (pid != getpid()) kill(pid, SIGKILL);
  }
  Freeze(false);
}

Result<void> Cgroup::KillAll(milliseconds timeout) {
  if (parts_.empty()) return {};
  const bool empty = Poll(timeout, [&] {
    if (Empty()) return true;
    Signal();
    return Empty();
  });
  if (empty) return {};
  std::vector<std::string> left;
  for (const pid_t pid : Processes()) left.push_back(std::to_string(pid));
  return Fail(ErrorCode::kUnavailable,
              StrCat("processes in '", parts_[0].folder, "' do not die: ", Join(left, " ")));
}

int64_t Cgroup::OomKills() const {
  const Part* part = PartOf("memory");
  if (part == nullptr) return 0;
  for (const std::string& line :
       Split(ReadKernelFile(part->folder + (v2_ ? "/memory.events" : "/memory.oom_control")), '\n')) {
    const std::vector<std::string> words = Split(line, ' ');
    if (words.size() == 2 && words[0] == "oom_kill") return ParseInt(words[1]).value_or(0);
  }
  return 0;
}

Result<void> Cgroup::Remove(milliseconds timeout) {
  int error = 0;
  std::string stuck;
  const bool removed = Poll(timeout, [&] {
    std::erase_if(parts_, [&](const Part& part) {
      const int failure = RemoveGroup(part.folder);
      if (failure == 0) return true;
      error = failure;
      stuck = part.folder;
      return false;
    });
    return parts_.empty();
  });
  if (removed) return {};
  Error reason = ErrnoError(error, StrCat("cannot remove control group '", stuck, "'"));
  if (error == EBUSY) reason.code = ErrorCode::kUnavailable;
  return Fail(std::move(reason));
}

}  // namespace overcap
