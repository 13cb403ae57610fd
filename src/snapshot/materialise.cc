// SPDX-License-Identifier: Apache-2.0
#include "snapshot/materialise.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/text.h"
#include "snapshot/copy_file.h"
#include "snapshot/file_io.h"
#include "snapshot/parallel.h"
#include "snapshot/spare.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

constexpr int64_t kSmall = 256 << 10;  // read once, into the stack

// Reads `size` bytes, fewer at the end, or one more when there is more: so one call is enough to see both.
ssize_t ReadExpecting(int fd, size_t size, char* buffer) {
  size_t have = 0;
  do {
    const ssize_t got = ReadSome(fd, buffer + have, size + 1 - have);
    if (got < 0) return -1;
    if (got == 0) break;
    have += static_cast<size_t>(got);
  } while (have < size);
  return static_cast<ssize_t>(have);
}

// Fills one new folder with the entries of a tree.
class Builder {
 public:
  Builder(const SnapshotStore& store, const MaterialiseOptions& options)
      : store_(store), hard_links_(options.hard_links), cancelled_(options.cancelled) {}

  // Makes the folder `path`; removes it again when that fails.
  Result<MaterialiseReport> Build(const std::vector<TreeEntry>& entries, const std::string& path) {
    if (mkdir(path.c_str(), 0700) != 0) return Fail(ErrnoError(errno, StrCat("cannot make '", path, "'")));
    Result<MaterialiseReport> report = Fill(entries, path);
    if (!report) (void)RemoveTree(path);
    return report;
  }

