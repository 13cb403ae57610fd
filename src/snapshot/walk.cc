// SPDX-License-Identifier: Apache-2.0
#include "snapshot/walk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <iterator>

#include "base/text.h"
#include "base/units.h"
#include "snapshot/file_io.h"
#include "snapshot/parallel.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr size_t kMaxNotes = 20;

struct Name {
  std::string text;
  unsigned char type;  // DT_*
};

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

unsigned char TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return DT_REG;
  if (S_ISDIR(mode)) return DT_DIR;
  return S_ISLNK(mode) ? DT_LNK : DT_SOCK;  // all the rest is skipped alike
}

tl::unexpected<Error> Unreadable(int error_number, const std::string& path) {
  Error error = ErrnoError(error_number, StrCat("cannot capture '", path, "'"));
  error.hint = StrCat("make it readable, or add the line '/", path, "' to .overcapignore to leave it out");
  return Fail(std::move(error));
}

constexpr int kSplitDepth = 2;  // folders so deep are walked by several threads, each by one

// A folder that is walked by itself.
struct Branch {
  std::string path;
  IgnoreStack ignore;
  size_t place = 0;  // how many entries stand before it
};

// How much all threads have found.
class Budget {
 public:
  explicit Budget(const WalkLimit& limit) : limit_(limit) {}

  Result<void> Take(int64_t bytes) {
    files_ += 1;
    bytes_ += bytes;
    if (files_ <= limit_.files && bytes_ <= limit_.bytes) return {};
    return Fail(ErrorCode::kUsage, StrCat("it has more than ", CountOf(limit_.files, "file"), " or ",
                                          FormatBytes(limit_.bytes)));
  }

 private:
  const WalkLimit limit_;
  std::atomic<int64_t> files_ = 0, bytes_ = 0;
};

// One walk. `path_` is the folder at hand with '/' at its end, or "".
class Walker {
 public:
  // `branches` is where folders go that are walked later; nullptr: none does.
  Walker(IgnoreStack ignore, const std::string& skip, Budget* budget, std::vector<Branch>* branches)
      : ignore_(std::move(ignore)), skip_(skip), budget_(*budget), branches_(branches) {}

  // Below the folder itself, which is added too.
  Result<void> Walk(int root_fd, const std::string& path) {
    path_ = path;
    return SubFolder(root_fd, path);
  }

  Result<void> Folder(int fd) {
    OC_TRY(names, List(fd));
    const bool has_rules = EnterRules(fd, names);
    const size_t length = path_.size();
    for (const Name& name : names) {
      path_.append(name.text);
      OC_TRY_VOID(Entry(fd, name));
      path_.resize(length);
    }
    if (has_rules) ignore_.Leave();
    return {};
  }

  WalkResult Take() { return std::move(result_); }

