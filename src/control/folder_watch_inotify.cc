// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <set>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unordered_map>

#include "base/text.h"
#include "control/folder_watch.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE |
                             IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR |
                             IN_DONT_FOLLOW | IN_EXCL_UNLINK;

// Each costs the kernel about a KiB, of the memory that the work itself needs.
constexpr size_t kWatchesMost = 200'000;

std::string Below(std::string_view folder, std::string_view name) {
  return folder.empty() ? std::string(name) : StrCat(folder, "/", name);
}

class InotifyWatch : public FolderWatch {
 public:
  InotifyWatch(std::string folder, WatchIgnores ignores)
      : folder_(std::move(folder)), ignores_(std::move(ignores)) {}

  Result<void> Start() {
    fd_ = Fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!fd_) return Fail(ErrorCode::kUnavailable, StrCat("inotify: ", strerror(errno)));
    return AddTree("");
  }

  std::string_view Kind() const override { return "inotify"; }
  int PollFd() const override { return fd_.Get(); }

  Result<FolderNews> Take() override {
    FolderNews news;
    std::set<std::string> folders;
    alignas(inotify_event) char buffer[64 << 10];
    while (true) {
      const ssize_t size = read(fd_.Get(), buffer, sizeof buffer);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;
      for (ssize_t at = 0; at < size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        OC_TRY_VOID(Note(*event, event->len > 0 ? std::string_view(event->name) : std::string_view(), &news,
                         &folders));
        at += static_cast<ssize_t>(sizeof *event + event->len);
      }
    }
    news.folders.assign(folders.begin(), folders.end());
    return news;
  }

 private:
  Result<void> Note(const inotify_event& event, std::string_view name, FolderNews* news,
                    std::set<std::string>* folders) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      news->changed = news->lost = true;
      // New folders may have gone by unseen.
      return AddTree("");
    }
    const auto found = paths_.find(event.wd);
    if (found == paths_.end()) return {};
    const std::string folder = found->second;
    if ((event.mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
      if (folder.empty()) return Fail(ErrorCode::kUnavailable, StrCat("'", folder_, "' is gone"));
      if ((event.mask & IN_IGNORED) != 0) paths_.erase(found);
      return {};
    }
    const bool is_folder = (event.mask & IN_ISDIR) != 0;
    const std::string path = Below(folder, name);
    if (!name.empty() && ignores_(path, is_folder)) return {};
    news->changed = true;
    folders->insert(folder);
    if (!is_folder || name.empty()) return {};
    if ((event.mask & IN_MOVED_FROM) != 0) Forget(path);
    if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
      news->deep.push_back(path);
      return AddTree(path);
    }
    return {};
  }

  // Folders that were moved are told of under their new names, or not at all.
  void Forget(const std::string& path) {
    for (auto at = paths_.begin(); at != paths_.end();) {
      const bool below =
          at->second == path ||
          (at->second.size() > path.size() && at->second.starts_with(path) && at->second[path.size()] == '/');
      if (below) inotify_rm_watch(fd_.Get(), at->first);
      at = below ? paths_.erase(at) : std::next(at);
    }
  }

  // The folder first, then what is in it: what is made meanwhile is told.
  Result<void> AddTree(const std::string& top) {
    std::vector<std::string> todo = {top};
    while (!todo.empty()) {
      const std::string path = std::move(todo.back());
      todo.pop_back();
      OC_TRY(there, AddOne(path));
      if (there) List(path, &todo);
    }
    return {};
  }

  // False: it is gone again, or not ours to look into.
  Result<bool> AddOne(const std::string& path) {
    const std::string full = path.empty() ? folder_ : StrCat(folder_, "/", path);
    if (paths_.size() >= kWatchesMost) {
      return Fail(ErrorCode::kUnavailable,
                  StrCat("there are more than ", kWatchesMost, " folders in ", Quoted(folder_, 200)));
    }
    const int watch = inotify_add_watch(fd_.Get(), full.c_str(), kEvents);
    if (watch >= 0) {
      paths_[watch] = path;
      return true;
    }
    if (errno == ENOSPC) {
      return Fail(ErrorCode::kUnavailable, StrCat("there are no inotify watches left after ", paths_.size(),
                                                  " folders (fs.inotify.max_user_watches)"));
    }
    if (path.empty() || errno == ENAMETOOLONG || errno == ENOMEM) {
      return Fail(ErrorCode::kUnavailable, StrCat("cannot watch ", Quoted(full, 200), ": ", strerror(errno)));
    }
    return false;
  }

  void List(const std::string& path, std::vector<std::string>* todo) const {
    const std::string full = path.empty() ? folder_ : StrCat(folder_, "/", path);
    DIR* folder = opendir(full.c_str());
    if (folder == nullptr) return;
    while (const dirent* entry = readdir(folder)) {
      const std::string_view name(entry->d_name);
      if (name == "." || name == "..") continue;
      if (entry->d_type != DT_DIR && (entry->d_type != DT_UNKNOWN || !IsFolder(dirfd(folder), entry->d_name)))
        continue;
      std::string below = Below(path, name);
      if (!ignores_(below, true)) todo->push_back(std::move(below));
    }
    closedir(folder);
  }

  static bool IsFolder(int folder, const char* name) {
    struct stat info {};
    return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
  }

  const std::string folder_;
  const WatchIgnores ignores_;
  Fd fd_;
  std::unordered_map<int, std::string> paths_;  // by watch
};

}  // namespace

Result<std::unique_ptr<FolderWatch>> WatchByInotify(const std::string& folder, WatchIgnores ignores) {
  auto watch = std::make_unique<InotifyWatch>(folder, std::move(ignores));
  OC_TRY_VOID(watch->Start());
  return watch;
}

Result<std::unique_ptr<FolderWatch>> WatchFolder(const std::string& folder, WatchIgnores ignores) {
  auto watch = WatchByInotify(folder, ignores);
  if (watch) return watch;
  auto other = WatchByFanotify(folder, std::move(ignores));
  return other ? std::move(other) : std::move(watch);
}

}  // namespace overcap
