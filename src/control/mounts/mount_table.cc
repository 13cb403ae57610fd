// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mount_table.h"

#include <algorithm>
#include <cerrno>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/capture_output.h"
#include "sys/posix_files.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kUnmountTime{20};
constexpr size_t kPointField = 4;

// "\040" stands for a blank.
std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto digit = [&](size_t i) {
      return at + i < text.size() && text[at + i] >= '0' && text[at + i] <= '7';
    };
    if (text[at] != '\\' || !digit(1) || !digit(2) || !digit(3)) {
      plain += text[at];
      continue;
    }
    plain +=
        static_cast<char>(((text[at + 1] - '0') << 6) | ((text[at + 2] - '0') << 3) | (text[at + 3] - '0'));
    at += 3;
  }
  return plain;
}

std::string Fusermount(std::string_view path) {
  for (const std::string_view name : {"fusermount3", "fusermount"}) {
    if (auto found = ResolveProgram(name, path, "/")) return *found;
  }
  return "";
}

// Whether it is another file system than the folder that it stands in.
bool IsOtherDisk(const std::string& folder) {
  struct stat own {
  }, above{};
  if (lstat(folder.c_str(), &own) != 0 || stat((folder + "/..").c_str(), &above) != 0) return false;
  return S_ISDIR(own.st_mode) && own.st_dev != above.st_dev;
}

}  // namespace

std::vector<std::string> MountPointsIn(std::string_view mountinfo, const std::string& folder) {
  std::vector<std::string> points;
  for (const std::string& line : Split(mountinfo, '\n')) {
    const std::vector<std::string> fields = Split(line, ' ');
    if (fields.size() <= kPointField) continue;
    std::string point = WithoutEscapes(fields[kPointField]);
    if (point == folder || point.starts_with(folder + "/")) points.push_back(std::move(point));
  }
  std::reverse(points.begin(), points.end());  // what was mounted last stands on top
  std::stable_sort(points.begin(), points.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return points;
}

Result<std::vector<std::string>> MountsBelow(const std::string& folder) {
  OC_TRY(text, PosixFiles().Read("/proc/self/mountinfo"));
  return MountPointsIn(text, folder);
}

bool CanUnmount(std::string_view path) {
  return geteuid() == 0 || !Fusermount(path).empty();
}

Result<void> Unmount(const std::string& point, bool lazy, const std::vector<std::string>& env) {
  if (geteuid() == 0) {
    if (umount2(point.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
    return Fail(ErrnoError(errno, StrCat("cannot unmount '", point, "'")));
  }
  SpawnRequest request;
  request.argv = {Fusermount(PathOf(env)), "-u"};
  if (request.argv[0].empty()) return Fail(ErrorCode::kUnavailable, "the node has no fusermount3");
  if (lazy) request.argv.emplace_back("-z");
  request.argv.push_back(point);
  request.env = env;
  request.cwd = "/";
  OC_TRY(done, CaptureOutput(std::move(request), kUnmountTime));
  if (done.end.ok()) return {};
  return Fail(ErrorCode::kUnavailable,
              StrCat("cannot unmount '", point, "': ", ToUtf8(Trim(done.output).substr(0, 300))));
}

Result<void> RemoveUnmounted(const std::string& folder) {
  if (IsOtherDisk(folder))
    return Fail(ErrorCode::kConflict, StrCat("'", folder, "' is kept: something is mounted there"));
  OC_TRY(mounts, MountsBelow(folder));
  if (!mounts.empty())
    return Fail(ErrorCode::kConflict,
                StrCat("'", folder, "' is kept: '", mounts.front(), "' is mounted in it"));
  return RemoveTree(folder);
}

}  // namespace overcap