 private:
  Result<std::vector<Name>> List(int fd) {
    std::vector<Name> names;
    while (true) {
      const ssize_t got = getdents64(fd, buffer_.data(), buffer_.size());
      if (got == 0 || (got < 0 && errno == ENOENT)) break;  // ENOENT: the open folder was removed
      if (got < 0) return Unreadable(errno, path_);
      for (ssize_t at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer_.data() + at);
        at += entry->d_reclen;
        const std::string_view name = entry->d_name;
        if (name != "." && name != ".." && name != ".git")
          names.push_back({std::string(name), entry->d_type});
      }
    }
    std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.text < b.text; });
    return names;
  }

  bool EnterRules(int fd, const std::vector<Name>& names) {
    std::string git;
    std::string overcap;
    bool any = false;
    for (const Name& name : names) {
      if (name.text[0] != '.' || (name.text != kGitIgnoreName && name.text != kOvercapIgnoreName)) continue;
      (name.text == kGitIgnoreName ? git : overcap) = ReadFileOrNothing(fd, name.text);
      any = true;
    }
    if (any) ignore_.Enter(path_, git, overcap);
    return any;
  }

  // The entry `name` of the folder `fd`; path_ is its path.
  Result<void> Entry(int fd, const Name& name) {
    struct stat status;
    bool known = false;
    unsigned char type = name.type;
    if (type == DT_UNKNOWN) {
      if (fstatat(fd, name.text.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return Gone(errno);
      type = TypeOf(status.st_mode);
      known = true;
    }
    if (path_ == skip_ || ignore_.Ignores(path_, type == DT_DIR)) return {};
    if (type == DT_DIR) return SubFolder(fd, name.text);
    if (type != DT_REG && type != DT_LNK) return Note();
    if (!known && fstatat(fd, name.text.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return Gone(errno);
    if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) OC_TRY_VOID(budget_.Take(status.st_size));
    if (S_ISREG(status.st_mode)) {
      Add((status.st_mode & S_IXUSR) != 0 ? EntryKind::kExecutable : EntryKind::kFile, FileStamp::Of(status));
    } else if (S_ISLNK(status.st_mode)) {
      Add(EntryKind::kLink, FileStamp::Of(status));
    }
    return {};
  }

  Result<void> SubFolder(int parent_fd, const std::string& name) {
    if (branches_ != nullptr && depth_ + 1 == kSplitDepth) {
      branches_->push_back({path_, ignore_, result_.entries.size()});
      return {};
    }
    const Fd fd(openat(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return Gone(errno);
    Add(EntryKind::kFolder, {});
    path_.push_back('/');
    ++depth_;
    Result<void> walked = Folder(fd.Get());
    --depth_;
    return walked;
  }

  void Add(EntryKind kind, const FileStamp& stamp) { result_.entries.push_back({path_, kind, stamp}); }

  // What vanished between being listed and being looked at is not part of the folder any more.
  Result<void> Gone(int error_number) {
    if (error_number == ENOENT || error_number == ENOTDIR || error_number == ELOOP) return {};
    return Unreadable(error_number, path_);
  }

  Result<void> Note() {
    if (result_.notes.size() < kMaxNotes) {
      result_.notes.push_back(StrCat("skipped '", path_, "': neither file, folder nor link"));
    }
    return {};
  }

  IgnoreStack ignore_;
  const std::string& skip_;
  Budget& budget_;
  std::vector<Branch>* const branches_;
  std::string path_;
  int depth_ = 0;
  WalkResult result_;
  alignas(dirent64) std::array<char, 32768> buffer_;
};

// The branches in their places.
WalkResult Put(WalkResult top, const std::vector<Branch>& branches, std::vector<WalkResult> found) {
  if (branches.empty()) return top;
  WalkResult all;
  all.notes = std::move(top.notes);
  const auto from = std::make_move_iterator(top.entries.begin());
  size_t taken = 0;
  const auto take_to = [&](size_t end) {
    all.entries.insert(all.entries.end(), from + static_cast<ptrdiff_t>(taken),
                       from + static_cast<ptrdiff_t>(end));
    taken = end;
  };
  for (size_t i = 0; i < branches.size(); ++i) {
    take_to(branches[i].place);
    std::move(found[i].entries.begin(), found[i].entries.end(), std::back_inserter(all.entries));
    std::move(found[i].notes.begin(), found[i].notes.end(), std::back_inserter(all.notes));
  }
  take_to(top.entries.size());
  if (all.notes.size() > kMaxNotes) all.notes.resize(kMaxNotes);
  return all;
}

}  // namespace

FileStamp FileStamp::Of(const struct stat& status) {
  return FileStamp{int64_t{status.st_size}, Nanoseconds(status.st_mtim), Nanoseconds(status.st_ctim),
                   uint64_t{status.st_ino}, uint32_t{status.st_mode}};
}

Result<WalkResult> Walk(int folder_fd, IgnoreStack ignore, const std::string& skip, const WalkLimit& limit) {
  std::vector<Branch> branches;
  Budget budget(limit);
  Walker top(std::move(ignore), skip, &budget, &branches);
  OC_TRY_VOID(top.Folder(folder_fd));
  std::vector<WalkResult> found(branches.size());
  const auto walk = [&](size_t i) -> Result<void> {
    Walker walker(branches[i].ignore, skip, &budget, nullptr);
    OC_TRY_VOID(walker.Walk(folder_fd, branches[i].path));
    found[i] = walker.Take();
    return {};
  };
  OC_TRY_VOID(ParallelFor(branches.size(), walk, {.items_per_thread = 4, .run = 1}));
  return Put(top.Take(), branches, std::move(found));
}

}  // namespace overcap
