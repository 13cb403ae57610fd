// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits.h>
#include <set>
#include <sys/fanotify.h>
#include <unordered_map>

#include "base/text.h"
#include "control/folder_watch.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr uint64_t kEvents = FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_CLOSE_WRITE |
                             FAN_MODIFY | FAN_ATTRIB | FAN_ONDIR;
constexpr size_t kHandlesMost = 100'000;

// One mark for all of the file system: no folder has to be found or counted. What is not below the folder is
// left out by the path of the folder in which it happened.
class FanotifyWatch : public FolderWatch {
 public:
  FanotifyWatch(std::string folder, WatchIgnores ignores)
      : folder_(std::move(folder)), ignores_(std::move(ignores)) {}

  Result<void> Start() {
    fd_ = Fd(fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_DFID_NAME,
                           O_RDONLY | O_CLOEXEC));
    if (!fd_) return Failed("may not be used");
    root_ = Fd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root_) return Failed("cannot open the folder");
    if (fanotify_mark(fd_.Get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, kEvents, root_.Get(), nullptr) != 0) {
      return Failed("cannot watch this file system");
    }
    // Ids must lead back to paths; who may mark may not always do that.
    char probe[sizeof(file_handle) + MAX_HANDLE_SZ];
    auto* handle = reinterpret_cast<file_handle*>(probe);
    handle->handle_bytes = MAX_HANDLE_SZ;
    int mount = 0;
    if (name_to_handle_at(root_.Get(), "", handle, &mount, AT_EMPTY_PATH) != 0)
      return Failed("has no file handles here");
    const auto path = PathOf(*handle);
    if (!path) return Failed("may not open file handles");
    real_ = *path;
    return {};
  }

  std::string_view Kind() const override { return "fanotify"; }
  int PollFd() const override { return fd_.Get(); }

  Result<FolderNews> Take() override {
    FolderNews news;
    std::set<std::string> folders;
    // Paths of folders may change; what is known of handles holds for one batch.
    known_.clear();
    alignas(8) char buffer[64 << 10];
    while (true) {
      const ssize_t size = read(fd_.Get(), buffer, sizeof buffer);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;
      TakeBatch({buffer, static_cast<size_t>(size)}, &news, &folders);
    }
    const auto now = PathOfFd(root_.Get());
    if (!now || *now != real_) return Fail(ErrorCode::kUnavailable, StrCat("'", folder_, "' is gone"));
    news.folders.assign(folders.begin(), folders.end());
    return news;
  }

 private:
  static tl::unexpected<Error> Failed(std::string_view what) {
    return Fail(ErrorCode::kUnavailable, StrCat("fanotify ", what, ": ", strerror(errno)));
  }

  static std::optional<std::string> PathOfFd(int fd) {
    char target[PATH_MAX];
    const ssize_t size = readlink(StrCat("/proc/self/fd/", fd).c_str(), target, sizeof target);
    if (size <= 0 || size == sizeof target) return std::nullopt;
    return std::string(target, static_cast<size_t>(size));
  }

  std::optional<std::string> PathOf(file_handle& handle) const {
    const Fd fd(open_by_handle_at(root_.Get(), &handle, O_PATH | O_CLOEXEC));
    return fd ? PathOfFd(fd.Get()) : std::nullopt;
  }

  // The path below the folder of the one in which it happened; nullopt: it is elsewhere, or gone.
  std::optional<std::string> FolderOf(file_handle& handle) {
    const std::string key(reinterpret_cast<const char*>(&handle), sizeof handle + handle.handle_bytes);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    std::optional<std::string> below;
    if (const auto path = PathOf(handle)) {
      if (*path == real_)
        below = "";
      else if (path->starts_with(real_) && (*path)[real_.size()] == '/')
        below = path->substr(real_.size() + 1);
    }
    if (known_.size() < kHandlesMost) known_.emplace(key, below);
    return below;
  }

  // Events follow each other on borders of 4 bytes, which is less than their head needs.
  void TakeBatch(std::string_view bytes, FolderNews* news, std::set<std::string>* folders) {
    fanotify_event_metadata event{};
    while (bytes.size() >= sizeof event) {
      std::memcpy(&event, bytes.data(), sizeof event);
      if (event.event_len < sizeof event || event.event_len > bytes.size()) return;
      Note(event, bytes.substr(sizeof event, event.event_len - sizeof event), news, folders);
      bytes.remove_prefix(event.event_len);
    }
  }

  void Note(const fanotify_event_metadata& event, std::string_view rest, FolderNews* news,
            std::set<std::string>* folders) {
    if ((event.mask & FAN_Q_OVERFLOW) != 0) {
      news->changed = news->lost = true;
      return;
    }
    const auto* info = reinterpret_cast<const fanotify_event_info_fid*>(rest.data());
    if (rest.size() < sizeof *info || info->hdr.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME) return;
    auto* handle = reinterpret_cast<file_handle*>(const_cast<unsigned char*>(info->handle));
    const auto folder = FolderOf(*handle);
    if (!folder) return;
    const std::string_view name(reinterpret_cast<const char*>(handle->f_handle) + handle->handle_bytes);
    const bool is_folder = (event.mask & FAN_ONDIR) != 0;
    const std::string path = name == "."       ? *folder
                             : folder->empty() ? std::string(name)
                                               : StrCat(*folder, "/", name);
    if (IgnoredOnTheWay(path, is_folder)) return;
    news->changed = true;
    folders->insert(*folder);
    if (is_folder && (event.mask & (FAN_CREATE | FAN_MOVED_TO)) != 0) news->deep.push_back(path);
  }

  // What is below an ignored folder is told all the same.
  bool IgnoredOnTheWay(const std::string& path, bool is_folder) const {
    for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      if (ignores_(std::string_view(path).substr(0, slash), true)) return true;
    }
    return !path.empty() && ignores_(path, is_folder);
  }

  const std::string folder_;
  const WatchIgnores ignores_;
  std::string real_;  // as the kernel calls the folder
  Fd fd_, root_;
  std::unordered_map<std::string, std::optional<std::string>> known_;
};

}  // namespace

Result<std::unique_ptr<FolderWatch>> WatchByFanotify(const std::string& folder, WatchIgnores ignores) {
  auto watch = std::make_unique<FanotifyWatch>(folder, std::move(ignores));
  OC_TRY_VOID(watch->Start());
  return watch;
}

}  // namespace overcap