 private:
  Result<MaterialiseReport> Fill(const std::vector<TreeEntry>& entries, const std::string& path) {
    path_ = path;
    fd_ = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd_) return WriteError("");
    std::vector<const TreeEntry*> files;
    for (const TreeEntry& entry : entries) {
      if (entry.kind != EntryKind::kFolder) {
        files.push_back(&entry);
      } else if (mkdirat(fd_.Get(), entry.path.c_str(), 0700) != 0) {
        return WriteError(entry.path);
      }
    }
    OC_TRY_VOID(ParallelFor(files.size(), [&](size_t i) { return MakeEntry(*files[i]); }));
    return MaterialiseReport{false, copier_.Cloned(), static_cast<int64_t>(files.size()), bytes_};
  }

  Result<void> MakeEntry(const TreeEntry& entry) {
    if (cancelled_ && std::this_thread::get_id() == caller_ && cancelled_()) {
      return Fail(ErrorCode::kConflict, "cancelled while the code was copied");
    }
    bytes_ += entry.size;
    const Fd object(openat(store_.FolderFd(), ObjectPath(ObjectKind::kContent, entry.content).c_str(),
                           O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!object && errno == ENOENT) return Damaged(entry, "missing");
    if (!object) return ReadError(entry);
    return entry.size <= kSmall ? MakeSmall(entry, object.Get()) : MakeLarge(entry, object.Get());
  }

  // Checked before the first byte is written; of the system calls there are as few as can be.
  Result<void> MakeSmall(const TreeEntry& entry, int object) {
    std::array<char, kSmall + 1> buffer;
    const ssize_t got = ReadExpecting(object, static_cast<size_t>(entry.size), buffer.data());
    if (got < 0) return ReadError(entry);
    const std::string_view content(buffer.data(), static_cast<size_t>(got));
    if (got != entry.size || Sha256Of(content) != entry.content) return Altered(entry);
    if (entry.kind == EntryKind::kLink) return MakeLink(entry, std::string(content));
    if (HardLink(entry)) return {};
    const Fd fd = MakeFile(entry, O_WRONLY);
    if (!fd || !WriteWhole(fd.Get(), content)) return WriteError(entry.path);
    return {};
  }

  Result<void> MakeLarge(const TreeEntry& entry, int object) {
    if (entry.kind == EntryKind::kLink) {
      errno = ENAMETOOLONG;
      return WriteError(entry.path);
    }
    int64_t bytes = 0;
    if (HardLink(entry)) return HashToEnd(object, &bytes) == entry.content ? Result<void>() : Altered(entry);
    const Fd fd = MakeFile(entry, O_RDWR);
    if (!fd) return WriteError(entry.path);
    switch (copier_.Copy(object, fd.Get(), entry.content)) {
      case FileCopier::Outcome::kGood:
        return {};
      case FileCopier::Outcome::kDamaged:
        return Altered(entry);
      case FileCopier::Outcome::kFailed:
        break;
    }
    return WriteError(entry.path);
  }

  Result<void> MakeLink(const TreeEntry& entry, const std::string& target) {
    if (symlinkat(target.c_str(), fd_.Get(), entry.path.c_str()) != 0) return WriteError(entry.path);
    return {};
  }

  // False when it is not to be, or cannot be.
  bool HardLink(const TreeEntry& entry) {
    return hard_links_ && entry.kind == EntryKind::kFile &&
           linkat(store_.FolderFd(), ObjectPath(ObjectKind::kContent, entry.content).c_str(), fd_.Get(),
                  entry.path.c_str(), 0) == 0;
  }

  Fd MakeFile(const TreeEntry& entry, int access) {
    const mode_t mode = entry.kind == EntryKind::kExecutable ? 0700 : 0600;
    return Fd(openat(fd_.Get(), entry.path.c_str(), access | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  }

  tl::unexpected<Error> Altered(const TreeEntry& entry) {
    return Damaged(entry, "damaged: its content has changed");
  }

  tl::unexpected<Error> Damaged(const TreeEntry& entry, std::string_view how) {
    store_.DropDamaged(ObjectKind::kContent, entry.content);
    return Fail(ErrorCode::kCorrupt,
                StrCat("the snapshot cannot be copied: object '", entry.content.Hex(), "' of '", entry.path,
                       "' is ", how),
                "submit again from the folder of the code: what is damaged is then stored anew");
  }

  static tl::unexpected<Error> ReadError(const TreeEntry& entry) {
    return Fail(
        ErrnoError(errno, StrCat("cannot read object '", entry.content.Hex(), "' for '", entry.path, "'")));
  }

  tl::unexpected<Error> WriteError(const std::string& entry) const {
    return Fail(ErrnoError(errno, StrCat("cannot make '", path_, entry.empty() ? "" : "/", entry, "'")));
  }

  const SnapshotStore& store_;
  const bool hard_links_;
  const std::function<bool()> cancelled_;
  const std::thread::id caller_ = std::this_thread::get_id();
  FileCopier copier_;
  std::string path_;
  Fd fd_;
  std::atomic<int64_t> bytes_ = 0;
};

Result<Digest> ParseTreeId(std::string_view id) {
  const std::optional<Digest> digest = Digest::FromHex(id);
  if (!digest) return Fail(ErrorCode::kUsage, StrCat("'", id, "' is no id of a stored tree"));
  return *digest;
}

bool Exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

tl::unexpected<Error> ExistsAlready(const std::string& path) {
  return Fail(ErrorCode::kConflict, StrCat("'", path, "' exists already"));
}

Result<void> MakeOneSpare(const SnapshotStore& store, const Digest& tree) {
  OC_TRY(lock, store.LockShared());
  OC_TRY(entries, store.ReadTreeOrDrop(tree.Hex()));
  const std::string copy = TemporaryName("spare");
  const Result<MaterialiseReport> built =
      Builder(store, {}).Build(entries, StrCat(store.Folder(), "/", copy));
  if (!built) return Fail(built.error());
  return AddSpare(store, tree, copy);
}

}  // namespace

Result<MaterialiseReport> Materialise(const SnapshotStore& store, std::string_view tree_id,
                                      const std::string& target, const MaterialiseOptions& options) {
  OC_TRY(tree, ParseTreeId(tree_id));
  if (options.use_spare) {
    OC_TRY(taken, TakeSpare(store, tree, target));
    if (taken) return MaterialiseReport{true, false, 0, 0};
  }
  if (Exists(target)) return ExistsAlready(target);
  OC_TRY(lock, store.LockShared());
  OC_TRY(entries, store.ReadTreeOrDrop(tree_id));
  const std::string temporary = StrCat(target, ".", TemporaryName("copy").substr(4));
  OC_TRY(report, Builder(store, options).Build(entries, temporary));
  if (RenameNew(AT_FDCWD, temporary, AT_FDCWD, target)) return report;
  const int error_number = errno;
  (void)RemoveTree(temporary);
  if (error_number == EEXIST || error_number == ENOTEMPTY) return ExistsAlready(target);
  return Fail(ErrnoError(error_number, StrCat("cannot make '", target, "'")));
}

Result<void> PrepareSpare(const SnapshotStore& store, std::string_view tree_id, int count) {
  OC_TRY(tree, ParseTreeId(tree_id));
  if (SpareFolder().empty()) {
    return Fail(ErrorCode::kUnavailable, "cannot keep spares: the kernel does not tell its boot id");
  }
  for (int have = CountSpares(store, tree); have < std::min(count, kMaxSpares); ++have) {
    OC_TRY_VOID(MakeOneSpare(store, tree));
  }
  TrimSpares(store);
  return {};
}

}  // namespace overcap
