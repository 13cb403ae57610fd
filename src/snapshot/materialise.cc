// SPDX-License-Identifier: Apache-2.0
#include "snapshot/materialise.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"
#include "snapshot/code_tree.h"
#include "snapshot/file_io.h"
#include "snapshot/folder_builder.h"
#include "snapshot/spare.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

// A complete copy at `path`.
Result<MaterialiseReport> Copy(const SnapshotStore& store, std::string_view tree_id, const std::string& path,
                               const std::function<bool()>& cancelled) {
  return WithCodeTree(store, tree_id, [&](const CodeTree& tree, bool last) -> Result<MaterialiseReport> {
    FolderBuilder builder(tree, cancelled);
    Result<void> built = builder.Build(path);
    if (built) return MaterialiseReport{false, builder.files(), builder.bytes()};
    if (last && built.error().code == ErrorCode::kCorrupt) tree.DropDamaged();
    return Fail(std::move(built).error());
  });
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
  const std::string copy = TemporaryName("spare");
  OC_TRY_VOID(Copy(store, tree.Hex(), StrCat(store.LocalFolder(), "/", copy), {}));
  return AddSpare(store, tree, copy);
}

}  // namespace

Result<MaterialiseReport> Materialise(const SnapshotStore& store, std::string_view tree_id,
                                      const std::string& target, const MaterialiseOptions& options) {
  OC_TRY(tree, ParseStoredId(tree_id, "tree"));
  if (options.use_spare) {
    OC_TRY(taken, TakeSpare(store, tree, target));
    if (taken) return MaterialiseReport{true, 0, 0};
  }
  if (Exists(target)) return ExistsAlready(target);
  const std::string temporary = StrCat(target, ".", TemporaryName("copy").substr(4));
  OC_TRY(report, Copy(store, tree_id, temporary, options.cancelled));
  if (RenameNew(AT_FDCWD, temporary, AT_FDCWD, target)) return report;
  const int error_number = errno;
  (void)RemoveTree(temporary);
  if (error_number == EEXIST || error_number == ENOTEMPTY) return ExistsAlready(target);
  return Fail(ErrnoError(error_number, StrCat("cannot make '", target, "'")));
}

Result<void> PrepareSpare(const SnapshotStore& store, std::string_view tree_id, int count) {
  OC_TRY(tree, ParseStoredId(tree_id, "tree"));
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
