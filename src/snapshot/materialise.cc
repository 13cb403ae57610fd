// SPDX-License-Identifier: Apache-2.0
#include "snapshot/materialise.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
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

// Fills one new folder with the entries of a tree.
class Builder {
 public:
  Builder(const SnapshotStore& store, bool hard_links) : store_(store), hard_links_(hard_links) {}

  // Makes the folder `path`; removes it again when that fails.
  Result<MaterialiseReport> Build(const std::vector<TreeEntry>& entries, const std::string& path) {
    if (mkdir(path.c_str(), 0700) != 0) return Fail(ErrnoError(errno, StrCat("cannot make '", path, "'")));
    Result<MaterialiseReport> report = Fill(entries, path);
    if (!report) (void)RemoveTree(path);
    if (!report && report.error().code == ErrorCode::kCorrupt) store_.ForgetCaptures();
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
    bytes_ += entry.size;
    const Fd object(openat(store_.FolderFd(), ObjectPath(ObjectKind::kContent, entry.content).c_str(),
                           O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!object && errno == ENOENT) return Damaged(entry, "missing");
    struct stat status;
    if (!object || fstat(object.Get(), &status) != 0) {
      return Fail(
          ErrnoError(errno, StrCat("cannot read object '", entry.content.Hex(), "' for '", entry.path, "'")));
    }
    if (status.st_size != entry.size) {
      return Damaged(entry, StrCat("damaged: it has ", status.st_size, " bytes instead of ", entry.size));
    }
    if (entry.kind == EntryKind::kLink) return MakeLink(entry);
    if (hard_links_ && entry.kind == EntryKind::kFile && HardLink(entry)) return {};
    return CopyFile(entry, object.Get());
  }

  Result<void> MakeLink(const TreeEntry& entry) {
    OC_TRY(target, store_.GetBlob(entry.content.Hex()));
    if (symlinkat(target.c_str(), fd_.Get(), entry.path.c_str()) != 0) return WriteError(entry.path);
    return {};
  }

  bool HardLink(const TreeEntry& entry) {
    return linkat(store_.FolderFd(), ObjectPath(ObjectKind::kContent, entry.content).c_str(), fd_.Get(),
                  entry.path.c_str(), 0) == 0;
  }

  Result<void> CopyFile(const TreeEntry& entry, int object) {
    const mode_t mode = entry.kind == EntryKind::kExecutable ? 0700 : 0600;
    const Fd fd(openat(fd_.Get(), entry.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd || !copier_.Copy(object, fd.Get(), entry.size)) return WriteError(entry.path);
    return {};
  }

  static tl::unexpected<Error> Damaged(const TreeEntry& entry, std::string_view how) {
    return Fail(ErrorCode::kCorrupt,
                StrCat("the snapshot cannot be copied: object '", entry.content.Hex(), "' of '", entry.path,
                       "' is ", how),
                "submit again from the folder of the code: what is damaged is then stored anew");
  }

  tl::unexpected<Error> WriteError(const std::string& entry) const {
    return Fail(ErrnoError(errno, StrCat("cannot make '", path_, entry.empty() ? "" : "/", entry, "'")));
  }

  const SnapshotStore& store_;
  const bool hard_links_;
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
  OC_TRY(entries, store.ReadTree(tree.Hex()));
  const std::string copy = TemporaryName("spare");
  const Result<MaterialiseReport> built =
      Builder(store, false).Build(entries, StrCat(store.Folder(), "/", copy));
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
  OC_TRY(entries, store.ReadTree(tree_id));
  const std::string temporary = StrCat(target, ".", TemporaryName("copy").substr(4));
  OC_TRY(report, Builder(store, options.hard_links).Build(entries, temporary));
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
