// SPDX-License-Identifier: Apache-2.0
#include "sys/user_area_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/as_user.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kMostNames = 1'000'000;
constexpr std::string_view kTemporaryPrefix = ".overcap-tmp-";
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

tl::unexpected<Error> Errno(int error_number, std::string_view what, const std::string& path) {
  return Fail(ErrnoError(error_number, StrCat("cannot ", what, " '", path, "'")));
}

// Below `folder`, through plain folders of the same file system only.
Fd OpenBelow(const Fd& folder, const std::string& path, uint64_t flags, uint64_t mode = 0) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return Fd(static_cast<int>(
      syscall(SYS_openat2, folder.Get(), path.empty() ? "." : path.c_str(), &how, sizeof how)));
}

bool IsPlainFile(const Fd& fd) {
  struct stat info {};
  return fstat(fd.Get(), &info) == 0 && S_ISREG(info.st_mode);
}

// A user may have put anything there: it is opened without waiting, looked at, and only then used.
Fd OpenPlain(const Fd& folder, const std::string& path, uint64_t flags, uint64_t mode = 0) {
  Fd fd = OpenBelow(folder, path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
  if (fd && !IsPlainFile(fd)) {
    fd.Reset();
    errno = EACCES;
  }
  return fd;
}

class AreaAppendFile : public AppendFile {
 public:
  AreaAppendFile(Fd fd, std::string path, int64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  Result<void> Append(std::string_view data) override {
    if (const int error = WriteAll(fd_.Get(), data); error != 0) return Errno(error, "append to", path_);
    size_ += static_cast<int64_t>(data.size());
    return {};
  }
  Result<void> Sync() override {
    if (fdatasync(fd_.Get()) != 0) return Errno(errno, "sync", path_);
    return {};
  }
  Result<void> TruncateTo(int64_t size) override {
    if (ftruncate(fd_.Get(), size) != 0) return Errno(errno, "truncate", path_);
    size_ = size;
    return {};
  }
  int64_t Size() const override { return size_; }

 private:
  Fd fd_;
  std::string path_;
  int64_t size_;
};

Result<std::string> ReadBytes(const Fd& fd, const std::string& path, int64_t offset, int64_t limit) {
  struct stat info {};
  if (fstat(fd.Get(), &info) != 0) return Errno(errno, "read", path);
  std::string out;
  out.resize(static_cast<size_t>(std::clamp<int64_t>(info.st_size - offset, 0, limit)));
  size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t n =
        pread(fd.Get(), out.data() + filled, out.size() - filled, offset + static_cast<int64_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno(errno, "read", path);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  out.resize(filled);
  return out;
}

std::string TemporaryName() {
  static uint64_t counter = 0;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return StrCat(kTemporaryPrefix, getpid(), "-", now.tv_sec, "-", now.tv_nsec, "-", counter++);
}

}  // namespace

// As long as it lives the thread is the area's user.
struct UserAreaFiles::Area {
  std::string path;  // in messages
  std::string below;
  Fd folder;
  AsUser as;

  struct Parted {
    std::string folder, name;
  };
  Parted Part() const {
    const size_t slash = below.rfind('/');
    if (slash == std::string::npos) return {"", below};
    return {below.substr(0, slash), below.substr(slash + 1)};
  }
};

struct UserAreaFiles::Spot {
  Fd folder;
  std::string name;

  static Result<Spot> Of(const Area& area, std::string_view what) {
    const Area::Parted parted = area.Part();
    if (parted.name.empty() || parted.name == "." || parted.name == "..")
      return Errno(EINVAL, what, area.path);
    Spot spot{OpenBelow(area.folder, parted.folder, kFolderFlags), parted.name};
    if (!spot.folder) return Errno(errno, what, area.path);
    return spot;
  }

  // A new file with this content under a name of ours; on failure nothing is left.
  Result<std::string> WriteTemporary(std::string_view data, bool sync, const std::string& path) const {
    const std::string temporary = TemporaryName();
    const Fd fd = OpenPlain(folder, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!fd) return Errno(errno, "write", path);
    int error = WriteAll(fd.Get(), data);
    if (error == 0 && sync && fsync(fd.Get()) != 0) error = errno;
    if (error == 0) return temporary;
    unlinkat(folder.Get(), temporary.c_str(), 0);
    return Errno(error, "write", path);
  }
};

std::optional<std::string_view> UserAreaFiles::InArea(const std::string& path) const {
  if (!path.starts_with(users_) || path.size() < users_.size() + 2 || path[users_.size()] != '/')
    return std::nullopt;
  return std::string_view(path).substr(users_.size() + 1);
}

Result<UserAreaFiles::Area> UserAreaFiles::OpenArea(const std::string& path) const {
  const std::string_view inside = *InArea(path);
  const size_t slash = std::min(inside.find('/'), inside.size());
  const std::string name(inside.substr(0, slash));
  const Fd users(open(users_.c_str(), kFolderFlags | O_NOFOLLOW));
  Fd folder = users ? OpenBelow(users, name, kFolderFlags | O_NOFOLLOW) : Fd();
  struct stat info {};
  if (!folder || fstat(folder.Get(), &info) != 0) return Errno(errno, "open", path);
  if (std::to_string(info.st_uid) != name)
    return Fail(ErrorCode::kDenied, StrCat("'", users_, "/", name, "' does not belong to user ", name));
  OC_TRY(as, AsUser::Become(info.st_uid, info.st_gid));
  return Area{path, std::string(inside.substr(std::min(slash + 1, inside.size()))), std::move(folder),
              std::move(as)};
}

Result<void> UserAreaFiles::CheckKernel() const {
  const Fd root(open("/", kFolderFlags));
  if (OpenBelow(root, ".", kFolderFlags)) return {};
  return Fail(ErrorCode::kUnavailable,
              StrCat("this kernel cannot open files safely for others (openat2: ",
                     ErrnoError(errno, "it").message, ")"),
              "an engine for many users needs Linux 5.6 or newer");
}

Result<std::string> UserAreaFiles::MakeArea(uid_t uid, gid_t gid) {
  const std::string path = StrCat(users_, "/", uid);
  const Fd users(open(users_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!users) return Errno(errno, "open", users_);
  const std::string name = std::to_string(uid);
  struct stat info {};
  if (fstatat(users.Get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(info.st_mode) && info.st_uid == uid && (info.st_mode & 077) == 0) return path;
    // Made and not yet given away: an engine was killed between the two.
    if (!S_ISDIR(info.st_mode) || (info.st_uid != uid && info.st_uid != geteuid()))
      return Fail(ErrorCode::kDenied, StrCat("'", path, "' does not belong to user ", uid));
  } else if (mkdirat(users.Get(), name.c_str(), 0700) != 0) {
    return Errno(errno, "make folder", path);
  }
  const Fd folder(openat(users.Get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder || fchmod(folder.Get(), 0700) != 0 || fchown(folder.Get(), uid, gid) != 0)
    return Errno(errno, "make folder", path);
  // While there is room for it: on a full disk folders are removed through it.
  OC_TRY_VOID(MakeFolders(path + "/trash"));
  return path;
}

Result<std::string> UserAreaFiles::Read(const std::string& path) const {
  return InArea(path) ? ReadRange(path, 0, kMostBytes) : plain_.Read(path);
}

Result<std::string> UserAreaFiles::ReadRange(const std::string& path, int64_t offset, int64_t limit) const {
  if (!InArea(path)) return plain_.ReadRange(path, offset, limit);
  if (offset < 0 || limit < 0) return Errno(EINVAL, "read", path);
  OC_TRY(area, OpenArea(path));
  const Fd fd = OpenPlain(area.folder, area.below, O_RDONLY);
  if (!fd) return Errno(errno, "read", path);
  return ReadBytes(fd, path, offset, std::min(limit, kMostBytes));
}

Result<std::unique_ptr<AppendFile>> UserAreaFiles::OpenAppend(const std::string& path) {
  if (!InArea(path)) return plain_.OpenAppend(path);
  OC_TRY(area, OpenArea(path));
  Fd fd = OpenPlain(area.folder, area.below, O_WRONLY | O_APPEND | O_CREAT, 0600);
  struct stat info {};
  if (!fd || fstat(fd.Get(), &info) != 0) return Errno(errno, "open", path);
  return std::unique_ptr<AppendFile>(new AreaAppendFile(std::move(fd), path, info.st_size));
}

Result<void> UserAreaFiles::WriteAtomic(const std::string& path, std::string_view data, bool durable) {
  if (!InArea(path)) return plain_.WriteAtomic(path, data, durable);
  OC_TRY(area, OpenArea(path));
  OC_TRY(spot, Spot::Of(area, "write"));
  OC_TRY(temporary, spot.WriteTemporary(data, durable, path));
  if (renameat(spot.folder.Get(), temporary.c_str(), spot.folder.Get(), spot.name.c_str()) == 0) return {};
  const int error = errno;
  unlinkat(spot.folder.Get(), temporary.c_str(), 0);
  return Errno(error, "write", path);
}

Result<void> UserAreaFiles::CreateExclusive(const std::string& path, std::string_view data) {
  if (!InArea(path)) return plain_.CreateExclusive(path, data);
  OC_TRY(area, OpenArea(path));
  OC_TRY(spot, Spot::Of(area, "create"));
  OC_TRY(temporary, spot.WriteTemporary(data, false, path));
  const int folder = spot.folder.Get();
  if (renameat2(folder, temporary.c_str(), folder, spot.name.c_str(), RENAME_NOREPLACE) == 0) return {};
  const int error = errno;
  unlinkat(folder, temporary.c_str(), 0);
  return Errno(error, "create", path);
}

Result<void> UserAreaFiles::MakeFolders(const std::string& path) {
  if (!InArea(path)) return plain_.MakeFolders(path);
  OC_TRY(area, OpenArea(path));
  Fd at = OpenBelow(area.folder, ".", kFolderFlags);
  for (const std::string& name : Split(area.below, '/')) {
    if (!at) return Errno(errno, "make folder", path);
    if (name.empty()) continue;
    if (name == "." || name == "..") return Errno(EINVAL, "make folder", path);
    if (mkdirat(at.Get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return Errno(errno, "make folder", path);
    at = OpenBelow(at, name, kFolderFlags);
  }
  if (!at) return Errno(errno, "make folder", path);
  return {};
}

Result<void> UserAreaFiles::Rename(const std::string& from, const std::string& to) {
  if (!InArea(from) && !InArea(to)) return plain_.Rename(from, to);
  const auto area_of = [](std::string_view inside) { return inside.substr(0, inside.find('/')); };
  if (!InArea(from) || !InArea(to) || area_of(*InArea(from)) != area_of(*InArea(to)))
    return Errno(EXDEV, "rename", from);
  OC_TRY(area, OpenArea(from));
  OC_TRY(old_spot, Spot::Of(area, "rename"));
  const std::string_view target = *InArea(to);
  area.below = target.substr(std::min(target.find('/') + 1, target.size()));
  OC_TRY(new_spot, Spot::Of(area, "rename"));
  if (renameat(old_spot.folder.Get(), old_spot.name.c_str(), new_spot.folder.Get(), new_spot.name.c_str()) ==
      0)
    return {};
  return Errno(errno, "rename", from);
}

Result<void> UserAreaFiles::SyncFolder(const std::string& path) {
  if (!InArea(path)) return plain_.SyncFolder(path);
  OC_TRY(area, OpenArea(path));
  const Fd fd = OpenBelow(area.folder, area.below, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (!fd || fsync(fd.Get()) != 0) return Errno(errno, "sync folder", path);
  return {};
}

Result<void> UserAreaFiles::Remove(const std::string& path) {
  if (!InArea(path)) return plain_.Remove(path);
  OC_TRY(area, OpenArea(path));
  OC_TRY(spot, Spot::Of(area, "remove"));
  if (unlinkat(spot.folder.Get(), spot.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return Errno(errno, "remove", path);
}

Result<void> UserAreaFiles::RemoveTree(const std::string& path) {
  const auto inside = InArea(path);
  if (!inside) return plain_.RemoveTree(path);
  if (!Exists(path)) return {};
  const std::string trash = StrCat(users_, "/", inside->substr(0, inside->find('/')), "/trash");
  OC_TRY_VOID(MakeFolders(trash));
  return Rename(path, StrCat(trash, "/", TemporaryName().substr(kTemporaryPrefix.size())));
}

bool UserAreaFiles::Exists(const std::string& path) const {
  if (!InArea(path)) return plain_.Exists(path);
  const auto area = OpenArea(path);
  if (!area) return false;
  if (area->below.empty()) return true;
  const auto spot = Spot::Of(*area, "look at");
  struct stat info {};
  return spot && fstatat(spot->folder.Get(), spot->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::vector<std::string>> UserAreaFiles::List(const std::string& path) const {
  if (!InArea(path)) return plain_.List(path);
  OC_TRY(area, OpenArea(path));
  Fd fd = OpenBelow(area.folder, area.below, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  DIR* opened = fd ? fdopendir(fd.Get()) : nullptr;
  if (opened == nullptr) return Errno(errno, "list", path);
  (void)fd.Release();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opened, closedir);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || name.starts_with(kTemporaryPrefix)) continue;
    if (names.size() == kMostNames) return Errno(EFBIG, "list", path);
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

int64_t UserAreaFiles::FolderChangedUs(const std::string& path) const {
  if (!InArea(path)) return plain_.FolderChangedUs(path);
  const auto changed = [](const struct stat& seen) {
    return int64_t{seen.st_mtim.tv_sec} * 1'000'000 + seen.st_mtim.tv_nsec / 1000;
  };
  const auto area = OpenArea(path);
  if (!area) return 0;
  Fd fd = OpenBelow(area->folder, area->below, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  struct stat seen {};
  if (!fd || fstat(fd.Get(), &seen) != 0) return 0;
  int64_t latest = changed(seen);
  DIR* opened = fdopendir(fd.Get());
  if (opened == nullptr) return latest;
  (void)fd.Release();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opened, closedir);
  int left = kMostEntriesLookedAt;
  for (const dirent* entry = readdir(opened); entry != nullptr && left > 0; entry = readdir(opened), --left) {
    const bool upwards = std::string_view(entry->d_name) == "..";
    if (!upwards && fstatat(dirfd(opened), entry->d_name, &seen, AT_SYMLINK_NOFOLLOW) == 0)
      latest = std::max(latest, changed(seen));
  }
  return latest;
}

}  // namespace overcap
